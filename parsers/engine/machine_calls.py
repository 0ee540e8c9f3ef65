"""A grammar as tool parser: finds the calls in what the reasoning stage handed on.

What it remembers is small: the state, the beginning of a marker that is held back, and the open call's writer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from .assembly import unique_keys
from .context import RequestContext
from .events import CallArguments, CallEnd, CallStart, Content, Event, Malformed, Reasoning, Segment
from .exceptions import InvalidSnapshotError
from .grammar import CALL_STATES, Action, ArgumentWriter, Grammar, State, Transition
from .machine import DROP, MarkerMachine, Unit
from .stage import Outcome, ToolStage

RELEASE_LIMIT = 2000
"""Code points after a call's opening marker without a call, after which the text is taken for an answer about markers.
"""


@dataclass(slots=True)
class CallState:
    """`held` is the beginning of a marker; `opener` the text since a call's opening marker, given back if no call
    follows.

    `blank` is white space before the first visible content; `visible` says that some was sent; `called` that a call
    was. `name` and `pending` (arguments not sent yet) belong to the open call; `announced` says that its name was sent.
    `spilling`: the markup being read is no call of a function on offer, so that its text is content. `doubt`: text
    since an end marker inside an open value, which belongs to the value if that closes later; `doubted` its terminal.
    """

    state: str = State.CONTENT
    held: str = ""
    opener: str = ""
    blank: str = ""
    visible: bool = False
    called: bool = False
    index: int = 0
    in_call: bool = False
    name: str = ""
    announced: bool = False
    pending: str = ""
    spilling: bool = False
    doubt: str = ""
    doubted: str = ""


class MachineToolStage(ToolStage):
    """A grammar as tool parser."""

    State: ClassVar[type] = CallState

    def __init__(self, machine: MarkerMachine, context: RequestContext, *, with_reasoning: bool) -> None:
        super().__init__()
        self._machine = machine
        self._context = context
        self._parses_calls = bool(context.tools)
        self._silent = context.tool_choice == "none"
        self._with_reasoning = with_reasoning
        self._call_markers = machine.grammar.call_markers
        self._writer: ArgumentWriter | None = None

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        events: list[Event] = []
        units, self.state.held = self._machine.read(self.state.held, self._machine.known(segments))
        for unit in units:
            self._unit(unit, events)
        return events

    def finish(self) -> list[Event]:
        events: list[Event] = []
        held, self.state.held = self.state.held, ""
        for unit in self._machine.flush(held):
            self._unit(unit, events)
        state = self.state
        if state.doubt:
            self._confirm_end(events)
        elif state.in_call:
            self._end_call(events, cut=True)
        elif state.opener:
            self._give_back(events, cut=True)
        if state.blank and not state.called:
            events.append(Content(state.blank))
            state.blank = ""
        return events

    # --- reading --------------------------------------------------------------------------------------------------

    def _unit(self, unit: Unit, events: list[Event]) -> None:
        if unit.terminal == DROP:
            return
        state = self.state
        if state.doubt and not self._settles_doubt(unit, events):
            state.doubt += unit.text
            return
        transition = self._transition(unit.terminal) if unit.terminal else None
        if transition and unit.terminal and self._is_doubtful(transition):
            state.doubt, state.doubted = unit.text, unit.terminal
            return
        if state.spilling and not (transition and Action.CALL_START in transition.actions):
            self._spilled(unit, transition, events)
            return
        state.spilling = False
        if state.opener:
            state.opener += unit.text
        if transition is None:
            self._text(unit.text, events)
        else:
            self._move(unit, transition, events)

    def _is_doubtful(self, transition: Transition) -> bool:
        """Whether a call would end inside a value that the format closes before."""
        if not self._machine.grammar.value_end or transition.actions != (Action.CALL_END,):
            return False
        return self._writer is not None and self._writer.in_value

    def _settles_doubt(self, unit: Unit, events: list[Event]) -> bool:
        """The end of the value tells that the end marker was text; the beginning of another call that it was none."""
        if unit.terminal == self._machine.grammar.value_end:
            text, self.state.doubt = self.state.doubt, ""
            self._argument(text, events)
            return True
        opener = self._machine.transition(State.CONTENT, unit.terminal) if unit.terminal else None
        if opener is None or opener.state not in CALL_STATES:
            return False
        self._confirm_end(events)
        return True

    def _confirm_end(self, events: list[Event]) -> None:
        """The doubtful end marker did end the call."""
        state = self.state
        transition = self._machine.transition(state.state, state.doubted)
        assert transition is not None
        state.doubt = ""
        state.state = transition.state
        self._end_call(events, cut=False)

    def _spilled(self, unit: Unit, transition: Transition | None, events: list[Event]) -> None:
        """More of a rejected call, up to where its block ends."""
        self._content(unit.text, events)
        if transition is not None:
            self.state.state = transition.state
            self.state.spilling = transition.state in CALL_STATES

    def _transition(self, terminal: str) -> Transition | None:
        is_call = terminal in self._call_markers
        if not (self._parses_calls if is_call else self._with_reasoning):
            return None
        return self._machine.transition(self.state.state, terminal)

    def _move(self, unit: Unit, transition: Transition, events: list[Event]) -> None:
        state = self.state
        before = state.state
        state.state = transition.state
        if before == State.CONTENT and transition.state in CALL_STATES and not self._machine.grammar.drops_blank:
            self._release_blank(events)
        elif before == transition.state == State.CONTENT and unit.terminal in self._call_markers:
            state.visible = False
        for action in transition.actions:
            if action is Action.CALL_START:
                self._start_call(unit.text)
            elif action is Action.CALL_END:
                self._end_call(events, cut=False)
            else:
                self._argument(unit.text, events)
        if transition.state is State.PREAMBLE and not state.in_call:
            state.opener = state.opener or unit.text
        elif transition.state is State.CONTENT and state.opener:
            self._give_back(events)

    def _text(self, text: str, events: list[Event]) -> None:
        state = self.state
        match state.state:
            case State.CONTENT:
                self._content(text, events)
            case State.REASONING:
                events.append(Reasoning(text))
            case State.NAME:
                state.name += text
            case State.ARGS:
                self._argument(text, events)
            case State.PREAMBLE if len(state.opener) > RELEASE_LIMIT:
                state.state = State.CONTENT
                self._give_back(events)

    def _content(self, text: str, events: list[Event]) -> None:
        """Blank text waits for visible text; text behind a call is nobody's (engine 2.7)."""
        state = self.state
        if state.called and not self._silent:
            return
        if not state.visible:
            text = state.blank + text
            if not text.strip():
                state.blank = text
                return
            state.blank, state.visible = "", True
        events.append(Content(text))

    def _release_blank(self, events: list[Event]) -> None:
        if self.state.blank:
            events.append(Content(self.state.blank))
            self.state.blank = ""

    # --- calls ----------------------------------------------------------------------------------------------------

    def _start_call(self, marker: str) -> None:
        """The text up to the name is only kept where the name may turn out to be none."""
        state = self.state
        if self._machine.grammar.validates_names and not self._silent:
            state.opener = state.opener or marker
        else:
            state.opener = ""
        state.in_call, state.name, state.announced, state.pending = True, "", False, ""
        self._writer = None

    def _argument(self, text: str, events: list[Event]) -> None:
        state = self.state
        if not state.in_call or self._silent:
            return
        if not state.announced and not self._accepts_name(events):
            return
        fresh = self._open_writer().feed(text)
        if not state.announced:
            self._announce(events)
            if self._machine.grammar.names_alone:
                state.pending, fresh = fresh, ""
            events.append(CallArguments(state.index, fresh, raw=text))
            return
        fresh, state.pending = state.pending + fresh, ""
        events.append(CallArguments(state.index, fresh, raw=text))

    def _open_writer(self) -> ArgumentWriter:
        if self._writer is None:
            self._writer = self._machine.grammar.writer(self._context.parameters.get(self.state.name.strip()))
        return self._writer

    def _accepts_name(self, events: list[Event], *, cut: bool = False) -> bool:
        """Whether the open call names a function. If it is not on offer, the call is text, unless the name is cut.

        A call without a name is nothing.
        """
        state = self.state
        name = state.name.strip()
        if not name:
            state.in_call, state.opener = False, ""
            return False
        if not self._machine.grammar.validates_names:
            return True
        offered = self._context.parameters
        if name in offered:
            return True
        if not (cut and any(self._is_cut(name, each) for each in offered)):
            state.in_call, state.spilling = False, state.state in CALL_STATES
            self._give_back(events)
        return False

    def _is_cut(self, text: str, name: str) -> bool:
        """Whether the end of output cut `name`, or the marker behind it."""
        return name.startswith(text) or (text.startswith(name) and self._machine.begins_marker(text[len(name) :]))

    def _announce(self, events: list[Event]) -> None:
        state = self.state
        state.announced = state.called = True
        state.blank = state.opener = ""
        events.append(CallStart(state.index, state.name.strip()))

    def _end_call(self, events: list[Event], *, cut: bool) -> None:
        state = self.state
        if state.in_call and not self._silent:
            self._settle_call(events, cut=cut)
        state.in_call, state.name, state.announced, state.pending = False, "", False, ""
        self._writer = None

    def _settle_call(self, events: list[Event], *, cut: bool) -> None:
        state = self.state
        if not state.announced and not self._accepts_name(events, cut=cut):
            return
        writer = self._open_writer()
        rest = state.pending + writer.finish(cut=cut)
        if not state.announced:
            self._announce(events)
        if rest:
            events.append(CallArguments(state.index, rest, raw=""))
        events.append(CallEnd(state.index, kept=writer.kept, tail=writer.tail))
        state.index += 1

    def _give_back(self, events: list[Event], *, cut: bool = False) -> None:
        """The text since the opening marker is content after all, unless it is only markers and white space, or a cut
        one.
        """
        state = self.state
        text, state.opener = state.opener, ""
        bare = text
        for spelling in self._machine.grammar.spellings:
            bare = bare.replace(spelling, "")
        bare = bare.strip()
        if bare and not (cut and self._machine.begins_marker(bare)):
            events.append(Malformed())
            self._content(text, events)

    # --- state ----------------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        data = super().snapshot()
        if self._writer is not None:
            data["writer"] = dict(self._writer.snapshot())
        return data

    def restore(self, data: Mapping[str, Any]) -> None:
        own = dict(data)
        writer = own.pop("writer", None)
        super().restore(own)
        self._writer = None
        if writer is not None:
            if not isinstance(writer, dict):
                raise InvalidSnapshotError("writer: expected an object")
            self._open_writer().restore(writer)


def settle_machine(grammar: Grammar, outcome: Outcome) -> None:
    """One-shot rules of a grammar's calls: content loses the white space around it where there are calls."""
    outcome.called = bool(outcome.calls)
    for call in outcome.calls:
        call.arguments = unique_keys(call.arguments)
    if outcome.called and outcome.content is not None and grammar.strips_content:
        outcome.content = outcome.content.strip()
