"""Reasoning of Nemotron 3: the thoughts of `qwen3`, and a switch that asks for an answer that is never empty.

    <think>
    The user greets me.
    </think>

    Hello!

Where the model leaves nothing behind its thoughts and the request says `force_nonempty_content` (or turns thinking
off), the thoughts are the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from parsers.engine.context import RequestContext
from parsers.engine.events import Event, Reasoning, ReasoningIsAnswer, Segment, Text
from parsers.engine.machine import MarkerMachine
from parsers.engine.machine_thoughts import MachineReasoningStage, ThoughtState
from parsers.engine.stage import ReasoningStage
from parsers.formats import qwen3
from parsers.formats.base import MarkerReasoning

GRAMMAR = replace(qwen3.GRAMMAR, strips_reasoning=True)


def wants_answer(context: RequestContext) -> bool:
    """Whether the request's own template kwargs ask for an answer that is never empty (xml 19)."""
    own = context.own_template_kwargs
    return own.get("enable_thinking") is False or bool(own.get("force_nonempty_content"))


@dataclass(slots=True)
class NemotronState(ThoughtState):
    """`thoughts` are all so far, kept only where they may have to be the answer; `answered`: visible content came."""

    thoughts: str = ""
    answered: bool = False


class NemotronStage(MachineReasoningStage):
    """At the end of output the thoughts are sent as the answer if they were never closed."""

    State: ClassVar[type] = NemotronState

    def __init__(self, machine: MarkerMachine, *, ended: bool, rethinks: bool, wants_answer: bool) -> None:
        super().__init__(machine, thinking=True, ended=ended, rethinks=rethinks)
        self._wants_answer = wants_answer

    def feed(self, segments: Sequence[Segment]) -> list[Event | Segment]:
        out = super().feed(segments)
        self._watch(out)
        return out

    def finish(self) -> list[Event | Segment]:
        out = super().finish()
        self._watch(out)
        state = self.state
        if self._wants_answer and not state.answered and state.thoughts:
            out += [ReasoningIsAnswer()] if state.ended else [ReasoningIsAnswer(repeated=True), Text(state.thoughts)]
        return out

    def _watch(self, out: Sequence[Event | Segment]) -> None:
        state = self.state
        if not self._wants_answer or state.answered:
            return
        for item in out:
            if isinstance(item, Reasoning):
                state.thoughts += item.text
            elif isinstance(item, Segment) and item.text.strip():
                state.answered, state.thoughts = True, ""
                return


class NemotronReasoning(MarkerReasoning):
    """`nemotron_v3` (xml 19)."""

    names = ("nemotron_v3",)
    grammar = GRAMMAR

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> ReasoningStage | None:
        if not self.thinks(context):
            return None
        ended = self.prompt_ended(prompt_token_ids or ())
        return NemotronStage(
            self._machine, ended=ended, rethinks=self.rethinks(ended=ended), wants_answer=wants_answer(context)
        )
