"""Reads calls in a JSON array, `{"name": "f", "arguments": {...}}`, and passes their arguments on as they are written.

A string argument is passed on while it arrives, any other with the key that follows it, typed by the function's schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .assembly import dump_json
from .coercion import coerce_value, is_string

_IN_STRING = re.compile(r'[^"\\]+')
_BETWEEN = re.compile(r'[^"{}\[\],:\s]+')


@dataclass(slots=True)
class ArgumentsState:
    """Where the reader of an arguments object stands.

    `place`: "key" (up to its colon), "gap" behind the colon, "string" (passed on), "value" (kept), "after" a string, or
    "done". `held` is text that waits for the next key, `key` the member being read, `value` its text if it is kept.
    """

    place: str = "key"
    depth: int = 0
    quoted: bool = False
    escaped: bool = False
    held: str = ""
    key: str = ""
    value: str = ""


class ArgumentsReader:
    """One arguments object. `schema` is that of the function's parameters, None while or where it is unknown."""

    def __init__(self, state: ArgumentsState, schema: Mapping[str, Any] | None) -> None:
        properties = schema.get("properties") if schema else None
        self._properties = properties if isinstance(properties, Mapping) and properties else None
        self.state = state

    @property
    def done(self) -> bool:
        return self.state.place == "done"

    def feed(self, text: str, position: int, out: list[str]) -> int:
        """Reads from `position`; the position behind what was read."""
        while position < len(text) and not self.done:
            if self.state.place == "string":
                position = self._string(text, position, out)
            elif self.state.quoted:
                position = self._quoted(text, position)
            else:
                position = self._structure(text, position, out)
        return position

    def rest(self, *, cut: bool) -> str:
        """What was not passed on; `cut`: the output ended inside the object."""
        state = self.state
        return state.held + (state.value if cut else "")

    def _string(self, text: str, position: int, out: list[str]) -> int:
        state = self.state
        run = None if state.escaped else _IN_STRING.match(text, position)
        if run:
            out.append(run.group())
            return run.end()
        character = text[position]
        if character == '"' and not state.escaped:
            state.place, state.held = "after", '"'
        else:
            out.append(character)
            state.escaped = character == "\\" and not state.escaped
        return position + 1

    def _quoted(self, text: str, position: int) -> int:
        state = self.state
        run = None if state.escaped else _IN_STRING.match(text, position)
        piece = run.group() if run else text[position]
        if not run:
            state.quoted = piece != '"' or state.escaped
            state.escaped = piece == "\\" and not state.escaped
        self._keep(piece)
        if state.place == "key" and state.depth == 1 and state.quoted:
            state.key += piece
        return position + len(piece)

    def _keep(self, piece: str) -> None:
        if self.state.place == "value":
            self.state.value += piece
        else:
            self.state.held += piece

    def _structure(self, text: str, position: int, out: list[str]) -> int:
        state = self.state
        character = text[position]
        if state.place == "gap":
            return self._gap(character, position, out)
        run = _BETWEEN.match(text, position)
        if run:
            self._keep(run.group())
            return run.end()
        if character == '"':
            state.quoted = True
            if state.place == "key" and state.depth == 1:
                state.key = ""
        elif character in "{[":
            state.depth += 1
        elif character in "}]":
            state.depth -= 1
        if state.depth <= 0 or (state.depth == 1 and character in ":,"):
            return self._boundary(character, position, out)
        self._keep(character)
        return position + 1

    def _gap(self, character: str, position: int, out: list[str]) -> int:
        state = self.state
        if character.isspace():
            out.append(character)
            return position + 1
        if character == '"' and self._streams():
            out.append('"')
            state.place = "string"
            return position + 1
        state.place, state.value = "value", ""
        return position

    def _boundary(self, character: str, position: int, out: list[str]) -> int:
        """Punctuation of the outermost object."""
        state = self.state
        if state.depth <= 0:
            self._close_value()
            state.held += character
            state.place = "done"
        elif character == "," and state.place in ("value", "after"):
            self._close_value()
            state.held += character
            state.place = "key"
        elif character == ":" and state.place == "key":
            out.append(state.held + character)
            state.held, state.place = "", "gap"
        else:
            self._keep(character)
        return position + 1

    def _close_value(self) -> None:
        state = self.state
        if state.place == "value":
            state.held += self._typed(state.value)
            state.value = ""

    def _decoded_key(self) -> str:
        try:
            return str(json.loads(f'"{self.state.key}"'))
        except ValueError:
            return self.state.key

    def _streams(self) -> bool:
        if self._properties is None:
            return True
        schema = self._properties.get(self._decoded_key())
        return isinstance(schema, Mapping) and is_string(schema)

    def _typed(self, text: str) -> str:
        """A complete value, typed; its own text where the schema changes nothing."""
        schema = self._properties.get(self._decoded_key()) if self._properties is not None else None
        if not isinstance(schema, Mapping):
            return text
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return text
        typed = dump_json(coerce_value(value, schema))
        return text if typed == dump_json(value) else typed + text[len(text.rstrip()) :]


@dataclass(slots=True)
class ElementState:
    """Where the reader of an element stands: `place` among the members of its object, `key` the member being read.

    `other` is the text of arguments that are no object, None where there are none.
    """

    place: str = "start"
    depth: int = 0
    quoted: bool = False
    escaped: bool = False
    token: str = ""
    key: str = ""
    name: str | None = None
    arguments: ArgumentsState | None = None
    other: str | None = None
    waiting: list[str] = field(default_factory=list)


class ElementReader:
    """One element, from its opening to its closing brace."""

    def __init__(self, state: ElementState, schemas: Mapping[str, Mapping[str, Any]]) -> None:
        self.state = state
        self._schemas = schemas

    @property
    def done(self) -> bool:
        return self.state.place == "done"

    @property
    def schema(self) -> Mapping[str, Any] | None:
        return self._schemas.get((self.state.name or "").strip())

    def feed(self, text: str, position: int, out: list[str]) -> int:
        """Reads from `position`, arguments to `out`; the position behind what was read."""
        while position < len(text) and not self.done:
            position = self._step(text, position, out)
        return position

    def finish(self, *, cut: bool) -> str:
        """Arguments that were not passed on."""
        state = self.state
        if state.arguments is not None:
            return self._reader().rest(cut=cut)
        if state.other is None:
            return "{}"
        try:
            value = json.loads(state.other)
        except (ValueError, RecursionError):
            return state.other
        return value if isinstance(value, str) else dump_json(value)

    def _reader(self) -> ArgumentsReader:
        assert self.state.arguments is not None
        return ArgumentsReader(self.state.arguments, self.schema)

    def _step(self, text: str, position: int, out: list[str]) -> int:
        state = self.state
        if state.arguments is not None and state.arguments.place != "done":
            return self._reader().feed(text, position, out)
        if state.quoted:
            return self._quoted(text, position)
        character = text[position]
        if (
            state.place == "value"
            and state.depth == 1
            and not state.token
            and character == "{"
            and self._opens_arguments
        ):
            state.arguments = ArgumentsState()
            return position
        if character == '"':
            state.quoted = True
            if state.depth == 1 and state.place == "key":
                state.token = ""
        elif character in "{[":
            state.depth += 1
        elif character in "}]":
            state.depth -= 1
        if state.depth <= 0 or (state.depth == 1 and character in ":,"):
            self._boundary(character)
        elif not (character.isspace() and not state.token) and not (character == "{" and state.depth == 1):
            state.token += character
        return position + 1

    @property
    def _opens_arguments(self) -> bool:
        state = self.state
        return state.key == "arguments" and state.arguments is None and state.other is None

    def _quoted(self, text: str, position: int) -> int:
        state = self.state
        run = None if state.escaped else _IN_STRING.match(text, position)
        piece = run.group() if run else text[position]
        if not run:
            state.quoted = piece != '"' or state.escaped
            state.escaped = piece == "\\" and not state.escaped
        state.token += piece
        if not state.quoted and state.depth == 1 and state.place == "value" and state.key == "name":
            self._named()
        return position + len(piece)

    def _named(self) -> None:
        state = self.state
        if state.name is None:
            value = _decoded(state.token)
            state.name = value if isinstance(value, str) else None

    def _boundary(self, character: str) -> None:
        state = self.state
        if character == ":" and state.place in ("start", "key"):
            key = _decoded(state.token)
            state.key, state.place, state.token = key if isinstance(key, str) else "", "value", ""
            return
        if state.place == "value" and self._opens_arguments and state.token.strip():
            state.other = state.token
        state.place = "done" if state.depth <= 0 else "key"
        state.token = ""


def _decoded(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None
