"""Calls whose arguments are sent when they are whole, one step a chunk, as two of vLLM's parsers do.

The name goes out with the chunk that completes it, the arguments when they are whole: first their brace, with the next
chunk the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from parsers.engine.assembly import unique_keys
from parsers.engine.call_object import CallObject
from parsers.engine.events import CallArguments, CallEnd, CallStart
from parsers.formats.call_stage import CallStage, CallStageState


@dataclass(slots=True)
class WaitingCall:
    """A call that is not sent completely: `arguments` are None until they are whole; `sent` counts its steps."""

    name: str
    arguments: str | None = None
    sent: int = 0


@dataclass(slots=True)
class WaitingState(CallStageState):
    """`index` is the last call sent, `waiting` the calls that are not sent completely; `named` that the call being read
    is the last of them.
    """

    index: int = -1
    waiting: list[WaitingCall] = field(default_factory=list)
    named: bool = False


class WaitingCalls(CallStage):
    """Base of the stages that send this way."""

    State: ClassVar[type] = WaitingState

    @property
    def _sent(self) -> bool:
        return bool(self.state.index >= 0)

    def _note(self, call: CallObject) -> None:
        """Queues the call being read once it has a name, and its arguments once they are whole."""
        state = self.state
        if call.state.name is not None and not state.named:
            state.waiting.append(WaitingCall(call.state.name))
            state.named = True
        whole = state.named and call.state.arguments_done and call.state.opened_by in '{"'
        if whole and state.waiting and state.waiting[-1].arguments is None:
            arguments = call.take()
            state.waiting[-1].arguments = unique_keys(arguments) if call.state.opened_by == "{" else arguments

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
