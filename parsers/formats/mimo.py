"""Xiaomi MiMo-V2: the markup of `qwen3`, but every character of a value counts, line breaks at its ends included.

<think>The user asks for the weather.</think>Let me look.
<tool_call>
<function=get_weather>
<parameter=city>Paris</parameter>
</function>
</tool_call>
"""

from __future__ import annotations

from dataclasses import replace

from parsers.engine.xml_arguments import XmlParameters
from parsers.formats import qwen3
from parsers.formats.base import MarkerReasoning, MarkerTools


class VerbatimParameters(XmlParameters):
    """Values as they are written."""

    strips_newlines = False


GRAMMAR = replace(qwen3.GRAMMAR, writer=VerbatimParameters)


class MimoReasoning(MarkerReasoning):
    """`mimo` (xml 13)."""

    names = ("mimo",)
    grammar = GRAMMAR


class MimoTools(MarkerTools):
    """`mimo` (xml 2)."""

    names = ("mimo",)
    grammar = GRAMMAR
