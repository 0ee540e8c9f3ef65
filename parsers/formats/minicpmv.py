"""Reasoning of MiniCPM-V: the thoughts of `qwen3`, in output that may spell its line breaks as escapes.

    <think>
    The user greets me.
    </think>

    Hello!\\nHow are you?

Outside code and formulas such an escape is a line break, in the thoughts and in the answer alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from parsers.engine.context import RequestContext
from parsers.engine.events import (
    CallArguments,
    CallStart,
    Content,
    Event,
    Reasoning,
    Segment,
    Text,
    Token,
)
from parsers.engine.grammar import Grammar, State, Transition
from parsers.engine.machine import MarkerMachine
from parsers.engine.machine_thoughts import MachineReasoningStage
from parsers.engine.stage import ReasoningStage, Rewriter
from parsers.engine.vocabulary import Vocabulary
from parsers.formats import qwen3
from parsers.formats.base import MarkerReasoning

_SPANS = {"`": "`", "```": "```", "$": "$", "$$": "$$", "\\(": "\\)", "\\[": "\\]"}
_ESCAPES = ("\\r\\n", "\\n", "\\r")

_RESERVED = tuple(
    spelling for number in range(12, 16) for spelling in (f"<|reserved_{number}|>", f"<reserved_{number}>")
)


def grammar_for(vocabulary: Vocabulary, *, thinking: bool) -> Grammar:
    """The grammar with reserved tokens, which mean nothing anywhere; in the answer only those that are tokens."""
    tokens = tuple(spelling for spelling in _RESERVED if vocabulary.token_id(spelling) is not None)
    markers = {
        "turn_end": ("<|im_end|>",),
        "reserved": tokens,
        "spelled_reserved": tuple(spelling for spelling in _RESERVED if spelling not in tokens),
    }
    transitions = {
        **qwen3.GRAMMAR.transitions,
        **{(State.REASONING, name): Transition(State.REASONING) for name in markers},
        **{(State.CONTENT, name): Transition(State.CONTENT) for name in ("turn_end", "reserved")},
    }
    if not thinking:
        transitions[State.CONTENT, "think"] = Transition(State.REASONING)
    return replace(
        qwen3.GRAMMAR,
        markers={**qwen3.GRAMMAR.markers, **markers},
        id_markers=qwen3.GRAMMAR.id_markers | {"turn_end", "reserved"},
        transitions=transitions,
        boundaries=(),
    )


@dataclass(slots=True)
class UnescapedState:
    """`closing` is the mark that ends the open span; `held` text that may be the beginning of an escape or mark."""

    closing: str = ""
    held: str = ""


class Unescaped:
    """One text with its escaped line breaks resolved, piece by piece."""

    def __init__(self, state: UnescapedState) -> None:
        self._state = state

    def feed(self, text: str, *, final: bool = False) -> str:
        """What is certain after this piece; everything if it is the `final` one."""
        state = self._state
        text, state.held = state.held + text, ""
        out: list[str] = []
        position = 0
        while position < len(text):
            step = self._span(text, position, out) if state.closing else self._plain(text, position, out, final)
            if not step:
                break
            position += step
        state.held = text[position:]
        if final:
            out.append(state.held)
            state.held = ""
        return "".join(out)

    def _span(self, text: str, position: int, out: list[str]) -> int:
        """Copies up to the closing mark."""
        closing = self._state.closing
        end = text.find(closing, position)
        if end >= 0:
            end += len(closing)
            self._state.closing = ""
        else:
            end = self._hold(text, position, closing)
        out.append(text[position:end])
        return end - position

    @staticmethod
    def _hold(text: str, position: int, closing: str) -> int:
        """Where the longest beginning of `closing` at the end of `text` starts."""
        for length in range(min(len(closing) - 1, len(text) - position), 0, -1):
            if closing.startswith(text[len(text) - length :]):
                return len(text) - length
        return len(text)

    def _plain(self, text: str, position: int, out: list[str], final: bool) -> int:
        character = text[position]
        if character not in "\\`$":
            end = min((found for mark in "\\`$" if (found := text.find(mark, position)) >= 0), default=len(text))
            out.append(text[position:end])
            return end - position
        if character == "\\":
            return self._backslash(text, position, out, final)
        run = 3 if character == "`" else 2
        mark = text[position : position + run]
        if mark != character * run:
            if not final and mark == text[position:] and mark == character * len(mark):
                return 0
            mark = character
        out.append(mark)
        self._state.closing = _SPANS[mark]
        return len(mark)

    def _backslash(self, text: str, position: int, out: list[str], final: bool) -> int:
        """A lone backslash may begin an escape or a formula; a run of them is copied."""
        end = position
        while end < len(text) and text[end] == "\\":
            end += 1
        rest = text[position : position + 4]
        if not final and (end == len(text) or (position + len(rest) == len(text) and rest in ("\\r", "\\r\\"))):
            return 0
        if end - position > 1:
            out.append(text[position:end])
            return end - position
        escape = next((each for each in _ESCAPES if rest.startswith(each)), None)
        if escape:
            out.append("\n")
            return len(escape)
        mark = text[position : position + 2]
        if mark in _SPANS:
            self._state.closing = _SPANS[mark]
            out.append(mark)
            return 2
        out.append("\\")
        return 1


@dataclass(slots=True)
class UnescaperState:
    """The two texts, each on its own."""

    reasoning: UnescapedState = field(default_factory=UnescapedState)
    content: UnescapedState = field(default_factory=UnescapedState)


class Unescaper(Rewriter):
    """Resolves escaped line breaks. Events that are left without text are dropped."""

    State: ClassVar[type] = UnescaperState

    def feed(self, events: Sequence[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            match event:
                case Reasoning(text):
                    self._add(out, Reasoning(Unescaped(self.state.reasoning).feed(text)))
                case Content(text):
                    self._close_reasoning(out)
                    self._add(out, Content(Unescaped(self.state.content).feed(text)))
                case CallStart() | CallArguments():
                    self._close_reasoning(out)
                    out.append(event)
                case _:
                    out.append(event)
        return out

    def finish(self) -> list[Event]:
        out: list[Event] = []
        self._close_reasoning(out)
        self._add(out, Content(Unescaped(self.state.content).feed("", final=True)))
        return out

    def _close_reasoning(self, out: list[Event]) -> None:
        self._add(out, Reasoning(Unescaped(self.state.reasoning).feed("", final=True)))

    @staticmethod
    def _add(out: list[Event], event: Reasoning | Content) -> None:
        if event.text:
            out.append(event)


class HiddenThoughts(MachineReasoningStage):
    """Thoughts of a model that was told not to think are dropped."""

    def feed(self, segments: Sequence[Segment]) -> list[Event | Segment]:
        return [item for item in super().feed(segments) if isinstance(item, Text | Token)]

    def finish(self) -> list[Event | Segment]:
        return [item for item in super().finish() if isinstance(item, Text | Token)]


class MinicpmvReasoning(MarkerReasoning):
    """`minicpmv` (xml 23)."""

    names = ("minicpmv",)

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.grammar = grammar_for(vocabulary, thinking=True)
        super().__init__(vocabulary)
        self._hiding = MarkerMachine(grammar_for(vocabulary, thinking=False), vocabulary)

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> ReasoningStage | None:
        if self.thinks(context):
            return super().open(context, prompt_token_ids)
        return HiddenThoughts(self._hiding, thinking=False, ended=True)

    def rewriter(self) -> Rewriter:
        return Unescaper()
