"""Two answers next to each other on a terminal: vLLM's on the left, this service's on the right."""

import json
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from derender_api.parity.shapes import difference, shape

_MISSING = object()


def side_by_side(expected: Any, got: Any, *, width: int | None = None) -> str:
    """The first difference of two streams (lists of chunks), with a chunk of context, or of two JSON values, by key."""
    width = width or shutil.get_terminal_size((160, 24)).columns
    column = max((width - 12) // 2, 30)
    rows = _chunk_rows(expected, got) if _are_chunks(expected, got) else _value_rows(expected, got)
    lines = [_line("", "expected", "got", column)]
    for mark, left, right in rows:
        pairs = zip_longest(_wrapped(left, column), _wrapped(right, column), fillvalue="")
        lines += [_line(mark if index == 0 else "", *pair, column) for index, pair in enumerate(pairs)]
    return "\n".join(lines)


def _are_chunks(expected: Any, got: Any) -> bool:
    return isinstance(expected, list) and isinstance(got, list)


def _chunk_rows(expected: Sequence[Any], got: Sequence[Any]) -> Iterator[tuple[str, Any, Any]]:
    """The chunk before the first difference, the differing one, and the next."""
    pairs = list(zip_longest(expected, got, fillvalue=_MISSING))
    first = next((index for index, pair in enumerate(pairs) if _differ(*pair)), 0)
    for index in range(max(first - 1, 0), min(first + 2, len(pairs))):
        yield f"{index}{' !' if _differ(*pairs[index]) else ''}", *pairs[index]


def _value_rows(expected: Any, got: Any) -> Iterator[tuple[str, Any, Any]]:
    """The keys whose values differ; the whole values where they are no objects."""
    if not isinstance(expected, Mapping) or not isinstance(got, Mapping):
        yield "!", expected, got
        return
    for name in [*expected, *(key for key in got if key not in expected)]:
        pair = expected.get(name, _MISSING), got.get(name, _MISSING)
        if _differ(*pair):
            yield name[:9], *pair


def _differ(left: Any, right: Any) -> bool:
    return left is _MISSING or right is _MISSING or difference(left, right) is not None


def _wrapped(value: Any, width: int) -> list[str]:
    text = "(nothing)" if value is _MISSING else json.dumps(shape(value), ensure_ascii=False)
    return textwrap.wrap(text, width, drop_whitespace=False, break_on_hyphens=False) or [""]


def _line(mark: str, left: str, right: str, column: int) -> str:
    return f"{mark:>9} {left:<{column}} {right}".rstrip()
