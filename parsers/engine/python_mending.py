"""Finds the end of a string that seems to end in its midst, as in `'Martha's Vineyard'` (pythonic_misc 5: Q)."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from .python_calls import CallListReader
from .python_repairs import RepairState, SourceRepair
from .python_state import CallListState
from .python_strings import LiteralState
from .python_values import FOLLOWERS
from .state import dump, load

# How many quotes are tried as the real end.
_ENDS_LIMIT = 64


def mended(state: CallListState) -> CallListState | None:
    """The state behind the list, if just one of the later quotes, taken for the string's end, makes the text one.

    `state` is that of a reader which met something unexpected behind a string; the text as it stands is tried first.
    """
    if state.place != "broken" or state.ended is None:
        return None
    quote, rest = state.ended.quote, "".join(state.raw)
    plain = _read(state, rest[1:], None, keyword_names=True)
    if plain is not None or state.reserved:
        return plain
    ends = [end for end in _quotes(quote, rest) if rest[end + 1 :].lstrip()[:1] in tuple(FOLLOWERS)]
    if len(ends) > _ENDS_LIMIT:
        return None
    literal = replace(state.ended, closed=False)
    found = [_read(state, _with_end(quote, rest, end), literal, keyword_names=False) for end in ends]
    lists = [each for each in found if each is not None]
    return lists[0] if len(lists) == 1 else None


def _read(
    state: CallListState, text: str, literal: LiteralState | None, *, keyword_names: bool
) -> CallListState | None:
    """The state behind `text`, read on from behind the string or, as `literal`, within it; None if it is no list."""
    copy = load(CallListState, json.loads(json.dumps(dump(state))))
    copy.raw, copy.ended, copy.literal = [], None, replace(literal) if literal else None
    copy.place = "literal" if literal else "after"
    reader = CallListReader(copy, gated=False, keyword_names=keyword_names, alone=True)
    reader.feed(text)
    return copy if reader.closed else None


def _quotes(quote: str, text: str) -> list[int]:
    """Where `text` has unescaped quotes, the first one, which it begins with, apart."""
    found = re.finditer(rf"\\.|{quote}", text, re.DOTALL)
    return [each.start() for each in found if each.group() == quote and each.start()]


def _with_end(quote: str, text: str, end: int) -> str:
    """`text` with all quotes before `end` escaped."""
    inner = re.sub(rf"(\\.)|{quote}", lambda found: found.group(1) or "\\" + quote, text[:end], flags=re.DOTALL)
    return SourceRepair(RepairState(quote=quote), numbers=False).feed(inner + text[end:])
