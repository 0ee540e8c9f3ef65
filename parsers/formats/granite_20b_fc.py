"""Tool calls of Granite 20B function calling: JSON objects, each behind a marker.

    I will check.<function_call> {"name": "get_weather", "arguments": {"city": "Paris"}}<function_call> {...}

The marker is text. Text before the first one is content, text behind an object is dropped. If anything behind a marker
is no call, nothing is called and the text is the answer; what a stream has announced by then it cannot take back.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from parsers.engine.assembly import unique_keys
from parsers.engine.context import RequestContext
from parsers.engine.events import CallEnd, Content, Event, Malformed, Segment
from parsers.engine.json_stream import SPACE
from parsers.engine.lexer import Lexer
from parsers.engine.scanner import hold_stop, text_of
from parsers.engine.stage import Outcome, ToolFormat, ToolStage
from parsers.engine.vocabulary import Vocabulary
from parsers.formats.stepping import SteppedCalls, StepState

MARKER = "<function_call>"


@dataclass(slots=True)
class MarkedState(StepState):
    """Where the stage stands.

    Phases: `start` of the answer; `prose`; `marked`: behind a marker, before its object; `object`; `behind` it; `text`:
    the first object was no call, everything is content; `silent`: a later one was none. `held` may begin a marker, its
    first `out` code points are sent already; `raw` is all behind the first marker, kept while no call is sent;
    `stop` a special token that ended the last chunk; `after` the beginning of the text behind the current call.
    """

    phase: Literal["start", "prose", "marked", "object", "behind", "text", "silent"] = "start"
    held: str = ""
    raw: list[str] = field(default_factory=list)
    stop: str = ""
    after: str = ""


class MarkedCalls(SteppedCalls):
    """One step a chunk (json 7)."""

    State: ClassVar[type] = MarkedState

    def __init__(self, stops: Collection[int]) -> None:
        super().__init__()
        self._stops = stops
        self._marker = Lexer([MARKER])
        self._fresh = False
        self._stopped = False

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        state = self.state
        self._events, self._fresh, self._stepped = [], False, False
        self._stopped = bool(segments)
        speaking = state.phase in ("start", "prose")
        segments, state.stop = hold_stop(segments, state.stop, self._stops)
        self._run(text_of(segments))
        if state.phase in ("start", "prose", "behind"):
            self._run(state.stop)
            state.stop = ""
        if speaking and state.phase == "prose" and not self._events and not state.held:
            self._events.append(Content(""))
        if state.call is not None and not self._fresh:
            self._send_step("", reads_on=self._reads_on(state.after + state.held))
        return self._events

    def finish(self) -> list[Event]:
        state = self.state
        self._events = []
        if self._stopped:
            self._run(state.stop)
        if state.phase == "behind":
            self._send_rest(empty=False)
            self._events.append(CallEnd(state.index))
        elif state.phase in ("marked", "object"):
            self._reject()
        if state.phase in ("start", "prose"):
            self._say(state.held)
        return self._events

    def _run(self, text: str) -> None:
        state = self.state
        text, state.held = state.held + text, ""
        position = 0
        while position < len(text):
            match state.phase:
                case "start" | "prose":
                    position = self._prose(text, position)
                case "marked":
                    position = self._marked(text, position)
                case "object":
                    position = self._object(text, position)
                case "behind":
                    position = self._behind(text, position)
                case phase:
                    if phase == "text":
                        self._say(text[position:])
                    return

    def _prose(self, text: str, position: int) -> int:
        """Up to a marker, or to what may begin one."""
        state = self.state
        end, marker = self._marker.next(text, position)
        self._say(text[position:end])
        if end > position:
            state.phase = "prose"
        if marker:
            state.raw.append(marker)
            state.phase = "marked"
            return end + len(marker)
        state.held = text[end:]
        return len(text)

    def _marked(self, text: str, position: int) -> int:
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

    def _object(self, text: str, position: int) -> int:
        state = self.state
        call = self._call()
        end = call.feed(text, position)
        self._remember(text[position:end])
        if call.complete:
            state.phase = "behind"
        elif call.bad or call.done:
            self._reject()
        return end

    def _behind(self, text: str, position: int) -> int:
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
            state.phase, state.call = "text", None
            raw, state.raw = state.raw, []
            self._say("".join(raw))
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

    def _send_name(self, name: str) -> None:
        super()._send_name(name)
        self.state.raw = []

    def _remember(self, text: str) -> None:
        if self.state.index < 0 and text:
            self.state.raw.append(text)

    def _say(self, text: str) -> None:
        if text:
            self._events.append(Content(text))


class Granite20bTools(ToolFormat):
    """`granite-20b-fc` (json 7)."""

    names = ("granite-20b-fc",)
    guided_choice = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self.marks = vocabulary.special_tokens

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return MarkedCalls(self.marks.keys())

    def settle(self, outcome: Outcome) -> None:
        """All or nothing."""
        if outcome.malformed:
            outcome.calls = []
        for call in outcome.calls:
            call.arguments = unique_keys(call.arguments)
        outcome.called = bool(outcome.calls)
