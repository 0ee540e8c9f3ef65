"""Sends a JSON object of arguments as the model wrote it, member by member, with values typed by the function's schema.

    {"city": "Paris", "days": "2"}   days: integer   ->   {"city": "Paris", "days": 2}

What is certain is sent at once: everything up to a member's colon, and a text value that will stay text. Any other
value waits for the next member, since its type may have to change (engine 2.8).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .assembly import dump_json
from .coercion import coerce_value, is_string

_QUOTED_RUN = re.compile(r'[^"\\]+')
_PLAIN_RUN = re.compile(r'[^"{}\[\],:\s]+')
_SPACE_RUN = re.compile(r"\s+")


@dataclass(slots=True)
class MembersState:
    """`place`: "open", "key", "gap" (behind a colon), "text" (a value sent as it comes), "value", "after" or "done".

    `pending` is text that waits for the next colon or the end, `value` the open value that is not sent as it comes.
    `changed`: some value was typed, so that a one-shot answer dumps the whole object anew.
    """

    place: str = "open"
    depth: int = 0
    quoted: bool = False
    escaped: bool = False
    key: list[str] = field(default_factory=list)
    value: list[str] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    changed: bool = False


class Members:
    """One arguments object. `schema`: the function's parameters schema, None for an unknown function."""

    def __init__(self, state: MembersState, schema: Mapping[str, Any] | None) -> None:
        self.state = state
        properties = schema.get("properties") if schema else None
        self._properties = properties if isinstance(properties, Mapping) and properties else None

    def feed(self, text: str) -> str:
        """What may be sent after this piece."""
        ready: list[str] = []
        position = 0
        while position < len(text) and self.state.place != "done":
            position = self._step(text, position, ready)
        return "".join(ready)

    def finish(self) -> str:
        """The rest, complete or not."""
        state = self.state
        rest = "".join(state.pending + state.value)
        state.pending, state.value = [], []
        return rest

    def _step(self, text: str, position: int, ready: list[str]) -> int:
        state = self.state
        if state.quoted:
            return self._string(text, position, ready)
        run = (_SPACE_RUN if state.place == "gap" else _PLAIN_RUN).match(text, position) or _SPACE_RUN.match(
            text, position
        )
        if run is not None:
            self._put(run.group(), ready)
            return run.end()
        character = text[position]
        if state.place == "gap":
            self._open_value(character)
        if character == '"':
            state.quoted = True
            self._put(character, ready)
        elif character in "{[":
            state.depth += 1
            self._put(character, ready)
            if state.place == "open":
                state.place = "key"
        elif state.depth == 1 and character in ",}:":
            self._structure(character, ready)
        else:
            state.depth -= character in "}]"
            self._put(character, ready)
        return position + 1

    def _string(self, text: str, position: int, ready: list[str]) -> int:
        state = self.state
        run = None if state.escaped else _QUOTED_RUN.match(text, position)
        piece = run.group() if run else text[position]
        closes = not run and not state.escaped and piece == '"'
        state.escaped = not run and not state.escaped and piece == "\\"
        if closes:
            state.quoted = False
            if state.place == "text":
                state.place = "after"
        elif state.place == "key" and state.depth == 1:
            state.key.append(piece)
        self._put(piece, ready)
        return position + len(piece)

    def _put(self, piece: str, ready: list[str]) -> None:
        state = self.state
        if state.place in ("gap", "text"):
            ready.append(piece)
        else:
            (state.value if state.place == "value" else state.pending).append(piece)

    def _structure(self, character: str, ready: list[str]) -> None:
        """A colon, comma or closing brace of the object itself."""
        state = self.state
        if character == ":" and state.place == "key":
            ready += [*state.pending, ":"]
            state.pending, state.place = [], "gap"
            return
        if character != ":":
            if state.place == "value":
                state.pending.append(self._typed("".join(state.value)))
                state.value = []
            state.place, state.key = ("key" if character == "," else "done"), []
            state.depth -= character == "}"
        self._put(character, ready)

    def _open_value(self, character: str) -> None:
        state = self.state
        state.place = "text" if character == '"' and self._streams() else "value"

    def _schema(self) -> Any:
        try:
            key = json.loads('"' + "".join(self.state.key) + '"', strict=False)
        except ValueError:
            return None
        return self._properties.get(key) if self._properties is not None else None

    def _streams(self) -> bool:
        if self._properties is None:
            return True
        schema = self._schema()
        return isinstance(schema, Mapping) and is_string(schema)

    def _typed(self, text: str) -> str:
        schema = self._schema()
        if not isinstance(schema, Mapping):
            return text
        visible = text.rstrip()
        try:
            value = json.loads(visible)
            before, after = dump_json(value), dump_json(coerce_value(value, schema))
        except (ValueError, RecursionError):
            return text
        if before == after:
            return text
        self.state.changed = True
        return after + text[len(visible) :]
