"""Formats of the Acme models.

Acme 2, a grammar:

    [[thoughts]]They ask for the weather.[[answer]]Let me look.
    [[call get_weather]]{"city": "Paris"}[[end]]

Acme 1, a stage of its own, with a call on every line that begins with `!`:

    Let me look.
    !get_weather city=Paris days=3
"""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from parsers.engine.coercion import coerce_text
from parsers.engine.context import RequestContext
from parsers.engine.events import CallArguments, CallEnd, CallStart, Content, Event, Segment
from parsers.engine.grammar import Action, Grammar, State, Transition, table
from parsers.engine.json_body import JsonBody
from parsers.engine.scanner import text_of
from parsers.engine.stage import ToolFormat, ToolStage
from parsers.formats.base import MarkerReasoning, MarkerTools

GRAMMAR = Grammar(
    markers={
        "think": ("[[thoughts]]",),
        "end_think": ("[[answer]]",),
        "call": ("[[call ",),
        "named": ("]]",),
        "end_call": ("[[end]]",),
    },
    id_markers=frozenset({"think", "end_think", "end_call"}),
    transitions=table(
        {
            State.REASONING: {
                "think": Transition(State.REASONING),
                "end_think": Transition(State.CONTENT),
                "call": Transition(State.NAME, (Action.CALL_START,)),
            },
            State.CONTENT: {
                "end_think": Transition(State.CONTENT),
                "call": Transition(State.NAME, (Action.CALL_START,)),
            },
            State.NAME: {
                "named": Transition(State.ARGS),
                "end_call": Transition(State.CONTENT, (Action.CALL_END,)),
            },
            State.ARGS: {
                "end_call": Transition(State.CONTENT, (Action.CALL_END,)),
            },
        }
    ),
    writer=JsonBody,
)


class AcmeReasoning(MarkerReasoning):
    """`--reasoning-parser acme`."""

    names = ("acme",)
    grammar = GRAMMAR


class AcmeTools(MarkerTools):
    """`--tool-call-parser acme`."""

    names = ("acme",)
    grammar = GRAMMAR


@dataclass(slots=True)
class LineState:
    """`line` holds the pieces of a line that begins with `!`; `inside`: the next text continues a line of content."""

    line: list[str] = field(default_factory=list)
    inside: bool = False
    index: int = 0


class LineCalls(ToolStage):
    """Content goes out at once, a call when its line is complete."""

    State = LineState

    def __init__(self, context: RequestContext) -> None:
        super().__init__()
        self._parameters = context.parameters

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        events: list[Event] = []
        for piece in text_of(segments).splitlines(keepends=True):
            self._read(piece, events)
        return events

    def finish(self) -> list[Event]:
        """The last line may lack its line break."""
        events: list[Event] = []
        if self.state.line:
            self._close(events)
        return events

    def _read(self, piece: str, events: list[Event]) -> None:
        state = self.state
        ends = piece.endswith("\n")
        if state.line or (piece.startswith("!") and not state.inside):
            state.line.append(piece)
            if ends:
                self._close(events)
        else:
            state.inside = not ends
            events.append(Content(piece))

    def _close(self, events: list[Event]) -> None:
        """The line is complete: a call, or text after all."""
        state = self.state
        line, state.line = "".join(state.line), []
        name, _, rest = line[1:].strip().partition(" ")
        pairs = [word.partition("=") for word in words_of(rest)]
        if name not in self._parameters or not all(key and sign for key, sign, _ in pairs):
            events.append(Content(line))
            return
        schemas = self._parameters[name].get("properties", {})
        arguments = {key: coerce_text(value, schemas.get(key)) for key, _, value in pairs}
        events += [
            CallStart(state.index, name),
            CallArguments(state.index, json.dumps(arguments, ensure_ascii=False)),
            CallEnd(state.index),
        ]
        state.index += 1


def words_of(text: str) -> list[str]:
    """Words of a line as a shell splits them; one word where a quote is not closed."""
    try:
        return shlex.split(text)
    except ValueError:
        return [text]


class LineTools(ToolFormat):
    """`--tool-call-parser acme_lines`."""

    names = ("acme_lines",)
    merges_entries = True

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return LineCalls(context)
