"""Rewrites one JSON value, as it arrives, into the text that parsing and dumping the whole value would give.

Text already in that style (`", "` and `": "`, minimal escapes) passes through unchanged and at once, so streaming it
costs no delay; other white space and escapes are rewritten. What cannot be known early is sent as the model wrote it:
`1.5e3` is not turned into `1500.0` once `1.5` is out.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal

Mode = Literal["value", "first", "key", "colon", "next", "string", "number", "word", "done"]

_SPACE = " \t\n\r"
_STRING_RUN = re.compile(r'[^"\\\x00-\x1f]+')
_NUMBER_RUN = re.compile(r"[0-9+\-.eE]+")
_WORD_RUN = re.compile(r"[A-Za-z]+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z")
_WORDS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "/": "/", "b": "\\b", "f": "\\f", "n": "\\n", "r": "\\r", "t": "\\t"}
_HEX4 = re.compile(r"[0-9a-fA-F]{4}\Z")


@dataclass(slots=True)
class JsonStreamState:
    """`stack` holds the open brackets; `held` text not yet rewritten; `sent` what the open number has sent."""

    mode: Mode = "value"
    stack: str = ""
    gap: bool = False
    is_key: bool = False
    held: str = ""
    sent: str = ""
    invalid: bool = False


class JsonStream:
    """Incremental rewriter of one JSON value. `feed` never raises; `state.invalid` tells that the text is no JSON."""

    def __init__(self, state: JsonStreamState | None = None, *, ascii_only: bool = False) -> None:
        self.state = state if state is not None else JsonStreamState()
        self._ascii_only = ascii_only

    @property
    def done(self) -> bool:
        """The value is complete. A number at top level is only complete at `finish`."""
        return self.state.mode == "done"

    def feed(self, text: str) -> tuple[str, int]:
        """(rewritten text, how many code points of `text` belong to the value).

        Stops behind the value or at an error.
        """
        out: list[str] = []
        position = 0
        state = self.state
        while position < len(text) and state.mode != "done" and not state.invalid:
            step = self._step(text, position, out)
            if step < 0:
                state.invalid = True
                break
            position += step
        return "".join(out), position

    def finish(self) -> str:
        """End of input: completes a number or word. The value is `invalid` if it is not complete then."""
        out: list[str] = []
        state = self.state
        if not state.invalid and state.mode in ("number", "word") and not self._close_scalar(out):
            state.invalid = True
        if state.mode != "done":
            state.invalid = True
        return "".join(out)

    def _step(self, text: str, position: int, out: list[str]) -> int:
        """Consumes something at `position`; how much, or -1 for an error."""
        mode = self.state.mode
        if mode == "string":
            return self._string(text, position, out)
        if mode in ("number", "word"):
            return self._scalar(text, position, out)
        character = text[position]
        if character in _SPACE:
            if self.state.gap and character == " ":
                out.append(" ")
                self.state.gap = False
            return 1
        if self.state.gap and character not in "}]":
            out.append(" ")
            self.state.gap = False
        return self._structure(character, out)

    def _structure(self, character: str, out: list[str]) -> int:
        state = self.state
        mode = state.mode
        if mode == "colon":
            if character != ":":
                return -1
            out.append(":")
            state.mode, state.gap = "value", True
            return 1
        if mode == "next" or (mode == "first" and character in "}]"):
            return self._next(character, out)
        if mode == "key" or (mode == "first" and state.stack[-1] == "{"):
            if character != '"':
                return -1
            out.append('"')
            state.mode, state.is_key = "string", True
            return 1
        return self._value(character, out)

    def _next(self, character: str, out: list[str]) -> int:
        state = self.state
        if character == "," and state.mode == "next":
            out.append(",")
            state.mode, state.gap = ("key" if state.stack[-1] == "{" else "value"), True
            return 1
        if character not in "}]" or state.stack[-1] != ("{" if character == "}" else "["):
            return -1
        out.append(character)
        state.stack = state.stack[:-1]
        self._value_done()
        return 1

    def _value(self, character: str, out: list[str]) -> int:
        state = self.state
        if character in "{[":
            out.append(character)
            state.stack += character
            state.mode = "first"
            return 1
        if character == '"':
            out.append('"')
            state.mode, state.is_key = "string", False
            return 1
        if (character.isdecimal() and character.isascii()) or character == "-":
            state.mode, state.held, state.sent = "number", "", ""
            return 0
        if character in "tfnNI":
            state.mode, state.held, state.sent = "word", "", ""
            return 0
        return -1

    def _value_done(self) -> None:
        self.state.mode = "next" if self.state.stack else "done"

    def _string(self, text: str, position: int, out: list[str]) -> int:
        state = self.state
        if state.held:
            return self._escape(text, position, out)
        run = _STRING_RUN.match(text, position)
        if run:
            text = run.group()
            out.append(json.dumps(text)[1:-1] if self._ascii_only and not text.isascii() else text)
            return run.end() - position
        character = text[position]
        if character == "\\":
            state.held = "\\"
        elif character == '"':
            out.append('"')
            if state.is_key:
                state.mode, state.is_key = "colon", False
            else:
                self._value_done()
        else:
            return -1
        return 1

    def _escape(self, text: str, position: int, out: list[str]) -> int:
        """`held` is the beginning of an escape, or a high surrogate waiting for its partner."""
        state = self.state
        held = state.held + text[position]
        if len(held) % 6 == 2:
            if held[-1] != "u":
                return self._short_escape(held, position, out)
        elif len(held) % 6 == 1:
            if held[-1] != "\\":
                out.append(state.held)
                state.held = ""
                return 0
        elif len(held) % 6 == 0:
            return self._unicode_escape(held, out)
        elif held[-1] not in "0123456789abcdefABCDEF":
            return -1
        state.held = held
        return 1

    def _short_escape(self, held: str, position: int, out: list[str]) -> int:
        if held[-1] not in _ESCAPES:
            return -1
        out.append(held[:-2] + _ESCAPES[held[-1]])
        self.state.held = ""
        return 1

    def _unicode_escape(self, held: str, out: list[str]) -> int:
        """A complete `\\uXXXX`, perhaps the second of a surrogate pair. A lone surrogate keeps its escape."""
        state = self.state
        code = int(held[-4:], 16)
        if len(held) == 6 and 0xD800 <= code < 0xDC00:
            state.held = held
            return 1
        if len(held) == 12 and 0xDC00 <= code < 0xE000:
            pair = held.encode().decode("unicode_escape").encode("utf-16", "surrogatepass").decode("utf-16")
            out.append(json.dumps(pair, ensure_ascii=self._ascii_only)[1:-1])
            state.held = ""
            return 1
        out.append(held[:-6])
        state.held = ""
        if 0xD800 <= code < 0xDC00:
            state.held = held[-6:]
        elif 0xDC00 <= code < 0xE000:
            out.append(held[-6:])
        else:
            out.append(json.dumps(chr(code), ensure_ascii=self._ascii_only)[1:-1])
        return 1

    def _scalar(self, text: str, position: int, out: list[str]) -> int:
        state = self.state
        pattern = _NUMBER_RUN if state.mode == "number" else _WORD_RUN
        run = pattern.match(text, position)
        if run is None:
            if state.mode == "number" and state.held == "-" and text[position] == "I":
                state.mode = "word"
                return 0
            return 0 if self._close_scalar(out) else -1
        state.held += run.group()
        if state.mode == "word" and not any(word.startswith(state.held) for word in _WORDS):
            return -1
        out.append(self._early(state))
        return run.end() - position

    @staticmethod
    def _early(state: JsonStreamState) -> str:
        """What of an open number or word may be sent: all but an exponent and further zeros behind the point."""
        ready = state.held
        if state.mode == "number":
            ready = re.split("[eE]", ready, maxsplit=1)[0]
            whole, point, fraction = ready.partition(".")
            if point:
                ready = whole + point + fraction[:1] + fraction[1:].rstrip("0")
        new = ready[len(state.sent) :] if ready.startswith(state.sent) else ""
        state.sent += new
        return new

    def _close_scalar(self, out: list[str]) -> bool:
        state = self.state
        valid = _NUMBER.match(state.held) if state.mode == "number" else state.held in _WORDS
        if not valid:
            return False
        text = json.dumps(json.loads(state.held))
        if not text.startswith(state.sent):
            text = state.held
        out.append(text[len(state.sent) :])
        state.held = state.sent = ""
        self._value_done()
        return True
