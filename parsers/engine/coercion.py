"""Argument values typed by the function's parameters schema (engine 2.9). One place for all formats that write text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

_ALIASES = {
    **dict.fromkeys(("str", "text", "varchar", "char", "enum"), "string"),
    **dict.fromkeys(("int", "int32", "int64", "uint", "uint32", "uint64", "long", "short", "unsigned"), "integer"),
    **dict.fromkeys(("float", "float32", "float64", "double"), "number"),
    "bool": "boolean",
    "dict": "object",
    **dict.fromkeys(("arr", "list", "sequence"), "array"),
}
_NOT_JSON = object()


def types_of(schema: object) -> frozenset[str]:
    """The JSON types a schema allows.

    Its `type`, its enum's members, its alternatives; {"string"} where it names none.
    """
    return frozenset(_ALIASES.get(kind.lower(), kind.lower()) for kind in _named_types(schema))


def is_string(schema: object) -> bool:
    """Whether a value is certain to stay the text it is, so that it may be sent while it arrives (engine 2.8)."""
    return _named_types(schema) == {"string"}


def _named_types(schema: object) -> set[str]:
    """Type names as the schema spells them."""
    if not isinstance(schema, Mapping):
        return {"string"}
    found: set[str] = set()
    kinds = schema.get("type")
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if isinstance(kind, str):
            found.add(kind)
    members = schema.get("enum")
    if isinstance(members, list):
        found.update(_json_type(member) for member in members)
    for key in ("anyOf", "oneOf", "allOf"):
        alternatives = schema.get(key)
        if isinstance(alternatives, list):
            for alternative in alternatives:
                found |= _named_types(alternative)
    return found or {"string"}


def _json_type(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def coerce_text(text: str, schema: object) -> Any:
    """The value that `text` stands for under `schema`; the text itself where nothing fits and it is no JSON."""
    types = types_of(schema)
    for kind, convert in _CONVERSIONS:
        if kind in types:
            value = convert(text)
            if value is not _NOT_JSON:
                return value
    if "string" in types:
        return text
    if text.strip() == "None":
        return None
    value = _json(text)
    return text if value is _NOT_JSON else value


def coerce_value(value: Any, schema: object) -> Any:
    """A JSON value typed by `schema`.

    Strings as text, objects and arrays member by member, scalars by their JSON text.
    """
    if isinstance(value, str):
        return coerce_text(value, schema)
    if isinstance(value, dict):
        return coerce_members(value, schema)
    if isinstance(value, list):
        items = schema.get("items") if isinstance(schema, Mapping) else None
        return [coerce_value(item, items) for item in value] if isinstance(items, Mapping) else value
    coerced = coerce_text(json.dumps(value), schema)
    return coerced if type(coerced) is not type(value) or coerced != value else value


def coerce_members(value: dict[str, Any], schema: object) -> dict[str, Any]:
    """An object whose listed properties are typed; others stay."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or not properties:
        return value
    return {
        key: coerce_value(member, properties[key]) if isinstance(properties.get(key), Mapping) else member
        for key, member in value.items()
    }


def coerce_arguments(text: str, schema: Mapping[str, Any] | None) -> str:
    """Argument text with its values typed.

    Unchanged, white space and all, where nothing needs to change or it is no object.
    """
    if not schema or not schema.get("properties"):
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(value, dict):
        return text
    coerced = coerce_members(value, schema)
    before, after = json.dumps(value, ensure_ascii=False), json.dumps(coerced, ensure_ascii=False)
    return text if before == after else after


def _null(text: str) -> Any:
    return None if text.lower() == "null" else _NOT_JSON


def _integer(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        return _NOT_JSON


def _number(text: str) -> Any:
    value = _integer(text)
    if value is not _NOT_JSON:
        return value
    try:
        value = float(text)
    except ValueError:
        return _NOT_JSON
    if not math.isfinite(value):
        return _NOT_JSON
    return int(value) if value.is_integer() else value


def _boolean(text: str) -> Any:
    word = text.strip().lower()
    return True if word in ("true", "1") else False if word in ("false", "0") else _NOT_JSON


def _json(text: str) -> Any:
    """Any JSON value without infinities."""
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return _NOT_JSON
    return value


_CONVERSIONS = (
    ("null", _null),
    ("integer", _integer),
    ("number", _number),
    ("boolean", _boolean),
    ("object", _json),
    ("array", _json),
)
