"""Arguments of Gemma 4 calls: `city:<|"|>Paris<|"|>,days:3,opts:{mode:<|"|>fast<|"|>}}`.

Keys are bare, strings stand between delimiters, everything else is typed by the function's schema. A string parameter
is sent while it arrives, other values when they are complete.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from parsers.engine.coercion import coerce_value
from parsers.engine.parameter_writer import ParameterState, ParameterWriter

QUOTE = '<|"|>'
MAX_DEPTH = 64
_CLOSER = {"{": "}", "[": "]"}
_SPACE = " \n\t\r"


@dataclass(slots=True)
class GemmaState(ParameterState):
    """`depth` counts the open brackets of a container, `quoted` says that it is inside a delimited string."""

    depth: int = 0
    quoted: bool = False


class GemmaArguments(ParameterWriter):
    """`place`: "outside", "key", "gap" (behind a colon), "value" (a string), "bare", "nested", "brace" (a bare value
    and a brace that may close the call), "over" (behind the end).
    """

    State: ClassVar[type[ParameterState]] = GemmaState
    state: GemmaState

    def _read(self, text: str, out: list[str]) -> None:
        if text == QUOTE:
            self._quote(out)
            return
        position = 0
        while position < len(text):
            position = self._step(text, position, out)

    def _quote(self, out: list[str]) -> None:
        state = self.state
        match state.place:
            case "gap":
                self._open_value(out)
            case "value":
                self._value(state.held, out)
                state.held = ""
                self._close_value(out)
            case "bare":
                self._close_bare(out)
            case "nested":
                state.value += QUOTE
                state.quoted = not state.quoted

    def _step(self, text: str, position: int, out: list[str]) -> int:
        state = self.state
        character = text[position]
        match state.place:
            case "value":
                self._string(text[position:], out)
                return len(text)
            case "nested":
                return self._nested(text, position, out)
            case "bare":
                return self._bare(text, position, out)
            case "gap" if character in _CLOSER:
                state.place, state.value, state.streams, state.opened = "nested", "", False, False
                state.depth, state.quoted = 0, False
                self._open_key(out)
                return position
            case "gap" if character not in _SPACE:
                state.place, state.value = "bare", ""
                return position
            case "brace" if character not in _SPACE:
                self._close_bare(out)
                state.place = "over"
            case "outside" if character in "})]":
                state.place = "over"
            case "outside" if character not in _SPACE + ",":
                state.place, state.key = "key", ""
                return position
            case "key" if character == ":":
                state.place, state.key = "gap", state.key.strip().strip('"')
            case "key":
                state.key += character
        return position + 1

    def _string(self, text: str, out: list[str]) -> None:
        """White space, a brace and the beginning of a delimiter at the end may belong to the end of the value."""
        state = self.state
        text, state.held = state.held + text, ""
        ready = text.rstrip().removesuffix("}")
        begun = next((size for size in range(len(QUOTE) - 1, 0, -1) if ready.endswith(QUOTE[:size])), 0)
        ready = ready[: len(ready) - begun]
        state.held = text[len(ready) :]
        self._value(ready, out)

    def _bare(self, text: str, position: int, out: list[str]) -> int:
        state = self.state
        quoted = state.value.lstrip().startswith('"')
        end = position
        while end < len(text):
            if quoted and text[end] == '"' and _closes_json_string(state.value + text[position : end + 1]):
                state.value += text[position : end + 1]
                self._close_bare(out)
                return end + 1
            if not quoted and text[end] in ",}]":
                state.value += text[position:end]
                if text[end] == ",":
                    self._close_bare(out)
                else:
                    state.place = "brace"
                return end + 1
            end += 1
            quoted = quoted or (state.value + text[position:end]).lstrip().startswith('"')
        state.value += text[position:]
        return end

    def _close_bare(self, out: list[str]) -> None:
        state = self.state
        text = _unquoted(state.value.strip())
        if not text:
            state.place = "over"
            return
        self._open_value(out)
        self._value(text, out)
        self._close_value(out)

    def _nested(self, text: str, position: int, out: list[str]) -> int:
        """A container is read when it is complete: only then are its values known."""
        state = self.state
        if state.quoted:
            state.value += text[position:]
            return len(text)
        character = text[position]
        state.value += character
        state.depth += (character in "{[") - (character in "}]")
        if not state.depth:
            self._close_nested(out)
        return position + 1

    def _close_nested(self, out: list[str]) -> None:
        state = self.state
        value, _ = _container(state.value, 0, 0)
        schema = self._properties.get(state.key) if self._properties is not None else None
        typed = coerce_value(value, schema) if isinstance(schema, dict) else value
        state.owed = json.dumps(typed, ensure_ascii=False)
        state.place, state.value = "outside", ""
        state.count += 1
        state.settled = state.sent + sum(map(len, out))

    def finish(self, *, cut: bool) -> str:
        """What is open is closed: the notation has no other way to tell a cut value from a short one."""
        state = self.state
        out: list[str] = []
        match state.place:
            case "value":
                self._value(state.held.rstrip().removesuffix("}") if cut else "", out)
                state.held = ""
                self._close_value(out)
            case "bare" | "brace":
                self._close_bare(out)
            case "nested":
                self._close_nested(out)
            case "gap":
                state.streams, state.opened, state.value = False, False, ""
                self._close_value(out)
        out.append(self._closing())
        return self._count("".join(out))


def _closes_json_string(text: str) -> bool:
    text = text.strip()
    try:
        return len(text) > 1 and isinstance(json.loads(text), str)
    except ValueError:
        return False


def _unquoted(text: str) -> str:
    """The text of a JSON string; other text as it is."""
    return str(json.loads(text)) if text.startswith('"') and _closes_json_string(text) else text


def _container(text: str, position: int, depth: int) -> tuple[Any, int]:
    """(value of the object or array at `position`, position behind it; behind the end of `text` where it is open)."""
    closer = _CLOSER[text[position]]
    members: dict[str, Any] = {}
    items: list[Any] = []
    position += 1
    while position < len(text):
        if text[position] == closer:
            return (members if closer == "}" else items), position + 1
        if text[position] in _SPACE + ",}]":
            position += 1
            continue
        if closer == "]":
            value, position = _value_at(text, position, depth)
            items.append(value)
            continue
        colon = text.find(":", position)
        if colon < 0:
            break
        key = text[position:colon].strip().removeprefix(QUOTE).removesuffix(QUOTE)
        position = colon + 1
        while position < len(text) and text[position] in _SPACE:
            position += 1
        members[_unquoted(key)], position = _value_at(text, position, depth)
    return (members if closer == "}" else items), len(text) + 1


def _value_at(text: str, position: int, depth: int) -> tuple[Any, int]:
    """(value at `position`, position behind it)."""
    if text.startswith(QUOTE, position):
        start = position + len(QUOTE)
        end = text.find(QUOTE, start)
        return (text[start:], len(text) + 1) if end < 0 else (text[start:end], end + len(QUOTE))
    if position < len(text) and text[position] in _CLOSER and depth < MAX_DEPTH:
        return _container(text, position, depth + 1)
    if text.startswith('"', position):
        try:
            value, end = json.JSONDecoder().raw_decode(text, position)
            return value, end
        except ValueError:
            return text[position:], len(text) + 1
    end = min((found for mark in ",}]" if (found := text.find(mark, position)) >= 0), default=len(text))
    return text[position:end].strip(), end
