"""Calls whose arguments are pairs of keys and values: GLM, Ling 3, HY V4."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from derender_api.render.grammars.base import CallTool, guards_calls
from derender_api.render.grammars.plain import THOUGHTS
from derender_api.render.structural_tags import (
    Node,
    any_text,
    const,
    either,
    either_or_alone,
    schema,
    separated,
    sequence,
    star,
    tag,
    triggered,
)

PAIR_MARKS = ("</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
ANYWHERE = (*THOUGHTS, *PAIR_MARKS)
IN_VALUES = (*THOUGHTS, "<tool_call>", *PAIR_MARKS)
STYLE = "glm_xml"


@dataclass(frozen=True, slots=True)
class GlmCalls:
    """GLM and Ling 3: keys are held to the tool's, values to their types; `always`: also unasked."""

    always: bool

    def forced(self, tools: Sequence[CallTool], *, single: bool) -> Node:
        """Calls alone, but in free text where every tool is strict."""
        if all(tool.strict for tool in tools):
            return self._in_text(tools, single=single, forced=True)
        return separated(map(self._call, tools), single=single)

    def named(self, tool: CallTool) -> Node:
        """The call alone."""
        return self._call(tool) if tool.strict else separated([self._call(tool)], single=True)

    def guarded(self, tools: Sequence[CallTool], *, single: bool) -> Node | None:
        """Free text with calls."""
        if not self.always and not guards_calls(tools, single=single):
            return None
        return self._in_text(tools, single=single, forced=False)

    def _in_text(self, tools: Sequence[CallTool], *, single: bool, forced: bool) -> Node:
        return triggered("<tool_call>", map(self._call, tools), single=single, forced=forced, excludes=ANYWHERE)

    def _call(self, tool: CallTool) -> Node:
        return tag(f"<tool_call>{tool.name}", self._arguments(tool), "</tool_call>")

    def _arguments(self, tool: CallTool) -> Node:
        properties = _properties(tool)
        is_open = isinstance(tool.parameters, Mapping) and tool.parameters.get("additionalProperties") is True
        if tool.strict or not properties or is_open:
            return schema(tool.schema, style=STYLE)
        return star(either_or_alone(self._pair(key, value) for key, value in properties.items()))

    def _pair(self, key: str, value: Any) -> Node:
        return sequence(const(f"<arg_key>{key}</arg_key><arg_value>"), _value(value), const("</arg_value>"))


@dataclass(frozen=True, slots=True)
class HyCalls:
    """HY V4: required keys in their order, then others; `suffix` is part of every tag in some vocabularies."""

    suffix: str = ""

    def forced(self, tools: Sequence[CallTool], *, single: bool) -> Node:
        """The section."""
        calls = separated(map(self._call, tools), single=single)
        return sequence(const(self._open("tool_calls")), calls, const(self._close("tool_calls")))

    def named(self, tool: CallTool) -> Node:
        """The section with one call."""
        return self.forced([tool], single=True)

    def guarded(self, tools: Sequence[CallTool], *, single: bool) -> Node | None:
        """Left to the model."""
        return None

    def _open(self, name: str) -> str:
        return f"<{name}{self.suffix}>"

    def _close(self, name: str) -> str:
        return f"</{name}{self.suffix}>"

    def _call(self, tool: CallTool) -> Node:
        return tag(self._open("tool_call") + tool.name, self._arguments(tool), self._close("tool_call"))

    def _arguments(self, tool: CallTool) -> Node:
        properties = list(_properties(tool))
        required = tool.parameters.get("required") if isinstance(tool.parameters, Mapping) else None
        # In the order of the properties; keys that are required but not described come last.
        wanted = [key for key in required if isinstance(key, str)] if isinstance(required, list) else []
        first = [key for key in properties if key in wanted] + [key for key in wanted if key not in properties]
        rest = [key for key in properties if key not in wanted]
        if not first and not rest:
            return any_text()
        others = [star(either_or_alone(map(self._pair, rest)))] if rest else []
        return sequence(*map(self._pair, first), *others)

    def _pair(self, key: str) -> Node:
        key_tags = self._open("arg_key"), self._close("arg_key")
        value_tags = self._open("arg_value"), self._close("arg_value")
        return sequence(
            const(key_tags[0]), const(key), const(key_tags[1]), const(value_tags[0]), any_text(), const(value_tags[1])
        )


def _properties(tool: CallTool) -> Mapping[str, Any]:
    properties = tool.parameters.get("properties") if isinstance(tool.parameters, Mapping) else None
    return properties if isinstance(properties, Mapping) else {}


def _value(described: Any) -> Node:
    """A value of a described parameter: one of its enumeration, JSON of its types, or text."""
    described = described if isinstance(described, Mapping) else {}
    enumeration, kinds = described.get("enum"), described.get("type")
    if isinstance(enumeration, list):
        return either(const(each if isinstance(each, str) else json.dumps(each)) for each in enumeration)
    if isinstance(kinds, list):
        return either(_of_types(kinds))
    return any_text(IN_VALUES) if kinds in (None, "string") else schema({"type": kinds})


def _of_types(kinds: Sequence[Any]) -> Iterator[Node]:
    """JSON of every type but text, then text."""
    yield from (schema({"type": kind}) for kind in kinds if kind != "string")
    if "string" in kinds:
        yield any_text(IN_VALUES)


GLM = GlmCalls(always=True)
LING3 = GlmCalls(always=False)
