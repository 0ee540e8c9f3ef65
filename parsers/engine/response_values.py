"""How the text of a response template's calls is read: body parsers, transforms, typing (newest 9.3)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import regex

from .assembly import dump_json, load_json

Parser = Callable[[str], Any]

_JSON_STRING = r'"(?:[^"\\]|\\.)*+"'
_BARE_KEY = regex.compile(r"(?<=[{,])(\w+)(?=:)")


@dataclass(frozen=True, slots=True)
class CallValue:
    """One call as the template makes it. `arguments` is JSON text, or what the model wrote as a string."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ValueReader:
    """Turns the text of a region of calls, and what its delimiters captured, into calls."""

    parse: Parser
    transform: Any = None
    each: bool = False

    def calls(
        self, text: str, captures: Mapping[str, str], schemas: Mapping[str, Mapping[str, Any]]
    ) -> list[CallValue] | None:
        """None where the text does not make calls; one bad call spoils all of a region."""
        try:
            return [_call(value, schemas) for value in self._values(self.parse(text), captures)]
        except (ValueError, TypeError, KeyError, RecursionError):
            return None

    def _values(self, value: Any, captures: Mapping[str, str]) -> list[Any]:
        if self.transform is None:
            return value if isinstance(value, list) else [value]
        if not self.each:
            made = _fill(self.transform, {**captures, "content": value})
            return made if isinstance(made, list) else [made]
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            raise ValueError("not a list of objects")
        return [_fill(self.transform, {**captures, **item}) for item in value]


def value_reader(field: Mapping[str, Any]) -> ValueReader:
    """The reader of a `tool_calls` field. Raises ValueError, KeyError or TypeError for what is no such field."""
    each = bool(field.get("transform_each"))
    if each and "transform" not in field:
        raise ValueError("transform_each needs a transform")
    parse = _parser(field.get("content", "text"), field.get("content_args") or {})
    return ValueReader(parse, field.get("transform"), each)


# --- body parsers -----------------------------------------------------------------------------------------------------


def _parser(name: str, args: Mapping[str, Any]) -> Parser:
    try:
        make = _PARSERS[name]
    except KeyError:
        raise ValueError(f"unknown parser {name!r}; known: {', '.join(_PARSERS)}") from None
    return make(**args)


def _text(*, strip: bool = True) -> Parser:
    return (lambda text: text.strip()) if strip else (lambda text: text)


def _boolean() -> Parser:
    return lambda text: text.strip().lower() in ("true", "1")


def _json(
    *, string_delims: list[list[str]] | None = None, unquoted_keys: bool = False, allow_non_json: bool = False
) -> Parser:
    delimited = [f"{regex.escape(start)}(.*?){regex.escape(end)}" for start, end in string_delims or ()]
    strings = regex.compile("|".join([*delimited, _JSON_STRING]), regex.DOTALL)

    def parse(text: str) -> Any:
        if not delimited and not unquoted_keys:
            source = text
        else:
            source, position = "", 0
            for match in strings.finditer(text):
                source += _plain(text[position : match.start()], quote=unquoted_keys)
                inside = next((group for group in match.groups() if group is not None), None)
                source += match.group() if inside is None else json.dumps(inside)
                position = match.end()
            source += _plain(text[position:], quote=unquoted_keys)
        try:
            return load_json(source)
        except ValueError:
            if allow_non_json:
                return text
            raise

    return parse


def _plain(text: str, *, quote: bool) -> str:
    return _BARE_KEY.sub(r'"\1"', text) if quote else text


def _xml_inline(*, tag_pattern: str, value_parser: Any = "text", merge_duplicates: bool = False) -> Parser:
    tags = regex.compile(tag_pattern, regex.DOTALL)
    if {"key", "value"} - set(tags.groupindex):
        raise ValueError("tag_pattern needs the groups `key` and `value`")
    named = isinstance(value_parser, Mapping)
    read = _parser(value_parser["name"], value_parser.get("args") or {}) if named else _parser(value_parser, {})

    def parse(text: str) -> dict[str, Any]:
        values: dict[str, Any] = {}
        merged: set[str] = set()
        for match in tags.finditer(text):
            key, value = match["key"], read(match["value"])
            if merge_duplicates and key in values:
                values[key] = [*values[key], value] if key in merged else [values[key], value]
                merged.add(key)
            else:
                values[key] = value
        return values

    return parse


def _kv_lines(*, line_sep: str = "\n", kv_sep: str = ":") -> Parser:
    def parse(text: str) -> dict[str, str]:
        pairs = (line.split(kv_sep, 1) for line in text.split(line_sep) if kv_sep in line)
        return {key.strip(): value.strip() for key, value in pairs}

    return parse


_PARSERS: Mapping[str, Callable[..., Parser]] = {
    "text": _text,
    "int": lambda: lambda text: int(text.strip()),
    "float": lambda: lambda text: _number(text.strip()),
    "bool": _boolean,
    "json": _json,
    "xml-inline": _xml_inline,
    "kv-lines": _kv_lines,
}


# --- transform and typing ---------------------------------------------------------------------------------------------


def _fill(transform: Any, roots: Mapping[str, Any]) -> Any:
    """`transform` with every string that is exactly `{path}` replaced. Raises KeyError for a path to nowhere."""
    if isinstance(transform, str) and transform.startswith("{") and transform.endswith("}"):
        value: Any = roots
        for step in transform[1:-1].split("."):
            if not isinstance(value, Mapping):
                raise KeyError(step)
            value = value[step]
        return value
    if isinstance(transform, Mapping):
        return {key: _fill(value, roots) for key, value in transform.items()}
    if isinstance(transform, list):
        return [_fill(value, roots) for value in transform]
    return transform


def _call(value: Any, schemas: Mapping[str, Mapping[str, Any]]) -> CallValue:
    """Raises ValueError where `value` is no call."""
    function = value.get("function") if isinstance(value, Mapping) else None
    if not isinstance(function, Mapping):
        raise ValueError("no function")
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(name, str) or not name or arguments is None:
        raise ValueError("no name or arguments")
    if isinstance(arguments, str):
        return CallValue(name, arguments)
    if isinstance(arguments, Mapping):
        properties = schemas.get(name, {}).get("properties")
        if isinstance(properties, Mapping):
            arguments = {key: _typed(member, properties.get(key)) for key, member in arguments.items()}
    return CallValue(name, dump_json(arguments))


def _typed(value: Any, schema: Any) -> Any:
    types = _types(schema)
    if isinstance(value, list) and "array" not in types:
        return [_typed_text(item, types) if isinstance(item, str) else item for item in value]
    return _typed_text(value, types) if isinstance(value, str) else value


def _types(schema: Any) -> list[str]:
    """Type names in the order in which they are tried."""
    if not isinstance(schema, Mapping):
        return []
    kinds = schema.get("type")
    types = [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if isinstance(kind, str)]
    for key in ("anyOf", "oneOf"):
        members = schema.get(key)
        for member in members if isinstance(members, list) else ():
            types += _types(member)
    return [*types, "null"] if schema.get("nullable") else types


def _typed_text(text: str, types: list[str]) -> Any:
    for kind in types:
        try:
            return _CONVERSIONS[kind](text)
        except (KeyError, ValueError, OverflowError, RecursionError):
            continue
    return text


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        value = float(text)
        if not value.is_integer():
            raise
        return int(value)


def _number(text: str) -> int | float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return int(value) if value.is_integer() and "." not in text else value


def _truth(text: str) -> bool:
    return {"true": True, "1": True, "false": False, "0": False}[text.strip().lower()]


def _nothing(text: str) -> None:
    if text not in ("null", "None"):
        raise ValueError(text)


def _of(kind: type) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        value = load_json(text)
        if not isinstance(value, kind):
            raise ValueError(text)
        return value

    return read


_CONVERSIONS: Mapping[str, Callable[[str], Any]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _truth,
    "null": _nothing,
    "object": _of(dict),
    "array": _of(list),
}
