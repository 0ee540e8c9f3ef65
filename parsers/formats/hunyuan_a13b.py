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

from parsers.engine.assembly import unique_keys
from parsers.engine.call_list import CallList, CallListState
from parsers.engine.call_object import CallObject
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
from parsers.engine.scanner import hold_stop, text_of
from parsers.engine.stage import FoundCall, Outcome, ReasoningFormat, ReasoningStage, ToolFormat, ToolStage
from parsers.engine.vocabulary import Vocabulary
from parsers.formats.waiting import WaitingCall, WaitingCalls, WaitingState

OPENING, CLOSING = "<tool_calls>", "</tool_calls>"
THINK, END_THINK = "<think>", "</think>"
THOUGHT, END_THOUGHT, ANSWER, END_ANSWER = "<think>\n", "\n</think>\n", "<answer>\n", "\n</answer>"
PROMPT_TOKENS = 8


@dataclass(slots=True)
class HunyuanState(WaitingState):
    """Where the stage stands.

    Phases: `content`; `thought`: inside a thought that nobody took out, where no calls are; `list`; `behind` a list;
    `silent`: a list was none, but a call of it is sent; another may follow. `held` may begin a tag; `stop` is a special
    token that ended the last chunk; `calls` the reader of the list, `named` that its open element is the last of the
    `waiting` calls.
    """

    phase: Literal["content", "thought", "list", "behind", "silent"] = "content"
    held: str = ""
    stop: str = ""
    calls: CallListState = field(default_factory=CallListState)
    named: bool = False


class HunyuanCalls(WaitingCalls):
    """One step a chunk (json 10)."""

    State: ClassVar[type] = HunyuanState

    def __init__(self, stops: Collection[int]) -> None:
        super().__init__()
        self._stops = stops
        self._outside, self._thought = Lexer([OPENING, THINK]), Lexer([END_THINK])
        self._stopped = False

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        state = self.state
        self._events = []
        self._stopped = bool(segments)
        speaking = state.phase in ("content", "thought") and not text_of(segments)
        segments, state.stop = hold_stop(segments, state.stop, self._stops)
        self._run(text_of(segments))
        if state.phase in ("content", "thought"):
            self._run(state.stop)
            state.stop = ""
        if speaking and not self._events and state.index < 0:
            self._events.append(Content(""))
        self._send_step()
        return self._events

    def finish(self) -> list[Event]:
        state = self.state
        self._events = []
        if self._stopped:
            self._run(state.stop)
        if state.phase == "list":
            self._reject()
        if state.phase in ("content", "thought"):
            self._say(state.held)
        self._send_all()
        state.held = state.stop = ""
        return self._events

    def _run(self, text: str) -> None:
        state = self.state
        text, state.held = state.held + text, ""
        position = 0
        while position < len(text):
            match state.phase:
                case "content" | "thought" | "silent":
                    position = self._find(text, position)
                case "list":
                    position = self._read(text, position)
                case _:
                    return

    def _find(self, text: str, position: int) -> int:
        state = self.state
        lexer = self._thought if state.phase == "thought" else self._outside
        end, tag = lexer.next(text, position)
        self._say(text[position:end])
        if not tag:
            state.held = text[end:]
            return len(text)
        if tag == OPENING:
            state.phase, state.raw, state.calls, state.named = "list", [OPENING], CallListState(), False
        else:
            self._say(tag)
            state.phase = "thought" if tag == THINK else "silent" if state.index >= 0 else "content"
        return end + len(tag)

    def _read(self, text: str, position: int) -> int:
        """Up to the beginning or end of a call or of the list, or to what is none."""
        state = self.state
        calls = CallList(state.calls, verbatim=True)
        was_open = calls.in_element
        end = calls.feed(text, position)
        if state.index < 0:
            state.raw.append(text[position:end])
        if was_open:
            self._element(calls.call)
        if calls.bad or (calls.closed and state.calls.call is None) or (was_open and not _may_be_call(calls.call)):
            self._reject()
        elif calls.closed:
            state.phase = "behind"
        return end

    def _element(self, call: CallObject) -> None:
        state = self.state
        if call.state.name is not None and not state.named:
            state.waiting.append(WaitingCall(call.state.name))
            state.named = True
        whole = state.named and call.state.arguments_done and call.state.opened_by in '{"'
        if whole and state.waiting and state.waiting[-1].arguments is None:
            arguments = call.take()
            state.waiting[-1].arguments = unique_keys(arguments) if call.state.opened_by == "{" else arguments
        if call.done:
            state.named = False

    def _reject(self) -> None:
        """The list is none. Unless some of it is sent it is text, and a list of calls may follow."""
        state = self.state
        if state.index >= 0:
            self._events.append(Malformed())
            self._drop_incomplete()
            state.phase = "silent"
            return
        state.phase, state.waiting, raw, state.raw = "content", [], state.raw, []
        self._say("".join(raw))

    def _say(self, text: str) -> None:
        if text and self.state.index < 0:
            self._events.append(Content(text))


def _may_be_call(call: CallObject) -> bool:
    """Whether an element is a call or may become one. Arguments are an object, or a string that is used as it is."""
    strange = call.state.has_arguments and call.state.opened_by not in '{"'
    return not strange and (call.complete or not call.done)


class HunyuanTools(ToolFormat):
    """`hunyuan_a13b` (json 10)."""

    names = ("hunyuan_a13b",)
    guided_choice = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self.marks = vocabulary.special_tokens

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return HunyuanCalls(self.marks.keys())

    def settle(self, outcome: Outcome) -> None:
        """All or nothing."""
        if outcome.malformed:
            outcome.calls = []
        outcome.called = bool(outcome.calls)

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
                    text = self._find(text)

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

    def _find(self, text: str) -> str:
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
