"""Stages for answers in which no format's calls are looked for: text as it is, and the JSON of a forced tool choice."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from .assembly import dump_json
from .events import CallArguments, CallEnd, CallStart, Content, Event, Segment
from .json_stream import JsonStream, JsonStreamState
from .scanner import text_of
from .stage import FoundCall, Outcome, ToolStage


@dataclass(slots=True)
class EnteredState:
    """`entered`: the stage was stepped before; `behind`: it began behind reasoning."""

    entered: bool = False
    behind: bool = False


class PassThrough(ToolStage):
    """Everything is content.

    Without a tool parser even an empty chunk is (engine 1.3.5), except the one that ends reasoning.
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
        if text or (self._sends_empty and not first):
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

    `place` is what may come next. Of the open element: `key` is the member being read, `text` its key or name so far,
    `waiting` parameters that precede the name, and `value` the rewriter of the member's value.
    """

    place: str = "start"
    index: int = -1
    key: str = ""
    text: str = ""
    name: str | None = None
    started: bool = False
    has_parameters: bool = False
    waiting: str = ""
    value: JsonStreamState | None = None


class RequiredCalls(ToolStage):
    """The choice "required" with a format that expects a JSON array of calls (engine 1.4).

    Parameters are sent in the style in which a one-shot answer dumps them. Nothing is ever content.
    """

    State: ClassVar[type] = RequiredState

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        text, position = text_of(segments), 0
        events: list[Event] = []
        while position < len(text) and self.state.place != "stop":
            position += self._step(text, position, events)
        return events

    def _step(self, text: str, position: int, events: list[Event]) -> int:
        state = self.state
        if state.value is not None:
            return self._value(text, position, events)
        character = text[position]
        if character in " \t\n\r":
            return 1
        follow = {
            ("start", "["): "element",
            ("element", "{"): "key",
            ("element", "]"): "stop",
            ("key", "}"): "between",
            ("colon", ":"): "value",
            ("member", ","): "key",
            ("member", "}"): "between",
            ("between", ","): "element",
            ("between", "]"): "stop",
        }.get((state.place, character))
        if follow is not None:
            self._move(follow, events)
            return 1
        if (state.place == "key" and character == '"') or state.place == "value":
            state.value, state.text = JsonStreamState(), ""
            return 0
        state.place = "stop"
        return 1

    def _move(self, place: str, events: list[Event]) -> None:
        state = self.state
        if state.place == "element" and place == "key":
            state.index += 1
            state.name, state.started, state.has_parameters, state.waiting = None, False, False, ""
        if place == "between":
            if state.name is not None and not state.started:
                events.append(CallStart(state.index, state.name))
                events.append(CallArguments(state.index, "null"))
            if state.name is not None:
                events.append(CallEnd(state.index))
        state.place = place

    def _value(self, text: str, position: int, events: list[Event]) -> int:
        """The open key, name, parameters or other member."""
        state = self.state
        stream = JsonStream(state.value)
        before = stream.state.mode
        out, used = stream.feed(text[position:] if position else text)
        is_parameters = state.place == "value" and state.key == "parameters"
        if is_parameters:
            began = bool(out) or before != "value" or stream.state.mode != "value"
            self._parameters(out, began=began, events=events)
        else:
            state.text += out
        if stream.state.invalid:
            state.place = "stop"
        elif stream.done:
            self._close_value(events)
        return used if used else max(used, 0 if stream.done else 1)

    def _close_value(self, events: list[Event]) -> None:
        state = self.state
        state.value = None
        if state.place == "key":
            state.key, state.place = json.loads(state.text), "colon"
            return
        if state.key == "name":
            name = json.loads(state.text)
            if not isinstance(name, str):
                state.place = "stop"
                return
            state.name = name
            if state.has_parameters and not state.started:
                state.started = True
                events.append(CallStart(state.index, name))
                events.append(CallArguments(state.index, state.waiting))
                state.waiting = ""
        state.place = "member"

    def _parameters(self, out: str, *, began: bool, events: list[Event]) -> None:
        state = self.state
        if not began:
            return
        state.has_parameters = True
        if state.name is None:
            state.waiting += out
        elif not state.started:
            state.started = True
            events.append(CallStart(state.index, state.name))
            events.append(CallArguments(state.index, out))
        elif out:
            events.append(CallArguments(state.index, out))

    @staticmethod
    def settle(outcome: Outcome) -> None:
        """The whole text must be an array of {name: string, parameters: object or null}; else there is no call."""
        outcome.content = None
        outcome.called = True
        outcome.calls = []
        try:
            elements = json.loads(outcome.raw)
        except ValueError:
            return
        calls: list[FoundCall] = []
        for element in elements if isinstance(elements, list) else [None]:
            if not isinstance(element, dict) or not isinstance(element.get("name"), str):
                return
            parameters = element.get("parameters")
            if parameters is not None and not isinstance(parameters, dict):
                return
            calls.append(FoundCall(index=len(calls), name=element["name"], arguments=dump_json(parameters)))
        outcome.calls = calls
