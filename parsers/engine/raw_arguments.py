"""Passes on the JSON arguments of a call as the model writes them, character by character, with two exceptions.

White space around them is dropped, and a scalar that the function's schema types differently (`"3"` for an integer) is
replaced once it is complete. A bracket that closes the outermost value waits for what follows (deepseek_kimi_harmony
4.4).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .coercion import coerce_value, types_of
from .state import dump, load

Mode = Literal["value", "key", "colon", "next", "string", "scalar", "raw"]

_SPACE = re.compile(r"\s+")
_SCALAR = re.compile(r"[^\s,\]}]+")
_IN_STRING = re.compile(r'[^"\\]+')
_OUTSIDE_STRING = re.compile(r'[^"{}\[\]\s]+')
_NATURAL = {"t": {"boolean"}, "f": {"boolean"}, "n": {"null"}, "N": {"number"}, "I": {"number"}}


@dataclass(slots=True)
class RawState:
    """Typing: what comes next (`mode`), the open brackets (`stack`) with the key being read in each (`keys`), whether a
    string is a key, and a scalar held back for typing (`scalar`, None: it is passed on).

    Passing on: `depth` of brackets, whether in a string (`quoted`), and text `held` back at the outermost level.
    """

    mode: Mode = "value"
    stack: str = ""
    keys: list[str] = field(default_factory=list)
    is_key: bool = False
    key: str = ""
    scalar: str | None = None
    escaped: bool = False
    depth: int = 0
    quoted: bool = False
    escaped_out: bool = False
    held: str = ""
    wrote: bool = False


class RawArguments:
    """One call's arguments (an ArgumentWriter)."""

    def __init__(self, schema: Mapping[str, Any] | None) -> None:
        self._schema = schema if schema and schema.get("properties") else None
        self.state = RawState(mode="value" if self._schema else "raw")
        self.kept: int | None = None
        self.tail = ""

    @property
    def blank(self) -> bool:
        return not self.state.wrote and not self.state.held.strip()

    @property
    def in_value(self) -> bool:
        return self.state.depth > 0

    def feed(self, text: str) -> str:
        return self._pass_on(self._typed(text))

    def finish(self, *, cut: bool) -> str:
        scalar, self.state.scalar = self.state.scalar, None
        out = self._pass_on(self._resolved(scalar) if scalar is not None else "")
        held, self.state.held = self.state.held.rstrip(), ""
        return out + held if self.state.wrote or held else "{}"

    def snapshot(self) -> Mapping[str, Any]:
        return dump(self.state)

    def restore(self, data: Mapping[str, Any]) -> None:
        self.state = load(RawState, data)

    # --- passing on ---------------------------------------------------------------------------------------------------

    def _pass_on(self, text: str) -> str:
        """`text` without what must wait: brackets and white space at the outermost level."""
        state = self.state
        out: list[str] = []
        position = 0
        while position < len(text):
            position = self._quoted(text, position, out) if state.quoted else self._unquoted(text, position, out)
        if out:
            state.wrote = True
        return "".join(out)

    def _quoted(self, text: str, position: int, out: list[str]) -> int:
        state = self.state
        run = None if state.escaped_out else _IN_STRING.match(text, position)
        if run:
            out.append(run.group())
            return run.end()
        character = text[position]
        out.append(character)
        if state.escaped_out:
            state.escaped_out = False
        elif character == "\\":
            state.escaped_out = True
        else:
            state.quoted = False
        return position + 1

    def _unquoted(self, text: str, position: int, out: list[str]) -> int:
        state = self.state
        run = _OUTSIDE_STRING.match(text, position)
        if run:
            self._release(run.group(), out)
            return run.end()
        character = text[position]
        if character in "}]":
            state.depth = max(state.depth - 1, 0)
        if state.depth == 0 and character not in '"{[':
            if state.wrote or out or state.held or not character.isspace():
                state.held += character
            return position + 1
        if character == '"':
            state.quoted = True
        elif character in "{[":
            state.depth += 1
        self._release(character, out)
        return position + 1

    def _release(self, text: str, out: list[str]) -> None:
        if self.state.held:
            out.append(self.state.held)
            self.state.held = ""
        out.append(text)

    # --- typing -------------------------------------------------------------------------------------------------------

    def _typed(self, text: str) -> str:
        state = self.state
        out: list[str] = []
        position = 0
        while position < len(text) and state.mode != "raw":
            if state.mode == "string":
                position = self._string(text, position, out)
            elif state.mode == "scalar":
                position = self._scalar(text, position, out)
            else:
                position = self._structure(text, position, out)
        out.append(text[position:])
        return "".join(out)

    def _structure(self, text: str, position: int, out: list[str]) -> int:
        """White space and punctuation. What is no JSON is passed on from here."""
        state = self.state
        space = _SPACE.match(text, position)
        if space:
            out.append(space.group())
            return space.end()
        character = text[position]
        if character in "}]" and state.stack[-1:] == ("{" if character == "}" else "["):
            state.stack, state.mode = state.stack[:-1], "next"
            state.keys.pop()
        elif state.mode == "value":
            return self._value(character, position, out)
        elif state.mode == "key" and character == '"':
            state.mode, state.is_key, state.key = "string", True, '"'
        elif state.mode == "colon" and character == ":":
            state.mode = "value"
        elif state.mode == "next" and character == "," and state.stack:
            state.mode = "key" if state.stack[-1] == "{" else "value"
        else:
            state.mode = "raw"
            return position
        out.append(character)
        return position + 1

    def _value(self, character: str, position: int, out: list[str]) -> int:
        state = self.state
        if character in "{[":
            state.stack += character
            state.keys.append("")
            state.mode = "key" if character == "{" else "value"
            out.append(character)
            return position + 1
        state.scalar = "" if self._changes(character) else None
        if character != '"':
            state.mode = "scalar"
            return position
        state.mode, state.is_key = "string", False
        self._add('"', out)
        return position + 1

    def _changes(self, first: str) -> bool:
        """Whether a scalar that begins with `first` may be typed differently."""
        schema = self._member_schema()
        if schema is None:
            return False
        types = types_of(schema)
        if first == '"':
            return types != {"string"}
        return types.isdisjoint(_NATURAL.get(first, {"number", "integer"}))

    def _member_schema(self) -> Mapping[str, Any] | None:
        """The schema of the value being read; None where it has none."""
        schema: object = self._schema
        for bracket, key in zip(self.state.stack, self.state.keys, strict=True):
            if not isinstance(schema, Mapping):
                return None
            properties = schema.get("properties")
            if bracket == "[":
                schema = schema.get("items")
            else:
                schema = properties.get(key) if isinstance(properties, Mapping) else None
        return schema if isinstance(schema, Mapping) and self.state.stack else None

    def _add(self, text: str, out: list[str]) -> None:
        if self.state.scalar is None:
            out.append(text)
        else:
            self.state.scalar += text

    def _string(self, text: str, position: int, out: list[str]) -> int:
        state = self.state
        run = None if state.escaped else _IN_STRING.match(text, position)
        end = run.end() if run else position + 1
        piece = text[position:end]
        if state.is_key:
            state.key += piece
            out.append(piece)
        else:
            self._add(piece, out)
        if run:
            return end
        if state.escaped:
            state.escaped = False
        elif piece == "\\":
            state.escaped = True
        else:
            self._string_ends(out)
        return end

    def _string_ends(self, out: list[str]) -> None:
        state = self.state
        if state.is_key:
            state.keys[-1], state.key, state.mode = _loaded(state.key, ""), "", "colon"
        else:
            state.mode = "next"
            self._scalar_ends(out)

    def _scalar(self, text: str, position: int, out: list[str]) -> int:
        run = _SCALAR.match(text, position)
        if run:
            self._add(run.group(), out)
            return run.end()
        self.state.mode = "next"
        self._scalar_ends(out)
        return position

    def _scalar_ends(self, out: list[str]) -> None:
        scalar, self.state.scalar = self.state.scalar, None
        if scalar is not None:
            out.append(self._resolved(scalar))

    def _resolved(self, text: str) -> str:
        """A complete scalar, typed by its schema; as written where nothing changes or it is no JSON."""
        value = _loaded(text, _NOT_JSON)
        if value is _NOT_JSON:
            return text
        typed = json.dumps(coerce_value(value, self._member_schema()), ensure_ascii=False)
        return text if typed == json.dumps(value, ensure_ascii=False) else typed


_NOT_JSON: Any = object()


def _loaded(text: str, default: Any) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return default
