"""Tool calls of Phi-4-mini: a JSON list behind a word, with `arguments` or `parameters`.

    I will check.functools[{"name": "get_weather", "arguments": {"city": "Paris"}}]

Text before the list is content, text behind it is dropped. A list that is no JSON, or holds an object that is no call,
is text. vLLM streams nothing at all for this format, loses text before a list and lists with errors, and ends a list at
its first closing bracket, even one inside the arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from parsers.engine.assembly import unique_keys
from parsers.engine.call_list import CallList, CallListState
from parsers.engine.call_object import CallObject
from parsers.engine.context import RequestContext
from parsers.engine.events import CallArguments, CallEnd, CallStart, Content, Event, Malformed, Segment
from parsers.engine.lexer import Lexer
from parsers.engine.scanner import hold_stop, text_of
from parsers.engine.stage import Outcome, ToolFormat, ToolStage
from parsers.engine.vocabulary import Vocabulary

WORD = "functools"


@dataclass(slots=True)
class PhiState:
    """Where the stage stands.

    Phases: `content`; `list`; `behind` it; `text`: it was no list of calls, everything is content; `silent`: the same,
    but a part of it is sent. `held` may begin the word; `raw` is the list so far, kept while no call is sent; `stop` a
    special token that ended the last chunk. `index` is the last call, `sent` that one is out.
    """

    phase: Literal["content", "list", "behind", "text", "silent"] = "content"
    held: str = ""
    raw: list[str] = field(default_factory=list)
    stop: str = ""
    calls: CallListState = field(default_factory=CallListState)
    index: int = -1
    sent: bool = False


class PhiCalls(ToolStage):
    """Text is sent as it comes, calls when they are whole (json 8)."""

    State: ClassVar[type] = PhiState

    def __init__(self, stops: Collection[int]) -> None:
        super().__init__()
        self._stops = stops
        self._lexer = Lexer([WORD + "["])
        self._events: list[Event] = []
        self._stopped = False

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        state = self.state
        self._events = []
        self._stopped = bool(segments)
        segments, state.stop = hold_stop(segments, state.stop, self._stops)
        self._run(text_of(segments))
        if state.index >= 0:
            state.sent, state.raw = True, []
        return self._events

    def finish(self) -> list[Event]:
        state = self.state
        self._events = []
        if self._stopped:
            self._run(state.stop)
        if state.phase == "list":
            self._reject()
        self._content(state.held)
        state.held = state.stop = ""
        return self._events

    def _run(self, text: str) -> None:
        state = self.state
        text, state.held = state.held + text, ""
        position = 0
        while position < len(text):
            match state.phase:
                case "content":
                    position = self._find(text, position)
                case "list":
                    position = self._read(text, position)
                case phase:
                    if phase == "text":
                        self._content(text[position:])
                    return

    def _find(self, text: str, position: int) -> int:
        state = self.state
        end, word = self._lexer.next(text, position)
        self._content(text[position:end])
        if not word:
            state.held = text[end:]
            return len(text)
        state.raw.append(WORD)
        state.phase = "list"
        return end + len(WORD)

    def _read(self, text: str, position: int) -> int:
        state = self.state
        calls = CallList(state.calls, keys=("arguments", "parameters"))
        was_open = calls.in_element
        end = calls.feed(text, position)
        if not state.sent:
            state.raw.append(text[position:end])
        if calls.bad or (calls.closed and state.index < 0):
            self._reject()
        elif calls.closed:
            state.phase = "behind"
        elif was_open and not calls.in_element:
            self._send(calls.call)
        return end

    def _send(self, call: CallObject) -> None:
        state = self.state
        if not call.complete:
            self._reject()
            return
        state.index += 1
        arguments = unique_keys(call.take())
        self._events += [
            CallStart(state.index, call.state.name or ""),
            CallArguments(state.index, arguments),
            CallEnd(state.index),
        ]

    def _reject(self) -> None:
        """What follows the word is no list of calls."""
        state = self.state
        if state.sent:
            self._events.append(Malformed())
            state.phase = "silent"
            return
        self._events = [event for event in self._events if isinstance(event, Content)]
        state.phase, raw, state.raw, state.index = "text", state.raw, [], -1
        self._content("".join(raw))

    def _content(self, text: str) -> None:
        if text:
            self._events.append(Content(text))


class Phi4MiniTools(ToolFormat):
    """`phi4_mini_json` (json 8)."""

    names = ("phi4_mini_json",)
    guided_choice = True
    merges_entries = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self.marks = vocabulary.special_tokens

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return PhiCalls(self.marks.keys())

    def settle(self, outcome: Outcome) -> None:
        """All or nothing."""
        if outcome.malformed:
            outcome.calls = []
        outcome.called = bool(outcome.calls)
