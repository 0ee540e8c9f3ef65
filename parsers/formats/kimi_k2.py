"""Kimi K2: thoughts, `</think>`, answer, and a section of calls whose headers carry the call's ID.

The user asks for the weather.</think>Let me look.<|tool_calls_section_begin|><|tool_call_begin|>
functions.get_weather:0<|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|>
<|tool_calls_section_end|>                                             (without the line breaks)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from parsers.engine.coercion import coerce_arguments
from parsers.engine.context import RequestContext
from parsers.engine.events import CallArguments, CallStart, Event, Segment, Text, Token
from parsers.engine.grammar import CALL_STATES, Action, ArgumentWriter, Grammar, State, Transition, table
from parsers.engine.machine import MarkerMachine
from parsers.engine.machine_calls import MachineToolStage
from parsers.engine.machine_thoughts import MachineReasoningStage, ThoughtState
from parsers.engine.raw_arguments import RawArguments
from parsers.engine.scanner import text_of
from parsers.engine.stage import FoundCall, Outcome, ReasoningStage, ToolStage
from parsers.engine.vocabulary import Vocabulary
from parsers.formats.base import MarkerReasoning, MarkerTools
from parsers.formats.deepseek_r1 import PromptEnd

_START, _END = Action.CALL_START, Action.CALL_END
_SWITCHES = ("thinking", "enable_thinking")

GRAMMAR = Grammar(
    markers={
        "think": ("<think>",),
        "end_think": ("</think>",),
        "section": ("<|tool_calls_section_begin|>",),
        "end_section": ("<|tool_calls_section_end|>",),
        "call": ("<|tool_call_begin|>",),
        "arguments": ("<|tool_call_argument_begin|>",),
        "end_call": ("<|tool_call_end|>",),
    },
    id_markers=frozenset({"think", "end_think", "section", "end_section", "call", "arguments", "end_call"}),
    transitions=table(
        {
            State.CONTENT: {
                "end_think": Transition(State.CONTENT),
                "section": Transition(State.PREAMBLE),
            },
            State.REASONING: {
                "think": Transition(State.REASONING),
                "end_think": Transition(State.CONTENT),
                "section": Transition(State.PREAMBLE),
            },
            State.PREAMBLE: {
                "call": Transition(State.NAME, (_START,)),
                "end_section": Transition(State.CONTENT),
            },
            State.NAME: {
                "arguments": Transition(State.ARGS),
                "call": Transition(State.NAME, (_END, _START)),
                "end_call": Transition(State.BETWEEN, (_END,)),
                "end_section": Transition(State.BETWEEN, (_END,)),
            },
            State.ARGS: {
                "call": Transition(State.NAME, (_END, _START)),
                "end_call": Transition(State.BETWEEN, (_END,)),
                "end_section": Transition(State.BETWEEN, (_END,)),
            },
            State.BETWEEN: {
                "call": Transition(State.NAME, (_START,)),
                "section": Transition(State.BETWEEN),
                "end_section": Transition(State.BETWEEN),
            },
        }
    ),
    writer=RawArguments,
    strips_content=False,
)

_HEADER = re.compile(r".+:\d+")
_BARE_NAME = re.compile(r"[\w.\-/]+")


class Header(NamedTuple):
    """What a call's header says; `id` None where it has no index."""

    name: str
    id: str | None


def read_header(text: str, *, cut: bool = False) -> Header | None:
    """`functions.NAME:INDEX`, the whole of which is the call's ID (deepseek_kimi_harmony 4.5); None if it is no header.

    A header without an index names its function all the same, unless the end of output cut it.
    """
    text = text.strip()
    found = _HEADER.match(text)
    if found:
        call_id = found.group().strip()
        name = call_id.partition(":")[0].removeprefix("functions.")
        return Header(name, call_id) if name else None
    if cut or not _BARE_NAME.fullmatch(text):
        return None
    return Header(text.removeprefix("functions."), None)


class KimiCallStage(MachineToolStage):
    """The marker machine with names that are headers, and arguments sent together with the name."""

    def _open_writer(self) -> ArgumentWriter:
        if self._writer is None:
            header = read_header(self.state.name)
            self._writer = GRAMMAR.writer(self._context.parameters.get(header.name) if header else None)
        return self._writer

    def _start_call(self, marker: str) -> None:
        """The section's text is kept until the header turns out to be one."""
        opener = self.state.opener or marker
        super()._start_call(marker)
        self.state.opener = "" if self._silent else opener

    def _accepts_name(self, events: list[Event], *, cut: bool = False) -> bool:
        """What has no header is text, unless the header was cut."""
        state = self.state
        if read_header(state.name, cut=cut and state.state == State.NAME) is not None:
            return True
        state.in_call = False
        if cut:
            state.opener = ""
        else:
            state.spilling = state.state in CALL_STATES
            self._give_back(events)
        return False

    def _announce(self, events: list[Event]) -> None:
        state = self.state
        header = read_header(state.name)
        assert header is not None
        state.announced = state.called = True
        state.blank = state.opener = ""
        events.append(CallStart(state.index, header.name, header.id))

    def _argument(self, text: str, events: list[Event]) -> None:
        state = self.state
        if not state.in_call or self._silent or not (state.announced or self._accepts_name(events)):
            return
        fresh = self._open_writer().feed(text)
        if not state.announced:
            self._announce(events)
        events.append(CallArguments(state.index, fresh, raw=text))


@dataclass(slots=True)
class KimiThoughtState(ThoughtState):
    """`opened`: the model itself opened the thoughts. `draft`: [token ID or -1, text] of each segment of a section
    inside them, which is a call if they end with it. `closed`: its end marker came; `goes_on`: text came behind that.
    `reopens`: the prompt closed the thoughts and the output so far is blank, so that an opening tag still begins them.
    """

    opened: bool = False
    draft: list[list[Any]] = field(default_factory=list)
    closed: bool = False
    goes_on: bool = False
    reopens: bool = False


class KimiThoughtStage(MachineReasoningStage):
    """The marker machine with drafts of calls.

    A model that opened its thoughts itself closes them, so that a section inside them is a draft if they go on behind
    it. Where the prompt opened them the closing tag is often forgotten; there a section ends them.
    """

    State: ClassVar[type] = KimiThoughtState

    def __init__(self, machine: MarkerMachine, *, ended: bool) -> None:
        super().__init__(machine, thinking=True, ended=ended)
        self.state.reopens = ended
        self._section, self._end_section, self._think, self._end_think = (
            machine.ids_of(name) for name in ("section", "end_section", "think", "end_think")
        )

    def feed(self, segments: Sequence[Segment]) -> list[Event | Segment]:
        out: list[Event | Segment] = []
        for segment in segments:
            if self.state.reopens:
                self._reopen(segment)
            if self.state.draft:
                self._draft(segment, out)
            elif self.state.state == State.REASONING and self.state.opened and _is(segment, self._section):
                self._hold(segment)
            else:
                self.state.opened = self.state.opened or _is(segment, self._think)
                out += super().feed([segment])
        return out

    def finish(self) -> list[Event | Segment]:
        return [*self._released(), *super().finish()]

    def _reopen(self, segment: Segment) -> None:
        state = self.state
        if _is(segment, self._think):
            state.state, state.ended, state.reopens = State.REASONING, False, False
        elif segment.text.strip():
            state.reopens = False

    def _hold(self, segment: Segment) -> None:
        self.state.draft.append([segment.token_id if isinstance(segment, Token) else -1, segment.text])

    def _draft(self, segment: Segment, out: list[Event | Segment]) -> None:
        """More of a section inside the thoughts, up to what tells whether it is a draft."""
        state = self.state
        if _is(segment, self._end_think):
            if state.closed and not state.goes_on:
                out += self._released()
            else:
                draft = text_of(self._taken())
                out += super().feed([Text(draft)])
            out += super().feed([segment])
        elif state.closed and not state.goes_on and _is(segment, self._section):
            out += [*self._released(), *super().feed([segment])]
        else:
            state.goes_on = state.goes_on or (state.closed and bool(segment.text.strip()))
            state.closed = state.closed or _is(segment, self._end_section)
            self._hold(segment)

    def _taken(self) -> list[Segment]:
        state = self.state
        held: list[Segment] = [Text(text) if token_id < 0 else Token(token_id, text) for token_id, text in state.draft]
        state.draft, state.closed, state.goes_on = [], False, False
        return held

    def _released(self) -> list[Event | Segment]:
        """The section held back, as what ends the thoughts."""
        held = self._taken()
        return super().feed(held) if held else []


def _is(segment: Segment, token_ids: frozenset[int]) -> bool:
    return isinstance(segment, Token) and segment.token_id in token_ids


class KimiK2Reasoning(MarkerReasoning):
    """`kimi_k2`: thinks unless the template kwargs say otherwise (deepseek_kimi_harmony 4.3)."""

    names = ("kimi_k2",)
    grammar = GRAMMAR

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._prompt_end = PromptEnd(vocabulary)

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> ReasoningStage | None:
        if not context.template_flag(*_SWITCHES, default=True):
            return None
        return KimiThoughtStage(self._machine, ended=self._prompt_end.closes(prompt_token_ids or (), context))


class KimiK2Tools(MarkerTools):
    """`kimi_k2`. Without thinking the think tags are text."""

    names = ("kimi_k2",)
    grammar = GRAMMAR

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        thinks = with_reasoning and context.template_flag(*_SWITCHES, default=True)
        return KimiCallStage(self._machine, context, with_reasoning=thinks)

    def settle(self, outcome: Outcome) -> None:
        """Arguments are the model's own text, typed by the schema where that changes something."""
        outcome.called = bool(outcome.calls)
        for call in outcome.calls:
            call.arguments = coerce_arguments(call.raw.strip() or "{}", outcome.parameters.get(call.name))

    def call_id(self, context: RequestContext, call: FoundCall, *, streaming: bool) -> str:
        if self.vocabulary.model_type.startswith("kimi_"):
            return f"functions.{call.name}:{call.index}"
        return context.call_id(call.index)
