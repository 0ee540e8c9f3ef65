"""The one place where format names are bound to their implementations.

Adding a built-in format touches its own file and one line here. Plugins add entry points of the group `derender.formats`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from parsers.engine.exceptions import ParserConfigurationError
from parsers.engine.parser import ParserPlan
from parsers.engine.stage import Format, ReasoningFormat, ToolFormat
from parsers.engine.vocabulary import Vocabulary
from parsers.formats import deepseek_r1, qwen3

BUILT_IN: tuple[type[Format], ...] = (
    deepseek_r1.DeepSeekR1Reasoning,
    qwen3.Qwen3CoderTools,
    qwen3.Qwen3Reasoning,
)


@cache
def tool_formats() -> Mapping[str, type[Format]]:
    """Name -> class of every tool parser."""
    return {name: cls for cls in BUILT_IN if issubclass(cls, ToolFormat) for name in cls.names}


@cache
def reasoning_formats() -> Mapping[str, type[Format]]:
    """Name -> class of every reasoning parser."""
    return {name: cls for cls in BUILT_IN if issubclass(cls, ReasoningFormat) for name in cls.names}


def build_plan(*, tool_parser: str | None, reasoning_parser: str | None, vocabulary: Vocabulary) -> ParserPlan | None:
    """The parsers of one model; None if neither is named.

    Raises ParserConfigurationError for an unknown name or a tokenizer that lacks what a format needs.
    """
    if not tool_parser and not reasoning_parser:
        return None
    tools = reasoning = None
    if tool_parser:
        tools = _lookup(tool_formats(), tool_parser, "tool")(vocabulary)
    if reasoning_parser:
        reasoning = _lookup(reasoning_formats(), reasoning_parser, "reasoning")(vocabulary)
    name = f"{tool_parser or ''}+{reasoning_parser or ''}"
    return ParserPlan(name=name, reasoning=reasoning, tools=tools)


def _lookup(known: Mapping[str, type[Format]], name: str, kind: str) -> type[Format]:
    try:
        return known[name]
    except KeyError:
        raise ParserConfigurationError(f"unknown {kind} parser {name!r}; known: {', '.join(sorted(known))}") from None
