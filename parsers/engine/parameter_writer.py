"""Writes the JSON arguments of calls whose parameters are tagged text, whatever the tags look like.

A string parameter is sent while it arrives; one of another type when it is complete and the next one begins, since its
text must be typed by the schema first.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from .coercion import coerce_text, is_string
from .state import dump, load


@dataclass(slots=True)
class ParameterState:
    """`place`: "outside", in a "key" or in a "value". `held` is text that may be the beginning of a tag.

    `value` collects a parameter that is not sent while it arrives; `owed` closes the one that came before, and goes out
    with the next key. `sent` counts what was written, `settled` what of it belongs to closed parameters.
    """

    place: str = "outside"
    held: str = ""
    key: str = ""
    value: str = ""
    streams: bool = False
    opened: bool = False
    fresh: bool = False
    newline: bool = False
    owed: str = ""
    count: int = 0
    sent: int = 0
    settled: int = 0
    visible: bool = False


class ParameterWriter(ABC):
    """Base of one call's arguments: what is written once a subclass has found keys and values.

    `strips_newlines`: one line break at each end of a value belongs to the tags.
    """

    strips_newlines: ClassVar[bool] = False
    State: ClassVar[type[ParameterState]] = ParameterState

    def __init__(self, schema: Mapping[str, Any] | None) -> None:
        properties = schema.get("properties") if schema else None
        self._properties = properties if isinstance(properties, Mapping) and properties else None
        self.state = self.State()
        self.kept: int | None = None
        self.tail = ""

    @property
    def blank(self) -> bool:
        return not self.state.visible

    @property
    def in_value(self) -> bool:
        return self.state.place == "value"

    def feed(self, text: str) -> str:
        state = self.state
        state.visible = state.visible or not text.isspace()
        out: list[str] = []
        self._read(text, out)
        return self._count("".join(out))

    @abstractmethod
    def _read(self, text: str, out: list[str]) -> None:
        """Reads a piece of the raw text; tags that are markers of the grammar arrive as pieces of their own."""

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
        self.state = load(self.State, data)

    def _count(self, written: str) -> str:
        self.state.sent += len(written)
        return written

    # --- writing --------------------------------------------------------------------------------------------------

    def _open_value(self, out: list[str]) -> None:
        state = self.state
        state.place, state.value, state.fresh, state.newline = "value", "", True, False
        state.streams, state.opened = bool(state.key) and self._is_string(state.key), False
        if state.key:
            self._open_key(out)

    def _open_key(self, out: list[str]) -> None:
        """Everything up to the value. The parameter before it is certain now."""
        state = self.state
        state.opened = True
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
        if not state.opened:
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
