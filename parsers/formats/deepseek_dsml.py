"""DeepSeek-V3.2 and later: calls written in DSML tags, in three dialects; from V4 on thoughts end with `</think>`.

    The user asks for the weather.</think>Let me look.

    <｜DSML｜tool_calls>
    <｜DSML｜invoke name="get_weather">
    <｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>
    <｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜tool_calls>

V3.2 writes `function_calls` and has no thoughts of its own, V4.1 writes `｜DSML｜ calls` with spaces in all tags.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from parsers.engine.context import RequestContext
from parsers.engine.dsml_arguments import DsmlArguments, DsmlTags
from parsers.engine.grammar import Action, ArgumentWriter, Grammar, State, Transition, table
from parsers.engine.machine_thoughts import MachineReasoningStage
from parsers.engine.stage import ReasoningStage
from parsers.engine.vocabulary import Vocabulary
from parsers.formats.base import MarkerReasoning, MarkerTools
from parsers.formats.deepseek_r1 import PromptEnd

_START, _END, _ARG = Action.CALL_START, Action.CALL_END, Action.ARG


def _grammar(*blocks: str, gap: str = "", thinks: bool = True) -> Grammar:
    """The grammar of one dialect; `blocks` are the names a block may be opened with, the first one closes it, too."""
    tag = f"<｜DSML｜{gap}"
    think = {"think": ("<think>",), "end_think": ("</think>",)} if thinks else {}
    to_preamble, absorbed = Transition(State.PREAMBLE), Transition(State.CONTENT)
    call = Transition(State.NAME, (_START,))
    content = {"open": to_preamble, "invoke": call}
    reasoning = {"open": to_preamble, "think": Transition(State.REASONING), "end_think": Transition(State.CONTENT)}
    if thinks:
        content |= {"think": Transition(State.REASONING), "end_think": absorbed}
    tags = DsmlTags(gap)

    def writer(schema: Mapping[str, Any] | None) -> ArgumentWriter:
        return DsmlArguments(schema, tags=tags)

    return Grammar(
        markers=think
        | {
            "open": tuple(f"{tag}{name}>" for name in blocks),
            "close": (f"</｜DSML｜{gap}{blocks[0]}>",),
            "invoke": (f'{tag}invoke name="',),
            "end_invoke": (f"</｜DSML｜{gap}invoke>",),
            "end_name": ('">',),
            "parameter": (f"{tag}parameter",),
            "end_parameter": (f"</｜DSML｜{gap}parameter>",),
        },
        id_markers=frozenset(think),
        transitions=table(
            {
                State.CONTENT: content,
                State.REASONING: reasoning if thinks else {},
                State.PREAMBLE: {"invoke": call, "close": Transition(State.CONTENT)},
                State.NAME: {"end_name": Transition(State.ARGS)},
                State.ARGS: {
                    "end_invoke": Transition(State.BETWEEN, (_END,)),
                    "close": Transition(State.BETWEEN, (_END,)),
                    "invoke": Transition(State.NAME, (_END, _START)),
                    "parameter": Transition(State.ARGS, (_ARG,)),
                    "end_parameter": Transition(State.ARGS, (_ARG,)),
                },
                State.BETWEEN: {"invoke": call, "open": to_preamble, "close": Transition(State.BETWEEN)},
            }
        ),
        writer=writer,
        strips_content=False,
        value_end="end_parameter",
    )


V32 = _grammar("function_calls", thinks=False)
V4 = _grammar("tool_calls", "toolcalls", "tool")
V41 = _grammar("calls", gap=" ")


class DeepSeekV32Tools(MarkerTools):
    """`deepseek_v32`."""

    names = ("deepseek_v32",)
    grammar = V32


class DeepSeekV4Tools(MarkerTools):
    """`deepseek_v4`."""

    names = ("deepseek_v4",)
    grammar = V4


class DeepSeekV41Tools(MarkerTools):
    """`deepseek_v41`."""

    names = ("deepseek_v41",)
    grammar = V41


class DeepSeekV4Reasoning(MarkerReasoning):
    """`deepseek_v4`: thinks unless the request says otherwise (deepseek_kimi_harmony 3.3).

    A request without thinking keeps the stage, since the model may open thoughts all the same.
    """

    names = ("deepseek_v4",)
    grammar = V4
    switches = ("thinking", "enable_thinking")

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._prompt_end = PromptEnd(vocabulary)

    def thinks(self, context: RequestContext) -> bool:
        kwargs = context.template_kwargs
        if kwargs.get("reasoning_effort") == "none":
            return False
        set_ = [kwargs[name] for name in self.switches if name in kwargs]
        return any(map(bool, set_)) if set_ else True

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> ReasoningStage:
        thinks, prompt = self.thinks(context), prompt_token_ids or ()
        ended = self._prompt_end.closes(prompt, context) if thinks else not self._prompt_end.opens(prompt)
        return MachineReasoningStage(self._machine, thinking=thinks, ended=ended)


class DeepSeekV41Reasoning(DeepSeekV4Reasoning):
    """`deepseek_v41`."""

    names = ("deepseek_v41",)
    grammar = V41
