"""What a reader of Python call lists remembers between chunks."""

from __future__ import annotations

from dataclasses import dataclass, field

from .python_strings import LiteralState


@dataclass(slots=True)
class Frame:
    """An open bracket.

    `kind`: "call", "[", "(" (parentheses or a tuple, not known yet), "tuple", "{" (not known yet), "dict" or "set".
    `slot` and `mark` are pieces of output, numbered from the call's first: where the bracket goes once it is known,
    where the open key begins. `keyed`: the value of `key` is open, `start` being its first piece; `repeated`: that key
    was there before. `keys`: for each key its value's first piece, the piece behind it, and whether it is a string.
    """

    kind: str
    count: int = 0
    slot: int = 0
    mark: int = 0
    keyed: bool = False
    key: str = ""
    signs: str = ""
    start: int = 0
    repeated: bool = False
    keys: dict[str, list[int]] = field(default_factory=dict)


@dataclass(slots=True)
class FinishedCall:
    """A call that is complete but not all sent; `name` is "" where that was sent."""

    index: int
    name: str
    arguments: str


@dataclass(slots=True)
class CallListState:
    """Where in the list the reader is (`place`), and what of it was not taken yet.

    `strict`: the list must still have the narrow form in which vLLM's one-shot answer expects its beginning; `tail`:
    the end of that form was seen, `refused`: the list ended in another form; `announced`: some of the list was taken;
    `bracket`: what was read ends in `)`. `kind` is that of the value just read; `signs`, `word`, `early`, `literal`,
    `quoted` belong to the value being read: early is what was written of it before its end was known. `out` holds JSON
    of the open call in pieces, `taken` counts those that are gone.
    """

    place: str = "open"
    back: str = ""
    strict: bool = True
    tail: bool = False
    bracket: bool = False
    announced: bool = False
    refused: bool = False
    index: int = -1
    name: str = ""
    frames: list[Frame] = field(default_factory=list)
    keywords: bool = False
    reserved: bool = False
    unpacked: bool = False
    sets: bool = False
    kind: str = ""
    word: str = ""
    signs: str = ""
    early: str = ""
    literal: LiteralState | None = None
    ended: LiteralState | None = None
    quoted: bool = False
    raw: list[str] = field(default_factory=list)
    raw_stack: str = ""
    out: list[str] = field(default_factory=list)
    taken: int = 0
    finished: list[FinishedCall] = field(default_factory=list)
    trail: list[str] = field(default_factory=list)
