"""State dataclasses to JSON-able values and back; fields at their default are left out, so idle states stay small."""

from __future__ import annotations

import dataclasses
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from .exceptions import InvalidSnapshotError

State = TypeVar("State")


@cache
def _fields(cls: type) -> tuple[tuple[str, Any, type | None, bool], ...]:
    """(name, default, nested state class, is a list of it) of each field."""
    hints = get_type_hints(cls)
    rows = []
    for field in dataclasses.fields(cls):
        default = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        nested, many = _nested(hints[field.name])
        rows.append((field.name, default, nested, many))
    return tuple(rows)


def _nested(hint: Any) -> tuple[type | None, bool]:
    if dataclasses.is_dataclass(hint):
        return hint, False  # type: ignore[return-value]
    if get_origin(hint) is list and dataclasses.is_dataclass(get_args(hint)[0]):
        return get_args(hint)[0], True
    if get_origin(hint) in (Union, UnionType):
        for part in get_args(hint):
            if dataclasses.is_dataclass(part):
                return part, False  # type: ignore[return-value]
    return None, False


def dump(state: Any) -> dict[str, Any]:
    """A state dataclass as a JSON-able dict. Lists and dicts are shared with the state, not copied."""
    data: dict[str, Any] = {}
    for name, default, nested, many in _fields(type(state)):  # type: ignore[arg-type]
        value = getattr(state, name)
        if value == default:
            continue
        if nested is not None and value is not None:
            value = [dump(item) for item in value] if many else dump(value)
        data[name] = value
    return data


def load(cls: type[State], data: Any) -> State:
    """The state that `dump` wrote. Raises InvalidSnapshotError for anything else."""
    if not isinstance(data, dict):
        raise InvalidSnapshotError(f"{cls.__name__}: expected an object")
    rows = {name: (nested, many) for name, _, nested, many in _fields(cls)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for key, value in data.items():
        if key not in rows:
            raise InvalidSnapshotError(f"{cls.__name__}: unknown field {key!r}")
        nested, many = rows[key]
        if nested is not None and value is not None:
            value = [load(nested, item) for item in value] if many else load(nested, value)
        elif isinstance(value, list):
            value = list(value)
        elif isinstance(value, dict):
            value = dict(value)
        values[key] = value
    try:
        return cls(**values)
    except TypeError as error:
        raise InvalidSnapshotError(str(error)) from error
