"""One Python call list within a stream.

Reads it, sends its calls when vLLM would, gives the text back if it is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .events import Content, Event, Malformed
from .python_calls import CallListReader, ends_statement
from .python_gate import CompletionGate, GateState
from .python_mending import mended
from .python_state import CallListState

# Text behind a list longer than this is not looked at again with every chunk.
_TRAIL_LIMIT = 256

_LINE_BREAK = re.compile(r"\s*\n\s*")


@dataclass(slots=True)
class CallStreamState:
    """`raw`: the text so far, as long as nothing of it was sent; `begun`: some of it was read; `cut`: text behind the
    list was dropped as too long to matter.
    """

    gate: GateState = field(default_factory=GateState)
    calls: CallListState = field(default_factory=CallListState)
    raw: list[str] = field(default_factory=list)
    begun: bool = False
    sent: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True)
class ListStyle:
    """What differs between the formats that use call lists.

    `gated`: only lists that begin in vLLM's narrow form count (pythonic_misc 1.2). `lines`: a call a line, without
    brackets. `keyword_names`: arguments may be called like a keyword of Python. `waits`: the end of a string counts
    only once the next character is known. `alone`: nothing but white space may follow the list.
    """

    gated: bool = True
    lines: bool = False
    keyword_names: bool = False
    waits: bool = False
    alone: bool = False


class CallStream:
    """`feed` a chunk, then ask for its `events`; `finish` at the end of output."""

    def __init__(self, state: CallStreamState, style: ListStyle) -> None:
        self.state = state
        self._style = style
        self._gate = CompletionGate(state.gate)
        self._reader = self._read(state.calls)

    def _read(self, state: CallListState) -> CallListReader:
        style = self._style
        return CallListReader(
            state, gated=style.gated, keyword_names=style.keyword_names, waits=style.waits, alone=style.alone
        )

    @property
    def closed(self) -> bool:
        """The list's closing bracket was read."""
        return self._reader.closed

    @property
    def in_string(self) -> bool:
        """The text so far ends within a string."""
        return self.state.calls.place in ("literal", "raw_literal")

    def feed(self, text: str, *, raw: str | None = None) -> tuple[str, str] | None:
        """None, or (text that is no call list, text behind it not looked at yet), once, if nothing was sent of it.

        `raw` is what the model wrote for `text`, if that is something else. It is given back as a whole then.
        """
        state = self.state
        if self._reader.invalid:
            return None
        if not state.sent:
            state.raw.append(text if raw is None else raw)
        core = self._source(self._gate.feed(text))
        read = self._reader.feed(core)
        if state.gate.held and not self._reader.invalid:
            self._reader.followed()
        if not self._reader.invalid or state.sent:
            return None
        unread = core[read:] + self._gate.flush()
        if self._style.lines or (raw is not None and raw != text):
            unread = ""
        return self._given_back(unread), unread

    def close(self) -> tuple[str, str] | None:
        """The end of a list of lines."""
        held = self._gate.flush().strip()
        core = ("" if self.state.begun else "[") + held + "]"
        self._reader.feed(core)
        return (self._given_back(""), "") if self._reader.invalid and not self.state.sent else None

    def mend(self) -> tuple[str, str] | None:
        """The end of a list in which a string may have seemed to end in its midst."""
        state = self.state
        if state.calls.place == "broken":
            found = mended(state.calls)
            if found is None:
                return self.give_up()
            state.calls = found
            self._reader = self._read(found)
        return None

    def give_up(self) -> tuple[str, str] | None:
        """The end of a list that is none; see `feed`."""
        self.state.calls.place = "invalid"
        return None if self.state.sent else (self._given_back(""), "")

    def _source(self, core: str) -> str:
        """What the reader reads: a list of lines becomes a list in brackets."""
        if not self._style.lines or not core:
            return core
        if not self.state.begun:
            self.state.begun = True
            core = "[" + core.lstrip()
        return _LINE_BREAK.sub(", ", core)

    def _given_back(self, unread: str) -> str:
        raw = "".join(self.state.raw)
        self.state.raw = []
        return raw[: len(raw) - len(unread)]

    def events(self) -> list[Event]:
        """What this chunk sends."""
        if self._reader.invalid:
            return []
        if self._reader.closed:
            return self._closed_events()
        stack = self.state.gate.stack
        ready = self._reader.ready("[" + stack if self._style.lines else stack, comma=self._gate.holds_comma)
        if not ready or not self._gate.passes():
            return []
        events = self._take()
        return events if events or stack else [Content("")]

    def _take(self) -> list[Event]:
        events = self._reader.take()
        if events:
            self.state.sent, self.state.raw = True, []
        return events

    def _closed_events(self) -> list[Event]:
        """Behind the list: the rest of it, or "" as vLLM sends while what follows is Python too."""
        state = self.state
        trail = "".join(state.calls.trail)
        if len(trail) > _TRAIL_LIMIT:
            if not state.calls.finished:
                state.calls.trail, state.cut = [], True
            return []
        if trail and not (self._gate.passes() and ends_statement(trail + self._gate.closers())):
            return []
        events = self._take()
        if not events and not state.cut and not state.gate.stack:
            return [Content("")]
        return events

    def finish(self) -> list[Event]:
        """The end of output: the rest of a complete list; text that is none; a sign that what was sent is none."""
        state = self.state
        held = self._gate.flush()
        if not self._reader.invalid:
            self._reader.feed(held)
        if (
            self._reader.closed
            and not state.calls.refused
            and (state.cut or ends_statement("".join(state.calls.trail)))
        ):
            return self._take()
        if state.sent:
            return [Malformed()]
        return [Content(self._given_back(""))] if state.raw else []
