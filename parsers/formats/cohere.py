"""Command 3 and 4 of Cohere: thoughts, answer and actions between special tokens, citations inside the text.

    <|START_THINKING|>I will look it up.<|END_THINKING|><|START_ACTION|>[
        {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Paris"}}
    ]<|END_ACTION|>
    <|START_RESPONSE|>It is <co>warm</co: 0:[0]> in Paris.<|END_RESPONSE|>

The markers are found in the text, wherever they stand. Command 4 begins in its thoughts, Command 3 in its answer
(pythonic_misc 8).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from parsers.engine.context import RequestContext
from parsers.engine.events import CallArguments, CallEnd, CallStart, Citation, Content, Event, Reasoning, Segment
from parsers.engine.json_stream import JsonStream, JsonStreamState
from parsers.engine.lexer import Lexer
from parsers.engine.scanner import text_of
from parsers.engine.stage import UnifiedFormat, UnifiedStage

MARKERS = {
    "<|START_THINKING|>": "reason",
    "<|END_THINKING|>": "answer",
    "<|START_RESPONSE|>": "answer",
    "<|END_RESPONSE|>": "ignore",
    "<|START_ACTION|>": "action",
    "<|END_ACTION|>": "ignore",
}
MARKERS_4 = MARKERS | {"<|START_TEXT|>": "answer", "<|END_TEXT|>": "ignore"}
OPEN, CLOSE = "<co>", "</co: "
INDENT = 8
"""White space at the start of a line of arguments that belongs to the layout of the action, in code points."""

_MEMBER = {
    ("seek", "{"): "key",
    ("key", "}"): "end",
    ("colon", ":"): "value",
    ("next", ","): "key",
    ("next", "}"): "end",
}
_OPENED = re.compile(r"\s*(?:\{|n|nu|nul|null)?\s*\Z")


@dataclass(slots=True)
class ActionState:
    """Where the list of actions stands.

    Of the open element: `key` is the member being read and `value` its reader, `text` what was read of a key, name or
    ID; `raw` arguments that were not sent yet. `column` counts white space at the start of a line of arguments, -1
    behind it.
    """

    place: str = "seek"
    index: int = 0
    key: str = ""
    text: str = ""
    value: JsonStreamState | None = None
    id: str | None = None
    name: str | None = None
    raw: str = ""
    started: bool = False
    filled: bool = False
    broken: bool = False
    column: int = -1


@dataclass(slots=True)
class CohereState:
    """`held` is text whose meaning is open: white space at its end, or the beginning of a marker.

    `trims` drops white space in front; `offset` counts what was sent of the text; `cited` is the text of the open
    citation, `sources` that its closing tag is being read.
    """

    mode: str = "answer"
    held: str = ""
    trims: bool = False
    offset: int = 0
    cited: list[str] | None = None
    sources: bool = False
    action: ActionState = field(default_factory=ActionState)


class CohereStage(UnifiedStage):
    """One stream."""

    State: ClassVar[type] = CohereState

    def __init__(self, markers: Mapping[str, str], start: str, *, finds_calls: bool) -> None:
        super().__init__()
        self._markers = markers
        self._finds_calls = finds_calls
        self._pattern = re.compile("|".join(map(re.escape, markers)))
        self._lexer = Lexer(markers)
        self.state.mode = start

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        state = self.state
        buffer, state.held = state.held + text_of(segments), ""
        events: list[Event] = []
        position = 0
        while match := self._pattern.search(buffer, position):
            before, mode = buffer[position : match.start()], self._markers[match.group()]
            if mode == state.mode == "action":
                self._process(before, events, final=True)
            else:
                self._final(before, events)
                self._enter(mode)
            position = match.end()
        buffer = buffer[position:]
        if self._lexer.cut("", buffer)[1]:
            state.held = buffer
        else:
            state.held = self._process(buffer, events)
        return events

    def finish(self) -> list[Event]:
        events: list[Event] = []
        held, self.state.held = self.state.held, ""
        self._final(held.removesuffix("\\") if self.state.mode == "action" else held, events)
        return events

    def _enter(self, mode: str) -> None:
        state = self.state
        state.mode, state.cited, state.sources = mode, None, False
        if mode in ("answer", "reason"):
            state.offset = 0
        state.trims = state.trims or mode == "reason"
        if mode == "action":
            state.action.place = "seek"

    def _process(self, text: str, events: list[Event], *, final: bool = False) -> str:
        """Text of the current mode; what is left for later, such as an action text that ends with a backslash."""
        if self.state.mode == "action":
            if text.endswith("\\") and not final:
                return text
            if self._finds_calls:
                self._read_action(text, events)
            return ""
        return self._read_text(text, events) if self.state.mode != "ignore" else ""

    def _final(self, text: str, events: list[Event]) -> None:
        """The last text before a marker or the end: a citation that is only begun is text, white space is dropped."""
        rest = self._process(text, events, final=True).rstrip()
        if rest and self.state.mode in ("answer", "reason") and not self.state.sources and self.state.cited is None:
            self._send(rest, events)
        if self.state.mode == "action":
            self._end_action(events)

    # --- text and citations ---------------------------------------------------------------------------------------

    def _read_text(self, text: str, events: list[Event]) -> str:
        state = self.state
        visible = text.rstrip()
        space = text[len(visible) :]
        position = 0
        while position < len(visible):
            tag = ">" if state.sources else OPEN if state.cited is None else CLOSE
            found = visible.find(tag, position)
            if found < 0:
                return self._without_tag(visible[position:], tag, events) + space
            if not state.sources:
                self._send(visible[position:found], events)
            self._tag(tag, events)
            position = found + len(tag)
        return space

    def _without_tag(self, text: str, tag: str, events: list[Event]) -> str:
        """Text up to the end of the chunk, which may end with the beginning of `tag`."""
        if self.state.sources:
            return ""
        begun = next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)
        if begun and tag == OPEN:
            return text
        ready = text[: len(text) - begun]
        self._send(ready, events)
        return text[len(ready) :]

    def _tag(self, tag: str, events: list[Event]) -> None:
        state = self.state
        if tag == OPEN:
            state.cited = []
        elif tag == CLOSE:
            state.sources = True
        else:
            cited = "".join(state.cited or ())
            kind = "TEXT_CONTENT" if state.mode == "answer" else "THINKING_CONTENT"
            events.append(Citation(start=state.offset - len(cited), end=state.offset, text=cited, type=kind))
            state.cited, state.sources = None, False

    def _send(self, text: str, events: list[Event]) -> None:
        state = self.state
        if state.trims:
            text = text.lstrip()
        if not text:
            return
        state.trims = False
        state.offset += len(text)
        if state.cited is not None:
            state.cited.append(text)
        events.append(Content(text) if state.mode == "answer" else Reasoning(text))

    # --- actions --------------------------------------------------------------------------------------------------

    def _read_action(self, text: str, events: list[Event]) -> None:
        position = 0
        while position < len(text):
            action = self.state.action
            if action.broken:
                self._parameters(text[position:], events)
                return
            if action.value is not None:
                position = self._value(text, position, events)
            else:
                position += self._structure(text[position], events)

    def _structure(self, character: str, events: list[Event]) -> int:
        """One character outside values; how much of it was read."""
        action = self.state.action
        place = _MEMBER.get((action.place, character))
        if place == "end":
            self._end_element(events)
        elif place is not None:
            if action.place == "seek":
                self.state.action = ActionState(place=place, index=action.index)
            action = self.state.action
            action.place = place
        elif character.isspace() or action.place == "seek":
            return 1
        elif action.place == "value" or (action.place == "key" and character == '"'):
            action.value, action.text = JsonStreamState(), ""
            return 0
        else:
            self._end_element(events)
        return 1

    def _value(self, text: str, position: int, events: list[Event]) -> int:
        action = self.state.action
        stream = JsonStream(action.value)
        out, end = stream.feed(text, position)
        if action.place == "value" and action.key == "parameters":
            self._parameters(text[position:end], events)
            if stream.state.invalid:
                action.broken = True
        else:
            action.text += out
            if stream.state.invalid:
                self._end_element(events)
                return end
        if stream.done:
            self._close_value(events)
        return end

    def _close_value(self, events: list[Event]) -> None:
        action = self.state.action
        action.value = None
        if action.place == "key":
            action.key, action.place = json.loads(action.text), "colon"
            return
        action.place = "next"
        if action.key in ("tool_call_id", "tool_name"):
            word = action.text[1:-1] if action.text.startswith('"') else action.text
            if action.key == "tool_name":
                action.name = word
            else:
                action.id = word
            if action.id is not None:
                self._start_call(events)

    def _parameters(self, raw: str, events: list[Event]) -> None:
        """Argument text goes out as it is, but for the layout.

        Not before it is certain to be an object with members.
        """
        action = self.state.action
        action.raw += self._unindented(raw)
        if action.name is None or (not action.filled and _OPENED.match(action.raw)):
            return
        self._start_call(events)
        if action.raw:
            action.filled = True
            events.append(CallArguments(action.index, action.raw))
        action.raw = ""

    def _unindented(self, text: str) -> str:
        action = self.state.action
        kept = []
        for character in text:
            if action.column >= 0 and character.isspace() and character != "\n" and action.column < INDENT:
                action.column += 1
                continue
            action.column = 0 if character == "\n" else -1
            kept.append(character)
        return "".join(kept)

    def _start_call(self, events: list[Event]) -> None:
        action = self.state.action
        if action.name and not action.started:
            action.started = True
            events.append(CallStart(action.index, action.name, action.id))

    def _end_element(self, events: list[Event]) -> None:
        """The element is closed: a call, if it has a name. Arguments that are missing or null are an empty object."""
        action = self.state.action
        if action.name:
            self._start_call(events)
            rest = "".join(action.raw.split())
            if not action.filled:
                events.append(CallArguments(action.index, action.raw if rest not in ("", "null") else "{}"))
            events.append(CallEnd(action.index))
            action.index += 1
        self.state.action = ActionState(index=action.index)

    def _end_action(self, events: list[Event]) -> None:
        """The list is over, perhaps inside an element."""
        action = self.state.action
        if action.started or (action.name and action.place == "next"):
            self._end_element(events)
        self.state.action = ActionState(index=self.state.action.index)


class CohereCommand3(UnifiedFormat):
    """`cohere_command3`."""

    names = ("cohere_command3",)
    merges_entries = True
    markers: ClassVar[Mapping[str, str]] = MARKERS
    start: ClassVar[str] = "answer"

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> UnifiedStage:
        return CohereStage(self.markers, self.start, finds_calls=self.tools and context.tool_choice != "none")


class CohereCommand4(CohereCommand3):
    """`cohere_command4`."""

    names = ("cohere_command4",)
    markers = MARKERS_4
    start = "reason"
