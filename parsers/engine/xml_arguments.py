"""Reads parameters in tags, as Qwen3-Coder and its kin write them.

    <parameter=city>
    Paris
    </parameter>
    <parameter=days>
    3
    </parameter>            ->  {"city": "Paris", "days": 3}

Blanks may stand inside the tags.
"""

from __future__ import annotations

import re
from typing import ClassVar

from .parameter_writer import ParameterWriter

_BEGINNING = re.compile(r"<\s{0,16}(?:/\s{0,16})?([a-z]*)(\s{0,16})\Z")


class XmlParameters(ParameterWriter):
    """One call's arguments. `opener` is a tag up to its key, `closer` ends the value."""

    strips_newlines = True
    opener: ClassVar[re.Pattern[str]] = re.compile(r"<\s{0,16}parameter\s{0,16}=")
    closer: ClassVar[re.Pattern[str]] = re.compile(r"<\s{0,16}/\s{0,16}parameter\s{0,16}>")

    def begins_tag(self, text: str) -> bool:
        """Whether `text`, which starts with `<`, may still become a spaced parameter tag.

        Beginnings of unspaced tags are held back before they get here.
        """
        beginning = _BEGINNING.match(text)
        if beginning is None or not any(map(str.isspace, text)):
            return False
        word, space = beginning.groups()
        return "parameter".startswith(word) and (not space or word in ("", "parameter"))

    def key_of(self, text: str) -> str | None:
        """The key that stands in an opening tag; None where it has none and the parameter is ignored."""
        return text.lstrip()

    def _read(self, text: str, out: list[str]) -> None:
        state = self.state
        text, state.held = state.held + text, ""
        position = 0
        while position < len(text):
            position = self._step(text, position, out)

    def _step(self, text: str, position: int, out: list[str]) -> int:
        """Consumes from `position`; the new position. Text that may begin a tag is held at the end."""
        if self.state.place == "key":
            return self._key(text, position, out)
        tag = text.find("<", position)
        if tag < 0:
            self._plain(text[position:], out)
            return len(text)
        if tag > position:
            self._plain(text[position:tag], out)
        return self._tag(text, tag, out)

    def _key(self, text: str, position: int, out: list[str]) -> int:
        state = self.state
        end = text.find(">", position)
        if end < 0:
            state.key += text[position:]
            return len(text)
        key = self.key_of(state.key + text[position:end])
        state.key = key or ""
        if key is None:
            state.place = "outside"
        else:
            self._open_value(out)
        return end + 1

    def _tag(self, text: str, tag: int, out: list[str]) -> int:
        state = self.state
        opener = self.opener.match(text, tag)
        if opener:
            if state.place == "value":
                self._close_value(out)
            state.place, state.key = "key", ""
            return opener.end()
        closer = self.closer.match(text, tag) if state.place == "value" else None
        if closer:
            self._close_value(out)
            return closer.end()
        rest = text[tag:]
        if self.begins_tag(rest):
            state.held = rest
            return len(text)
        self._plain("<", out)
        return tag + 1

    def _plain(self, text: str, out: list[str]) -> None:
        if self.state.place == "value":
            self._value(text, out)
