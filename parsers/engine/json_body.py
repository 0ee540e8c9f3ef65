"""Sends arguments that the model wrote as one JSON value, with values typed by the function's schema.

The text goes out as it is and at once, but for brackets that close the value: they wait until it is certain that the
call goes on or ends. A member whose type does not fit its schema waits until it is complete and goes out typed, as the
one-shot answer gives it. White space around the value is dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .coercion import coerce_arguments, coerce_value, types_of
from .state import dump, load

_STRING_RUN = re.compile(r'[^"\\]+')
_SCALAR_RUN = re.compile(r'[^"\\{}\[\],:\s]+')
_DECODER = json.JSONDecoder()


@dataclass(slots=True)
class JsonBodyState:
    """`stack` holds the open brackets, `path` the key under which each was opened ("" in arrays).

    `place` is "value", "key", "colon" or "next"; `key` the member being read. `held` are closing brackets or white
    space that wait; `waiting` is an open value that does not go out as it is, `base` the depth at which it began.
    """

    stack: str = ""
    path: list[str] = field(default_factory=list)
    place: str = "value"
    in_string: bool = False
    escaped: bool = False
    key: list[str] = field(default_factory=list)
    held: str = ""
    waiting: list[str] | None = None
    base: int = 0
    begun: bool = False
    done: bool = False


class JsonBody:
    """An argument writer (`grammar.ArgumentWriter`). `first_only`: what follows the first complete value is dropped."""

    first_only = False

    def __init__(self, schema: Mapping[str, Any] | None) -> None:
        self._schema = schema if schema and schema.get("properties") else None
        self.state = JsonBodyState()
        self.kept: int | None = None
        self.tail = ""

    @property
    def blank(self) -> bool:
        return not self.state.begun

    @property
    def in_value(self) -> bool:
        return self.state.in_string

    def feed(self, text: str) -> str:
        out: list[str] = []
        position = 0
        while position < len(text):
            position = self._step(text, position, out)
        return "".join(out)

    def finish(self, *, cut: bool) -> str:
        state = self.state
        if not state.begun:
            return "{}"
        waiting = "".join(state.waiting or ())
        rest = self._typed(waiting) if waiting and not cut else waiting
        return rest + state.held.rstrip()

    def snapshot(self) -> Mapping[str, Any]:
        return dump(self.state)

    def restore(self, data: Mapping[str, Any]) -> None:
        self.state = load(JsonBodyState, data)

    # --- reading --------------------------------------------------------------------------------------------------

    def _step(self, text: str, position: int, out: list[str]) -> int:
        state = self.state
        if state.done and self.first_only:
            return len(text)
        if state.in_string:
            return self._string(text, position, out)
        character = text[position]
        if character.isspace():
            if state.held:
                state.held += character
            elif state.begun:
                self._send(character, out)
            return position + 1
        state.begun = True
        if character in "}]":
            self._close(character, out)
        elif character in "{[":
            self._open(character, out)
        elif character == '"':
            self._quote(out)
        elif character in ":,":
            self._separate(character, out)
        else:
            run = _SCALAR_RUN.match(text, position)
            scalar = run.group() if run else character
            self._value_begins(scalar)
            self._send(scalar, out)
            return position + len(scalar)
        return position + 1

    def _open(self, bracket: str, out: list[str]) -> None:
        state = self.state
        self._value_begins(bracket)
        state.path.append("".join(state.key) if state.stack.endswith("{") else "")
        state.stack += bracket
        state.place = "key" if bracket == "{" else "value"
        self._send(bracket, out)

    def _quote(self, out: list[str]) -> None:
        state = self.state
        if state.place == "key":
            state.key = []
        else:
            self._value_begins('"')
        state.in_string = True
        self._send('"', out)

    def _separate(self, character: str, out: list[str]) -> None:
        state = self.state
        if character == ",":
            self._value_ends(out)
        state.place = "key" if character == "," and state.stack.endswith("{") else "value"
        self._send(character, out)

    def _string(self, text: str, position: int, out: list[str]) -> int:
        state = self.state
        if state.escaped:
            run, state.escaped = text[position], False
        else:
            match = _STRING_RUN.match(text, position)
            run = match.group() if match else text[position]
            state.escaped = run == "\\"
            if run == '"':
                state.in_string = False
                state.place = "colon" if state.place == "key" else "next"
        if state.place == "key":
            state.key.append(run)
        self._send(run, out)
        return position + len(run)

    def _close(self, bracket: str, out: list[str]) -> None:
        """A closing bracket. At the outermost level, or behind it, it waits."""
        state = self.state
        if state.waiting is None or len(state.stack) <= state.base:
            self._value_ends(out)
        if state.stack:
            state.stack = state.stack[:-1]
            state.path.pop()
        state.place = "next"
        if state.stack:
            self._send(bracket, out)
            return
        state.done = True
        state.held += bracket

    def _send(self, text: str, out: list[str]) -> None:
        state = self.state
        if state.waiting is not None:
            state.waiting.append(text)
            return
        if state.held:
            out.append(state.held)
            state.held = ""
        out.append(text)

    # --- typing ---------------------------------------------------------------------------------------------------

    def _value_begins(self, text: str) -> None:
        """A value begins at `text`; it waits if its schema may change it."""
        state = self.state
        if state.waiting is not None or state.place != "value":
            return
        state.place = "next"
        schema = self._schema_here()
        if schema is not None and not _stays(text, schema):
            state.waiting, state.base = [], len(state.stack)

    def _value_ends(self, out: list[str]) -> None:
        state = self.state
        if state.waiting is not None and len(state.stack) <= state.base:
            typed, state.waiting = self._typed("".join(state.waiting)), None
            self._send(typed, out)

    def _typed(self, text: str) -> str:
        """A complete value, typed; the text itself where it is no JSON or needs no change."""
        body = text.rstrip()
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return text
        coerced = coerce_value(value, self._schema_here())
        before, after = (json.dumps(each, ensure_ascii=False) for each in (value, coerced))
        return text if before == after else after + text[len(body) :]

    def _schema_here(self) -> Any:
        """The schema of the value at the current place, None where there is none."""
        state = self.state
        if self._schema is None or not state.stack:
            return None
        schema: Any = self._schema
        for bracket, key in zip(state.stack, [*state.path[1:], "".join(state.key)], strict=False):
            if not isinstance(schema, Mapping):
                return None
            schema = _member(schema, key) if bracket == "{" else schema.get("items")
        return schema if isinstance(schema, Mapping) else None


class FirstJsonBody(JsonBody):
    """Arguments that end with the first complete JSON value."""

    first_only = True


def _member(schema: Mapping[str, Any], key: str) -> Any:
    properties = schema.get("properties")
    return properties.get(key) if isinstance(properties, Mapping) else None


def _stays(text: str, schema: Mapping[str, Any]) -> bool:
    """Whether a value that begins with `text` is what the schema wants, as far as its beginning tells."""
    types = types_of(schema)
    if text == '"':
        return types == {"string"}
    if text in "{[":
        return True
    if text[0] in "tf":
        return "boolean" in types
    if text[0] == "n":
        return "null" in types or "string" not in types
    return bool(types & {"integer", "number"})


def whole_arguments(raw: str, schema: Mapping[str, Any] | None, *, first_only: bool) -> str:
    """One-shot arguments.

    The (first) JSON value of `raw`, typed; `raw` without white space around where it is no JSON.
    """
    text = raw.strip()
    if not text:
        return "{}"
    if first_only:
        try:
            text = text[: _DECODER.raw_decode(text)[1]]
        except (ValueError, RecursionError):
            return text
    return coerce_arguments(text, schema)
