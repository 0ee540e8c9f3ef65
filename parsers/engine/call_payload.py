"""Reads a call written as one JSON object whose arguments are to be sent as they are written.

    {"name": "get_weather", "args": {"city": "Paris", "days": "2"}}

Unlike `call_object`, which dumps arguments anew, this keeps their spelling but for values that the schema types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from .context import RequestContext
from .json_members import Members, MembersState

_STRING_RUN = re.compile(r'[^"\\]+')


@dataclass(slots=True)
class PayloadState:
    """A call's JSON object. `place`: "open", "key", "gap", "name", "args", "value", "after", "done" or "bad".

    `text` is what was read, until the name is known; `early` the arguments that precede it. `word` is the open key or
    name, `kind` the kind of arguments ("{" or "other", with their text in `other`). `due`: the name was sent before the
    text at hand, so that arguments may follow.
    """

    place: str = "open"
    depth: int = 0
    quoted: bool = False
    escaped: bool = False
    word: list[str] = field(default_factory=list)
    key: str = ""
    text: list[str] = field(default_factory=list)
    name: str | None = None
    due: bool = False
    kind: str = ""
    early: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)
    members: MembersState = field(default_factory=MembersState)


class Payload:
    """Reads one call's object as it arrives; only its own members count, not those of its arguments.

    An object in a list is read as well, the first one.
    """

    def __init__(self, state: PayloadState, context: RequestContext) -> None:
        self.state = state
        self._context = context

    def feed(self, text: str) -> str:
        """Arguments that may be sent. `state.name` becomes known on the way."""
        state = self.state
        ready: list[str] = []
        position = 0
        if state.name is None:
            state.text.append(text)
        while position < len(text) and state.place not in ("done", "bad"):
            position = self._step(text, position, ready)
        return "".join(ready)

    def finish(self) -> str:
        """The rest of the arguments, which were an empty object if there were none."""
        state = self.state
        if state.kind == "other":
            return _plain_arguments("".join(state.other).strip())
        return self._members().finish() if state.kind else "{}"

    def _members(self) -> Members:
        return Members(self.state.members, self._context.parameters.get(self.state.name or ""))

    def _step(self, text: str, position: int, ready: list[str]) -> int:
        state = self.state
        character = text[position]
        if state.name is not None and not (character == "}" and state.depth == 1 and not state.quoted):
            state.due = True
        if state.quoted:
            return self._string(text, position, ready)
        if state.place == "open":
            if character == "{":
                state.place, state.depth = "key", 1
            elif character != "[" and not character.isspace():
                state.place = "bad"
            return position + 1
        if state.place == "gap" and not character.isspace():
            self._open_value(character)
        if state.depth == 1 and character in ",:}":
            self._structure(character)
            return position + 1
        if character == '"':
            state.quoted = True
        elif character in "{[":
            state.depth += 1
        elif character in "}]":
            state.depth -= 1
        self._put(character, ready)
        if state.place == "args" and state.kind == "{" and state.depth == 1:
            state.place = "after"
        return position + 1

    def _structure(self, character: str) -> None:
        state = self.state
        if character == ":":
            if state.place == "key":
                state.key, state.word, state.place = _decoded(state.word), [], "gap"
        else:
            state.place = "key" if character == "," else "done"
            state.word = []

    def _open_value(self, character: str) -> None:
        state = self.state
        if state.key == "args" and not state.kind:
            state.place, state.kind = "args", "{" if character == "{" else "other"
        elif state.key == "name" and state.name is None and character == '"':
            state.place = "name"
        else:
            state.place = "value"

    def _string(self, text: str, position: int, ready: list[str]) -> int:
        state = self.state
        run = None if state.escaped else _STRING_RUN.match(text, position)
        piece = run.group() if run else text[position]
        closes = not run and not state.escaped and piece == '"'
        state.escaped = not run and not state.escaped and piece == "\\"
        if closes:
            state.quoted = False
            if state.place == "name":
                self._named(_decoded(state.word), ready)
                return position + 1
        elif state.depth == 1 and state.place in ("key", "name"):
            state.word.append(piece)
        self._put(piece, ready)
        return position + len(piece)

    def _named(self, name: str, ready: list[str]) -> None:
        state = self.state
        state.word, state.place = [], "after"
        if not name:
            state.place = "bad"
            return
        state.name, state.text = name, []
        early, state.early = "".join(state.early), []
        if early:
            ready.append(self._members().feed(early))

    def _put(self, piece: str, ready: list[str]) -> None:
        """Text of the arguments goes where it belongs."""
        state = self.state
        if state.place != "args":
            return
        if state.kind == "other":
            state.other.append(piece)
        elif state.name is None:
            state.early.append(piece)
        else:
            ready.append(self._members().feed(piece))


def _decoded(word: Sequence[str]) -> str:
    """The text of a JSON string's inside, as it is where that is no JSON."""
    text = "".join(word)
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text


def _plain_arguments(text: str) -> str:
    """Arguments that are no object: the JSON a string holds, else as written."""
    try:
        value = json.loads(text)
        if isinstance(value, str):
            json.loads(value)
            return value
    except (ValueError, RecursionError):
        pass
    return text
