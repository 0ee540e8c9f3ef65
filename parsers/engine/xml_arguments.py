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

from .parameter_writer import ParameterWriter

_SPACE = r"\s{0,16}"
_OPENER = re.compile(rf"<{_SPACE}parameter{_SPACE}=")
_CLOSER = re.compile(rf"<{_SPACE}/{_SPACE}parameter{_SPACE}>")
_BEGINNING = re.compile(rf"<{_SPACE}(?:/{_SPACE})?([a-z]*)({_SPACE})\Z")


class XmlParameters(ParameterWriter):
    """One call's arguments."""

    strips_newlines = True

    def _read(self, text: str, out: list[str]) -> None:
        state = self.state
        text, state.held = state.held + text, ""
        position = 0
        while position < len(text):
            position = self._step(text, position, out)

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


def _begins_tag(text: str) -> bool:
    """Whether `text`, which starts with `<`, may still become a spaced parameter tag.

    Beginnings of unspaced tags are held back before they get here.
    """
    beginning = _BEGINNING.match(text)
    if beginning is None or not any(map(str.isspace, text)):
        return False
    word, space = beginning.groups()
    return "parameter".startswith(word) and (not space or word in ("", "parameter"))
