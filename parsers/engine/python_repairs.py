"""Mends what models write in Python call lists that Python would refuse, as the text arrives.

Line breaks, tabs and NULs within quotes become escapes; numbers may lose their leading zeros (pythonic_misc 5: C and
Z).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\x00"}
_CONTROL = re.compile(r"[\n\r\t\0]")
_QUOTE = re.compile(r"['\"\\]")
_IN_QUOTE = {quote: re.compile(rf"[\\{quote}]") for quote in "'\""}
_NUMBER = re.compile(r"(?<![\w.])0[\d_]+(?![\w.])")
_OPEN_NUMBER = re.compile(r"(?<![\w.])0[\d_]*\Z")


@dataclass(slots=True)
class RepairState:
    """`quote`: the open quote; `escaped`: a backslash precedes the next character. `held`: a number that may go on;
    `inside`: what was read ends in a word or number.
    """

    quote: str = ""
    escaped: bool = False
    held: str = ""
    inside: bool = False


class SourceRepair:
    """Text in, mended text out. Quotes are tracked simply: a backslash skips a character, triple quotes are three."""

    def __init__(self, state: RepairState, *, numbers: bool) -> None:
        self.state = state
        self._numbers = numbers

    def feed(self, text: str) -> str:
        state = self.state
        text, state.held = state.held + text, ""
        out: list[str] = []
        position = 0
        while position < len(text):
            if state.escaped:
                state.escaped = False
                out.append(text[position])
                position += 1
                continue
            pattern = _IN_QUOTE[state.quote] if state.quote else _QUOTE
            found = pattern.search(text, position)
            end = found.start() if found else len(text)
            before = "x" if state.inside and position == 0 else ""
            out.append(self._run(text[position:end], before, at_end=found is None))
            if found:
                out.append(found.group())
                self._mark(found.group())
            position = end + 1
        mended = "".join(out)
        if mended:
            state.inside = mended[-1].isalnum() or mended[-1] in "_."
        return mended

    def finish(self) -> str:
        """What was held, at the end of the list."""
        held, self.state.held = self.state.held, ""
        return self._zeros(held)

    def _mark(self, character: str) -> None:
        state = self.state
        if character == "\\":
            state.escaped = True
        else:
            state.quote = "" if state.quote else character

    def _run(self, text: str, before: str, *, at_end: bool) -> str:
        """Text without quotes and backslashes.

        `before` is the character that precedes it, "" where it cannot matter.
        """
        if self.state.quote:
            return _CONTROL.sub(lambda found: _ESCAPES[found.group()], text)
        if not self._numbers:
            return text
        text = before + text
        found = _OPEN_NUMBER.search(text) if at_end else None
        if found:
            self.state.held, text = found.group(), text[: found.start()]
        return self._zeros(text)[len(before) :]

    @staticmethod
    def _zeros(text: str) -> str:
        return _NUMBER.sub(lambda found: _without_zeros(found.group()), text)


def _without_zeros(number: str) -> str:
    return str(int(number)) if number.strip("0_") and number[-1] != "_" and "__" not in number else number
