"""Writes the JSON arguments of calls whose parameters are tagged text, as Qwen3-Coder and its kin write them.

    <parameter=city>
    Paris
    </parameter>
    <parameter=days>
    3
    </parameter>            ->  {"city": "Paris", "days": 3}

A string parameter is sent while it arrives; one of another type when it is complete and the next one begins, since its
text must be typed by the schema first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .coercion import coerce_text, is_string
from .state import dump, load

_SPACE = r"\s{0,16}"
_OPENER = re.compile(rf"<{_SPACE}parameter{_SPACE}=")
_CLOSER = re.compile(rf"<{_SPACE}/{_SPACE}parameter{_SPACE}>")
_BEGINNING = re.compile(rf"<{_SPACE}(?:/{_SPACE})?([a-z]*)({_SPACE})\Z")


@dataclass(slots=True)
class XmlParametersState:
    """`place`: "outside", in a "key" or in a "value". `held` is text that may be the beginning of a tag.

    `value` collects a parameter that is not sent while it arrives; `owed` closes the one that came before, and goes out
    with the next key. `sent` counts what was written, `settled` what of it belongs to closed parameters.
    """

    place: str = "outside"
    held: str = ""
    key: str = ""
    value: str = ""
    streams: bool = False
    fresh: bool = False
    newline: bool = False
    owed: str = ""
    count: int = 0
    keys: list[str] | None = None
    sent: int = 0
    settled: int = 0
    visible: bool = False


class XmlParameters:
    """One call's arguments. `strips_newlines`: one line break at each end of a value belongs to the tags."""

    strips_newlines = True

    def __init__(self, schema: Mapping[str, Any] | None) -> None:
        properties = schema.get("properties") if schema else None
        self._properties = properties if isinstance(properties, Mapping) and properties else None
        self.state = XmlParametersState()
        self.kept: int | None = None
        self.tail = ""

    @property
    def blank(self) -> bool:
        return not self.state.visible

    def feed(self, text: str) -> str:
        state = self.state
        state.visible = state.visible or not text.isspace()
        out: list[str] = []
        text, state.held = state.held + text, ""
        position = 0
        while position < len(text):
            position = self._step(text, position, out)
        return self._count("".join(out))

    def finish(self, *, cut: bool) -> str:
        state = self.state
        out: list[str] = []
        if state.place == "value":
            held, state.held = state.held, ""
            self._value(held, out)
            if cut:
                self.kept, self.tail = state.settled, self._closing()
                return self._count("".join(out)) if state.streams else ""
            self._close_value(out)
        out.append(self._closing())
        return self._count("".join(out))

    def _closing(self) -> str:
        return self.state.owed + ("}" if self.state.count else "{}")

    def snapshot(self) -> Mapping[str, Any]:
        return dump(self.state)

    def restore(self, data: Mapping[str, Any]) -> None:
        self.state = load(XmlParametersState, data)

    def _count(self, written: str) -> str:
        self.state.sent += len(written)
        return written

    # --- reading --------------------------------------------------------------------------------------------------

    def _step(self, text: str, position: int, out: list[str]) -> int:
        """Consumes from `position`; the new position. Text that may begin a tag is held at the end."""
        state = self.state
        if state.place == "key":
            end = text.find(">", position)
            if end < 0:
                state.key += text[position:]
                return len(text)
            state.key = (state.key + text[position:end]).lstrip()
            self._open_value(out)
            return end + 1
        tag = text.find("<", position)
        if tag < 0:
            self._plain(text[position:], out)
            return len(text)
        if tag > position:
            self._plain(text[position:tag], out)
        return self._tag(text, tag, out)

    def _tag(self, text: str, tag: int, out: list[str]) -> int:
        state = self.state
        opener = _OPENER.match(text, tag)
        if opener:
            if state.place == "value":
                self._close_value(out)
            state.place, state.key = "key", ""
            return opener.end()
        closer = _CLOSER.match(text, tag) if state.place == "value" else None
        if closer:
            self._close_value(out)
            return closer.end()
        rest = text[tag:]
        if _begins_tag(rest):
            state.held = rest
            return len(text)
        self._plain("<", out)
        return tag + 1

    def _plain(self, text: str, out: list[str]) -> None:
        if self.state.place == "value":
            self._value(text, out)

    # --- writing --------------------------------------------------------------------------------------------------

    def _open_value(self, out: list[str]) -> None:
        state = self.state
        state.place, state.value, state.fresh, state.newline = "value", "", True, False
        state.streams = bool(state.key) and self._is_string(state.key)
        if state.key:
            self._open_key(out)

    def _open_key(self, out: list[str]) -> None:
        """Everything up to the value. The parameter before it is certain now."""
        state = self.state
        out.append(state.owed)
        state.settled = state.sent + sum(map(len, out))
        out.append(", " if state.count else "{")
        out.append(json.dumps(state.key, ensure_ascii=False) + ": ")
        if state.streams:
            out.append('"')
        state.owed = ""

    def _is_string(self, key: str) -> bool:
        if self._properties is None:
            return True
        schema = self._properties.get(key)
        return isinstance(schema, Mapping) and is_string(schema)

    def _value(self, text: str, out: list[str]) -> None:
        state = self.state
        if not text:
            return
        if self.strips_newlines:
            if state.fresh and text[0] == "\n":
                text = text[1:]
            if text or not state.fresh:
                text = ("\n" if state.newline else "") + text
                state.newline = text.endswith("\n")
                text = text[:-1] if state.newline else text
        state.fresh = False
        if state.streams:
            out.append(json.dumps(text, ensure_ascii=False)[1:-1])
        else:
            state.value += text

    def _close_value(self, out: list[str]) -> None:
        state = self.state
        if not state.key:
            self._open_key(out)
        if state.streams:
            state.owed = '"'
        else:
            state.owed = json.dumps(self._typed(state.key, state.value), ensure_ascii=False)
        state.place, state.value = "outside", ""
        state.count += 1
        state.settled = state.sent + sum(map(len, out))

    def _typed(self, key: str, value: str) -> Any:
        schema = self._properties.get(key) if self._properties is not None else None
        return coerce_text(value, schema) if isinstance(schema, Mapping) else value


def _begins_tag(text: str) -> bool:
    """Whether `text`, which starts with `<`, may still become a spaced parameter tag.

    Beginnings of unspaced tags are held back before they get here.
    """
    beginning = _BEGINNING.match(text)
    if beginning is None or not any(map(str.isspace, text)):
        return False
    word, space = beginning.groups()
    return "parameter".startswith(word) and (not space or word in ("", "parameter"))
