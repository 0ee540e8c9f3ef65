"""Call arguments sent one step a chunk, as vLLM sends what it reads anew from the text so far with every chunk.

The name goes out in a chunk of its own, the arguments as far as the chunk before had them as well; what is left of a
complete call goes out at the latest with the end of the output. Nothing here reads again: how the arguments would be
dumped if the text ended now is known from their unsent end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from parsers.engine.call_object import PLAIN, CallObject, CallObjectState, CallStyle
from parsers.engine.events import CallArguments, CallEnd, CallStart, Segment
from parsers.engine.json_stream import common_length
from parsers.engine.scanner import text_of
from parsers.formats.call_stage import CallStage, CallStageState

SEARCHED = 4096
"""Arguments of which nothing is out are searched for the chunk's text up to this length, then sent as they are."""

FALSY = frozenset(("", "null", "false", "0", "0.0", "-0", "-0.0", '""', "[]", "{}"))


@dataclass(slots=True)
class StepState(CallStageState):
    """What is known of the current call.

    `call` is its reader, `index` its number once it is named; `unsent` its arguments that wait, `begun` that some are
    out, `previous` how their dump would have ended in the chunk before, "" for arguments that count as none.
    """

    index: int = -1
    call: CallObjectState | None = None
    named: bool = False
    unsent: str = ""
    begun: bool = False
    previous: str = ""


class SteppedCalls(CallStage):
    """Base of the stages that send this way. `closes_at_once`: the rest of a call goes out as soon as it is closed."""

    State: ClassVar[type] = StepState
    style: ClassVar[CallStyle] = PLAIN
    closes_at_once: ClassVar[bool] = True

    def __init__(self, stops: Collection[int]) -> None:
        super().__init__(stops)
        self._stepped = False
        self._fresh = False

    @property
    def _sent(self) -> bool:
        return bool(self.state.index >= 0)

    def _begin_chunk(self, segments: Sequence[Segment]) -> None:
        """Nothing is sent yet, and no call began."""
        self._stepped = self._fresh = False

    def _call(self) -> CallObject:
        return CallObject(self.state.call, self.style)

    def _begin_call(self) -> None:
        state = self.state
        state.call = CallObjectState()
        state.named, state.unsent, state.begun, state.previous = False, "", False, ""

    def _send_step(self, *, reads_on: bool) -> None:
        """The step that is due after a chunk.

        `reads_on`: vLLM can still read the text behind the complete call, and so sends an empty entry.
        """
        state, call = self.state, self._call()
        if not state.named:
            if call.state.name:
                self._send_name(call.state.name)
                state.unsent += call.take()
                state.previous = self._truthy(call.closed(state.unsent, strings=False))
            return
        state.unsent += call.take()
        now = self._truthy(call.closed(state.unsent))
        if now and not state.previous and not state.begun and (first := self._first_length(now)) is not None:
            state.previous = now
            self._send(min(first, common_length(now, state.unsent)))
            return
        if call.done and self.closes_at_once:
            self._send_rest(empty=reads_on)
            return
        length = self._step_length(now)
        if length is not None:
            self._send(min(length, common_length(now, state.unsent)))

    def _first_length(self, now: str) -> int | None:
        """How much of the first arguments goes out at once; None for the ordinary rules."""
        return None

    def _step_length(self, now: str) -> int | None:
        """How much of `now` an open call sends; None for no entry. Has to set `state.previous`."""
        state = self.state
        before, state.previous = state.previous, now
        return common_length(before, now) if now and before and now != before else None

    def _truthy(self, dump: str | None) -> str:
        return "" if dump is None or (not self.state.begun and dump in FALSY) else dump

    def _send(self, length: int) -> None:
        state = self.state
        self._events.append(CallArguments(state.index, state.unsent[:length]))
        state.unsent, state.previous = state.unsent[length:], state.previous[length:]
        state.begun = state.begun or length > 0
        self._stepped = True

    def _send_name(self, name: str) -> None:
        state = self.state
        state.index += 1
        state.named, state.raw = True, []
        self._events.append(CallStart(state.index, name))
        self._stepped = True

    def _send_rest(self, *, empty: bool) -> None:
        """What is left of a complete call; `empty`: an entry even if nothing is."""
        state, call = self.state, self._call()
        if not state.named:
            self._send_name(call.state.name or "")
        state.unsent += call.take()
        if state.unsent or (empty and state.begun):
            truthy = state.begun or state.unsent not in FALSY
            self._send(len(state.unsent))
            state.begun = truthy

    def _send_cut(self) -> None:
        """The output ends inside the arguments. They are not closed: nobody shall take them for whole."""
        state = self.state
        now = self._call().closed(state.unsent) or ""
        if self._stepped and (length := common_length(now, state.unsent)):
            self._send(length)
        self._events.append(CallEnd(state.index, malformed=True))


class SearchingCalls(SteppedCalls):
    """Base of the stages that send the first arguments up to the place where the chunk's own text occurs in them."""

    def __init__(self, stops: Collection[int]) -> None:
        super().__init__(stops)
        self._delta = ""

    def _begin_chunk(self, segments: Sequence[Segment]) -> None:
        super()._begin_chunk(segments)
        self._delta = text_of(segments)

    def _first_length(self, now: str) -> int | None:
        if len(now) > SEARCHED:
            return len(now)
        wanted = self._delta.replace("'", '"')
        at = now.find(wanted)
        return at + len(wanted) if at >= 0 else None
