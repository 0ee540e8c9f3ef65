"""Reasoning of Granite 4.2: as `nemotron_v3`, but line breaks in front of the answer belong to the tags.

<think>
The user greets me.
</think>

Hello!
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from parsers.engine.context import RequestContext
from parsers.engine.events import Event, ReasoningIsAnswer, Segment, Text, Token
from parsers.engine.machine import MarkerMachine
from parsers.engine.stage import ReasoningStage
from parsers.formats.base import MarkerReasoning
from parsers.formats.nemotron_v3 import GRAMMAR, NemotronStage, NemotronState, wants_answer


@dataclass(slots=True)
class GraniteThinkingState(NemotronState):
    """`gap` is white space in front of the answer, `gapped` says that some came; `begun`: the answer has begun."""

    gap: str = ""
    gapped: bool = False
    begun: bool = False


class GraniteThinkingStage(NemotronStage):
    """Reasoning has ended when the answer has begun."""

    State: ClassVar[type] = GraniteThinkingState

    def __init__(
        self, machine: MarkerMachine, *, thinks: bool, ended: bool, rethinks: bool, wants_answer: bool
    ) -> None:
        super().__init__(machine, ended=ended, rethinks=rethinks, wants_answer=wants_answer)
        self._thinks = thinks
        self._starts_ended = ended

    @property
    def ended(self) -> bool:
        return self.state.begun or (self._starts_ended and self.state.ended)

    def feed(self, segments: Sequence[Segment]) -> list[Event | Segment]:
        return self._without_gap(super().feed(segments) if self._thinks else list(segments))

    def finish(self) -> list[Event | Segment]:
        """Blank text behind the thoughts is an answer, too, if not one worth sending."""
        state = self.state
        out = self._flushed()
        if self._wants_answer and not state.answered and state.thoughts and not state.gapped:
            out += [ReasoningIsAnswer(repeated=True), Text(state.thoughts)]
        return out

    def _flushed(self) -> list[Event | Segment]:
        out: list[Event | Segment] = []
        self._release(out)
        self._watch(out)
        return self._without_gap(out)

    def _without_gap(self, out: list[Event | Segment]) -> list[Event | Segment]:
        return [kept for item in out if (kept := self._part(item)) is not None]

    def _part(self, item: Event | Segment) -> Event | Segment | None:
        state = self.state
        if state.begun or not isinstance(item, Text | Token):
            return item
        if isinstance(item, Token):
            state.begun = True
            return item
        state.gapped = True
        state.gap = (state.gap + item.text).lstrip("\n")
        if not state.gap.strip():
            return None
        state.begun = True
        text, state.gap = state.gap, ""
        return Text(text)


class GraniteThinkingReasoning(MarkerReasoning):
    """`granite_thinking_parser` (xml 20)."""

    names = ("granite_thinking_parser",)
    grammar = GRAMMAR

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> ReasoningStage | None:
        thinks = self.thinks(context)
        ended = not thinks or self.prompt_ended(prompt_token_ids or ())
        return GraniteThinkingStage(
            self._machine,
            thinks=thinks,
            ended=ended,
            rethinks=self.rethinks(ended=ended),
            wants_answer=wants_answer(context),
        )
