"""Tool calls of Granite 20B function calling: JSON objects, each behind a marker.

    I will check.<function_call> {"name": "get_weather", "arguments": {"city": "Paris"}}<function_call> {...}

The marker is text. Text before the first one is content, text behind an object is dropped. If anything behind a marker
is no call, nothing is called and the text is the answer; what a stream has announced by then it cannot take back.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, Literal

from parsers.engine.context import RequestContext
from parsers.engine.events import CallEnd, Content, Malformed
from parsers.engine.json_stream import SPACE
from parsers.engine.lexer import Lexer
from parsers.engine.stage import ToolStage
from parsers.formats.call_stage import CallFormat
from parsers.formats.stepping import SteppedCalls, StepState

MARKER = "<function_call>"


@dataclass(slots=True)
class MarkedState(StepState):
    """Where the stage stands.

    Phases: `start` of the answer; `prose`; `marked`: behind a marker, before its object; `object`; `behind` it; `text`:
    the first object was no call, everything is content; `silent`: a later one was none. `after` is the beginning of the
    text behind the current call.
    """

    phase: Literal["start", "prose", "marked", "object", "behind", "text", "silent"] = "start"
    after: str = ""


class MarkedCalls(SteppedCalls):
    """One step a chunk (json 7)."""

    State: ClassVar[type] = MarkedState
    shows_stop = frozenset(("start", "prose", "behind"))

    def __init__(self, stops: Collection[int]) -> None:
        super().__init__(stops)
        self._marker = Lexer([MARKER])

    def _end_chunk(self) -> None:
        state = self.state
        speaks = self._phase_before in ("start", "prose") and state.phase == "prose"
        if speaks and not self._events and not state.held:
            self._events.append(Content(""))
        if state.call is not None and not self._fresh:
            self._send_step(reads_on=self._reads_on(state.after + state.held))

    def _end(self) -> None:
        state = self.state
        if state.phase == "behind":
            self._send_rest(empty=False)
            self._events.append(CallEnd(state.index))
        elif state.phase in ("marked", "object"):
            self._reject()
        if state.phase in ("start", "prose"):
            self._content(state.held)

    def _in_prose(self, text: str, position: int) -> int:
        """Up to a marker, or to what may begin one."""
        state = self.state
        end, marker = self._marker.next(text, position)
        self._content(text[position:end])
        if end > position:
            state.phase = "prose"
        if marker:
            state.raw.append(marker)
            state.phase = "marked"
            return end + len(marker)
        state.held = text[end:]
        return len(text)

    _in_start = _in_prose

    def _in_marked(self, text: str, position: int) -> int:
        character = text[position]
        if character == "{":
            self._begin()
            return position
        if character not in SPACE:
            self._reject()
            return position
        self._remember(character)
        return position + 1

    def _begin(self) -> None:
        """An object begins; the call before it is sent to its end."""
        state = self.state
        if state.call is not None:
            self._send_rest(empty=True)
            self._events.append(CallEnd(state.index))
        self._begin_call()
        state.phase, state.after = "object", ""
        self._fresh = True

    def _in_object(self, text: str, position: int) -> int:
        state = self.state
        call = self._call()
        end = call.feed(text, position)
        self._remember(text[position:end])
        if call.complete:
            state.phase = "behind"
        elif call.bad or call.done:
            self._reject()
        return end

    def _in_behind(self, text: str, position: int) -> int:
        state = self.state
        end, marker = self._marker.next(text, position)
        between = text[position:end] + marker
        self._remember(between)
        if len(state.after.lstrip()) <= len(MARKER):
            state.after += between[: 2 * len(MARKER)]
        if marker:
            state.phase = "marked"
            return end + len(marker)
        state.held = text[end:]
        return len(text)

    def _reject(self) -> None:
        """What follows the marker is no call, or was cut."""
        state = self.state
        if state.index < 0:
            state.call = None
            self._give_back("text")
            return
        if state.phase == "object" and state.named:
            self._send_cut()
        else:
            self._events.append(Malformed())
        state.phase, state.call = "silent", None

    @staticmethod
    def _reads_on(after: str) -> bool:
        """Whether vLLM can still read the text with this behind a call, and so sends an empty entry."""
        return len(after.lstrip()) <= len(MARKER) and not set("}]") & set(after)


class Granite20bTools(CallFormat):
    """`granite-20b-fc` (json 7)."""

    names = ("granite-20b-fc",)
    guided_choice = True
    streams_arguments = True

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return MarkedCalls(self.marks.keys())
