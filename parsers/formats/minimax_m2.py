"""MiniMax M2: thoughts, `</think>`, answer, calls as invocations with named parameters.

The user asks for the weather.
</think>

Let me look.
<minimax:tool_call>
<invoke name="get_weather">
<parameter name="city">Paris</parameter>
<parameter name="days">3</parameter>
</invoke>
</minimax:tool_call>
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from parsers.engine.context import RequestContext
from parsers.engine.events import Event, Segment, Text
from parsers.engine.grammar import Action, Grammar, State, Transition, table
from parsers.engine.machine import Unit
from parsers.engine.machine_calls import MachineToolStage
from parsers.engine.stage import ReasoningFormat, ReasoningStage, ToolStage
from parsers.engine.xml_arguments import XmlParameters
from parsers.formats.base import MarkerReasoning, MarkerTools

_START, _END, _ARG = Action.CALL_START, Action.CALL_END, Action.ARG
_NAME = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+))\s*\Z""")
_BEGINNING = re.compile(r"<\s{0,16}(?:/\s{0,16}([a-z]*)\s{0,16}|([a-z]*)(\s{1,16}[a-z]*)?\s{0,16})\Z")


class NamedParameters(XmlParameters):
    """`<parameter name="KEY">VALUE</parameter>`, the key in double, single or no quotes; the value as it is written."""

    strips_newlines = False
    opener = re.compile(r"<\s{0,16}parameter\s{1,16}name\s{0,16}=")

    def begins_tag(self, text: str) -> bool:
        beginning = _BEGINNING.match(text)
        if beginning is None or not any(map(str.isspace, text)):
            return False
        close, word, attribute = beginning.groups()
        if attribute is not None:
            return word in ("", "parameter") and "name".startswith(attribute.strip())
        return "parameter".startswith(close or word or "")

    def key_of(self, text: str) -> str | None:
        match = _NAME.match(text)
        return next(filter(None, match.groups()), "").strip() or None if match else None


GRAMMAR = Grammar(
    markers={
        "think": ("<think>",),
        "end_think": ("</think>",),
        "call": ("<minimax:tool_call>",),
        "end_call": ("</minimax:tool_call>",),
        "invoke": ('<invoke name="', "<invoke name='", "<invoke name="),
        "end_invoke": ("</invoke>",),
        "close": ('">', "'>", ">"),
        "parameter": ("<parameter name=",),
        "end_parameter": ("</parameter>",),
    },
    id_markers=frozenset({"think", "end_think", "call", "end_call"}),
    transitions=table(
        {
            State.CONTENT: {
                "call": Transition(State.PREAMBLE),
                "end_call": Transition(State.CONTENT),
                "end_think": Transition(State.CONTENT),
                "invoke": Transition(State.NAME, (_START,)),
            },
            State.REASONING: {
                "think": Transition(State.REASONING),
                "end_think": Transition(State.CONTENT),
                "call": Transition(State.PREAMBLE),
            },
            State.PREAMBLE: {
                "invoke": Transition(State.NAME, (_START,)),
                "end_call": Transition(State.CONTENT),
            },
            State.NAME: {
                "close": Transition(State.ARGS),
            },
            State.ARGS: {
                "parameter": Transition(State.ARGS, (_ARG,)),
                "end_parameter": Transition(State.ARGS, (_ARG,)),
                "end_invoke": Transition(State.BETWEEN, (_END,)),
            },
            State.BETWEEN: {
                "invoke": Transition(State.NAME, (_START,)),
                "end_call": Transition(State.CONTENT),
            },
        }
    ),
    writer=NamedParameters,
    validates_names=True,
    value_end="end_parameter",
)


class MinimaxM2Reasoning(MarkerReasoning):
    """`minimax_m2` (xml 16): thinks whatever the template kwargs say."""

    names = ("minimax_m2",)
    grammar = GRAMMAR

    def thinks(self, context: RequestContext) -> bool:
        return True


class MinimaxM2ToolStage(MachineToolStage):
    """Where thoughts stay in the content (`minimax_m2_append_think`), white space behind them waits for the answer."""

    def _move(self, unit: Unit, transition: Transition, events: list[Event]) -> None:
        if unit.terminal == "end_think":
            self.state.visible = False
        super()._move(unit, transition, events)


class MinimaxM2Tools(MarkerTools):
    """`minimax_m2` (xml 8)."""

    names = ("minimax_m2",)
    grammar = GRAMMAR

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return MinimaxM2ToolStage(self._machine, context, with_reasoning=with_reasoning)


@dataclass(slots=True)
class PrefixState:
    """Whether the opening tag was put in front of the output."""

    prefixed: bool = False


class PrefixStage(ReasoningStage):
    """Thoughts stay in the content, behind the opening tag that the prompt took away from them."""

    State: ClassVar[type] = PrefixState

    @property
    def ended(self) -> bool:
        return True

    def feed(self, segments: Sequence[Segment]) -> list[Event | Segment]:
        return [*self._prefix(), *segments]

    def finish(self) -> list[Event | Segment]:
        return self._prefix()

    def _prefix(self) -> list[Event | Segment]:
        if self.state.prefixed:
            return []
        self.state.prefixed = True
        return [Text("<think>")]


class MinimaxM2AppendThinkReasoning(ReasoningFormat):
    """`minimax_m2_append_think` (xml 17)."""

    names = ("minimax_m2_append_think",)

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> ReasoningStage:
        return PrefixStage()
