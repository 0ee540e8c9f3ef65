"""Mistral: calls as a JSON array in the older models, name by name in those with `[ARGS]`; thoughts in `[THINK]`.

    [TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}}]
    [THINK]The user asks for the weather.[/THINK][TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}

The array form is read by `mistral_array`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from parsers.engine.context import RequestContext
from parsers.engine.exceptions import ParserConfigurationError
from parsers.engine.grammar import Action, Grammar, State, Transition, table
from parsers.engine.json_body import FirstJsonBody, whole_arguments
from parsers.engine.machine import MachineReasoningStage, MachineToolStage, MarkerMachine, settle_machine
from parsers.engine.stage import FoundCall, Outcome, ReasoningFormat, ReasoningStage, ToolFormat, ToolStage
from parsers.engine.vocabulary import Vocabulary
from parsers.formats.mistral_array import ArrayCalls, settle_array

TOOL_CALLS, ARGS, THINK = "[TOOL_CALLS]", "[ARGS]", "[THINK]"
TOKEN_TAGS, TEXT_TAGS = (THINK, "[/THINK]"), ("<think>", "</think>")
FIRST_VERSION_WITH_NAMES = 11

_START, _END, _ARG = Action.CALL_START, Action.CALL_END, Action.ARG


def grammar(tags: tuple[str, str] | None) -> Grammar:
    """The grammar with these tags around thoughts; None: without thoughts."""
    markers = {"call": (TOOL_CALLS,), "args": (ARGS,), "brace": ("{",)}
    rows = {
        State.CONTENT: {"call": Transition(State.NAME, (_START,))},
        State.NAME: {"args": Transition(State.ARGS), "brace": Transition(State.ARGS, (_ARG,))},
        State.ARGS: {"call": Transition(State.NAME, (_END, _START))},
    }
    if tags is not None:
        markers |= {"think": tags[:1], "end_think": tags[1:]}
        rows[State.CONTENT] |= {"think": Transition(State.REASONING), "end_think": Transition(State.CONTENT)}
        rows[State.REASONING] = {
            "think": Transition(State.REASONING),
            "end_think": Transition(State.CONTENT),
            "call": Transition(State.NAME, (_START,)),
        }
    id_markers = frozenset({"call", "args", *(("think", "end_think") if tags == TOKEN_TAGS else ())})
    return Grammar(
        markers=markers, id_markers=id_markers, transitions=table(rows), writer=FirstJsonBody, names_alone=False
    )


def has_names(vocabulary: Vocabulary) -> bool:
    """Whether calls are written name by name: the version of Mistral's own tokenizers says so, or the token `[ARGS]`."""
    version = vocabulary.extra("mistral_version")
    if isinstance(version, str) and version[1:].isdecimal():
        return int(version[1:]) >= FIRST_VERSION_WITH_NAMES
    return vocabulary.token_id(ARGS) is not None


def thought_tags(vocabulary: Vocabulary) -> tuple[str, str] | None:
    """The tags around thoughts: tokens, plain text with Mistral's own tokenizers since version 11, or none."""
    if vocabulary.token_id(THINK) is not None:
        return TOKEN_TAGS
    return TEXT_TAGS if vocabulary.extra("mistral_version") and has_names(vocabulary) else None


def _machine(vocabulary: Vocabulary) -> MarkerMachine:
    if vocabulary.token_id(TOOL_CALLS) is None:
        raise ParserConfigurationError(f"mistral needs the token {TOOL_CALLS}, which the tokenizer lacks")
    return MarkerMachine(grammar(thought_tags(vocabulary)), vocabulary)


class MistralReasoning(ReasoningFormat):
    """`mistral`. Output begins as content; every tagged span is reasoning, whatever the prompt holds."""

    names = ("mistral",)
    engine_based = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._machine = _machine(vocabulary)
        self._thinks = thought_tags(vocabulary) is not None
        self.marks = self._machine.marks

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> ReasoningStage | None:
        return MachineReasoningStage(self._machine, thinking=False, ended=False) if self._thinks else None


class MistralTools(ToolFormat):
    """`mistral`."""

    names = ("mistral",)
    merges_entries = True
    alphabet: ClassVar[int] = 9

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._machine = _machine(vocabulary)
        self._has_names = has_names(vocabulary)
        self._call_id = vocabulary.token_id(TOOL_CALLS)
        self.engine_based = self._has_names
        self.types_entries = not self._has_names
        self.marks = self._machine.marks

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        if not self._has_names:
            return ArrayCalls(started=context.forces_call)
        return MachineToolStage(self._machine, context, with_reasoning=with_reasoning)

    def settle(self, outcome: Outcome) -> None:
        if not self._has_names:
            settle_array(outcome)
            return
        settle_machine(self._machine.grammar, outcome)
        for call in outcome.calls:
            call.arguments = whole_arguments(call.raw, outcome.parameters.get(call.name), first_only=True)

    def call_id(self, context: RequestContext, call: FoundCall, *, streaming: bool) -> str:
        return context.random_letters(call.index, 9)
