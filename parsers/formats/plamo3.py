"""PLaMo 3: thoughts, answer, a section of tool requests. Every marker is spelled with three or more tokens.

<|plamo:begin_think:plamo|>The user asks for the weather.<|plamo:end_think:plamo|>Let me look.
<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|>
<|plamo:begin_tool_name:plamo|>get_weather<|plamo:end_tool_name:plamo|>
<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>{"city": "Paris"}
<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|><|plamo:end_tool_requests:plamo|><|plamo:tag|>
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from parsers.engine.context import RequestContext
from parsers.engine.events import Event, Reasoning, Segment, Text, Token
from parsers.engine.grammar import Action, Grammar, State, Transition, table
from parsers.engine.machine import MarkerMachine
from parsers.engine.machine_calls import MachineToolStage
from parsers.engine.machine_thoughts import MachineReasoningStage
from parsers.engine.raw_arguments import RawArguments
from parsers.engine.stage import Outcome, ReasoningStage, ToolStage
from parsers.engine.vocabulary import Vocabulary
from parsers.formats.base import MarkerReasoning, MarkerTools

_START, _END = Action.CALL_START, Action.CALL_END
_OPENING, _CLOSING, _LAST = "<|plamo:begin_", "<|plamo:end_", ":plamo|>"
_TURN_END = "<|plamo:tag|>"
_UNFINISHED = "<|plamo:"


def begin(name: str) -> str:
    """The marker that opens `name`."""
    return f"{_OPENING}{name}{_LAST}"


def end(name: str) -> str:
    """The marker that closes `name`."""
    return f"{_CLOSING}{name}{_LAST}"


_MARKERS = {
    "think": (begin("think"),),
    "end_think": (end("think"),),
    "requests": (begin("tool_requests"),),
    "end_requests": (end("tool_requests"),),
    "request": (begin("tool_request"),),
    "end_request": (end("tool_request"),),
    "name": (begin("tool_name"),),
    "end_name": (end("tool_name"),),
    "arguments": (begin("tool_arguments") + "<|plamo:constrain|>json<|plamo:msg|>",),
    "end_arguments": (end("tool_arguments"),),
    "turn_end": (_TURN_END,),
}

GRAMMAR = Grammar(
    markers=_MARKERS,
    id_markers=frozenset({"turn_end"}),
    transitions=table(
        {
            State.CONTENT: {
                "requests": Transition(State.PREAMBLE),
                "think": Transition(State.REASONING),
                "end_think": Transition(State.CONTENT),
                "turn_end": Transition(State.CONTENT),
            },
            State.REASONING: {
                "requests": Transition(State.PREAMBLE),
                "think": Transition(State.REASONING),
                "end_think": Transition(State.CONTENT),
                "turn_end": Transition(State.CONTENT),
            },
            State.PREAMBLE: {
                "request": Transition(State.PREAMBLE),
                "name": Transition(State.NAME, (_END, _START)),
                "arguments": Transition(State.ARGS),
                "end_requests": Transition(State.CONTENT, (_END,)),
                "turn_end": Transition(State.CONTENT, (_END,)),
            },
            State.NAME: {
                "end_name": Transition(State.PREAMBLE),
                "turn_end": Transition(State.CONTENT, (_END,)),
            },
            State.ARGS: {
                "end_arguments": Transition(State.BETWEEN, (_END,)),
                "turn_end": Transition(State.CONTENT, (_END,)),
            },
            State.BETWEEN: {
                "end_request": Transition(State.PREAMBLE),
                "end_requests": Transition(State.CONTENT),
                "turn_end": Transition(State.CONTENT),
            },
        }
    ),
    writer=RawArguments,
    preserved=frozenset({_OPENING, _CLOSING, _LAST, "<|plamo:constrain|>", "<|plamo:msg|>"}),
    strips_reasoning=False,
    strips_content=False,
    names_alone=False,
)
QUIET_GRAMMAR = replace(
    GRAMMAR,
    markers={name: texts for name, texts in _MARKERS.items() if name not in ("think", "end_think")},
    transitions={key: value for key, value in GRAMMAR.transitions.items() if key[1] not in ("think", "end_think")},
)


class SplitMarkers:
    """How a tokenizer splits the markers. `parts`: tokens with which one begins, with their text."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        parts = {vocabulary.token_id(text): text for text in (_OPENING, _CLOSING)}
        self.parts = {token_id: text for token_id, text in parts.items() if token_id is not None}
        self._encode = vocabulary.encode
        self._markers = [tuple(vocabulary.encode(text)) for texts in _MARKERS.values() for text in texts]

    def is_cut(self, text: str) -> bool:
        """Whether `text` is a marker that the end of output cut between two of its tokens."""
        if not text.startswith(_UNFINISHED):
            return False
        token_ids = tuple(self._encode(text))
        return any(token_ids == marker[: len(token_ids)] for marker in self._markers)


class PlamoReasoningStage(MachineReasoningStage):
    """Behind the thoughts only tokens that begin a marker make text worth reading."""

    def __init__(self, machine: MarkerMachine, markers: SplitMarkers, *, ended: bool) -> None:
        super().__init__(machine, thinking=True, ended=ended, rethinks=ended)
        self._markers = markers

    def feed(self, segments: Sequence[Segment]) -> list[Event | Segment]:
        out: list[Event | Segment] = []
        for segment in segments:
            begins = isinstance(segment, Token) and segment.token_id in self._markers.parts
            unread = isinstance(segment, Text) and not self.state.held
            if self.state.state == State.CONTENT and (self.state.span or unread):
                self._release(out)
                out.append(segment)
                continue
            out += super().feed([Text(segment.text) if begins else segment])
            if self.state.state == State.CONTENT and self._markers.parts and not self._begins_marker():
                self._release(out)
        return out

    def _begins_marker(self) -> bool:
        """Whether what is held back came as a token that begins markers."""
        return self.state.held.startswith((_OPENING, _CLOSING))

    def finish(self) -> list[Event | Segment]:
        if self._markers.is_cut(self.state.held):
            self.state.held = ""
        return super().finish()


class PlamoToolStage(MachineToolStage):
    """The end of the turn is never text. Thoughts that nobody asked for are dropped."""

    def __init__(
        self, machine: MarkerMachine, markers: SplitMarkers, context: RequestContext, *, shows_reasoning: bool
    ) -> None:
        super().__init__(machine, context, with_reasoning=True)
        self._markers = markers
        self._shows_reasoning = shows_reasoning

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        return self._shown(super().feed(segments))

    def finish(self) -> list[Event]:
        if self._markers.is_cut(self.state.held):
            self.state.held = ""
        return self._shown(super().finish())

    def _shown(self, events: list[Event]) -> list[Event]:
        return [event for event in events if self._shows_reasoning or not isinstance(event, Reasoning)]

    def _transition(self, terminal: str) -> Transition | None:
        if terminal == "turn_end":
            return self._machine.transition(self.state.state, terminal)
        return super()._transition(terminal)


class Plamo3Reasoning(MarkerReasoning):
    """`plamo3` (xml 22)."""

    names = ("plamo3",)
    grammar = GRAMMAR

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._markers = SplitMarkers(vocabulary)
        self.marks = {**self.marks, **self._markers.parts}
        self._prompt_ends = tuple(tuple(vocabulary.encode(text)) for text in (end("think"), begin("tool_requests")))
        self._prompt_starts = tuple(tuple(vocabulary.encode(text)) for text in (begin("think"), _TURN_END))

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> ReasoningStage | None:
        if not self.thinks(context):
            return None
        ended = self.prompt_ended(prompt_token_ids or ())
        return PlamoReasoningStage(self._machine, self._markers, ended=ended)

    def prompt_ended(self, prompt_token_ids: Sequence[int]) -> bool:
        """The last marker of the prompt decides; a new turn begins with the thoughts."""
        for stop in range(len(prompt_token_ids), 0, -1):
            if any(_ends_with(prompt_token_ids, stop, marker) for marker in self._prompt_ends):
                return True
            if any(_ends_with(prompt_token_ids, stop, marker) for marker in self._prompt_starts):
                return False
        return False


def _ends_with(token_ids: Sequence[int], stop: int, marker: tuple[int, ...]) -> bool:
    """Whether `marker` stands in front of position `stop`."""
    start = stop - len(marker)
    return start >= 0 and token_ids[stop - 1] == marker[-1] and tuple(token_ids[start:stop]) == marker


class Plamo3Tools(MarkerTools):
    """`plamo3` (xml 11)."""

    names = ("plamo3",)
    grammar = GRAMMAR

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._quiet = MarkerMachine(QUIET_GRAMMAR, vocabulary)
        self._markers = SplitMarkers(vocabulary)

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        thinks = context.template_flag("enable_thinking", default=True)
        machine = self._machine if thinks else self._quiet
        return PlamoToolStage(machine, self._markers, context, shows_reasoning=with_reasoning)

    def settle(self, outcome: Outcome) -> None:
        """Arguments stay as the model wrote them."""
        outcome.called = bool(outcome.calls)
