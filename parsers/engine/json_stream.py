"""Rewrites one JSON value, as it arrives, into the text that parsing and dumping the whole value would give.

Text already in that style (`", "` and `": "`, minimal escapes) passes through unchanged and at once, so streaming it
costs no delay; other white space and escapes are rewritten. What cannot be known early is sent as the model wrote it:
`1.5e3` is not turned into `1500.0` once `1.5` is out. `closed` says at any point how the value would be dumped if it
ended there.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Literal

from .json_words import MAX_NUMBER, WORDS, dumped_number, dumped_word

Mode = Literal["value", "first", "key", "colon", "next", "string", "number", "word", "done"]

SPACE = " \t\n\r"
"""What JSON calls white space."""

MAX_DEPTH = 512
"""Deeper nesting counts as no JSON: whoever reads the arguments next recurses."""

_MEMBER = re.compile(r'"[^"\\\x00-\x1f]*+": "[^"\\\x00-\x1f]*+"(, (?="))?')
"""A member with a string, both without escapes and in the style that passes through, and what leads to the next."""
_STRING_RUN = re.compile(r'[^"\\\x00-\x1f]+')
_NUMBER_RUN = re.compile(r"[0-9+\-.eE]+")
_WORD_RUN = re.compile(r"[A-Za-z]+")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "/": "/", "b": "\\b", "f": "\\f", "n": "\\n", "r": "\\r", "t": "\\t"}
_HEX = "0123456789abcdefABCDEF"
_CLOSERS = {"{": "}", "[": "]"}


@dataclass(slots=True)
class JsonStreamState:
    """Where the reader stands.

    `stack` holds the open brackets; `held` text not yet rewritten; `sent` what of the open number, word or escape is
    out; `style` how escapes go out: unknown while all were minimal, "dump" once something had to be rewritten, "raw"
    once one could not be; `loose` counts the code points sent since the last complete member or element or opening
    bracket. `whole_numbers`: numbers go out when they are complete, so that none keeps the model's spelling.
    `controls`: raw control characters in strings are read, and escaped.
    """

    mode: Mode = "value"
    stack: str = ""
    gap: bool = False
    is_key: bool = False
    held: str = ""
    sent: str = ""
    style: Literal["", "dump", "raw"] = ""
    loose: int = 0
    invalid: bool = False
    whole_numbers: bool = False
    controls: bool = False


@dataclass(slots=True)
class _Output:
    """What one call sends; `kept` is how much of it belongs to complete members, elements and opening brackets."""

    pieces: list[str] = field(default_factory=list)
    size: int = 0
    kept: int | None = None

    def add(self, text: str) -> None:
        self.pieces.append(text)
        self.size += len(text)

    def keep(self) -> None:
        self.kept = self.size


class JsonStream:
    """Incremental rewriter of one JSON value. `feed` never raises; `state.invalid` tells that the text is no JSON."""

    def __init__(self, state: JsonStreamState | None = None) -> None:
        self.state = state if state is not None else JsonStreamState()

    @property
    def done(self) -> bool:
        """The value is complete. A number at top level is only complete at `finish`, or when more follows."""
        return self.state.mode == "done"

    @property
    def empty(self) -> bool:
        """Nothing of the value was seen yet, white space apart."""
        return self.state.mode == "value" and not self.state.stack and not self.state.invalid

    @property
    def in_string(self) -> bool:
        """The next character belongs to a string, or ends it."""
        return self.state.mode == "string" and not self.state.invalid

    def feed(self, text: str, position: int = 0) -> tuple[str, int]:
        """(rewritten text, position behind what was read). Stops behind the value, or where the text is no JSON."""
        out = _Output()
        state = self.state
        while position < len(text) and state.mode != "done" and not state.invalid:
            step = self._step(text, position, out)
            if step < 0:
                state.invalid = True
                break
            position += step
        return self._sent(out), position

    def pause(self) -> str:
        """What may go out because the input pauses here: a backslash, which most likely begins a minimal escape.

        If it does not, this escape and all that follow go out as the model wrote them.
        """
        state = self.state
        if not self.in_string or state.held != "\\" or state.sent or state.style == "dump":
            return ""
        state.sent = "\\"
        state.loose += 1
        return "\\"

    def finish(self) -> str:
        """End of input: completes a number or word. The value is `invalid` if it is not complete then."""
        out = _Output()
        state = self.state
        if not state.invalid and state.mode in ("number", "word") and not self._close_scalar(out):
            state.invalid = True
        if state.mode != "done":
            state.invalid = True
        return self._sent(out)

    def closed(self, tail: str, *, strings: bool = True, numbers: bool = True) -> str | None:
        """How the dump of the value would end if the value ended here. None if nothing of it is there yet.

        `tail` is the end of what was sent for it. What is no member or element yet is left out, and so are white
        space at the end of an open string and, without `strings`, the open string itself with its key; the same for an
        open number without `numbers`. Source: json 0.9.
        """
        state = self.state
        if self.empty or state.invalid:
            return None
        closers = "".join(_CLOSERS[bracket] for bracket in reversed(state.stack))
        if state.mode == "string" and not state.is_key and strings:
            kept = tail[: len(tail) - len(state.sent)] if state.held else tail.rstrip()
            return kept + self._half_character() + '"' + closers
        if state.mode == "word":
            word = next(word for word in WORDS if word.startswith(state.held))
            return tail + word[len(state.sent) :] + closers
        if state.mode == "number" and numbers and (text := dumped_number(state.held.rstrip(".-+eE"))) is not None:
            common = common_length(state.sent, text)
            return tail[: max(0, len(tail) - len(state.sent) + common)] + text[common:] + closers
        if not state.stack and state.mode != "done":
            return None
        return tail[: max(0, len(tail) - state.loose)] + closers

    def _half_character(self) -> str:
        """A stand-in for the first half of a surrogate pair whose second half is outstanding."""
        held = self.state.held
        return "\ufffd" if 6 <= len(held) < 12 else ""

    def _sent(self, out: _Output) -> str:
        state = self.state
        state.loose = state.loose + out.size if out.kept is None else out.size - out.kept
        return "".join(out.pieces)

    def _step(self, text: str, position: int, out: _Output) -> int:
        """Consumes something at `position`; how much, or -1 for an error."""
        mode = self.state.mode
        if mode == "string":
            return self._string(text, position, out)
        if mode in ("number", "word"):
            return self._scalar(text, position, out)
        character = text[position]
        begins_key = character == '"' and mode in ("first", "key") and not self.state.gap
        if begins_key and self.state.stack[-1] == "{" and (member := _MEMBER.match(text, position)):
            return self._member(member, out)
        if character in SPACE:
            if self.state.gap and character == " ":
                out.add(" ")
                self.state.gap = False
            return 1
        if self.state.gap and character not in "}]":
            out.add(" ")
            self.state.gap, self.state.style = False, self.state.style or "dump"
        return self._structure(character, out)

    def _member(self, member: re.Match[str], out: _Output) -> int:
        leads_on = member.group(1) or ""
        out.add(member.group().removesuffix(leads_on))
        self._value_done(out)
        if leads_on:
            out.add(leads_on)
            self.state.mode = "key"
        return member.end() - member.start()

    def _structure(self, character: str, out: _Output) -> int:
        state = self.state
        mode = state.mode
        if mode == "colon":
            if character != ":":
                return -1
            out.add(":")
            state.mode, state.gap = "value", True
            return 1
        if mode == "next" or (mode == "first" and character in "}]"):
            return self._next(character, out)
        if mode == "key" or (mode == "first" and state.stack[-1] == "{"):
            if character != '"':
                return -1
            out.add('"')
            state.mode, state.is_key = "string", True
            return 1
        return self._value(character, out)

    def _next(self, character: str, out: _Output) -> int:
        state = self.state
        if character == "," and state.mode == "next":
            out.add(",")
            state.mode, state.gap = ("key" if state.stack[-1] == "{" else "value"), True
            return 1
        if character != _CLOSERS[state.stack[-1]]:
            return -1
        out.add(character)
        state.stack = state.stack[:-1]
        self._value_done(out)
        return 1

    def _value(self, character: str, out: _Output) -> int:
        state = self.state
        if character in "{[":
            if len(state.stack) >= MAX_DEPTH:
                return -1
            out.add(character)
            out.keep()
            state.stack += character
            state.mode = "first"
            return 1
        if character == '"':
            out.add('"')
            state.mode, state.is_key = "string", False
            return 1
        if (character.isdecimal() and character.isascii()) or character == "-":
            state.mode, state.held, state.sent = "number", "", ""
            return 0
        if character in "tfnNI":
            state.mode, state.held, state.sent = "word", "", ""
            return 0
        return -1

    def _value_done(self, out: _Output) -> None:
        self.state.mode = "next" if self.state.stack else "done"
        out.keep()

    def _string(self, text: str, position: int, out: _Output) -> int:
        state = self.state
        if state.held:
            return self._escape(text, position, out)
        run = _STRING_RUN.match(text, position)
        if run:
            out.add(run.group())
            return run.end() - position
        character = text[position]
        if character == "\\":
            state.held = "\\"
        elif character == '"':
            out.add('"')
            if state.is_key:
                state.mode, state.is_key = "colon", False
            else:
                self._value_done(out)
        elif state.controls:
            out.add(json.dumps(character)[1:-1])
            state.style = state.style or "dump"
        else:
            return -1
        return 1

    def _escape(self, text: str, position: int, out: _Output) -> int:
        """`held` is the beginning of an escape, or a high surrogate waiting for its partner."""
        state = self.state
        held = state.held + text[position]
        if state.sent or state.style == "raw":
            return self._raw_escape(held, out)
        if len(held) % 6 == 2:
            if held[-1] != "u":
                return self._short_escape(held, out)
        elif len(held) % 6 == 1:
            if held[-1] != "\\":
                out.add(state.held)
                state.held = ""
                return 0
        elif held[-1] not in _HEX:
            return -1
        elif len(held) % 6 == 0:
            return self._unicode_escape(held, out)
        state.held = held
        return 1

    def _raw_escape(self, held: str, out: _Output) -> int:
        """An escape that goes out as it comes; its backslash may be out already."""
        state = self.state
        if held[-1] not in (_HEX if len(held) > 2 else "u" + "".join(_ESCAPES)):
            return -1
        if held[1] in "u/":
            state.style = "raw"
        out.add(held[len(state.sent) :])
        complete = len(held) == (6 if held[1] == "u" else 2)
        state.held = state.sent = "" if complete else held
        return 1

    def _short_escape(self, held: str, out: _Output) -> int:
        if held[-1] not in _ESCAPES:
            return -1
        out.add(held[:-2] + _ESCAPES[held[-1]])
        self.state.held = ""
        if held[-1] == "/":
            self.state.style = "dump"
        return 1

    def _unicode_escape(self, held: str, out: _Output) -> int:
        """A complete `\\uXXXX`, perhaps the second of a surrogate pair. A lone surrogate keeps its escape."""
        state = self.state
        state.style = "dump"
        code = int(held[-4:], 16)
        if len(held) == 6 and 0xD800 <= code < 0xDC00:
            state.held = held
            return 1
        if len(held) == 12 and 0xDC00 <= code < 0xE000:
            out.add(held.encode().decode("unicode_escape").encode("utf-16", "surrogatepass").decode("utf-16"))
            state.held = ""
            return 1
        out.add(held[:-6])
        state.held = ""
        if 0xD800 <= code < 0xDC00:
            state.held = held[-6:]
        elif 0xDC00 <= code < 0xE000:
            out.add(held[-6:])
        else:
            out.add(json.dumps(chr(code), ensure_ascii=False)[1:-1])
        return 1

    def _scalar(self, text: str, position: int, out: _Output) -> int:
        state = self.state
        pattern = _NUMBER_RUN if state.mode == "number" else _WORD_RUN
        run = pattern.match(text, position)
        if run is None:
            if state.mode == "number" and state.held == "-" and text[position] == "I":
                state.mode = "word"
                return 0
            return 0 if self._close_scalar(out) else -1
        if len(state.held) + run.end() - position > MAX_NUMBER:
            return -1
        state.held += run.group()
        if state.mode == "word" and not any(word.startswith(state.held) for word in WORDS):
            return -1
        out.add(self._early(state))
        return run.end() - position

    @staticmethod
    def _early(state: JsonStreamState) -> str:
        """What of an open number or word may be sent now.

        A number waits with zeros behind the point, which may be dropped, and with an exponent, which may rewrite it,
        unless its point is out already: then it stays as the model wrote it.
        """
        ready = state.held
        if state.mode == "number" and state.whole_numbers:
            return ""
        if state.mode == "number":
            whole, point, fraction = ready.partition(".")
            if "e" in ready or "E" in ready:
                ready = ready if "." in state.sent else ""
            elif point:
                ready = whole + point + fraction[:1] + fraction[1:].rstrip("0")
            elif ready == "-0":
                ready = ""
        new = ready[len(state.sent) :] if ready.startswith(state.sent) else ""
        state.sent += new
        return new

    def _close_scalar(self, out: _Output) -> bool:
        state = self.state
        text = dumped_number(state.held) if state.mode == "number" else dumped_word(state.held)
        if text is None:
            return False
        if not text.startswith(state.sent):
            text = state.held
        out.add(text[len(state.sent) :])
        state.held = state.sent = ""
        self._value_done(out)
        return True


def common_length(one: str, other: str) -> int:
    """How many code points two texts share at their beginning."""
    for position, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return position
    return min(len(one), len(other))
