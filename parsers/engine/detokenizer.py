"""Token IDs to text, a piece at a time: the incremental window of protocol 8.4.

A token's text depends on its neighbours (a character may be spread over several tokens, a leading space belongs to the
word before), so a window of vocabulary pieces is decoded twice, with and without the new piece, and the difference is
the token's text. Where that difference is known beforehand the window is not decoded at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

REPLACEMENT = "\ufffd"
SEED_TOKENS = 7  # prompt tokens that enter the window at the start of an output
SEED_WINDOW = 5  # pieces of those that are decoded along with the first output token


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

    @property
    def needs_opening(self) -> bool:
        """Whether the first piece of a text is decoded differently (its leading space is stripped)."""

    def piece(self, token_id: int) -> str:
        """The vocabulary piece of `token_id`; "" where there is none."""

    def text(self, pieces: Sequence[str]) -> str:
        """Decode pieces, invalid bytes as U+FFFD."""

    def ends_open(self, pieces: Sequence[str]) -> bool:
        """A quick test that may be true only if `text(pieces)` ends with U+FFFD."""

    def stays_open(self, pieces: Sequence[str], new: str) -> bool:
        """For pieces whose text ends with U+FFFD: whether that is so with `new` behind them, without decoding all.

        May be true only if it is so, and if it is so whatever is appended as long as this keeps being asked.
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
        self._held = False

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
        start, end = 0, len(texts)
        released: list[str] = []
        while start < end:
            if self._is_settled():
                try:
                    stop = texts.index(None, start)
                except ValueError:
                    stop = end
                if stop > start:
                    released += texts[start:stop]  # type: ignore[arg-type]
                    self._settle_on(token_ids[stop - 1])
                    start = stop
                    continue
            token_id = token_ids[start]
            released.append("" if token_id in self._skipped else self._step(self._codec.piece(token_id)))
            start += 1
        return released

    def _is_settled(self) -> bool:
        """Whether nothing is held back and a further token's text no longer depends on being the first."""
        if self._read != len(self._pieces) or self._prefix > self._read:
            return False
        return not self._codec.needs_opening or any(self._pieces[self._prefix : self._read])

    def _settle_on(self, token_id: int) -> None:
        self._pieces = [self._codec.piece(token_id)]
        self._prefix, self._read = 0, 1

    def _step(self, piece: str) -> str:
        pieces = self._pieces
        pieces.append(piece)
        open_before = self._held
        if not piece or (open_before and self._codec.stays_open(pieces, piece)):
            return self._hold(open_before)
        if self._codec.ends_open(pieces):
            return self._hold(True)
        before = self._codec.text(pieces[self._prefix : self._read])
        after = self._codec.text(pieces[self._prefix :])
        if len(after) <= len(before) or after.endswith(REPLACEMENT):
            return self._hold(after.endswith(REPLACEMENT))
        self._held = False
        del pieces[: self._read]
        self._prefix, self._read = 0, len(pieces)
        return after[len(before) :]

    def _hold(self, is_open: bool) -> str:
        self._held = is_open
        if self._prefix:
            del self._pieces[: self._prefix]
            self._read -= self._prefix
            self._prefix = 0
        return ""
