"""Two answers next to each other for a page: rows of text, the first difference marked."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from derender_api.parity.shapes import difference, shape

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Half:
    """One side of a row: what both sides begin with, what differs, and what both end with."""

    same: str
    rest: str = ""
    tail: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A chunk (`label` is its number), or a key of an object. `first`: the first row that differs."""

    label: str
    expected: Half
    got: Half
    differs: bool
    first: bool


def rows_of(expected: Any, got: Any) -> list[Row]:
    """The rows of two streams (lists of chunks), two objects, or two other values."""
    rows: list[Row] = []
    for label, left, right in _pairs(expected, got):
        differs = left is _MISSING or right is _MISSING or difference(left, right) is not None
        first = differs and not any(row.differs for row in rows)
        rows.append(Row(label, *_halves(_text(left), _text(right), differs=differs), differs, first))
    return rows


def _pairs(expected: Any, got: Any) -> Iterator[tuple[str, Any, Any]]:
    match expected, got:
        case list(), list():
            pairs = zip_longest(expected, got, fillvalue=_MISSING)
            yield from ((str(number), *pair) for number, pair in enumerate(pairs))
        case Mapping(), Mapping():
            for name in [*expected, *(name for name in got if name not in expected)]:
                yield name, expected.get(name, _MISSING), got.get(name, _MISSING)
        case _:
            yield "", expected, got


def _text(value: Any) -> str:
    return "(nothing)" if value is _MISSING else json.dumps(shape(value), ensure_ascii=False)


def _halves(left: str, right: str, *, differs: bool) -> tuple[Half, Half]:
    """Both texts, cut at the ends of what differs."""
    if not differs:
        return Half(left), Half(right)
    same = _common(left, right)
    tail = _common(left[same:][::-1], right[same:][::-1])
    return _cut(left, same, tail), _cut(right, same, tail)


def _cut(text: str, same: int, tail: int) -> Half:
    end = len(text) - tail
    return Half(text[:same], text[same:end], text[end:])


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    """Number of code points that both begin with."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(left), len(right)))
