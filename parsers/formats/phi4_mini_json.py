"""Tool calls of Phi-4-mini: a JSON list behind a word, with `arguments` or `parameters`.

    I will check.functools[{"name": "get_weather", "arguments": {"city": "Paris"}}]

Text before the list is content, text behind it is dropped. A list that is no JSON, or holds an object that is no call,
is text. vLLM streams nothing at all for this format, loses text before a list and lists with errors, and ends a list at
its first closing bracket, even one inside the arguments.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from parsers.engine.assembly import unique_keys
from parsers.engine.call_list import CallList, CallListState
from parsers.engine.call_object import EITHER_KEY, CallObject
from parsers.engine.context import RequestContext
from parsers.engine.events import CallArguments, CallEnd, CallStart, Content, Malformed
from parsers.engine.lexer import Lexer
from parsers.engine.stage import ToolStage
from parsers.formats.call_stage import CallFormat, CallStage, CallStageState

WORD = "functools"


@dataclass(slots=True)
class PhiState(CallStageState):
    """Where the stage stands.

    Phases: `content`; `list`; `behind` it; `text`: it was no list of calls, everything is content; `silent`: the same,
    but a part of it is sent. `index` is the last call, `sent` that an earlier chunk had one.
    """

    phase: Literal["content", "list", "behind", "text", "silent"] = "content"
    calls: CallListState = field(default_factory=CallListState)
    index: int = -1
    sent: bool = False


class PhiCalls(CallStage):
    """Text is sent as it comes, calls when they are whole (json 8)."""

    State: ClassVar[type] = PhiState
    shows_stop = frozenset()

    def __init__(self, stops: Collection[int]) -> None:
        super().__init__(stops)
        self._lexer = Lexer([WORD + "["])

    @property
    def _sent(self) -> bool:
        return bool(self.state.sent)

    def _end_chunk(self) -> None:
        if self.state.index >= 0:
            self.state.sent, self.state.raw = True, []

    def _end(self) -> None:
        if self.state.phase == "list":
            self._reject()
        self._content(self.state.held)

    def _in_content(self, text: str, position: int) -> int:
        state = self.state
        end, word = self._lexer.next(text, position)
        self._content(text[position:end])
        if not word:
            state.held = text[end:]
            return len(text)
        state.raw.append(WORD)
        state.phase = "list"
        return end + len(WORD)

    def _in_list(self, text: str, position: int) -> int:
        state = self.state
        calls = CallList(state.calls, EITHER_KEY)
        was_open = calls.in_element
        end = calls.feed(text, position)
        self._remember(text[position:end])
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
        state.index = -1
        self._give_back("text")


class Phi4MiniTools(CallFormat):
    """`phi4_mini_json` (json 8)."""

    names = ("phi4_mini_json",)
    guided_choice = True
    merges_entries = True

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return PhiCalls(self.marks.keys())
