"""Token IDs to text, a piece at a time: the incremental window of protocol 8.4.

A token's text depends on its neighbours (a character may be spread over several tokens, a leading space belongs to the
word before), so a window of vocabulary pieces is decoded twice, with and without the new piece, and the difference is
the token's text. Where that difference is known beforehand the window is not decoded at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Protocol

REPLACEMENT = "\ufffd"
SEED_TOKENS = 7  # prompt tokens that enter the window at the start of an output
SEED_WINDOW = 5  # pieces of those that are decoded along with the first output token


class Ending(Enum):
    """What the end of a text says about its last character."""

    CLOSED = "the last character is complete"
    OPEN = "it ends with U+FFFD"
    STUCK = "it ends with U+FFFD, and goes on to while only byte pieces follow"
    UNKNOWN = "only decoding can tell"


class Codec(Protocol):
    """A tokenizer's vocabulary as pieces, and the way pieces become text."""

    @property
    def special_ids(self) -> frozenset[int]:
        """IDs left out when special tokens are skipped: transformers' `all_special_ids` (protocol 8.4)."""

    @property
    def whole_texts(self) -> Mapping[int, str | None]:
        """For every int: what the token adds behind any text, None where that depends on the text before.

        The text is not empty and does not end with U+FFFD.
        """

    def is_settled(self, pieces: Sequence[str]) -> bool:
        """Whether a token behind `pieces` adds its whole text, where nothing is held back.

        Not so where it might be the first of a text, whose leading space is stripped.
        """

    def piece(self, token_id: int) -> str:
        """The vocabulary piece of `token_id`; "" where there is none."""

    def text(self, pieces: Sequence[str]) -> str:
        """Decode pieces, invalid bytes as U+FFFD."""

    def is_silent(self, piece: str) -> bool:
        """Whether a piece never adds text: "", and control tokens that are not shown."""

    def ending(self, pieces: Sequence[str], before: Ending) -> Ending:
        """How `text(pieces)` ends, from its last pieces alone. `before` was the answer without the last piece.

        Takes time that does not depend on the number of pieces.
        """


@dataclass(frozen=True, slots=True)
class Window:
    """The pieces that the next token is decoded with; `prefix` and `read` are offsets into them (protocol 8.4)."""

    pieces: tuple[str, ...] = ()
    prefix: int = 0
    read: int = 0


def seeded_window(codec: Codec, prompt_token_ids: Sequence[int] | None, *, skip_special: bool) -> Window:
    """The window at the start of an output that follows `prompt_token_ids` (protocol 8.4, seeding)."""
    if not prompt_token_ids:
        return Window()
    skipped = codec.special_ids if skip_special else frozenset[int]()
    last = islice(prompt_token_ids, max(len(prompt_token_ids) - SEED_TOKENS, 0), None)
    pieces = tuple(codec.piece(token_id) for token_id in last if token_id not in skipped)
    return Window(pieces=pieces, prefix=max(len(pieces) - SEED_WINDOW, 0), read=len(pieces))


class Detokenizer:
    """Decodes one output. `window` is where it stands; feeding goes on from there."""

    def __init__(self, codec: Codec, *, skip_special: bool, window: Window | None = None) -> None:
        window = window or Window()
        self._codec = codec
        self._skipped = codec.special_ids if skip_special else frozenset[int]()
        self._pieces = list(window.pieces)
        self._prefix = window.prefix
        self._read = window.read
        self._ending = Ending.UNKNOWN

    @property
    def window(self) -> Window:
        """The state after the tokens decoded so far."""
        return Window(pieces=tuple(self._pieces), prefix=self._prefix, read=self._read)

    def decode(self, token_ids: Sequence[int]) -> list[str]:
        """The text each token releases, "" where none: special and skipped, unknown, or held back as incomplete.

        Work is proportional to the number of tokens. Text still held back at the end is not released.
        """
        texts: list[str | None] = list(map(self._codec.whole_texts.__getitem__, token_ids))
        if self._skipped and not self._skipped.isdisjoint(token_ids):
            texts = [None if i in self._skipped else text for i, text in zip(token_ids, texts, strict=True)]
        released: list[str] = []
        start = 0
        while start < len(texts):
            stop = self._end_of_run(texts, start)
            if stop > start:
                released += texts[start:stop]  # type: ignore[arg-type]
                self._pieces, self._prefix, self._read = [self._codec.piece(token_ids[stop - 1])], 0, 1
                self._ending = Ending.CLOSED
                start = stop
            else:
                released.append(self._step(token_ids[start]))
                start += 1
        return released

    def _end_of_run(self, texts: Sequence[str | None], start: int) -> int:
        """End of the run of tokens from `start` on whose texts are known without decoding; `start` if there is none."""
        if texts[start] is None or self._read != len(self._pieces) or self._prefix > self._read:
            return start
        if not self._codec.is_settled(self._pieces[self._prefix :]):
            return start
        try:
            return texts.index(None, start)
        except ValueError:
            return len(texts)

    def _step(self, token_id: int) -> str:
        pieces = self._pieces
        is_skipped = token_id in self._skipped
        piece = "" if is_skipped else self._codec.piece(token_id)
        if not is_skipped:
            pieces.append(piece)
        if max(self._prefix, self._read) >= len(pieces):
            return self._hold(self._ending)
        if self._ending is not Ending.UNKNOWN and self._codec.is_silent(piece):
            ends_run = self._ending is Ending.STUCK and not is_skipped
            return self._hold(Ending.OPEN if ends_run else self._ending)
        ending = self._codec.ending(pieces[self._prefix :] if self._prefix else pieces, self._ending)
        if ending in (Ending.OPEN, Ending.STUCK):
            return self._hold(ending)
        return self._release(ending)

    def _release(self, ending: Ending) -> str:
        pieces = self._pieces
        before = self._codec.text(pieces[self._prefix : self._read])
        after = self._codec.text(pieces[self._prefix :])
        if len(after) <= len(before) or after.endswith(REPLACEMENT):
            return self._hold(ending)
        del pieces[: self._read]
        self._prefix, self._read, self._ending = 0, len(pieces), Ending.CLOSED
        return after[len(before) :]

    def _hold(self, ending: Ending) -> str:
        self._ending = ending
        if self._prefix:
            del self._pieces[: self._prefix]
            self._read = max(self._read - self._prefix, 0)
            self._prefix = 0
        return ""
