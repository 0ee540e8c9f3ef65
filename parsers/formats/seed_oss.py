"""ByteDance Seed-OSS: the grammar of `qwen3` with tags of its own around thoughts and calls.

<seed:think>
The user asks for the weather.
</seed:think>
<seed:tool_call>
<function=get_weather>
<parameter=city>Paris</parameter>
</function>
</seed:tool_call>
"""

from __future__ import annotations

from dataclasses import replace

from parsers.formats import qwen3
from parsers.formats.base import MarkerReasoning, MarkerTools

GRAMMAR = replace(
    qwen3.GRAMMAR,
    markers={
        **qwen3.GRAMMAR.markers,
        "think": ("<seed:think>",),
        "end_think": ("</seed:think>",),
        "call": ("<seed:tool_call>",),
        "end_call": ("</seed:tool_call>",),
    },
    boundaries=("<seed:bos>", "<seed:eos>"),
)


class SeedOssReasoning(MarkerReasoning):
    """`seed_oss` (xml 13)."""

    names = ("seed_oss",)
    grammar = GRAMMAR


class SeedOssTools(MarkerTools):
    """`seed_oss` (xml 3): a forced choice is expected as plain JSON."""

    names = ("seed_oss",)
    grammar = GRAMMAR
    guided_choice = True
