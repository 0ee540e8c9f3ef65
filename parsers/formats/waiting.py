"""Calls whose arguments are sent when they are whole, one step a chunk, as two of vLLM's parsers do.

The name goes out with the chunk that completes it, the arguments when they are whole: first their brace, with the next
chunk the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from parsers.engine.events import CallArguments, CallEnd, CallStart, Event
from parsers.engine.stage import ToolStage


@dataclass(slots=True)
class WaitingCall:
    """A call that is not sent completely: `arguments` are None until they are whole; `sent` counts its steps."""

    name: str
    arguments: str | None = None
    sent: int = 0


@dataclass(slots=True)
class WaitingState:
    """`index` is the last call sent, `waiting` the calls that are not sent completely; `raw` the text of the calls so
    far, kept while none of them is sent.
    """

    index: int = -1
    waiting: list[WaitingCall] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)


class WaitingCalls(ToolStage):
    """Base of the stages that send this way."""

    State: ClassVar[type] = WaitingState

    def __init__(self) -> None:
        super().__init__()
        self._events: list[Event] = []

    def _send_step(self) -> None:
        """The name of the last call, then its brace, then the rest; the calls before it go out whole."""
        state = self.state
        while len(state.waiting) > 1:
            self._send_whole(state.waiting.pop(0))
        if not state.waiting:
            return
        call = state.waiting[0]
        if not call.sent:
            self._send_name(call)
        elif call.arguments is not None:
            if call.sent == 1 and call.arguments.startswith("{") and call.arguments != "{}":
                self._events.append(CallArguments(state.index, "{"))
                call.sent = 2
            else:
                self._send_whole(state.waiting.pop(0))

    def _send_name(self, call: WaitingCall) -> None:
        state = self.state
        state.index += 1
        state.raw = []
        call.sent = 1
        self._events.append(CallStart(state.index, call.name))

    def _send_whole(self, call: WaitingCall) -> None:
        state = self.state
        if call.arguments is None and not call.sent:
            return
        if not call.sent:
            self._send_name(call)
        if call.arguments is not None:
            self._events.append(CallArguments(state.index, call.arguments[call.sent - 1 :]))
        self._events.append(CallEnd(state.index, malformed=call.arguments is None))

    def _send_all(self) -> None:
        """The end of the output: what waits goes out."""
        state = self.state
        for call in state.waiting:
            self._send_whole(call)
        state.waiting = []

    def _drop_incomplete(self) -> None:
        """The calls turned out to be no JSON, but some of them are sent: only whole arguments follow."""
        state = self.state
        state.waiting = [call for call in state.waiting if call.sent and call.arguments is not None]
