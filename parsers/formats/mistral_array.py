"""Calls of the older Mistral models: a JSON array behind one marker.

Let me see.[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from parsers.engine.call_object import CallObject, CallObjectState
from parsers.engine.events import CallArguments, CallEnd, CallStart, Content, Event, Malformed, Segment, Token
from parsers.engine.lexer import Lexer
from parsers.engine.stage import Outcome, ToolStage

MARKER = "[TOOL_CALLS]"


@dataclass(slots=True)
class ArrayState:
    """`place`: "content" before the marker, "start" behind it, "element", "between", "done", or "text" (no array).

    `held` may begin the marker; `skipped` is text that is content after all if no array follows; `before` counts
    nothing but whether content came before; `bare`: a single object stands for the array.
    """

    place: str = "content"
    held: str = ""
    skipped: list[str] = field(default_factory=list)
    bare: bool = False
    index: int = 0
    announced: bool = False
    filled: bool = False
    null: str = ""
    call: CallObjectState | None = None


class ArrayCalls(ToolStage):
    """One stream. `started`: the choice forces a call, so that the array may stand without its marker."""

    State: ClassVar[type] = ArrayState

    def __init__(self, *, started: bool) -> None:
        super().__init__()
        self._lexer = Lexer([MARKER])
        if started:
            self.state.place = "start"

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        events: list[Event] = []
        for text, is_marker in self._pieces(segments):
            if not is_marker:
                self._text(text, events)
            elif self.state.place == "content":
                self.state.place = "start"
        if self.state.call is not None:
            CallObject(self.state.call).pause()
            self._send(events)
        if self.state.place == "content" and not events:
            events.append(Content(""))
        return events

    def _pieces(self, segments: Sequence[Segment]) -> list[tuple[str, bool]]:
        """Text, and where the marker stands, as a token or in the text."""
        pieces: list[tuple[str, bool]] = []
        for segment in segments:
            if isinstance(segment, Token) and segment.text == MARKER:
                pieces.append((MARKER, True))
            else:
                pieces.append((segment.text, False))
        return pieces

    def finish(self) -> list[Event]:
        state = self.state
        events: list[Event] = []
        if state.place == "element":
            self._end(events)
            events.append(Malformed())
        elif state.place in ("start", "between"):
            events.append(Malformed())
        if not state.index and state.skipped:
            events += [Malformed(), Content("".join(state.skipped).strip())]
        return events

    def _text(self, text: str, events: list[Event]) -> None:
        state = self.state
        position = 0
        while position < len(text):
            match state.place:
                case "content" | "text":
                    events.append(Content(text[position:]))
                    return
                case "element":
                    position = self._element(text, position, events)
                case "start" | "between":
                    position = self._between(text, position, events)
                case _:
                    if not state.index:
                        state.skipped.append(text[position:])
                    return

    def _between(self, text: str, position: int, events: list[Event]) -> int:
        """Outside elements: brackets, commas and white space."""
        state = self.state
        character = text[position]
        if character == "{":
            state.bare = state.bare or (state.place == "start" and "[" not in "".join(state.skipped))
            state.place, state.call, state.null = "element", CallObjectState(), ""
            state.announced = state.filled = False
            return position
        opens = character == "[" and state.place == "start" and "[" not in state.skipped
        separates = character == "," and state.place == "between"
        state.skipped.append(character)
        if character == "]" and state.place == "between":
            state.place = "done"
        elif not (opens or separates or character.isspace()):
            self._no_array(events)
        return position + 1

    def _no_array(self, events: list[Event]) -> None:
        state = self.state
        events.append(Malformed())
        if state.index:
            state.place = "done"
            return
        state.place = "text"
        events.append(Content("".join(state.skipped).lstrip()))
        state.skipped = []

    def _element(self, text: str, position: int, events: list[Event]) -> int:
        state = self.state
        call = CallObject(state.call)
        end = call.feed(text, position)
        state.skipped.append(text[position:end])
        self._send(events)
        if call.done:
            self._end(events)
            state.place = "done" if state.bare else "between"
        elif call.bad:
            self._end(events)
            if state.place == "element":
                self._no_array(events)
        return end

    def _send(self, events: list[Event]) -> None:
        state = self.state
        if state.call is None or state.call.name is None:
            return
        call = CallObject(state.call)
        text = state.null + call.take()
        state.null = text if not state.filled and "null".startswith(text) else ""
        text = "" if state.null else text
        if not state.announced:
            state.announced = True
            events.append(CallStart(state.index, state.call.name))
        if text:
            state.skipped, state.filled = [], True
            events.append(CallArguments(state.index, text))

    def _end(self, events: list[Event]) -> None:
        """The element is over: a call if it has a name. Missing or null arguments are an empty object."""
        state = self.state
        if state.call is None:
            return
        call = CallObject(state.call)
        if state.announced:
            if not state.filled:
                events.append(CallArguments(state.index, "{}"))
            events.append(CallEnd(state.index, malformed=not call.done))
            state.index += 1
        state.call = None


def settle_array(outcome: Outcome) -> None:
    """One-shot rules: an array that is no JSON holds no calls; its text is the content (json 3.2)."""
    before, marker, body = outcome.raw.partition(MARKER)
    if not outcome.raw or (not outcome.malformed and outcome.calls):
        outcome.called = True
        outcome.content = (before or None) if marker else None
        return
    outcome.calls = []
    if marker:
        outcome.raw = before + body.strip().replace(MARKER, "")
    elif outcome.malformed:
        outcome.raw = outcome.raw.strip()
