"""Comparison of JSON answers where some values differ on every run: call IDs and times are compared by shape, the
folder of a model by its name.

Everything else is compared by value and type, the order of keys included: `1` is not `1.0`, and `-0.0` is not `0.0`.
"""

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

_RANDOM_ID = re.compile(
    r"(?P<prefix>chatcmpl-tool-|chatcmpl-|cmpl-|modelperm-|call_|call_\d+_)(?P<random>[0-9a-f]{16,32})(?P<suffix>-\d+)?"
)
_MISTRAL_ID = re.compile(r"[A-Za-z0-9]{9}")
_BARE_ID = re.compile(r"[0-9a-f]{16}")
_ID_KEYS = frozenset({"id", "request_id"})
SCHEMA_ERROR = "Bad Request"
"""`type` of the errors whose message quotes a validation library; compared by status, type and presence of `param`."""


def id_shape(value: str) -> str:
    """An ID with its random part replaced: 16 hex digits, alone or behind a prefix, nine letters and digits."""
    match = _RANDOM_ID.fullmatch(value)
    if match:
        return f"{match['prefix']}<{len(match['random'])} hex>{match['suffix'] or ''}"
    if _BARE_ID.fullmatch(value):
        return "<16 hex>"
    return "<9 alphanumeric>" if _MISTRAL_ID.fullmatch(value) else value


def shape(value: Any, *, key: str | None = None) -> Any:
    """`value` with IDs and times replaced by their shapes, and schema errors reduced to what is compared of them."""
    if isinstance(value, Mapping):
        if value.get("type") == SCHEMA_ERROR and "message" in value:
            return {**value, "message": "<text>", "param": value.get("param") and "<path>"}
        return {name: shape(each, key=name) for name, each in value.items()}
    if isinstance(value, list):
        return [shape(each, key="id" if key == "last_tool_call_ids" else None) for each in value]
    if key in _ID_KEYS and isinstance(value, str):
        return id_shape(value)
    if key == "created" and type(value) is int:
        return "<seconds>"
    if key == "root" and isinstance(value, str):
        return PurePath(value).name
    return value


def difference(expected: Any, got: Any, *, path: str = "") -> str | None:
    """Where two JSON values first differ, as `path: expected ..., got ...`; None where they are equal by shape."""
    return _difference(shape(expected), shape(got), path)


def _difference(expected: Any, got: Any, path: str) -> str | None:
    pairs: list[tuple[str, Any, Any]]
    if isinstance(expected, dict) and isinstance(got, dict):
        if list(expected) != list(got):
            return f"{path or 'body'}: expected the keys {list(expected)}, got {list(got)}"
        pairs = [(f"{path}.{name}" if path else str(name), expected[name], got[name]) for name in expected]
    elif isinstance(expected, list) and isinstance(got, list):
        if len(expected) != len(got):
            return f"{path or 'body'}: expected {len(expected)} entries, got {len(got)}"
        pairs = [(f"{path}[{index}]", *each) for index, each in enumerate(zip(expected, got, strict=True))]
    else:
        same = type(expected) is type(got) and repr(expected) == repr(got)
        return None if same else f"{path or 'body'}: expected {expected!r}, got {got!r}"
    return next((found for name, left, right in pairs if (found := _difference(left, right, name))), None)
