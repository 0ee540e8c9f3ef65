"""Reads messages to recipients, `<|start|>assistant to=NAME<|message|>TEXT<|eom|>`, wherever the markers are spelled.

Which header is one, and what becomes of a message, belongs to the formats. A header may stand without its beginning,
and a message may end without its end marker, so text that may turn out to be a header is held back.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .lexer import Lexer
from .stage import Stage

START, MESSAGE, EOM, EOT = "<|start|>", "<|message|>", "<|eom|>", "<|eot|>"
FRAME_MARKERS = (START, MESSAGE, EOM, EOT)
BARE = ""
"""The recipient of a message whose header names none."""

_HEADER_LIMIT = 256
_HEADER_PARTS = 64
_FRAMES = Lexer(FRAME_MARKERS)
_FRAGMENT = re.compile(r"\A\s*to=|<\|(?:start|message|eom|eot)\|>")
"""What is left of a broken header, as opposed to text."""

_UNSURE = re.compile(r"[^\S\n](?:t|to|to=[^\s<]{0,128})\Z")
_UNSURE_BEHIND_BLANK = re.compile(r"(?:t|to|to=[^\s<]{0,128})\Z")


@dataclass(frozen=True, slots=True)
class Frame:
    """How headers look and which recipients are what; any other recipient is a tool.

    `header` matches at the end of what precedes `<|message|>`, its group `to` is the recipient; `named`: a header must
    name one. `quiet`: tools whose messages are dropped where they hold no call. `joins`: thoughts of several messages
    are put on lines of their own.
    """

    thoughts: frozenset[str]
    answers: frozenset[str]
    dropped: frozenset[str]
    header: re.Pattern[str]
    quiet: frozenset[str] = frozenset()
    named: bool = False
    joins: bool = False

    def channel(self, recipient: str) -> str:
        if recipient in self.thoughts:
            return "reasoning"
        if recipient in self.answers:
            return "content"
        return "dropped" if recipient in self.dropped else "tool"


@dataclass(slots=True)
class FrameState:
    """`channel`: of the open message, "" between messages, where `header` collects the text.

    `held` is the beginning of a marker, `tail` text of the open message that may turn out to be a header, which follows
    a blank (`behind_blank`). `framed`: a header was seen.
    """

    channel: str = ""
    recipient: str = BARE
    held: str = ""
    tail: str = ""
    header: list[str] = field(default_factory=list)
    framed: bool = False
    behind_blank: bool = False


class FrameReader(Stage, ABC):
    """Walks over messages; subclasses say what becomes of their text."""

    State: ClassVar[type] = FrameState
    body_end: ClassVar[str] = ""
    """A literal whose end in a tool's message the subclass wants to hear of."""

    def __init__(self, frame: Frame) -> None:
        super().__init__()
        self._frame = frame
        self._tool_lexer = Lexer((*FRAME_MARKERS, self.body_end)) if self.body_end else _FRAMES

    def _read(self, text: str, out: list[Any]) -> None:
        state = self.state
        text, state.held = state.held + text, ""
        position = 0
        while position < len(text):
            lexer = self._tool_lexer if state.channel == "tool" else _FRAMES
            end, marker = lexer.next(text, position)
            if end > position:
                self._plain(text[position:end], out)
            if not marker:
                state.held = text[end:]
                return
            self._marker(marker, out)
            position = end + len(marker)

    def _plain(self, text: str, out: list[Any]) -> None:
        state = self.state
        if not state.channel:
            state.header.append(text)
            return
        text = state.tail + text
        unsure = _UNSURE.search(text, max(0, len(text) - _HEADER_LIMIT))
        if unsure is None and state.behind_blank:
            unsure = _UNSURE_BEHIND_BLANK.match(text)
        certain = text[: unsure.start()] if unsure else text
        state.tail = text[len(certain) :]
        if certain:
            state.behind_blank = certain[-1].isspace() and certain[-1] != "\n"
            self._body(certain, out)

    def _marker(self, marker: str, out: list[Any]) -> None:
        state = self.state
        if marker == self.body_end:
            self._plain(marker, out)
            self._body_ended(out)
        elif not state.channel:
            self._between(marker, out)
        elif marker == MESSAGE:
            self._header_inside(out)
        else:
            self._flush_tail(out)
            self._end("" if marker == START else marker, out)
            state.channel, state.header = "", [START] if marker == START else []

    def _between(self, marker: str, out: list[Any]) -> None:
        state = self.state
        if marker != MESSAGE:
            if state.framed and marker != START:
                state.header = []
            else:
                state.header.append(marker)
            return
        text = "".join(state.header[-_HEADER_PARTS:])
        match = self._frame.header.search(text, max(0, len(text) - _HEADER_LIMIT))
        recipient = match["to"] if match else None
        if match is None or (self._frame.named and not recipient):
            state.header.append(marker)
            return
        before = "".join(state.header[:-_HEADER_PARTS]) + text[: match.start()]
        if not state.framed and before.strip() and not _FRAGMENT.search(before):
            self._loose(before, out, framed=True)
        self._open(recipient or BARE, before, match.group(), out)

    def _header_inside(self, out: list[Any]) -> None:
        """`<|message|>` in an open message: the end marker was left out, or it is just text."""
        state = self.state
        tail, state.tail = state.tail, ""
        match = self._frame.header.search(tail.lstrip())
        recipient = match["to"] if match and match.start() == 0 else None
        if recipient is None and self._frame.named:
            self._body(tail + MESSAGE, out)
            return
        if recipient:
            tail, header = tail[: -len(tail.lstrip())], tail.lstrip()
        else:
            header = ""
        if tail:
            self._body(tail, out)
        self._end("", out)
        self._open(recipient or BARE, "", header, out)

    def _open(self, recipient: str, before: str, header: str, out: list[Any]) -> None:
        state = self.state
        state.framed, state.behind_blank, state.header = True, False, []
        state.channel, state.recipient = self._frame.channel(recipient), recipient
        self._begin(before, header + MESSAGE, out)

    def _flush_tail(self, out: list[Any]) -> None:
        tail, self.state.tail = self.state.tail, ""
        if tail:
            self._body(tail, out)

    def _flush(self, out: list[Any]) -> None:
        held, self.state.held = self.state.held, ""
        if held:
            self._plain(held, out)

    def _close(self, out: list[Any]) -> None:
        """End of output."""
        state = self.state
        self._flush(out)
        if state.channel:
            self._flush_tail(out)
            self._end("", out)
            state.channel = ""
        elif not state.framed and (loose := "".join(state.header).removesuffix(EOT).removesuffix(EOM)):
            self._loose(loose, out, framed=False)
        state.header = []

    @abstractmethod
    def _loose(self, text: str, out: list[Any], *, framed: bool) -> None:
        """Text before any header; `framed`: a header follows."""

    @abstractmethod
    def _begin(self, before: str, header: str, out: list[Any]) -> None:
        """A message was opened; `before` is what its header does not account for."""

    @abstractmethod
    def _body(self, text: str, out: list[Any]) -> None: ...

    def _body_ended(self, out: list[Any]) -> None:
        """`body_end` was read; it is part of the body already."""

    @abstractmethod
    def _end(self, marker: str, out: list[Any]) -> None:
        """The open message is over, by `marker` or by what follows."""
