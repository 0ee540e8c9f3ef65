"""Writes the JSON arguments of a call whose parameters are elements, with elements inside for objects and lists.

    <city>Paris</city><tags><item>a</item><item>b</item></tags>  ->  {"city": "Paris", "tags": ["a", "b"]}

Nothing is known for certain before the call is closed: a repeated element turns the value into a list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .coercion import coerce_members, coerce_text, types_of
from .state import dump, load

DEPTH_LIMIT = 128
TEXT_KEY = "$text"


@dataclass(slots=True)
class ElementState:
    """The raw argument text so far."""

    raw: str = ""


@dataclass(slots=True)
class Element:
    """One element; `text` is what stands outside its children."""

    name: str
    children: list[Element] = field(default_factory=list)
    text: str = ""


class ElementArguments:
    """One call's arguments. `tag` matches an opening tag, `prefix` is what all tags begin with."""

    prefix: ClassVar[str] = ""
    tag: ClassVar[re.Pattern[str]] = re.compile(r"<([^/>][^>]*)>")

    def __init__(self, schema: Mapping[str, Any] | None) -> None:
        self._schema = schema
        self.state = ElementState()
        self.kept: int | None = None
        self.tail = ""

    @property
    def blank(self) -> bool:
        return not self.state.raw.strip()

    @property
    def in_value(self) -> bool:
        return False

    def feed(self, text: str) -> str:
        self.state.raw += text
        return ""

    def finish(self, *, cut: bool) -> str:
        root = Element("", parse(self.state.raw, self.prefix, self.tag))
        properties = self._schema.get("properties") if self._schema else None
        value = _object(root, {"properties": properties} if isinstance(properties, Mapping) else {})
        return json.dumps(coerce_members(value, self._schema), ensure_ascii=False)

    def snapshot(self) -> Mapping[str, Any]:
        return dump(self.state)

    def restore(self, data: Mapping[str, Any]) -> None:
        self.state = load(ElementState, data)


def parse(raw: str, prefix: str, tag: re.Pattern[str]) -> list[Element]:
    """The complete elements at the beginning of `raw`, up to the first malformed or open one."""
    complete: list[Element] = []
    stack: list[Element] = []
    position = 0
    while True:
        found = raw.find(prefix + "<", position)
        text = raw[position : found if found >= 0 else len(raw)]
        if found < 0 or (prefix and prefix in text) or (not stack and text.strip()):
            return complete
        if stack:
            stack[-1].text += text
        opener = tag.match(raw, found)
        if opener and len(stack) < DEPTH_LIMIT:
            stack.append(Element(opener.group(1)))
            position = opener.end()
            continue
        closer = f"{prefix}</{stack[-1].name}>" if stack else ""
        if not closer or not raw.startswith(closer, found):
            return complete
        position = found + len(closer)
        element = stack.pop()
        (stack[-1].children if stack else complete).append(element)


def _container(schema: object) -> str | None:
    """The first of "array" and "object" that a schema allows."""
    if not isinstance(schema, Mapping):
        return None
    kinds = schema.get("type")
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if kind in ("array", "object"):
            return str(kind)
    if "items" in schema:
        return "array"
    if "properties" in schema or "additionalProperties" in schema:
        return "object"
    for key in ("anyOf", "oneOf"):
        alternatives = schema.get(key)
        for alternative in alternatives if isinstance(alternatives, list) else ():
            kind = _container(alternative)
            if kind:
                return kind
    return None


def _within(schema: object, key: str) -> object:
    """`items`, `properties` or `additionalProperties` of a schema, or of its first alternative that has it."""
    if not isinstance(schema, Mapping):
        return None
    if key in schema:
        return schema[key]
    for name in ("anyOf", "oneOf"):
        alternatives = schema.get(name)
        for alternative in alternatives if isinstance(alternatives, list) else ():
            found = _within(alternative, key)
            if found is not None:
                return found
    return None


def _value(element: Element, schema: object) -> Any:
    if element.children:
        if _container(schema) == "array":
            return [_value(child, _within(schema, "items")) for child in element.children]
        return _object(element, schema)
    if not isinstance(schema, Mapping):
        return element.text
    container = _container(schema)
    if container and "string" not in types_of(schema) and not element.text.strip():
        return [] if container == "array" else {}
    return coerce_text(element.text, schema)


def _object(element: Element, schema: object) -> dict[str, Any]:
    """Repeated names make a list; text between the children becomes a member of its own."""
    properties, others = _within(schema, "properties"), _within(schema, "additionalProperties")
    collected: dict[str, list[Any]] = {}
    for child in element.children:
        inner = properties.get(child.name) if isinstance(properties, Mapping) else None
        value = _value(child, inner if inner is not None else others)
        collected.setdefault(child.name, []).append(value)
    result = {name: values[0] if len(values) == 1 else values for name, values in collected.items()}
    if element.text.strip():
        key = TEXT_KEY
        while key in result:
            key = "$" + key
        result[key] = element.text
    return result
