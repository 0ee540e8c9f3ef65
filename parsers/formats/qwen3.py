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

from parsers.engine.grammar import Action, Grammar, State, Transition, table
from parsers.engine.xml_arguments import XmlParameters
from parsers.formats.base import MarkerReasoning, MarkerTools

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
    value_end="end_parameter",
)


class Qwen3Reasoning(MarkerReasoning):
    """`qwen3` (xml 13)."""

    names = ("qwen3",)
    grammar = GRAMMAR


class Qwen3CoderTools(MarkerTools):
    """`qwen3_coder`, alias `qwen3_xml` (xml 1)."""

    names = ("qwen3_coder", "qwen3_xml")
    grammar = GRAMMAR
