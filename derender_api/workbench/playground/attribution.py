"""What became of each piece of an output's text: matches what the parser sends with the text that it was given.

The parser says what it sends, not which tokens that came from. Text that is sent as it was written is found again in
what is pending, in order; arguments that are written anew (XML to JSON) are matched piece by piece, which is marked as
approximate, as is what the looks of unsent text decide.
"""

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

_MARKUP = re.compile(r"<[^<>\s]{1,60}>|</?[\w:.\-]*|\[/?[A-Z_]{2,40}\]|[^\w]+|_")
_PIECES = re.compile(r"\w+|\s+|[^\w\s]")
_WORD = re.compile(r"\w")
LOOK_AHEAD = 200
"""Pieces of written text that may lie between two words of the text that was sent for it."""


class Kind(StrEnum):
    """What text became."""

    REASONING = "reasoning"
    CONTENT = "content"
    NAME = "name"
    ARGUMENTS = "arguments"
    MARKER = "marker"
    DROPPED = "dropped"
    HELD = "held"


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a token's text. `step` is the token with which it was decided (its index)."""

    text: str
    kind: Kind
    step: int
    approximate: bool = False


@dataclass(slots=True)
class _Pending:
    """Text of one token that nothing is known about yet."""

    token: int
    text: str


@dataclass(slots=True)
class Attribution:
    """Grows with each token. `marks` are the token IDs that the parser or the tokenizer knows as markers."""

    marks: Container[int]
    spans: list[list[Span]] = field(default_factory=list)
    _ids: list[int] = field(default_factory=list)
    _pending: list[_Pending] = field(default_factory=list)
    _closed: bool = False

    def add(self, token_id: int, text: str) -> None:
        """The next token, with the text that it released."""
        self._close()
        self._pending.append(_Pending(len(self.spans), text))
        self.spans.append([])
        self._ids.append(token_id)

    @property
    def pending(self) -> str:
        """Text that nothing is known about yet."""
        return "".join(each.text for each in self._pending)

    def sent(self, kind: Kind, text: str, *, anew: bool = False) -> None:
        """The parser sent `text` as `kind`; `anew`: the model wrote it differently."""
        position = self.pending.find(text) if text and not anew else -1
        if position >= 0:
            self._skip(position, before=Kind.NAME if self._closed else kind)
            self._closed = False
            self._take(len(text), kind)
        elif text:
            self._align(kind, text)

    def closed(self) -> None:
        """The parser closed a call: what it has read of it, and nothing else is made of, is syntax."""
        self._closed = True

    def _close(self) -> None:
        if self._closed:
            self._skip(len(self.pending), before=Kind.NAME)
            self._closed = False

    def finish(self, *, is_cut: bool) -> list[list[Span]]:
        """The spans of every token; `is_cut`: the output has no end, so that what is pending is held back."""
        self._close()
        while is_cut and self.pending:
            self._drop_empty()
            head = self._pending[0]
            self._take(len(head.text), Kind.MARKER if self._ids[head.token] in self.marks else Kind.HELD)
        self._skip(len(self.pending), before=None)
        self._settle_silent()
        return self.spans

    def _align(self, kind: Kind, text: str) -> None:
        """Marks the pending pieces that are found in `text`: words in order, what is between them where it goes on."""
        written, place = _PIECES.findall(self.pending), 0
        for piece in _PIECES.findall(text):
            reach = LOOK_AHEAD if _WORD.match(piece) else 1
            try:
                found = written.index(piece, place, place + reach)
            except ValueError:
                continue
            self._skip(sum(map(len, written[place:found])), before=kind)
            self._take(len(piece), kind, approximate=True)
            place = found + 1

    def _skip(self, length: int, *, before: Kind | None) -> None:
        """Decides what text became that was not sent itself. `before` is the kind that was sent behind it."""
        while length > 0:
            head = self._pending[0]
            size = min(length, len(head.text))
            piece = head.text[:size]
            if self._ids[head.token] in self.marks:
                self._take(size, Kind.MARKER, step=head.token)
            elif before in (Kind.NAME, Kind.ARGUMENTS):
                self._take(size, Kind.MARKER)
            else:
                looks_like_words = bool(_MARKUP.sub("", piece)) or piece.isspace()
                self._take(size, Kind.DROPPED if looks_like_words else Kind.MARKER, approximate=not piece.isspace())
            length -= size
            self._drop_empty()

    def _take(self, length: int, kind: Kind, *, approximate: bool = False, step: int | None = None) -> None:
        """The first `length` code points of the pending text are `kind`, decided with the last token."""
        self._drop_empty()
        while length > 0:
            head = self._pending[0]
            size = min(length, len(head.text))
            at = len(self.spans) - 1 if step is None else step
            self._append(head.token, Span(head.text[:size], kind, at, approximate))
            head.text = head.text[size:]
            length -= size
            self._drop_empty()

    def _append(self, token: int, span: Span) -> None:
        spans = self.spans[token]
        if spans and (spans[-1].kind, spans[-1].step, spans[-1].approximate) == (
            span.kind,
            span.step,
            span.approximate,
        ):
            spans[-1] = Span(spans[-1].text + span.text, span.kind, span.step, span.approximate)
        else:
            spans.append(span)

    def _drop_empty(self) -> None:
        while self._pending and not self._pending[0].text:
            self._pending.pop(0)

    def _settle_silent(self) -> None:
        """Tokens without text: markers, or parts of a character that a later token completed."""
        for token in range(len(self.spans) - 1, -1, -1):
            if self.spans[token]:
                continue
            if self._ids[token] in self.marks or token + 1 == len(self.spans):
                self.spans[token] = [Span("", Kind.MARKER, token)]
            else:
                later = self.spans[token + 1][0]
                self.spans[token] = [Span("", later.kind, later.step, True)]


def texts_of(spans: Sequence[Span]) -> str:
    """The text of a token's spans."""
    return "".join(span.text for span in spans)
