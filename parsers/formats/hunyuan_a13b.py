"""Hunyuan A13B: thoughts and answer between tags on lines of their own, calls as a JSON list between two tags.

    <think>
    The user asks for the weather.
    </think>
    <answer>
    Let me look.<tool_calls>[{"name": "get_weather", "arguments": {"city": "Paris"}}]</tool_calls>
    </answer>

All tags are text. Tags of thoughts and answer only count with their line breaks, and at the beginning of the output;
what stands behind the answer is not shown.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from parsers.engine.call_list import CallList, CallListState
from parsers.engine.call_object import VERBATIM, CallObject
from parsers.engine.context import RequestContext
from parsers.engine.events import (
    Content,
    Event,
    Malformed,
    Reasoning,
    Segment,
    Text,
    Token,
)
from parsers.engine.lexer import Lexer
from parsers.engine.stage import FoundCall, ReasoningFormat, ReasoningStage, ToolStage
from parsers.formats.call_stage import CallFormat
from parsers.formats.waiting import WaitingCalls, WaitingState

OPENING, CLOSING = "<tool_calls>", "</tool_calls>"
THINK, END_THINK = "<think>", "</think>"
THOUGHT, END_THOUGHT, ANSWER, END_ANSWER = "<think>\n", "\n</think>\n", "<answer>\n", "\n</answer>"
PROMPT_TOKENS = 8


@dataclass(slots=True)
class HunyuanState(WaitingState):
    """Where the stage stands.

    Phases: `content`; `thought`: inside a thought that nobody took out, where no calls are; `list`; `behind` a list;
    `silent`: a list was none, but a call of it is sent; another may follow. `calls` is the reader of the list.
    """

    phase: Literal["content", "thought", "list", "behind", "silent"] = "content"
    calls: CallListState = field(default_factory=CallListState)


class HunyuanCalls(WaitingCalls):
    """One step a chunk (json 10)."""

    State: ClassVar[type] = HunyuanState
    shows_stop = frozenset(("content", "thought"))

    def __init__(self, stops: Collection[int]) -> None:
        super().__init__(stops)
        self._outside, self._thought = Lexer([OPENING, THINK]), Lexer([END_THINK])
        self._is_silent = False

    def _begin_chunk(self, segments: Sequence[Segment]) -> None:
        self._is_silent = not any(segment.text for segment in segments)

    def _end_chunk(self) -> None:
        speaks = self._phase_before in self.shows_stop and self._is_silent
        if speaks and not self._events and not self._sent:
            self._events.append(Content(""))
        self._send_step()

    def _end(self) -> None:
        if self.state.phase == "list":
            self._reject()
        if self.state.phase in ("content", "thought"):
            self._content(self.state.held)
        self._send_all()

    def _in_content(self, text: str, position: int) -> int:
        state = self.state
        lexer = self._thought if state.phase == "thought" else self._outside
        end, tag = lexer.next(text, position)
        self._content(text[position:end])
        if not tag:
            state.held = text[end:]
            return len(text)
        if tag == OPENING:
            state.phase, state.raw, state.calls, state.named = "list", [OPENING], CallListState(), False
        else:
            self._content(tag)
            state.phase = "thought" if tag == THINK else "silent" if state.index >= 0 else "content"
        return end + len(tag)

    _in_thought = _in_content
    _in_silent = _in_content

    def _in_list(self, text: str, position: int) -> int:
        """Up to the beginning or end of a call or of the list, or to what is none."""
        state = self.state
        calls = CallList(state.calls, VERBATIM)
        was_open = calls.in_element
        end = calls.feed(text, position)
        self._remember(text[position:end])
        if was_open:
            self._note(calls.call)
            state.named = state.named and calls.in_element
        if calls.bad or (calls.closed and state.calls.call is None) or (was_open and not _may_be_call(calls.call)):
            self._reject()
        elif calls.closed:
            state.phase = "behind"
        return end

    def _reject(self) -> None:
        """The list is none. Unless some of it is sent it is text, and a list of calls may follow."""
        state = self.state
        if state.index >= 0:
            self._events.append(Malformed())
            self._drop_incomplete()
            state.phase = "silent"
            return
        state.waiting = []
        self._give_back("content")

    def _content(self, text: str) -> None:
        if not self._sent:
            super()._content(text)


def _may_be_call(call: CallObject) -> bool:
    """Whether an element is a call or may become one. Arguments are an object, or a string that is used as it is."""
    strange = call.state.has_arguments and call.state.opened_by not in '{"'
    return not strange and (call.complete or not call.done)


class HunyuanTools(CallFormat):
    """`hunyuan_a13b` (json 10)."""

    names = ("hunyuan_a13b",)
    guided_choice = True

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return HunyuanCalls(self.marks.keys())

    def call_id(self, context: RequestContext, call: FoundCall, *, streaming: bool) -> str:
        """Numbered in streams, but not where the call was forced and written as plain JSON."""
        if context.forces_call:
            return context.call_id(call.index)
        digits = context.random_hex(call.index)
        return f"call_{call.index}_{digits}" if streaming else f"call_{digits}"


@dataclass(slots=True)
class HunyuanThoughtState:
    """`held` may begin a tag; `bare`: the line break behind the opening tag is still to be left out.

    Phases: `start` of the output; `thought`; `between` thoughts and answer; `answer`; `behind` the answer.
    """

    phase: Literal["start", "thought", "between", "answer", "behind"] = "start"
    held: str = ""
    bare: bool = False


class HunyuanThoughts(ReasoningStage):
    """Tags are found in text, whatever their tokens and however they are grouped (json 10b)."""

    State: ClassVar[type] = HunyuanThoughtState

    def __init__(self, *, opened: bool) -> None:
        super().__init__()
        self._end_thought, self._end_answer = Lexer([END_THOUGHT]), Lexer([END_ANSWER])
        self._out: list[Event | Segment] = []
        if opened:
            self._think()

    @property
    def ended(self) -> bool:
        return self.state.phase in ("answer", "behind")

    def _think(self) -> None:
        """The opening tag's line break may be the closing tag's as well."""
        state = self.state
        state.phase, state.held, state.bare = "thought", "\n", True

    def feed(self, segments: Sequence[Segment]) -> list[Event | Segment]:
        state = self.state
        self._out = []
        for segment in segments:
            if isinstance(segment, Token) and self.ended:
                self._answer(state.held)
                state.held = ""
                if state.phase == "answer":
                    self._out.append(segment)
            else:
                self._run(segment.text)
        return self._out

    def finish(self) -> list[Event | Segment]:
        """A tag without its line break at the very end counts."""
        state = self.state
        self._out = []
        held, state.held = state.held, ""
        if state.phase == "thought" and held != END_THOUGHT.rstrip():
            self._reason(held)
        elif state.phase != "thought":
            self._answer(held)
        return self._out

    def _run(self, text: str) -> None:
        state = self.state
        text, state.held = state.held + text, ""
        while text:
            match state.phase:
                case "start":
                    text = self._begin(text, (THOUGHT, ANSWER))
                case "between":
                    text = self._begin(text, (ANSWER,))
                case "behind":
                    return
                case _:
                    text = self._in_content(text)

    def _begin(self, text: str, tags: Sequence[str]) -> str:
        """One of `tags` may stand here; else the answer begins."""
        state = self.state
        for tag in tags:
            if text.startswith(tag):
                state.phase = "answer"
                if tag == THOUGHT:
                    self._think()
                rest, state.held = state.held + text[len(tag) :], ""
                if rest == "\n" and state.phase == "thought":
                    state.held = rest
                    return ""
                return rest
        if any(tag.startswith(text) for tag in tags):
            state.held = text
            return ""
        state.phase = "answer"
        return text

    def _in_content(self, text: str) -> str:
        """Up to the end of the thoughts or of the answer; the rest."""
        state = self.state
        thinks = state.phase == "thought"
        end, tag = (self._end_thought if thinks else self._end_answer).next(text, 0)
        if thinks:
            self._reason(text[:end])
        else:
            self._answer(text[:end])
        if not tag:
            state.held = text[end:]
            return ""
        state.phase = "between" if thinks else "behind"
        return text[end + len(tag) :]

    def _reason(self, text: str) -> None:
        state = self.state
        if text and state.bare:
            text, state.bare = text[1:], False
        if text:
            self._out.append(Reasoning(text))

    def _answer(self, text: str) -> None:
        if text:
            self._out.append(Text(text))


class HunyuanReasoning(ReasoningFormat):
    """`hunyuan_a13b` (json 10b)."""

    names = ("hunyuan_a13b",)

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> ReasoningStage:
        prompt = self.vocabulary.decode((prompt_token_ids or ())[-PROMPT_TOKENS:])
        return HunyuanThoughts(opened=prompt.endswith(THOUGHT))
