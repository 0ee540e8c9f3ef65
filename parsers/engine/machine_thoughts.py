"""A grammar as reasoning parser: knows thoughts, and hands everything else on for the tool parser to read again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from .events import Event, Reasoning, Segment, Text
from .grammar import CALL_STATES, State, Transition
from .machine import DROP, MarkerMachine, Unit
from .stage import ReasoningStage


@dataclass(slots=True)
class ThoughtState:
    """`blank` is white space that only counts if more reasoning follows; `span`: a call's opening marker was handed on,
    its closing one not yet; `rethinks`: the prompt closed reasoning and the output so far is blank, so that an opening
    marker still begins it.
    """

    state: str = State.REASONING
    held: str = ""
    blank: str = ""
    ended: bool = False
    span: bool = False
    rethinks: bool = False


class MachineReasoningStage(ReasoningStage):
    """A grammar as reasoning parser: call markers are not acted upon, but one that opens a call ends reasoning."""

    State: ClassVar[type] = ThoughtState

    def __init__(self, machine: MarkerMachine, *, thinking: bool, ended: bool, rethinks: bool = False) -> None:
        super().__init__()
        self._machine = machine
        self._call_markers = machine.grammar.call_markers
        self._exit_markers = machine.grammar.exit_markers
        self._reads_content = machine.reads_content
        self.state.state = State.REASONING if thinking and not ended else State.CONTENT
        self.state.ended = ended
        self.state.rethinks = rethinks

    @property
    def ended(self) -> bool:
        return self.state.ended

    def feed(self, segments: Sequence[Segment]) -> list[Event | Segment]:
        state = self.state
        out: list[Event | Segment] = []
        for segment in segments:
            if isinstance(segment, Text) and self._passes_text:
                state.rethinks = state.rethinks and not segment.text.strip()
                self._release(out)
                out.append(segment)
                continue
            read = self._machine.known([segment]) if state.state == State.REASONING else [segment]
            units, state.held = self._machine.read(state.held, read)
            for unit in units:
                self._unit(unit, out)
        if state.ended and not self._reads_content:
            self._release(out)
        return out

    @property
    def _passes_text(self) -> bool:
        """Whether text is handed on unread: reasoning has ended, and all markers that still count are tokens."""
        return self.state.ended and self.state.state == State.CONTENT and not self._reads_content

    def finish(self) -> list[Event | Segment]:
        out: list[Event | Segment] = []
        self._release(out)
        return out

    def _release(self, out: list[Event | Segment]) -> None:
        held, self.state.held = self.state.held, ""
        for unit in self._machine.flush(held):
            self._unit(unit, out)

    def _unit(self, unit: Unit, out: list[Event | Segment]) -> None:
        if unit.terminal == DROP:
            return
        if self.state.rethinks:
            self._rethink(unit)
        transition = self._machine.transition(self.state.state, unit.terminal) if unit.terminal else None
        if transition is None:
            if unit.terminal in self._exit_markers:
                self.state.span = False
            self._text(unit, out)
        elif unit.terminal in self._call_markers and not self._is_stray(unit.terminal, transition):
            if not self.state.ended:
                self._end()
            self.state.span = transition.state in CALL_STATES
            out.append(unit.token or Text(unit.text))
        else:
            if self.state.state == State.REASONING and transition.state is State.CONTENT:
                self._end()
            self.state.state = transition.state

    def _rethink(self, unit: Unit) -> None:
        """A model that thinks although the prompt closed its thoughts begins with the opening marker."""
        state = self.state
        state.rethinks = not unit.text.strip()
        transition = self._machine.transition(State.REASONING, unit.terminal) if unit.terminal else None
        if transition is not None and transition.state is State.REASONING:
            state.state, state.ended = State.REASONING, False

    def _is_stray(self, terminal: str, transition: Transition) -> bool:
        """Whether a marker that ends calls stands where none is open, so that it acts as the grammar says."""
        return terminal in self._exit_markers and transition.state not in CALL_STATES and not self.state.span

    def _end(self) -> None:
        self.state.state, self.state.ended = State.CONTENT, True

    def _text(self, unit: Unit, out: list[Event | Segment]) -> None:
        state = self.state
        if state.state == State.CONTENT:
            out.append(unit.token or Text(unit.text))
            return
        text = unit.text
        if self._machine.grammar.strips_reasoning:
            text = state.blank + text
            visible = text.rstrip()
            state.blank = text[len(visible) :]
            text = visible
        if text:
            out.append(Reasoning(text))
