"""Tool calls of Salesforce xLAM 2: a JSON list, bare or in one of several wrappings.

    [{"name": "get_weather", "arguments": {"city": "Paris"}}]
    Sure:
    ```json
    [...]
    ```
    [TOOL_CALLS][...]
    <tool_call>[...]</tool_call>
    <think>...</think>[...]

A bare list has to be the whole answer, or all of it behind `</think>`. Text around the other wrappings is content. A
list that is no JSON is text; what a stream has announced by then it cannot take back. A name goes out with the chunk
that completes it, the arguments when they are whole: first their brace, with the next chunk the rest.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, Literal

from parsers.engine.call_object import VERBATIM, CallObject, CallObjectState
from parsers.engine.context import RequestContext
from parsers.engine.events import CallEnd, Content, Malformed
from parsers.engine.json_stream import SPACE
from parsers.engine.lexer import Lexer
from parsers.engine.stage import FoundCall, Outcome, ToolStage
from parsers.formats.call_stage import CallFormat
from parsers.formats.waiting import WaitingCalls, WaitingState

FENCE, TOOL_CALLS, OPENING, CLOSING, THOUGHT = "```", "[TOOL_CALLS]", "<tool_call>", "</tool_call>", "</think>"

_INTO_FENCE = re.compile(r"(?:json)?\s*")
_SPACE_RUN = re.compile(r"\s*")

Phase = Literal["start", "prose", "wrapped", "list", "closing", "end", "text", "silent"]
Place = Literal["outside", "first", "element", "object", "between"]


@dataclass(slots=True)
class XlamState(WaitingState):
    """Where the stage stands.

    Phases: `start` of the answer; `prose`; `wrapped`: behind a marker that a list has to follow; `list`; `closing`:
    behind the list, before the end of its wrapping; `end`: nothing may follow; `text`: everything is content; `silent`:
    a list was no JSON but a part of it is sent. `marker` opened the wrapping; the first `out` code points of `held` are
    sent already. `place` is the place in the list, `call` the reader of its open element.
    """

    phase: Phase = "start"
    marker: str = ""
    out: int = 0
    place: Place = "outside"
    call: CallObjectState | None = None


class XlamCalls(WaitingCalls):
    """One step a chunk (json 9)."""

    State: ClassVar[type] = XlamState
    shows_stop = frozenset(("start", "prose"))

    def __init__(self, stops: Collection[int]) -> None:
        super().__init__(stops)
        self._markers = Lexer([FENCE, TOOL_CALLS, OPENING, THOUGHT])

    def _end_chunk(self) -> None:
        state = self.state
        speaks = self._phase_before in self.shows_stop and state.phase in self.shows_stop
        if speaks and not self._events and not state.held:
            self._events.append(Content(""))
        self._send_step()

    def _end(self) -> None:
        state = self.state
        if state.phase in ("wrapped", "list") or (state.phase == "closing" and state.marker != TOOL_CALLS):
            self._reject()
            state.waiting = []
        self._send_all()
        self._content(state.held)

    # --- where a list may begin -----------------------------------------------------------------------------------

    def _in_prose(self, text: str, position: int) -> int:
        """Up to a marker, or to a bracket that begins the answer.

        A single character that may begin a marker is sent at once, so a marker can be out by one character.
        """
        state = self.state
        end, marker = self._markers.next(text, position)
        before = text[position:end]
        if state.phase == "start" and before.strip():
            start = end - len(before.lstrip())
            if text[start] == "[":
                self._content(text[position:start])
                state.phase, state.marker = "list", "["
                return start
            state.phase = "prose"
        self._content(before)
        if not marker:
            state.held = text[end:]
            if state.phase == "prose" and len(state.held) == 1 and state.held in "<[":
                self._content(state.held)
                state.out = 1
            return len(text)
        state.phase, state.marker = "wrapped", marker
        if marker == THOUGHT:
            self._content(marker)
        else:
            state.raw.append(marker[state.out :])
        state.out = 0
        return end + len(marker)

    _in_start = _in_prose

    def _in_wrapped(self, text: str, position: int) -> int:
        """White space, the language of a fence, and a list; else it was prose."""
        state = self.state
        inner = text[position:]
        pattern = _INTO_FENCE if state.marker == FENCE else _SPACE_RUN
        match = pattern.match(inner)
        start = match.end() if match else 0
        if start < len(inner) and inner[start] == "[":
            self._remember(inner[:start])
            state.phase = "list"
            return position + start
        if start == len(inner) or (state.marker == FENCE and "json".startswith(inner)):
            state.held = inner
            return len(text)
        self._give_up("prose")
        return position

    # --- the list -------------------------------------------------------------------------------------------------

    def _in_list(self, text: str, position: int) -> int:
        state = self.state
        if state.place == "object":
            return self._element(text, position)
        character = text[position]
        if character not in SPACE:
            match state.place, character:
                case ("outside", "["):
                    state.place = "first"
                case ("first" | "element", "{"):
                    state.place, state.call, state.named = "object", CallObjectState(), False
                    return position
                case ("between", ","):
                    state.place = "element"
                case ("first" | "between", "]"):
                    state.place = "outside"
                    self._remember(character)
                    self._end_list()
                    return position + 1
                case _:
                    self._reject()
                    return position
        self._remember(character)
        return position + 1

    def _end_list(self) -> None:
        state = self.state
        if not state.waiting and state.index < 0:
            self._reject()
        else:
            state.phase = "end" if state.marker in ("[", THOUGHT) else "closing"

    def _element(self, text: str, position: int) -> int:
        state = self.state
        call = CallObject(state.call, VERBATIM)
        end = call.feed(text, position)
        self._remember(text[position:end])
        self._note(call)
        if call.bad or (call.state.arguments_done and call.state.opened_by not in '{"'):
            self._reject()
        if call.done and state.phase == "list":
            self._end_element(call)
        return end

    def _end_element(self, call: CallObject) -> None:
        """An object without name or arguments does not count."""
        state = self.state
        if state.named and not call.complete:
            dropped = state.waiting.pop()
            if dropped.sent:
                self._events.append(CallEnd(state.index, malformed=True))
        state.place, state.call = "between", None

    def _in_closing(self, text: str, position: int) -> int:
        """Between the list and the end of its wrapping there is only white space."""
        state = self.state
        inner = text[position:]
        if state.marker == TOOL_CALLS:
            stripped = inner.lstrip(" \t\r")
            closing = "\n"
        else:
            stripped = inner.lstrip()
            closing = FENCE if state.marker == FENCE else CLOSING
        if stripped.startswith(closing):
            state.phase = "text"
            return len(text) - len(stripped) + (0 if closing == "\n" else len(closing))
        if closing.startswith(stripped):
            state.held = inner
        else:
            self._reject()
            return position
        return len(text)

    def _in_end(self, text: str, position: int) -> int:
        if text[position:].strip():
            self._reject()
            return position
        self._remember(text[position:])
        return len(text)

    def _reject(self) -> None:
        """What followed the marker is no list of calls."""
        state = self.state
        if state.index < 0:
            state.waiting = []
            self._give_up("text")
            return
        self._events.append(Malformed())
        state.phase, state.call, state.held = "silent", None, ""
        self._drop_incomplete()

    def _give_up(self, phase: Phase) -> None:
        self.state.call, self.state.place = None, "outside"
        self._give_back(phase)

    def _content(self, text: str) -> None:
        """Content, but what of it is sent already."""
        state = self.state
        text, state.out = text[state.out :], max(0, state.out - len(text))
        if text:
            self._events.append(Content(text))


class XlamTools(CallFormat):
    """`xlam` (json 9)."""

    names = ("xlam",)
    guided_choice = True

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return XlamCalls(self.marks.keys())

    def settle(self, outcome: Outcome) -> None:
        """All or nothing; beside a wrapping even an empty text is content, without white space at its ends."""
        super().settle(outcome)
        if outcome.raw.lstrip()[:2] not in ("[{", "[ ", "[\n", "[\t"):
            outcome.keeps_blank, outcome.content = True, (outcome.content or "").strip()

    def call_id(self, context: RequestContext, call: FoundCall, *, streaming: bool) -> str:
        """Numbered, but not where the call was forced and written as plain JSON."""
        if context.forces_call:
            return context.call_id(call.index)
        return f"call_{call.index}_{context.random_hex(call.index)}"
