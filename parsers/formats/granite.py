"""Calls and reasoning of Granite 3: a marker, then a JSON array of calls; thoughts and answer behind fixed sentences.

<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]

Here is my thought process: The user greets me.
Here is my response: Hello!
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from parsers.engine.call_array import ElementReader, ElementState
from parsers.engine.context import RequestContext
from parsers.engine.events import CallArguments, CallEnd, Event, Reasoning, ReasoningRetracted, Segment, Text, Token
from parsers.engine.grammar import Grammar, State, Transition, table
from parsers.engine.lexer import Lexer
from parsers.engine.machine import Unit
from parsers.engine.machine_calls import CallState, MachineToolStage
from parsers.engine.parameter_writer import ParameterWriter
from parsers.engine.stage import Outcome, ReasoningFormat, ReasoningStage, ToolStage
from parsers.engine.vocabulary import Vocabulary
from parsers.formats.base import MarkerTools

GRAMMAR = Grammar(
    markers={"call": ("<|tool_call|>", "<tool_call>")},
    id_markers=frozenset({"call"}),
    transitions=table({State.CONTENT: {"call": Transition(State.PREAMBLE)}}),
    writer=ParameterWriter,
)


@dataclass(slots=True)
class GraniteState(CallState):
    """`array`: the bracket behind the marker came; `element`: the call being read; `spelled`: the marker was no token,
    so that it is text where no array follows.
    """

    array: bool = False
    element: ElementState | None = None
    spelled: bool = False


class GraniteStage(MachineToolStage):
    """Reads the array behind a marker. Whatever else follows a marker is content."""

    State: ClassVar[type] = GraniteState

    def _move(self, unit: Unit, transition: Transition, events: list[Event]) -> None:
        self.state.spelled = unit.token is None
        super()._move(unit, transition, events)

    def _text(self, text: str, events: list[Event]) -> None:
        if self.state.state != State.PREAMBLE:
            super()._text(text, events)
            return
        position = 0
        while position < len(text) and self.state.state == State.PREAMBLE:
            position = self._array(text, position, events)
        if position < len(text):
            super()._text(text[position:], events)

    def _array(self, text: str, position: int, events: list[Event]) -> int:
        state = self.state
        if state.element is not None:
            return self._element(text, position, events)
        character = text[position]
        if character.isspace() or (character == "," and state.array):
            return position + 1
        if character == "[" and not state.array:
            state.array = True
            return position + 1
        if character == "{" and state.array:
            state.element, state.opener = ElementState(), ""
            return position
        return self._leave_array(character, text, position, events)

    def _leave_array(self, character: str, text: str, position: int, events: list[Event]) -> int:
        """The array has ended, or there is none."""
        state = self.state
        closed = character == "]" and state.array
        state.state, state.array = State.CONTENT, False
        opener, state.opener = state.opener, ""
        if closed:
            return position + 1
        before = opener[: len(opener) - (len(text) - position)]
        if before and state.spelled:
            self._content(before, events)
        return position

    def _element(self, text: str, position: int, events: list[Event]) -> int:
        state = self.state
        assert state.element is not None
        reader = ElementReader(state.element, self._context.parameters)
        out: list[str] = []
        position = reader.feed(text, position, out)
        self._pass_on(state.element, out, events)
        if reader.done:
            self._close(reader, events, cut=False)
        return position

    def _pass_on(self, element: ElementState, out: list[str], events: list[Event]) -> None:
        """Arguments wait for the name."""
        state = self.state
        if not (element.name or "").strip() or self._silent:
            element.waiting += out
            return
        if not state.announced:
            state.name = element.name or ""
            self._announce(events)
            out, element.waiting = element.waiting + out, []
        if out:
            events.append(CallArguments(state.index, "".join(out)))

    def _close(self, reader: ElementReader, events: list[Event], *, cut: bool) -> None:
        state = self.state
        if state.announced:
            rest = reader.finish(cut=cut)
            if rest:
                events.append(CallArguments(state.index, rest))
            events.append(CallEnd(state.index))
            state.index += 1
        state.element, state.announced, state.name = None, False, ""

    def finish(self) -> list[Event]:
        state = self.state
        events: list[Event] = []
        held, state.held = state.held, ""
        for unit in self._machine.flush(held):
            self._unit(unit, events)
        if state.element is not None:
            self._close(ElementReader(state.element, self._context.parameters), events, cut=True)
        state.opener = ""
        return events + super().finish()


class GraniteTools(MarkerTools):
    """`granite` (xml 10): a forced choice is expected as plain JSON."""

    names = ("granite",)
    grammar = GRAMMAR
    guided_choice = True

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return GraniteStage(self._machine, context, with_reasoning=with_reasoning)

    def settle(self, outcome: Outcome) -> None:
        """Arguments stay as the model wrote them."""
        outcome.called = bool(outcome.calls)
        if outcome.called and outcome.content is not None:
            outcome.content = outcome.content.strip()


_THOUGHTS = ("Here is my thought process:", "Here's my thought process:")
_ANSWER = ("Here is my response:", "Here's my response:")
_INSIDE = Lexer([*_ANSWER, *(f"\n{sentence}" for sentence in _ANSWER)])
_BEHIND = Lexer([f"\n{sentence}" for sentence in _THOUGHTS])


@dataclass(slots=True)
class SentenceState:
    """`place`: "start", "in" the thoughts, "behind" them, or in an "answer" without thoughts.

    `held` may be the beginning of one of the sentences; `broken`: a line break before the last one was not sent.
    """

    place: str = "start"
    held: str = ""
    broken: bool = False


class SentenceStage(ReasoningStage):
    """Thoughts between two fixed sentences, the first of which begins the output; without it all is the answer.

    Further thoughts begin on a line of the answer (bugs/granite-reasoning-second-span); the line
    breaks between two spans belong to neither. A call ends the thoughts, too.
    """

    State: ClassVar[type] = SentenceState

    def __init__(self, call_id: int | None) -> None:
        super().__init__()
        self._call_id = call_id

    @property
    def ended(self) -> bool:
        """Never, so that chunks without text send nothing."""
        return False

    def feed(self, segments: Sequence[Segment]) -> list[Event | Segment]:
        out: list[Event | Segment] = []
        for segment in segments:
            if isinstance(segment, Token) and segment.token_id == self._call_id and self.state.place != "start":
                self._leave(out)
            match self.state.place:
                case "start":
                    self._begin(segment.text, out)
                case "in":
                    self._inside(segment.text, out)
                case "behind" if isinstance(segment, Text):
                    self._behind(segment.text, out)
                case _:
                    self._release(out)
                    out.append(segment)
        return out

    def finish(self) -> list[Event | Segment]:
        out: list[Event | Segment] = []
        self._leave(out)
        if self.state.broken:
            out.append(Reasoning("\n", late=True))
        return out

    def _leave(self, out: list[Event | Segment]) -> None:
        """No further sentence will come."""
        self._release(out)
        self.state.place = "answer"

    def _release(self, out: list[Event | Segment]) -> None:
        """What was held back is no sentence."""
        state = self.state
        held, state.held = state.held, ""
        if held:
            out.append(Reasoning(held) if state.place == "in" else Text(held))

    def _begin(self, text: str, out: list[Event | Segment]) -> None:
        state = self.state
        text, state.held = state.held + text, ""
        start = text.lstrip()
        sentence = next((each for each in _THOUGHTS if start.startswith(each)), None)
        if sentence:
            state.place = "in"
            out.append(ReasoningRetracted())
            self._inside(start[len(sentence) :], out)
        elif any(each.startswith(start) for each in _THOUGHTS):
            state.held = text
        else:
            state.place = "answer"
            out.append(Text(text))

    def _inside(self, text: str, out: list[Event | Segment]) -> None:
        """Thoughts, up to the sentence that ends them."""
        state = self.state
        pieces, state.held = _INSIDE.cut(state.held, text)
        for position, (piece, is_sentence) in enumerate(pieces):
            if is_sentence:
                rest = self._rest(pieces[position + 1 :])
                state.place, state.broken = "behind", piece.startswith("\n")
                self._behind(rest, out)
                return
            out.append(Reasoning(piece))

    def _behind(self, text: str, out: list[Event | Segment]) -> None:
        """The answer, up to further thoughts."""
        state = self.state
        pieces, state.held = _BEHIND.cut(state.held, text)
        for position, (piece, is_sentence) in enumerate(pieces):
            if is_sentence:
                rest = self._rest(pieces[position + 1 :])
                state.place = "in"
                self._inside(rest, out)
                return
            out.append(Text(piece))

    def _rest(self, pieces: Sequence[tuple[str, bool]]) -> str:
        """Text that was read with the other sentences in mind, as one piece."""
        held, self.state.held = self.state.held, ""
        return "".join(text for text, _ in pieces) + held


class GraniteReasoning(ReasoningFormat):
    """`granite` (xml 21)."""

    names = ("granite",)
    keeps_empty = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._call_id = vocabulary.token_id("<|tool_call|>")
        self.marks = {} if self._call_id is None else {self._call_id: "<|tool_call|>"}

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> ReasoningStage:
        return SentenceStage(self._call_id)
