"""Writes the JSON arguments of calls whose parameters are DSML tags, as DeepSeek-V3.2 and later models write them.

<｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>
<｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>       ->  {"city": "Paris", "days": 2}

What is certain goes out with the next piece of text that holds a `>`, which is where tags end, or once it is long
(deepseek_kimi_harmony 3.5).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .coercion import coerce_value, is_string
from .state import dump, load

READY_LIMIT = 2000
"""Code points of a value after which it is sent without waiting for a `>`."""

HEAD_LIMIT = 1000
"""Code points after which an opening tag that is not closed is taken for text."""

WRAPPERS = ("arguments", "input")
"""Parameters in which some models wrap all others."""


class DsmlTags:
    """Patterns of one dialect; `gap` stands between the DSML token and a tag's name."""

    def __init__(self, gap: str) -> None:
        self.opener, self.closer = f"<｜DSML｜{gap}parameter", f"</｜DSML｜{gap}parameter>"
        opener, closer = re.escape(self.opener), re.escape(self.closer)
        self.head = re.compile(opener + r'\s+name="([^"]+)"(?:\s+string="([^"]*)")?\s*>')
        self.end = re.compile(closer + "|" + opener + r"(?=\s+name=)")

    def begins_end(self, text: str) -> bool:
        """Whether `text`, which starts with `<`, may become the end of a value."""
        if self.closer.startswith(text) or self.opener.startswith(text):
            return True
        rest = text.removeprefix(self.opener)
        return rest != text and rest[:1].isspace() and "name=".startswith(rest.lstrip())


@dataclass(slots=True)
class DsmlState:
    """`held` is text that may belong to a tag. Of the open parameter: its `key`, whether it is marked as text
    (`marked`), shown already (`opened`) and sent while it arrives (`streams`), else its `value` so far.

    `ready` is JSON that may be sent, `owed` closes the member before and goes out with the next key. `sent` counts what
    was sent, `settled` what of it and of `ready` belongs to closed parameters.
    """

    held: str = ""
    key: str | None = None
    marked: bool = False
    streams: bool = False
    opened: bool = False
    value: str = ""
    ready: str = ""
    owed: str = ""
    count: int = 0
    sent: int = 0
    settled: int = 0
    visible: bool = False


class DsmlArguments:
    """One call's arguments."""

    def __init__(self, schema: Mapping[str, Any] | None, *, tags: DsmlTags) -> None:
        properties = schema.get("properties") if schema else None
        self._properties = properties if isinstance(properties, Mapping) and properties else None
        self._tags = tags
        self.state = DsmlState()
        self.kept: int | None = None
        self.tail = ""

    @property
    def blank(self) -> bool:
        return not self.state.visible

    @property
    def in_value(self) -> bool:
        return self.state.key is not None

    def feed(self, text: str) -> str:
        state = self.state
        state.visible = state.visible or not text.isspace()
        text, state.held = state.held + text, ""
        position: int | None = 0
        while position is not None:
            position = self._outside(text, position) if state.key is None else self._inside(text, position)
        return self._release() if ">" in text or len(state.ready) > READY_LIMIT else ""

    def finish(self, *, cut: bool) -> str:
        state = self.state
        held, state.held = state.held, ""
        if state.key is not None and cut and state.opened:
            if not self._tags.begins_end(held):
                self._value(held)
            self.kept, self.tail = state.settled, self._closing()
            return self._release()
        if state.key is not None and not cut:
            self._value(held)
            self._close()
        state.ready += self._closing()
        return self._release()

    def snapshot(self) -> Mapping[str, Any]:
        return dump(self.state)

    def restore(self, data: Mapping[str, Any]) -> None:
        self.state = load(DsmlState, data)

    def _release(self) -> str:
        state = self.state
        ready, state.ready = state.ready, ""
        state.sent += len(ready)
        return ready

    def _closing(self) -> str:
        return self.state.owed + ("}" if self.state.count else "{}")

    # --- reading: both return where to go on, None where more text is needed -----------------------------------------

    def _outside(self, text: str, position: int) -> int | None:
        """Text between parameters belongs to nobody."""
        head = self._tags.head.search(text, position)
        if head:
            self._open(head.group(1), marked=head.group(2) == "true")
            return head.end()
        begin = text.find(self._tags.opener, position)
        if begin >= 0 and len(text) - begin > HEAD_LIMIT:
            return begin + 1
        if begin < 0:
            begin = text.rfind("<", position)
        if begin >= 0 and (begin < len(text) - len(self._tags.opener) or self._tags.opener.startswith(text[begin:])):
            self.state.held = text[begin:]
        return None

    def _inside(self, text: str, position: int) -> int | None:
        end = self._tags.end.search(text, position)
        if end:
            self._value(text[position : end.start()])
            self._close()
            return end.end() if end.group() == self._tags.closer else end.start()
        begin = text.rfind("<", position)
        if begin < 0 or not self._tags.begins_end(text[begin:]):
            begin = len(text)
        self._value(text[position:begin])
        self.state.held = text[begin:]
        return None

    # --- writing ------------------------------------------------------------------------------------------------------

    def _open(self, key: str, *, marked: bool) -> None:
        """A parameter marked as text shows its key at once, any other one when its value is known."""
        state = self.state
        state.key, state.marked, state.value = key, marked, ""
        wraps = state.count == 0 and key in WRAPPERS and self._properties is not None and key not in self._properties
        state.streams = marked and not wraps and self._is_string(key)
        state.opened = marked and not wraps
        if state.opened:
            self._open_member(key)
        if state.streams:
            state.ready += '"'

    def _value(self, text: str) -> None:
        state = self.state
        if state.streams:
            state.ready += _escaped(text)
        else:
            state.value += text

    def _close(self) -> None:
        state = self.state
        key, state.key = state.key or "", None
        if state.streams:
            state.owed = '"'
            self._member_written()
            return
        value = state.value if state.marked else _parsed(state.value)
        if state.opened:
            self._write_value(key, value)
            return
        members = self._unwrapped(key, value)
        for name, member in (members if members is not None else {key: value}).items():
            self._open_member(name)
            self._write_value(name, member)

    def _unwrapped(self, key: str, value: object) -> Mapping[str, Any] | None:
        """The parameters inside a wrapper; None where it is none."""
        if self.state.count or key not in WRAPPERS or self._properties is None or key in self._properties:
            return None
        members = _parsed(value) if isinstance(value, str) else value
        return members if isinstance(members, dict) and members.keys() <= self._properties.keys() else None

    def _open_member(self, key: str) -> None:
        state = self.state
        state.ready += state.owed
        state.owed, state.settled = "", state.sent + len(state.ready)
        state.ready += (", " if state.count else "{") + _dumped(key) + ": "

    def _write_value(self, key: str, value: Any) -> None:
        """A value typed by the schema; the end of a string, and all of what is no string, waits for what follows."""
        state = self.state
        schema = self._properties.get(key) if self._properties is not None else None
        text = _dumped(coerce_value(value, schema) if isinstance(schema, Mapping) else value)
        if text[0] == '"' and self._is_string(key):
            state.ready += text[:-1]
            text = '"'
        state.owed = text
        self._member_written()

    def _member_written(self) -> None:
        self.state.count += 1
        self.state.settled = self.state.sent + len(self.state.ready)

    def _is_string(self, key: str) -> bool:
        if self._properties is None:
            return True
        schema = self._properties.get(key)
        return isinstance(schema, Mapping) and is_string(schema)


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _escaped(text: str) -> str:
    return _dumped(text)[1:-1]


def _parsed(text: str) -> Any:
    """The JSON value that `text` is; the text itself where it is none."""
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return text
    return value
