"""Finds literal markers in text that arrives in pieces, holding back what may still become one (engine 2.5)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

Piece = tuple[str, bool]
"""Text, and whether it is a complete literal."""


class _Tables(NamedTuple):
    """What is looked up: the literals, their beginnings, their first characters, the length of the longest."""

    pattern: re.Pattern[str] | None
    prefixes: frozenset[str]
    first: re.Pattern[str] | None
    longest: int


@lru_cache(maxsize=1024)
def _compiled(literals: tuple[str, ...]) -> _Tables:
    ordered = sorted(set(literals), key=len, reverse=True)
    if not ordered:
        return _Tables(None, frozenset(), None, 0)
    return _Tables(
        re.compile("|".join(map(re.escape, ordered))),
        frozenset(text[:length] for text in ordered for length in range(1, len(text))),
        re.compile("[" + re.escape("".join({text[0] for text in ordered})) + "]"),
        len(ordered[0]),
    )


class Lexer:
    """Cheap to make: the tables of the same literals are compiled once. What is held back is the caller's."""

    def __init__(self, literals: Iterable[str]) -> None:
        self._pattern, self._prefixes, self._first, self._longest = _compiled(tuple(literals))

    def cut(self, held: str, text: str) -> tuple[list[Piece], str]:
        """(pieces in order, what is held back now). At each place the longest literal wins."""
        buffer = held + text
        if self._pattern is None or self._first is None or not self._first.search(buffer):
            return ([(buffer, False)] if buffer else []), ""
        hold = self._hold(buffer, 0)
        pieces: list[Piece] = []
        position = 0
        while position < hold:
            match = self._pattern.search(buffer, position)
            if match is None or match.start() >= hold:
                break
            if match.start() > position:
                pieces.append((buffer[position : match.start()], False))
            pieces.append((match.group(), True))
            position = match.end()
            if hold < position:
                hold = self._hold(buffer, position)
        if position < hold:
            pieces.append((buffer[position:hold], False))
        return pieces, buffer[max(hold, position) :]

    def next(self, buffer: str, start: int) -> tuple[int, str]:
        """(where plain text from `start` ends, the literal there). "" where no literal follows: the rest is held back.

        For formats whose literals depend on the place they are at; it looks no further than one literal.
        """
        if self._pattern is None or self._first is None or not self._first.search(buffer, start):
            return len(buffer), ""
        hold = self._hold(buffer, start)
        match = self._pattern.search(buffer, start)
        if match is not None and match.start() < hold:
            return match.start(), match.group()
        return hold, ""

    def flush(self, held: str) -> list[Piece]:
        """What was held back is final: text, and literals that were waiting for a longer one."""
        pieces: list[Piece] = []
        position = 0
        while self._pattern is not None and position < len(held):
            match = self._pattern.search(held, position)
            if match is None:
                break
            if match.start() > position:
                pieces.append((held[position : match.start()], False))
            pieces.append((match.group(), True))
            position = match.end()
        if position < len(held):
            pieces.append((held[position:], False))
        return pieces

    def _hold(self, buffer: str, start: int) -> int:
        """First position from which all the rest is the beginning of a literal."""
        for position in range(max(start, len(buffer) - self._longest + 1), len(buffer)):
            if buffer[position:] in self._prefixes:
                return position
        return len(buffer)
