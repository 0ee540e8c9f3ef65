"""GLM-4.5 and its successors, and Ling 3: thoughts, `</think>`, answer, calls with keys and values in turn.

<think>The user asks for the weather.</think>Let me look.
<tool_call>get_weather
<arg_key>city</arg_key>
<arg_value>Paris</arg_value>
<arg_key>days</arg_key>
<arg_value>3</arg_value>
</tool_call>
"""

from __future__ import annotations

from parsers.engine.context import RequestContext
from parsers.engine.grammar import Action, Grammar, State, Transition, table
from parsers.engine.machine_calls import MachineToolStage
from parsers.engine.parameter_writer import ParameterWriter
from parsers.engine.stage import ToolStage
from parsers.engine.vocabulary import Vocabulary
from parsers.formats.base import MarkerReasoning, MarkerTools

_START, _END, _ARG = Action.CALL_START, Action.CALL_END, Action.ARG
_KEY, _END_KEY, _VALUE, _END_VALUE = "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"


class KeyValueArguments(ParameterWriter):
    """Arguments as pairs.

    A key ends where `</arg_key>` is followed by `<arg_value>`; until then all is key. A value ends at the last
    `</arg_value>` before the next key or the end of the call; an earlier one is text.
    """

    def _read(self, text: str, out: list[str]) -> None:
        state = self.state
        match state.place:
            case "value" if text == _END_VALUE:
                state.place = "closed"
                if not state.opened:
                    self._open_key(out)
            case "value":
                self._value(text, out)
            case "closed":
                self._closed(text, out)
            case "key" if text == _END_KEY:
                state.place = "gap"
            case "key":
                state.key += text
            case "gap":
                self._gap(text, out)
            case _ if text == _KEY:
                state.place, state.key = "key", ""

    def _gap(self, text: str, out: list[str]) -> None:
        """Behind `</arg_key>`, where a second one means nothing."""
        state = self.state
        if text == _VALUE:
            state.key, state.held = state.key.strip(), ""
            self._open_value(out)
        elif text.isspace():
            state.held += text
        elif text != _END_KEY:
            state.key += _END_KEY + state.held + text
            state.place, state.held = "key", ""

    def _closed(self, text: str, out: list[str]) -> None:
        """Behind `</arg_value>`."""
        state = self.state
        if text == _KEY:
            state.held = ""
            self._close_value(out)
            state.place, state.key = "key", ""
        elif text == _END_VALUE:
            held, state.held = state.held, ""
            self._value(_END_VALUE + held, out)
        else:
            state.held += text

    def finish(self, *, cut: bool) -> str:
        if self.state.place == "closed":
            self.state.place, self.state.held = "value", ""
            cut = False
        return super().finish(cut=cut)


GRAMMAR = Grammar(
    markers={
        "think": ("<think>",),
        "end_think": ("</think>",),
        "call": ("<tool_call>",),
        "end_call": ("</tool_call>",),
        "key": (_KEY,),
        "end_key": (_END_KEY,),
        "value": (_VALUE,),
        "end_value": (_END_VALUE,),
    },
    id_markers=frozenset({"think", "end_think", "call", "end_call"}),
    transitions=table(
        {
            State.CONTENT: {
                "call": Transition(State.NAME, (_START,)),
                "think": Transition(State.REASONING),
                "end_think": Transition(State.CONTENT),
            },
            State.REASONING: {
                "call": Transition(State.NAME, (_START,)),
                "think": Transition(State.REASONING),
                "end_think": Transition(State.CONTENT),
            },
            State.NAME: {
                "key": Transition(State.ARGS, (_ARG,)),
                "end_call": Transition(State.CONTENT, (_END,)),
            },
            State.ARGS: {
                "key": Transition(State.ARGS, (_ARG,)),
                "end_key": Transition(State.ARGS, (_ARG,)),
                "value": Transition(State.ARGS, (_ARG,)),
                "end_value": Transition(State.ARGS, (_ARG,)),
                "end_call": Transition(State.CONTENT, (_END,)),
            },
        }
    ),
    writer=KeyValueArguments,
    boundaries=("<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"),
    validates_names=True,
    value_end="end_value",
)

SWITCHES = ("thinking", "enable_thinking")
_ALWAYS_THINKING = ("[gMASK]<sop>", "Reasoning Effort:", "<tool_call>", "<arg_key>", "<arg_value>")


def always_thinks(vocabulary: Vocabulary) -> bool:
    """GLM-5.3 thinks whatever the switches say; its chat template tells it from its predecessors (xml 6)."""
    template = vocabulary.chat_template
    return "enable_thinking" not in template and all(text in template for text in _ALWAYS_THINKING)


class GlmReasoning(MarkerReasoning):
    """`glm47`, alias `glm45` (xml 15)."""

    names = ("glm47", "glm45")
    grammar = GRAMMAR
    switches = SWITCHES

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._always = always_thinks(vocabulary)

    def thinks(self, context: RequestContext) -> bool:
        return self._always or super().thinks(context)


class Ling3Reasoning(MarkerReasoning):
    """`ling3` (xml 15)."""

    names = ("ling3",)
    grammar = GRAMMAR
    switches = SWITCHES


class GlmTools(MarkerTools):
    """`glm47`, alias `glm45` (xml 6): without reasoning, its tags are ordinary text."""

    names = ("glm47", "glm45")
    grammar = GRAMMAR

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._always = always_thinks(vocabulary)

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        thinks = self._always or context.template_flag(*SWITCHES, default=True)
        return MachineToolStage(self._machine, context, with_reasoning=with_reasoning and thinks)


class Ling3Tools(MarkerTools):
    """`ling3` (xml 7)."""

    names = ("ling3",)
    grammar = GRAMMAR

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        thinks = context.template_flag(*SWITCHES, default=True)
        return MachineToolStage(self._machine, context, with_reasoning=with_reasoning and thinks)
