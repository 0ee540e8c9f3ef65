"""Bases of the formats that are nothing but a grammar of the marker machine and a few switches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from parsers.engine.context import RequestContext
from parsers.engine.grammar import Grammar
from parsers.engine.machine import MarkerMachine, prompt_ended
from parsers.engine.machine_calls import MachineToolStage, settle_machine
from parsers.engine.machine_thoughts import MachineReasoningStage
from parsers.engine.stage import Outcome, ReasoningFormat, ReasoningStage, ToolFormat, ToolStage
from parsers.engine.vocabulary import Vocabulary


class MarkerReasoning(ReasoningFormat):
    """A grammar as reasoning parser.

    `switches`: template kwargs of which a false one turns reasoning off. `ends` and `starts`: terminals whose tokens in
    the prompt say whether it left reasoning behind.
    """

    engine_based = True
    grammar: Grammar
    switches: ClassVar[tuple[str, ...]] = ("enable_thinking",)
    ends: ClassVar[tuple[str, ...]] = ("end_think", "call")
    starts: ClassVar[tuple[str, ...]] = ("think",)

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._machine = MarkerMachine(self.grammar, vocabulary)
        self.marks = self._machine.marks

    def thinks(self, context: RequestContext) -> bool:
        """Whether this request's output holds reasoning at all."""
        return context.template_flag(*self.switches, default=True)

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> ReasoningStage | None:
        if not self.thinks(context):
            return None
        ended = self.prompt_ended(prompt_token_ids or ())
        return MachineReasoningStage(self._machine, thinking=True, ended=ended, rethinks=self.rethinks(ended=ended))

    def rethinks(self, *, ended: bool) -> bool:
        """Whether output may reopen the reasoning that the prompt closed, where no token tells which turn closed it."""
        return ended and not self._machine.boundaries

    def prompt_ended(self, prompt_token_ids: Sequence[int]) -> bool:
        """Whether the prompt left reasoning behind (engine 2.10)."""
        return prompt_ended(
            prompt_token_ids,
            ends=self._machine.ids_of(*self.ends),
            starts=self._machine.ids_of(*self.starts),
            boundaries=self._machine.boundaries,
            default=False,
        )


class MarkerTools(ToolFormat):
    """A grammar as tool parser."""

    engine_based = True
    merges_entries = True
    grammar: Grammar

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._machine = MarkerMachine(self.grammar, vocabulary)
        self.marks = self._machine.marks

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return MachineToolStage(self._machine, context, with_reasoning=with_reasoning)

    def settle(self, outcome: Outcome) -> None:
        settle_machine(self.grammar, outcome)
