"""Gemma 4: thoughts in a channel, calls in a notation of its own, strings between delimiters.

    <|channel>thought
    The user asks for the weather.<channel|>Let me look.
    <|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:3,opts:{units:[<|"|>c<|"|>]}}<tool_call|>

The arguments are read by `gemma4_arguments`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from parsers.engine.context import RequestContext
from parsers.engine.events import Event, Reasoning, Segment, Text
from parsers.engine.grammar import Action, Grammar, State, Transition, table
from parsers.engine.machine import MarkerMachine, prompt_ended
from parsers.engine.machine_thoughts import MachineReasoningStage, ThoughtState
from parsers.engine.stage import ReasoningFormat, ReasoningStage
from parsers.engine.vocabulary import Vocabulary
from parsers.formats.base import MarkerTools
from parsers.formats.gemma4_arguments import QUOTE, GemmaArguments

LABEL = "thought\n"
"""The channel's name, which is no part of the thoughts."""

_START, _END, _ARG = Action.CALL_START, Action.CALL_END, Action.ARG

GRAMMAR = Grammar(
    markers={
        "think": ("<|channel>",),
        "end_think": ("<channel|>",),
        "call": ("<|tool_call>",),
        "end_call": ("<tool_call|>",),
        "quote": (QUOTE,),
        "prefix": ("call:",),
        "colon": (":",),
        "open": ("{", "("),
    },
    id_markers=frozenset({"think", "end_think", "call", "end_call", "quote"}),
    transitions=table(
        {
            State.CONTENT: {
                "think": Transition(State.REASONING),
                "end_think": Transition(State.CONTENT),
                "call": Transition(State.PREAMBLE),
                "end_call": Transition(State.CONTENT),
            },
            State.REASONING: {
                "think": Transition(State.REASONING),
                "end_think": Transition(State.CONTENT),
                "call": Transition(State.PREAMBLE),
            },
            State.PREAMBLE: {
                "prefix": Transition(State.NAME, (_START,)),
                "colon": Transition(State.NAME, (_START,)),
                "open": Transition(State.CONTENT),
                "end_call": Transition(State.CONTENT),
            },
            State.NAME: {
                "open": Transition(State.ARGS),
                "end_call": Transition(State.CONTENT, (_END,)),
            },
            State.ARGS: {
                "quote": Transition(State.ARGS, (_ARG,)),
                "end_call": Transition(State.CONTENT, (_END,)),
            },
        }
    ),
    writer=GemmaArguments,
    boundaries=("<|turn>", "<|tool_response>"),
)


@dataclass(slots=True)
class GemmaThoughts:
    """`thoughts` is the machine's state. `opening`: text at the very start, `label`: text at the start of the thoughts,
    each while it may be the channel's name; None once that is settled.
    """

    thoughts: ThoughtState = field(default_factory=ThoughtState)
    opening: str | None = ""
    label: str | None = ""


class GemmaReasoningStage(ReasoningStage):
    """The machine, and around it the channel's name: dropped, and telling that the channel's marker is missing."""

    State: ClassVar[type] = GemmaThoughts

    def __init__(self, machine: MarkerMachine, *, thinking: bool, ended: bool) -> None:
        super().__init__()
        self._inner = MachineReasoningStage(machine, thinking=thinking, ended=ended)
        self.state.thoughts = self._inner.state
        if thinking:
            self.state.opening = None

    @property
    def ended(self) -> bool:
        return self._inner.ended

    def restore(self, data: Mapping[str, Any]) -> None:
        super().restore(data)
        self._inner.state = self.state.thoughts

    def feed(self, segments: Sequence[Segment]) -> list[Event | Segment]:
        return self._without_label(self._inner.feed(self._opened(segments)))

    def finish(self) -> list[Event | Segment]:
        state = self.state
        opening, state.opening = state.opening, None
        out = self._inner.feed([Text(opening)]) if opening else []
        out = self._without_label([*out, *self._inner.finish()])
        label, state.label = state.label, None
        if label and label != LABEL.strip():
            out.append(Reasoning(label))
        return out

    def _opened(self, segments: Sequence[Segment]) -> list[Segment]:
        """Output that begins with the channel's name is reasoning, although the marker is missing."""
        state = self.state
        if state.opening is None or not segments:
            return list(segments)
        first = segments[0]
        text = state.opening + (first.text if isinstance(first, Text) else "")
        rest = list(segments[1:] if isinstance(first, Text) else segments)
        if not rest and LABEL.startswith(text) and text != LABEL:
            state.opening = text
            return []
        state.opening = None
        if text.startswith(LABEL):
            self._inner.state.state, self._inner.state.ended = State.REASONING, False
        return [Text(text), *rest] if text else rest

    def _without_label(self, items: Sequence[Event | Segment]) -> list[Event | Segment]:
        if self.state.label is None:
            return list(items)
        out: list[Event | Segment] = []
        for item in items:
            if self.state.label is None or not isinstance(item, Reasoning):
                self._settle_label(out)
                out.append(item)
                continue
            text = self.state.label + item.text
            if LABEL.startswith(text) and text != LABEL:
                self.state.label = text
            else:
                self.state.label = None
                if text := text.removeprefix(LABEL):
                    out.append(Reasoning(text))
        return out

    def _settle_label(self, out: list[Event | Segment]) -> None:
        """The thoughts are over, or have not begun: the name alone is nothing."""
        label = self.state.label
        if label:
            self.state.label = None
            if label != LABEL.strip():
                out.append(Reasoning(label))


class Gemma4Reasoning(ReasoningFormat):
    """`gemma4` (pythonic_misc 7). Output begins as content unless the prompt opened the channel."""

    names = ("gemma4",)
    engine_based = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._machine = MarkerMachine(GRAMMAR, vocabulary)
        self.marks = self._machine.marks

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> ReasoningStage:
        machine, prompt = self._machine, prompt_token_ids or ()
        ends, starts = machine.ids_of("end_think", "call"), machine.ids_of("think")
        thinks = context.template_flag("enable_thinking", default=False)
        ended = prompt_ended(prompt, ends=ends, starts=starts, boundaries=machine.boundaries, default=not thinks)
        opened = not prompt_ended(prompt, ends=ends, starts=starts, boundaries=machine.boundaries, default=True)
        return GemmaReasoningStage(machine, thinking=opened, ended=ended)


class Gemma4Tools(MarkerTools):
    """`gemma4`."""

    names = ("gemma4",)
    grammar = GRAMMAR
