"""Argument values that a model wrote as bare text, typed by the parameter's schema: the rules of the HY formats.

Unlike `coercion`, a value that fits none of the schema's types may still be a Python literal (newest 2.1).
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Mapping
from typing import Any

from .assembly import load_json

_ALIASES = {
    **dict.fromkeys(("str", "text", "varchar", "char", "enum"), "string"),
    **dict.fromkeys(("bool", "binary"), "boolean"),
    "list": "array",
    **dict.fromkeys(("dict", "map"), "object"),
}
_PREFIXES = (
    (("int", "uint", "long", "short", "unsigned"), "integer"),
    (("num", "float", "double"), "number"),
)
_SCALARS = frozenset({"string", "boolean", "integer", "number"})
_NONE = object()


def literal_types(schema: object) -> frozenset[str]:
    """The JSON types a schema allows, `null` left out; {"string"} where it names none."""
    if not isinstance(schema, Mapping):
        return frozenset({"string"})
    kinds = _kinds(schema)
    if not kinds:
        for key in ("anyOf", "oneOf"):
            if isinstance(schema.get(key), list):
                for member in schema[key]:
                    kinds += (_kinds(member) if isinstance(member, Mapping) else []) or ["string"]
                break
    return frozenset(map(_canonical, kinds or ["string"])) - {"null"}


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    kinds = schema.get("type")
    return [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if isinstance(kind, str)]


def _canonical(kind: str) -> str:
    kind = kind.lower()
    if kind in _ALIASES:
        return _ALIASES[kind]
    return next((name for prefixes, name in _PREFIXES if kind.startswith(prefixes)), kind)


def literal_value(text: str, schema: object) -> Any:
    """The value that `text` stands for; always something JSON can say. The text itself where nothing else fits."""
    types = literal_types(schema)
    value: Any = _NONE
    if "boolean" in types and text.lower() in ("true", "false"):
        value = text.lower() == "true"
    if value is _NONE and "integer" in types:
        value = _number(text, float_too=False)
    if value is _NONE and "number" in types:
        value = _number(text, float_too=any(mark in text for mark in ".eE"))
    if value is _NONE and types - _SCALARS:
        value = _json(text)
    if value is _NONE and "string" in types:
        value = text
    if value is _NONE:
        value = _json(text)
    if value is _NONE:
        value = _python(text)
    return text if value is _NONE else value


def _number(text: str, *, float_too: bool) -> Any:
    try:
        value = float(text) if float_too else int(text)
    except ValueError:
        return _NONE
    return value if isinstance(value, int) or math.isfinite(value) else _NONE


def _json(text: str) -> Any:
    try:
        return load_json(text)
    except (ValueError, RecursionError):
        return _NONE


def _python(text: str) -> Any:
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return _NONE
    return _sayable(value)


def _sayable(value: Any) -> Any:
    """`value` if it can be written as JSON, no infinities; tuples become lists then."""
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return _NONE
    return value
