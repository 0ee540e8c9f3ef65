"""Calls of Kimi K3: an answer in one channel, then calls with typed arguments in another."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from derender_api.render.grammars.base import CallTool, guards_calls
from derender_api.render.structural_tags import (
    Node,
    any_text,
    const,
    either,
    either_or_alone,
    optional,
    plus,
    regex,
    schema,
    separated,
    sequence,
    star,
    tag,
)

TYPES: Mapping[Any, str] = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
    "array": "array",
    "object": "object",
}
"""JSON schema type -> type in the markup."""

ANSWER_EXCLUDES = ("<|open|>", "<|close|>", "<|end_of_msg|>")
END_OF_ARGUMENT = "<|close|>argument<|sep|>"
END_OF_VALUE = ("<|close|>",)


class KimiK3Calls:
    """Every output has an answer, possibly empty; forced calls follow it."""

    def forced(self, tools: Sequence[CallTool], *, single: bool) -> Node:
        """The answer and the calls."""
        return self._message(self._calls(tools, single=single))

    def named(self, tool: CallTool) -> Node:
        """The answer and a call of this tool."""
        return self._message(self._calls([tool], single=False))

    def guarded(self, tools: Sequence[CallTool], *, single: bool) -> Node | None:
        """The answer, and calls if the model likes."""
        if not guards_calls(tools, single=single):
            return None
        return self._message(optional(self._calls(tools, single=single)))

    def _message(self, calls: Node) -> Node:
        return sequence(
            optional(const("<|open|>response<|sep|>")),
            tag("", any_text(ANSWER_EXCLUDES), "<|close|>response<|sep|>"),
            calls,
            optional(const("<|close|>message<|sep|>")),
        )

    def _calls(self, tools: Sequence[CallTool], *, single: bool) -> Node:
        calls = separated(map(self._call, tools), single=single)
        return tag("<|open|>tools<|sep|>", calls, "<|close|>tools<|sep|>")

    def _call(self, tool: CallTool) -> Node:
        content = sequence(regex("[0-9]+"), const('"<|sep|>'), self._arguments(tool))
        return tag(f'<|open|>call tool="{tool.name}" index="', content, "<|close|>call<|sep|>")

    def _arguments(self, tool: CallTool) -> Node:
        parameters = tool.parameters if tool.strict and isinstance(tool.parameters, Mapping) else {}
        properties = parameters.get("properties")
        if not isinstance(properties, Mapping) or not properties:
            return star(_untyped())
        return plus(either_or_alone(_arguments(properties)))


def _arguments(properties: Mapping[str, Any]) -> Iterator[Node]:
    for key, described in properties.items():
        kind = described.get("type") if isinstance(described, Mapping) else None
        if not isinstance(kind, str) or kind not in TYPES:
            yield _untyped()
            continue
        yield tag(f'<|open|>argument key="{key}" type="{TYPES[kind]}"<|sep|>', _value(described, kind), END_OF_ARGUMENT)


def _value(described: Mapping[str, Any], kind: str) -> Node:
    if kind != "string":
        return schema(described)
    enumeration = described.get("enum")
    if not isinstance(enumeration, list) or not enumeration:
        return any_text(END_OF_VALUE)
    return either(const(each if isinstance(each, str) else json.dumps(each)) for each in enumeration)


def _untyped() -> Node:
    return tag("<|open|>argument ", sequence(regex(r"[^<]*<\|sep\|>"), any_text(END_OF_VALUE)), END_OF_ARGUMENT)


KIMI_K3 = KimiK3Calls()
