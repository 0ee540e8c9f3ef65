"""A marker format as data: its markers, its states, and what each marker does in each state (engine 2.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, Protocol


class State(StrEnum):
    """Where the machine is. Text of PREAMBLE and BETWEEN belongs to nobody."""

    CONTENT = "content"
    REASONING = "reasoning"
    PREAMBLE = "preamble"
    NAME = "name"
    ARGS = "args"
    BETWEEN = "between"


CALL_STATES = frozenset({State.PREAMBLE, State.NAME, State.ARGS, State.BETWEEN})


class Action(Enum):
    """What a transition does besides entering its state. ARG: the marker's own text is argument text."""

    CALL_START = "call start"
    CALL_END = "call end"
    ARG = "argument"


@dataclass(frozen=True, slots=True)
class Transition:
    """Entering `state`, with `actions` in order."""

    state: State
    actions: tuple[Action, ...] = ()


class ArgumentWriter(Protocol):
    """Turns the raw argument text of one call into JSON text, piece by piece.

    `kept` and `tail` describe the final arguments once `finish` was called: the first `kept` code points of all that
    was written, then `tail`; `kept` None means all. `blank`: no visible raw text came. `in_value`: the raw text so far
    ends inside a value.
    """

    kept: int | None
    tail: str

    @property
    def blank(self) -> bool: ...

    @property
    def in_value(self) -> bool: ...

    def feed(self, text: str) -> str:
        """JSON text that is certain after this piece."""

    def finish(self, *, cut: bool) -> str:
        """The rest; `cut`: the output ended inside the call."""

    def snapshot(self) -> Mapping[str, Any]: ...

    def restore(self, data: Mapping[str, Any]) -> None: ...


WriterFactory = Callable[[Mapping[str, Any] | None], ArgumentWriter]


@dataclass(frozen=True, slots=True)
class Grammar:
    """One family's markers and rules.

    `markers`: terminal -> spellings; `id_markers`: those recognised by token ID where the tokenizer has the token.
    `writer` makes an argument writer from the called function's parameters schema (None: unknown function).
    `boundaries`: tokens that begin or end a turn, where the search for an earlier end of reasoning stops. `preserved`:
    declared special tokens that are not dropped. `strips_reasoning`: white space at the end of reasoning is dropped.
    `strips_content`: one-shot drops the white space around content where there are calls. `drops_blank`: content that
    is only white space is dropped where there are calls. `value_end`: the terminal that closes a value; a call does not
    end inside a value that it closes later. `validates_names`: calls of functions that the request does not offer are
    no calls. `names_alone`: the name goes out without the argument text that came with it.
    """

    markers: Mapping[str, tuple[str, ...]]
    id_markers: frozenset[str]
    transitions: Mapping[tuple[State, str], Transition]
    writer: WriterFactory
    boundaries: Sequence[str] = ()
    preserved: frozenset[str] = frozenset()
    strips_reasoning: bool = True
    strips_content: bool = True
    drops_blank: bool = True
    validates_names: bool = False
    value_end: str = ""
    names_alone: bool = True
    spellings: Mapping[str, str] = field(init=False)
    call_markers: frozenset[str] = field(init=False)
    """Terminals of transitions from or to a call state."""
    exit_markers: frozenset[str] = field(init=False)
    """Terminals that lead out of the call states."""

    def __post_init__(self) -> None:
        spellings = {text: name for name, texts in self.markers.items() for text in texts}
        calls = frozenset(
            marker
            for (state, marker), transition in self.transitions.items()
            if state in CALL_STATES or transition.state in CALL_STATES
        )
        exits = frozenset(
            marker
            for (state, marker), transition in self.transitions.items()
            if state in CALL_STATES and transition.state not in CALL_STATES
        )
        object.__setattr__(self, "spellings", spellings)
        object.__setattr__(self, "call_markers", calls)
        object.__setattr__(self, "exit_markers", exits)


def table(rows: Mapping[State, Mapping[str, Transition]]) -> dict[tuple[State, str], Transition]:
    """Transitions written state by state."""
    return {(state, marker): transition for state, row in rows.items() for marker, transition in row.items()}
