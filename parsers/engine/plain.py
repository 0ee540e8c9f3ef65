"""Stages for answers in which no format's calls are looked for: text as it is, and the JSON of a forced tool choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from .assembly import unique_keys
from .call_object import CallObject, CallObjectState, CallStyle
from .events import CallArguments, CallEnd, CallStart, Content, Event, Malformed, Segment, Text
from .json_stream import SPACE
from .scanner import text_of
from .stage import Outcome, ToolStage

_PARAMETERS = CallStyle(keys=("parameters",))


@dataclass(slots=True)
class EnteredState:
    """`entered`: the stage was stepped before; `behind`: it began behind reasoning."""

    entered: bool = False
    behind: bool = False


class PassThrough(ToolStage):
    """Everything is content.

    Without a tool parser even an empty chunk is (engine 1.3.5), except the one that ends reasoning, unless the
    reasoning stage hands on an empty Text.
    """

    State: ClassVar[type] = EnteredState

    def __init__(self, *, sends_empty: bool, behind_reasoning: bool) -> None:
        super().__init__()
        self._sends_empty = sends_empty
        self.state.behind = behind_reasoning

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        text = text_of(segments)
        first = self.state.behind and not self.state.entered
        self.state.entered = True
        if text or (self._sends_empty and (not first or any(isinstance(each, Text) for each in segments))):
            return [Content(text)]
        return []


class NamedArguments(ToolStage):
    """A named choice with a format that expects plain JSON.

    Everything is the arguments of one call (engine 1.2.3c, 1.4).
    """

    State: ClassVar[type] = EnteredState

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        arguments = CallArguments(0, text_of(segments))
        if self.state.entered:
            return [arguments]
        self.state.entered = True
        return [CallStart(0, self._name), arguments]

    @staticmethod
    def settle(outcome: Outcome) -> None:
        """A blank text is no call."""
        outcome.content = None
        if not outcome.raw.strip():
            outcome.calls = []
        outcome.called = True


@dataclass(slots=True)
class RequiredState:
    """Position in `[{"name": ..., "parameters": ...}, ...]`.

    `call` is the reader of the open element, `started` whether its name is out, `is_object` whether its parameters are
    what they should be.
    """

    place: Literal["start", "first", "element", "call", "between", "end", "stop", "prose"] = "start"
    index: int = -1
    call: CallObjectState | None = None
    started: bool = False
    is_object: bool = True


class RequiredCalls(ToolStage):
    """The choice "required" with a format that expects a JSON array of calls (engine 1.4).

    Parameters are sent in the style in which a one-shot answer dumps them. Any error silences the rest, and the whole
    array in a one-shot answer; but an answer that begins as neither JSON nor markup is prose and stays content
    (bugs/finish-required-without-call@json-forced).
    """

    State: ClassVar[type] = RequiredState

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        events: list[Event] = []
        text, position = text_of(segments), 0
        while position < len(text):
            position = self._step(text, position, events)
        if self.state.call is not None:
            CallObject(self.state.call, _PARAMETERS).pause()
            self._send(events)
        return events

    def finish(self) -> list[Event]:
        complete = self.state.place in ("start", "end", "prose")
        return [] if complete else [Malformed()]

    def _step(self, text: str, position: int, events: list[Event]) -> int:
        state = self.state
        if state.place == "call":
            return self._read(text, position, events)
        if state.place in ("stop", "prose"):
            if state.place == "prose":
                events.append(Content(text[position:]))
            return len(text)
        character = text[position]
        if character in SPACE:
            return position + 1
        match state.place, character:
            case ("first" | "element", "{"):
                state.place, state.call, state.started, state.is_object = "call", CallObjectState(), False, True
                state.index += 1
                return position
            case ("start", "["):
                state.place = "first"
            case ("between", ","):
                state.place = "element"
            case ("first" | "between", "]"):
                state.place = "end"
            case ("start", _) if character not in "{<":
                state.place = "prose"
                return position
            case _:
                state.place = "stop"
        return position + 1

    def _read(self, text: str, position: int, events: list[Event]) -> int:
        state = self.state
        call = CallObject(state.call, _PARAMETERS)
        position = call.feed(text, position)
        self._send(events)
        name = call.state.name
        if call.bad or (call.done and name is None):
            state.place, state.call = "stop", None
        elif call.done and name is not None:
            if not state.started:
                events += [CallStart(state.index, name), CallArguments(state.index, "null")]
            events.append(CallEnd(state.index, malformed=not state.is_object))
            state.place, state.call = "between", None
        return position

    def _send(self, events: list[Event]) -> None:
        """An element is announced once its name is known and its parameters have begun."""
        state = self.state
        if state.call.name is None or not (text := CallObject(state.call).take()):
            return
        if not state.started:
            state.started, state.is_object = True, text.startswith(("{", "n"))
            events.append(CallStart(state.index, state.call.name))
        events.append(CallArguments(state.index, text))

    @staticmethod
    def settle(outcome: Outcome) -> None:
        """The whole text must be an array of {name: string, parameters: object or null}; else there is no call."""
        outcome.called = outcome.content is None
        if outcome.malformed:
            outcome.calls = []
        for call in outcome.calls:
            call.arguments = unique_keys(call.arguments)
