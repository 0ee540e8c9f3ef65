"""Reads the values of Python call arguments as they arrive and writes them as JSON text.

The JSON is what converting and dumping the whole value would give (pythonic_misc 1.1), whatever the chunks. Only what
cannot be known yet is held: half a number, a bracket that may be a tuple or a set.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod

from .python_gate import NESTING_LIMIT
from .python_numbers import NUMBER_LIMIT, as_json
from .python_state import CallListState, Frame
from .python_strings import PREFIXES, StringLiteral

WORD = re.compile(r"\w+")
DOTTED = re.compile(r"[\w.]+")
WORD_LIMIT = 4096
CONSTANTS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
BRACKETS = {")": "(", "]": "[", "}": "{"}

_SPACE = re.compile(r"[ \t\n\r\f]+")
_LINE_END = re.compile(r"[\n\r]")
_CLOSED_BY = {"call": ")", "(": ")", "tuple": ")", "[": "]", "{": "}", "dict": "}", "set": "}"}

# What may follow a string.
FOLLOWERS = ",)]}:"


class ValueReader(ABC):
    """The part of a call list reader that stands within an argument. A step takes text and a position, and returns
    where the next one begins.

    `waits`: a string that something else than a comma, a colon or a closing bracket follows is not taken for complete.
    """

    def __init__(self, state: CallListState, *, waits: bool = False) -> None:
        self.state = state
        self._waits = waits

    @abstractmethod
    def _close_call(self) -> None:
        """A closing parenthesis ends the call."""

    # --- steps between values ---

    def _fail(self, position: int) -> int:
        self.state.place = "invalid"
        return position

    def _blank(self, text: str, position: int) -> int:
        """Skips white space, a comment or a continued line; the same position if there is none."""
        found = _SPACE.match(text, position)
        if found:
            return found.end()
        if text[position] in "#\\" and not self.state.strict:
            self.state.back = self.state.place
            self.state.place = "comment" if text[position] == "#" else "continuation"
            return position + 1
        return position

    def _at_comment(self, text: str, position: int) -> int:
        found = _LINE_END.search(text, position)
        if found is None:
            return len(text)
        self.state.place = self.state.back
        return found.start()

    def _at_continuation(self, text: str, position: int) -> int:
        if text[position] not in "\n\r":
            return self._fail(position)
        self.state.place = self.state.back
        return position + 1

    # --- output ---------------------------------------------------------------------------------------------------

    @property
    def _piece(self) -> int:
        return self.state.taken + len(self.state.out)

    def _put(self, text: str) -> None:
        self.state.out.append(text)

    def _settle_brace(self, frame: Frame, kind: str) -> None:
        """Writes the bracket of a frame whose kind is known now. Nothing behind it was taken."""
        self.state.out[frame.slot - self.state.taken] = "{" if kind == "dict" else "["
        frame.kind = kind

    def _open_key(self, canonical: str, text: str) -> None:
        frame = self.state.frames[-1]
        frame.repeated = canonical in frame.keys and not self._forget_last(frame, canonical)
        if canonical not in frame.keys:
            self._put((", " if frame.count else "") + text + ": ")
        frame.key, frame.keyed, frame.start = canonical, True, self._piece

    def _forget_last(self, frame: Frame, canonical: str) -> bool:
        """Drops the value of a key that comes again at once, if nothing of it was taken."""
        first = frame.keys[canonical][0] - self.state.taken
        if first < 0 or canonical != next(reversed(frame.keys)):
            return False
        del self.state.out[first:]
        frame.count -= 1
        return True

    def _close_key(self, frame: Frame) -> None:
        frame.keyed = False
        is_string = self.state.kind in ("string", "format")
        if frame.repeated:
            frame.repeated = False
            self._replace(frame)
        else:
            frame.keys[frame.key] = [frame.start, self._piece, is_string]
            frame.count += 1

    def _replace(self, frame: Frame) -> None:
        """A repeated key's last value takes the place of its first, unless that was taken already."""
        state = self.state
        value = "".join(state.out[frame.start - state.taken :])
        del state.out[frame.start - state.taken :]
        first, behind, is_string = frame.keys[frame.key]
        first, behind = first - state.taken, behind - state.taken
        if first == -1 and behind > 0 and is_string and value.startswith('"'):
            first, value = 0, value[1:]
        if first >= 0:
            state.out[first:behind] = [value] + [""] * (behind - first - 1)

    # --- values ---------------------------------------------------------------------------------------------------

    def _at_value(self, text: str, position: int) -> int:
        state = self.state
        after = self._blank(text, position)
        if after != position:
            return after
        character = text[position]
        frame = state.frames[-1]
        if character in BRACKETS:
            closes = frame.kind != "call" and not frame.keyed and not state.signs
            return self._close(character, position) if closes else self._fail(position)
        if not state.signs:
            self._begin_value(frame)
        if character in "+-" and len(state.signs) < NESTING_LIMIT:
            state.signs += character
            return position + 1
        if (character.isdecimal() and character.isascii()) or character == ".":
            state.word, state.place, state.early = "", "number", ""
            return position
        if state.signs and character != "(":
            return self._fail(position)
        if character in "'\"":
            return self._open_string(character, "", position)
        if character.isidentifier():
            state.word, state.place, state.early = "", "word", ""
            return position
        if character in "[({" and len(state.frames) < NESTING_LIMIT:
            return self._open_bracket(character, position)
        return self._fail(position)

    def _begin_value(self, frame: Frame) -> None:
        if frame.keyed:
            return
        if frame.count and frame.kind != "dict":
            self._put(", ")
        frame.mark = self._piece

    def _open_bracket(self, character: str, position: int) -> int:
        state = self.state
        state.frames.append(Frame(character, slot=self._piece, signs=state.signs))
        state.signs = ""
        self._put("[" if character == "[" else "")
        return position + 1

    def _open_string(self, quote: str, prefix: str, position: int) -> int:
        """The first literal of a string; further ones, side by side, go on with it."""
        state = self.state
        if state.place != "after" and state.place != "joined_word":
            self._put('"')
            state.kind, state.quoted = "string", False
        if "f" in prefix:
            state.kind = "format"
        state.literal, state.place = StringLiteral.open(quote, prefix).state, "literal"
        return position + 1

    def _at_literal(self, text: str, position: int) -> int:
        state = self.state
        assert state.literal is not None
        content, position = StringLiteral(state.literal).feed(text, position)
        if content:
            self._put(content)
        if state.literal.invalid:
            return self._fail(position)
        if state.literal.closed:
            state.ended = state.literal if self._waits else None
            state.raw = [state.literal.quote] if self._waits else []
            state.literal, state.place = None, "after"
        return position

    def _at_number(self, text: str, position: int) -> int:
        state = self.state
        found = DOTTED.match(text, position)
        if found:
            state.word += found.group()
            return found.end() if len(state.word) <= NUMBER_LIMIT else self._fail(position)
        if text[position] in "+-" and state.word[-1] in "eE" and state.word[:2].lower() != "0x":
            state.word += text[position]
            return position + 1
        dumped = as_json(state.signs, state.word, state.early)
        if dumped is None:
            return self._fail(position)
        self._put(dumped[len(state.early) :])
        state.kind, state.place = "signed" if state.signs else "number", "after"
        state.signs = ""
        return position

    def _at_word(self, text: str, position: int) -> int:
        state = self.state
        found = WORD.match(text, position)
        if found:
            state.word += found.group()
            return found.end() if len(state.word) < WORD_LIMIT else self._fail(position)
        if text[position] in "'\"" and state.word.lower() in PREFIXES:
            return self._open_string(text[position], state.word.lower(), position)
        if state.word not in CONSTANTS:
            return self._fail(position)
        if not state.early:
            self._put(CONSTANTS[state.word])
        state.kind, state.place = "constant", "after"
        return position

    def _at_joined_word(self, text: str, position: int) -> int:
        """A word behind a string: the prefix of a literal that goes on with it, or an error."""
        state = self.state
        found = WORD.match(text, position)
        if found:
            state.word += found.group()
            return found.end() if len(state.word) < WORD_LIMIT else self._fail(position)
        if text[position] in "'\"" and state.word.lower() in PREFIXES:
            return self._open_string(text[position], state.word.lower(), position)
        return self._fail(position)

    def _at_after(self, text: str, position: int) -> int:
        """Behind a value."""
        state = self.state
        after = self._blank(text, position)
        if state.ended is not None:
            if after == position and text[position] not in FOLLOWERS:
                state.place = "broken"
                return position
            state.raw.append(text[position:after])
        if after != position:
            return after
        state.ended = None
        character = text[position]
        if state.kind in ("string", "format") and not state.quoted:
            if character in "'\"":
                return self._open_string(character, "", position)
            if character.isidentifier():
                state.word, state.place = "", "joined_word"
                return position
        if character == ",":
            return self._comma(position)
        if character == ":":
            return self._colon(position)
        if character in BRACKETS and self._end_value():
            return self._close(character, position)
        return self._fail(position)

    def _at_broken(self, text: str, position: int) -> int:
        """Behind a string that seems to end in its midst."""
        self.state.raw.append(text[position:])
        return len(text)

    def _quote_string(self) -> None:
        if self.state.kind in ("string", "format") and not self.state.quoted:
            self._put('"')
            self.state.quoted = True

    def _end_value(self) -> bool:
        """A value is complete. False if it cannot stand where it stands."""
        frame = self.state.frames[-1]
        self._quote_string()
        if frame.kind == "call" or frame.keyed:
            self._close_key(frame)
            return True
        if frame.kind == "{":
            self._settle_brace(frame, "set")
            self.state.sets = True
        frame.count += 1
        return frame.kind != "dict"

    def _comma(self, position: int) -> int:
        state = self.state
        frame = state.frames[-1]
        if not self._end_value():
            return self._fail(position)
        if frame.kind == "(":
            self._settle_brace(frame, "tuple")
        state.place = "argument" if frame.kind == "call" else "value"
        return position + 1

    def _colon(self, position: int) -> int:
        """Ends a key."""
        state = self.state
        frame = state.frames[-1]
        if frame.kind not in ("{", "dict") or frame.keyed or state.kind not in ("string", "number", "constant"):
            return self._fail(position)
        self._quote_string()
        if frame.kind == "{":
            self._settle_brace(frame, "dict")
        text = "".join(state.out[frame.mark - state.taken :])
        del state.out[frame.mark - state.taken :]
        self._open_key(_canonical(text), text if text.startswith('"') else f'"{text}"')
        state.place = "value"
        return position + 1

    def _close(self, character: str, position: int) -> int:
        """A closing bracket, behind a value or a comma or its opening one."""
        state = self.state
        frame = state.frames[-1]
        if _CLOSED_BY[frame.kind] != character:
            return self._fail(position)
        if frame.kind == "call":
            self._close_call()
            return position + 1
        state.frames.pop()
        state.place = "after"
        if frame.kind == "(" and frame.count:
            return position + 1 if self._sign(frame) else self._fail(position)
        if frame.kind in ("(", "{"):
            self._settle_brace(frame, "tuple" if frame.kind == "(" else "dict")
        self._put("}" if frame.kind == "dict" else "]")
        state.kind = "container"
        return position + 1

    def _sign(self, frame: Frame) -> bool:
        """Applies the signs before parentheses to the number in it. False if it holds something else."""
        if not frame.signs:
            return True
        state = self.state
        number = "".join(state.out[frame.slot - state.taken :]).strip('"')
        signs = frame.signs + "-" * number.startswith("-")
        dumped = as_json(signs, number.lstrip("-"), "") if state.kind in ("number", "signed") else None
        state.kind = "signed"
        if dumped is None:
            return False
        state.out[frame.slot - state.taken :] = [dumped]
        return True


def _canonical(text: str) -> str:
    """What a key is compared by: 1, 1.0 and True are one key, "1" is another."""
    if text.startswith('"') or text == "null":
        return text
    value = {"true": 1, "false": 0}.get(text)
    if value is None:
        value = json.loads(text)
    return f"#{int(value)}" if value == value // 1 else f"#{value}"
