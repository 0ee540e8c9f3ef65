"""Reads one Python string literal as it arrives and writes the JSON text of its content.

Knows the prefixes `r`, `u` and `f` (without placeholders), triple quotes and every escape; what is incomplete at the
end of a chunk (half an escape, quotes that may close a triple-quoted string) waits for the next one.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass

PREFIXES = frozenset({"r", "u", "f", "fr", "rf"})

_ESCAPES = {"\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_HEX = re.compile(r"[0-9a-fA-F]*\Z")
_NAME_LIMIT = 128

# Text that needs no thought, by (quote, triple, format string).
_RUNS = {
    (quote, triple, formatted): re.compile(
        rf"[^\\{quote}" + ("" if triple else r"\n\r") + (r"{}" if formatted else "") + "]+"
    )
    for quote in "'\""
    for triple in (False, True)
    for formatted in (False, True)
}


@dataclass(slots=True)
class LiteralState:
    """`fresh`: only the opening quote was read; `quotes`: quotes read that may close a triple-quoted literal or open
    one.

    `held` is the beginning of an escape, or a brace of a format string that may be doubled.
    """

    quote: str = "'"
    raw: bool = False
    formatted: bool = False
    triple: bool = False
    fresh: bool = True
    quotes: int = 0
    held: str = ""
    closed: bool = False
    invalid: bool = False


class StringLiteral:
    """One literal, from behind its opening quote.

    `feed` never raises; `state.invalid` tells that Python would refuse it.
    """

    def __init__(self, state: LiteralState) -> None:
        self.state = state

    @classmethod
    def open(cls, quote: str, prefix: str = "") -> StringLiteral:
        """A literal of the given lower-case prefix, one of PREFIXES or ""."""
        return cls(LiteralState(quote=quote, raw="r" in prefix, formatted="f" in prefix))

    @property
    def maybe_closed(self) -> bool:
        """Two quotes were read: an empty literal, unless a third one follows."""
        return self.state.fresh and self.state.quotes == 1

    @property
    def open_cleanly(self) -> bool:
        """One more quote would end a valid literal that holds all text so far."""
        state = self.state
        return not (state.held or state.closed or state.invalid) and state.quotes == (2 if state.triple else 0)

    def feed(self, text: str, position: int) -> tuple[str, int]:
        """(JSON text of the content, where reading stopped). Stops behind the literal, or at an error."""
        out: list[str] = []
        state = self.state
        while position < len(text) and not state.closed and not state.invalid:
            position += self._step(text, position, out)
        return "".join(out), position

    def _step(self, text: str, position: int, out: list[str]) -> int:
        state = self.state
        character = text[position]
        if state.held:
            return self._resume(character, out)
        if state.fresh:
            return self._opening(character)
        if character == state.quote:
            return self._quote()
        if state.quotes:
            out.append(_json(state.quote * state.quotes))
            state.quotes = 0
        run = _RUNS[state.quote, state.triple, state.formatted].match(text, position)
        if run:
            content = run.group()
            if state.triple and "\r" in content:
                content = content.replace("\r\n", "\n").replace("\r", "\n")
            out.append(_json(content))
            return run.end() - position
        if character in "\n\r":
            state.invalid = True
            return 0
        state.held = character
        return 1

    def _opening(self, character: str) -> int:
        """Behind the opening quote.

        `''` is an empty literal or, with a third quote, the opening of a triple-quoted one.
        """
        state = self.state
        if character != state.quote:
            state.fresh = False
            state.closed = state.quotes == 1
            return 0
        if state.quotes == 0:
            state.quotes = 1
        else:
            state.fresh, state.triple, state.quotes = False, True, 0
        return 1

    def _quote(self) -> int:
        state = self.state
        state.quotes += 1
        if not state.triple or state.quotes == 3:
            state.closed, state.quotes = True, 0
        return 1

    def _resume(self, character: str, out: list[str]) -> int:
        """Goes on with a held escape or brace."""
        state = self.state
        held = state.held
        if held in "{}":
            state.held = ""
            state.invalid = character != held
            out.append("" if state.invalid else held)
            return 1
        if state.raw:
            if character in "{}" and state.formatted:
                out.append("\\\\")
                state.held = ""
                return 0
            out.append(_json(held + character))
            state.held = ""
            return 1
        return self._escape(held[1:], character, out)

    def _escape(self, body: str, character: str, out: list[str]) -> int:
        """`body` is what follows the backslash so far."""
        state = self.state
        if not body:
            if character in _HEX_DIGITS or character == "N" or character in "01234567":
                state.held += character
                return 1
            state.held = ""
            if character in "\n\r":
                return 1
            if character in "{}" and state.formatted:
                out.append("\\\\")
                return 0
            out.append(_json(_ESCAPES.get(character, "\\" + character)))
            return 1
        if body[0] in _HEX_DIGITS:
            return self._hexadecimal(body + character, out)
        if body[0] == "N":
            return self._named(body + character, out)
        octal = character in "01234567"
        if octal and len(body) < 2:
            state.held += character
            return 1
        out.append(_json(chr(int(body + character if octal else body, 8))))
        state.held = ""
        return int(octal)

    def _hexadecimal(self, body: str, out: list[str]) -> int:
        state = self.state
        if not _HEX.match(body[1:]):
            state.invalid = True
            return 0
        state.held = "\\" + body
        if len(body) - 1 == _HEX_DIGITS[body[0]]:
            code = int(body[1:], 16)
            state.held = ""
            if code > 0x10FFFF:
                state.invalid = True
                return 0
            out.append(f"\\u{code:04x}" if 0xD800 <= code < 0xE000 else _json(chr(code)))
        return 1

    def _named(self, body: str, out: list[str]) -> int:
        state = self.state
        if (len(body) == 2 and body != "N{") or len(body) > _NAME_LIMIT:
            state.invalid = True
            return 0
        state.held = "\\" + body
        if body[-1] == "}":
            state.held = ""
            try:
                character = unicodedata.lookup(body[2:-1])
            except KeyError:
                character = ""
            state.invalid = len(character) != 1
            out.append(_json(character))
        return 1


def _json(content: str) -> str:
    return json.dumps(content, ensure_ascii=False)[1:-1]
