"""Reasoning of Qwen 3 and its kin: thoughts, `</think>`, answer; a call's opening marker ends the thoughts, too.

    <think>
    The user asks for the weather.
    </think>

    Let me look.
    <tool_call>
    <function=get_weather>
    <parameter=city>
    Paris
    </parameter>
    </function>
    </tool_call>

The calls of this sample are read by `qwen3_coder`; both share the grammar below.
"""

from __future__ import annotations

from collections.abc import Sequence

from parsers.engine.context import RequestContext
from parsers.engine.grammar import Action, Grammar, State, Transition, table
from parsers.engine.machine import MachineReasoningStage, MachineToolStage, MarkerMachine, prompt_ended, settle_machine
from parsers.engine.stage import Outcome, ReasoningFormat, ReasoningStage, ToolFormat, ToolStage
from parsers.engine.vocabulary import Vocabulary
from parsers.engine.xml_arguments import XmlParameters

_START, _END, _ARG = Action.CALL_START, Action.CALL_END, Action.ARG

GRAMMAR = Grammar(
    markers={
        "think": ("<think>",),
        "end_think": ("</think>",),
        "call": ("<tool_call>",),
        "end_call": ("</tool_call>",),
        "function": ("<function=",),
        "end_function": ("</function>",),
        "parameter": ("<parameter=",),
        "end_parameter": ("</parameter>",),
        "close": (">",),
    },
    id_markers=frozenset({"think", "end_think", "call", "end_call"}),
    transitions=table(
        {
            State.CONTENT: {
                "call": Transition(State.PREAMBLE),
                "function": Transition(State.NAME, (_START,)),
                "end_think": Transition(State.CONTENT),
            },
            State.REASONING: {
                "think": Transition(State.REASONING),
                "end_think": Transition(State.CONTENT),
                "call": Transition(State.PREAMBLE),
            },
            State.PREAMBLE: {
                "function": Transition(State.NAME, (_START,)),
                "end_call": Transition(State.CONTENT),
            },
            State.NAME: {
                "close": Transition(State.ARGS),
                "end_function": Transition(State.BETWEEN, (_END,)),
                "end_call": Transition(State.CONTENT, (_END,)),
                "call": Transition(State.PREAMBLE, (_END,)),
                "function": Transition(State.NAME, (_END, _START)),
            },
            State.ARGS: {
                "end_function": Transition(State.BETWEEN, (_END,)),
                "function": Transition(State.NAME, (_END, _START)),
                "parameter": Transition(State.ARGS, (_ARG,)),
                "end_parameter": Transition(State.ARGS, (_ARG,)),
            },
            State.BETWEEN: {
                "end_call": Transition(State.CONTENT),
                "call": Transition(State.PREAMBLE),
                "function": Transition(State.NAME, (_START,)),
            },
        }
    ),
    writer=XmlParameters,
    boundaries=("<|im_start|>", "<|im_end|>"),
    strips_reasoning=False,
)


class Qwen3Reasoning(ReasoningFormat):
    """`qwen3` (xml 13)."""

    names = ("qwen3",)
    engine_based = True
    grammar = GRAMMAR

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._machine = MarkerMachine(self.grammar, vocabulary)
        self.marks = self._machine.marks

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> ReasoningStage | None:
        if not context.template_flag("enable_thinking", default=True):
            return None
        ended = prompt_ended(
            prompt_token_ids or (),
            ends=self._machine.ids_of("end_think", "call"),
            starts=self._machine.ids_of("think"),
            boundaries=self._machine.boundaries,
            default=False,
        )
        return MachineReasoningStage(self._machine, thinking=True, ended=ended)


class Qwen3CoderTools(ToolFormat):
    """`qwen3_coder`, alias `qwen3_xml` (xml 1)."""

    names = ("qwen3_coder", "qwen3_xml")
    engine_based = True
    merges_entries = True
    grammar = GRAMMAR

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._machine = MarkerMachine(self.grammar, vocabulary)
        self.marks = self._machine.marks

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return MachineToolStage(self._machine, context, with_reasoning=with_reasoning)

    def settle(self, outcome: Outcome) -> None:
        settle_machine(self.grammar, outcome)
