"""Mistral: calls as a JSON array in the older models, name by name in those with `[ARGS]`; thoughts in `[THINK]`.

    [TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}}]
    [THINK]The user asks for the weather.[/THINK][TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}

The array form is read by `mistral_array`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from parsers.engine.context import RequestContext
from parsers.engine.events import Event, Segment, Text, Token
from parsers.engine.exceptions import InvalidSnapshotError, ParserConfigurationError
from parsers.engine.grammar import Action, Grammar, State, Transition, table
from parsers.engine.json_body import FirstJsonBody, whole_arguments
from parsers.engine.machine import MarkerMachine
from parsers.engine.machine_calls import MachineToolStage, settle_machine
from parsers.engine.machine_thoughts import MachineReasoningStage
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
    """Whether calls are written name by name.

    The version of Mistral's own tokenizers says so, or the token `[ARGS]`.
    """
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


@dataclass(slots=True)
class FormState:
    """`form` of the calls once it is known; `waiting`: a marker was seen and `held`, white space, followed it."""

    form: str = ""
    waiting: bool = False
    held: str = ""


class EitherForm(ToolStage):
    """Calls name by name, unless JSON follows the first marker: then the model writes the older form."""

    State: ClassVar[type] = FormState

    def __init__(self, by_name: ToolStage, array: ToolStage, marker: Token) -> None:
        super().__init__()
        self._stages = {"names": by_name, "array": array}
        self._marker = marker

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        state = self.state
        if state.form:
            return self._stages[state.form].feed(segments)
        events: list[Event] = []
        if not state.waiting:
            place = next((i for i, each in enumerate(segments) if self._is_marker(each)), len(segments))
            events = self._stages["names"].feed(segments[:place])
            state.waiting = place < len(segments)
            segments = segments[place + 1 :]
        for position, segment in enumerate(segments):
            state.held += segment.text
            if state.held.strip() or not isinstance(segment, Text):
                return events + self._decide(segments[position + 1 :], isinstance(segment, Text) or segment)
        return events

    def _is_marker(self, segment: Segment) -> bool:
        return isinstance(segment, Token) and segment.token_id == self._marker.token_id

    def _decide(self, rest: Sequence[Segment], last: Segment | bool) -> list[Event]:
        """The first thing behind the marker tells the form; `last` is a token that was held."""
        state = self.state
        held, state.held = state.held, ""
        state.form = "array" if held.lstrip()[:1] in ("[", "{") and last is True else "names"
        behind = [Text(held)] if last is True else [last] if isinstance(last, Token) else []
        return self._stages[state.form].feed([self._marker, *behind, *rest])

    def finish(self) -> list[Event]:
        events = self._decide([], True) if self.state.waiting and not self.state.form else []
        return events + self._stages[self.state.form or "names"].finish()

    def snapshot(self) -> dict[str, Any]:
        return super().snapshot() | {name: stage.snapshot() for name, stage in self._stages.items()}

    def restore(self, data: Mapping[str, Any]) -> None:
        own = dict(data)
        for name, stage in self._stages.items():
            inner = own.pop(name, None)
            if not isinstance(inner, dict):
                raise InvalidSnapshotError(f"{name}: expected an object")
            stage.restore(inner)
        super().restore(own)


class MistralTools(ToolFormat):
    """`mistral`."""

    names = ("mistral",)
    merges_entries = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._machine = _machine(vocabulary)
        self._has_names = has_names(vocabulary)
        self._marker_id = vocabulary.token_id(TOOL_CALLS) or 0
        self.engine_based = self._has_names
        self.types_entries = not self._has_names
        self.marks = self._machine.marks

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        if not self._has_names:
            return ArrayCalls(started=context.forces_call)
        by_name = MachineToolStage(self._machine, context, with_reasoning=with_reasoning)
        if not context.tools or context.tool_choice == "none":
            return by_name
        return EitherForm(by_name, ArrayCalls(started=False), Token(self._marker_id, TOOL_CALLS))

    def settle(self, outcome: Outcome) -> None:
        behind = outcome.raw.partition(TOOL_CALLS)[2].lstrip()
        if not self._has_names or behind[:1] in ("[", "{"):
            settle_array(outcome)
            return
        settle_machine(self._machine.grammar, outcome)
        for call in outcome.calls:
            call.arguments = whole_arguments(call.raw, outcome.parameters.get(call.name), first_only=True)

    def call_id(self, context: RequestContext, call: FoundCall, *, streaming: bool) -> str:
        return context.random_letters(call.index, 9)
