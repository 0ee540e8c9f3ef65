"""Beam: the machine of `hf`; its tokenizers bring a `response_template` of their own, for example

<|think|>The user asks for the weather.<|done|><|turn|>bot<|say|>Let me look.<|done|>
<|turn|>bot<|tool|>get_weather<|args|><arg name="city">Paris</arg><|eos|>

(in one line). Text outside these regions is nobody's.
"""

from __future__ import annotations

from parsers.formats.hf import ResponseTemplateFormat


class Beam(ResponseTemplateFormat):
    """`beam` (newest 10)."""

    names = ("beam",)
