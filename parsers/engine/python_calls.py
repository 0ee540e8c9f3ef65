"""Reads a Python list of calls, `[f(x=1), g(y='a')]`, as it arrives: the list, the callees, the arguments' names.

What is not sent is read all the same: comments, positional arguments, text behind the list.
"""

from __future__ import annotations

import ast
import json
import keyword
import re
import unicodedata

from .events import CallArguments, CallEnd, CallStart, Event
from .python_gate import NESTING_LIMIT
from .python_numbers import early_part
from .python_state import CallListState, FinishedCall, Frame
from .python_strings import LiteralState, StringLiteral
from .python_values import BRACKETS, CONSTANTS, DOTTED, WORD, WORD_LIMIT, ValueReader

_RAW_RUN = re.compile(r"[^\[\](){}'\",\\#]+")
_TAIL = re.compile(r"\)\s*\]")
_OPENED_BY = {"call": "(", "(": "(", "tuple": "(", "[": "[", "{": "{", "dict": "{", "set": "{"}


class CallListReader(ValueReader):
    """One list of calls, from its opening bracket. `feed` never raises; `invalid` tells that the text is no call list.

    `gated`: only lists that begin in vLLM's narrow form count (pythonic_misc 1.2). `keyword_names`: arguments may be
    called like a keyword of Python. `waits`: the end of a string counts only once the next character is known. `alone`:
    nothing but white space may follow the list.
    """

    def __init__(
        self,
        state: CallListState,
        *,
        gated: bool = True,
        keyword_names: bool = False,
        waits: bool = False,
        alone: bool = False,
    ) -> None:
        super().__init__(state, waits=waits)
        self._gated = gated
        self._keyword_names = keyword_names
        self._alone = alone
        if not gated:
            state.strict = False

    @property
    def invalid(self) -> bool:
        return self.state.place == "invalid"

    @property
    def closed(self) -> bool:
        return self.state.place == "end"

    def feed(self, text: str) -> int:
        """How much of `text` was read: all, or what precedes the place where it stops being a call list."""
        state = self.state
        if not state.tail:
            seen = ")" + text if state.bracket else text
            state.tail = _TAIL.search(seen) is not None
            state.bracket = seen.rstrip().endswith(")")
        position = 0
        while position < len(text) and state.place != "invalid":
            position = getattr(self, "_at_" + state.place)(text, position)
        return position

    def followed(self) -> None:
        """Says that the text read so far is followed by white space or a comma, which will be read later."""
        state = self.state
        if state.place in ("number", "word", "literal") and (
            state.literal is None or StringLiteral(state.literal).maybe_closed
        ):
            getattr(self, "_at_" + state.place)(" ", 0)

    # --- list and calls -------------------------------------------------------------------------------------------

    def _at_open(self, text: str, position: int) -> int:
        if text[position] != "[":
            return self._fail(position)
        self.state.place = "first"
        return position + 1

    def _at_first(self, text: str, position: int) -> int:
        if self.state.strict or text[position] == "]":
            return self._callee(text, position)
        return self._at_item(text, position)

    def _at_item(self, text: str, position: int) -> int:
        """Behind a comma, or behind the opening bracket."""
        after = self._blank(text, position)
        if after != position:
            return after
        if text[position] == "]" and self.state.index >= 0:
            return self._close_list(position)
        return self._callee(text, position)

    def _callee(self, text: str, position: int) -> int:
        if not self._starts_name(text[position]):
            return self._fail(position)
        self.state.word, self.state.place = "", "callee"
        return position

    def _starts_name(self, character: str) -> bool:
        return character.isidentifier() and (not self.state.strict or (character.isascii() and character != "_"))

    def _at_callee(self, text: str, position: int) -> int:
        state = self.state
        found = DOTTED.match(text, position)
        if found:
            state.word += found.group()
            return found.end() if len(state.word) < WORD_LIMIT else self._fail(position)
        if state.strict and text[position] != "(":
            return self._fail(position)
        state.place = "callee_end"
        return position

    def _at_callee_end(self, text: str, position: int) -> int:
        state = self.state
        after = self._blank(text, position)
        if after != position:
            return after
        if text[position] == ".":
            state.word += "."
            state.place = "callee"
            return position + 1
        parts = state.word.split(".")
        if text[position] != "(" or (state.strict and len(parts) > 1):
            return self._fail(position)
        if not all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
            return self._fail(position)
        state.index += 1
        state.name = unicodedata.normalize("NFKC", state.word)
        state.frames, state.out, state.taken = [Frame("call")], ["{"], 0
        state.keywords = state.unpacked = False
        state.place = "argument"
        return position + 1

    def _close_call(self) -> None:
        state = self.state
        state.finished.append(FinishedCall(state.index, state.name, "".join(state.out) + "}"))
        state.frames, state.out, state.name = [], [], ""
        state.place = "between"

    def _at_between(self, text: str, position: int) -> int:
        """Behind a call."""
        after = self._blank(text, position)
        if after != position:
            return after
        if text[position] == ",":
            self.state.place = "item"
            return position + 1
        return self._close_list(position) if text[position] == "]" else self._fail(position)

    def _close_list(self, position: int) -> int:
        state = self.state
        if self._gated and not state.tail:
            if not state.announced:
                return self._fail(position)
            state.refused = True
        state.place = "end"
        return position + 1

    def _at_end(self, text: str, position: int) -> int:
        if self._alone:
            after = self._blank(text, position)
            return after if after != position else self._fail(position)
        self.state.trail.append(text[position:])
        return len(text)

    # --- arguments ------------------------------------------------------------------------------------------------

    def _at_argument(self, text: str, position: int) -> int:
        """Behind the opening parenthesis or a comma."""
        state = self.state
        character = text[position]
        if state.strict and not (character == ")" or self._starts_name(character)):
            return self._fail(position)
        after = self._blank(text, position)
        if after != position:
            return after
        if character == ")":
            self._close_call()
        elif character == "*":
            state.place = "star"
        elif character.isidentifier():
            state.word, state.place = "", "argument_name"
            return position
        else:
            return self._positional("", position)
        return position + 1

    def _at_star(self, text: str, position: int) -> int:
        state = self.state
        if text[position] != "*":
            return self._positional("*", position)
        state.unpacked = True
        self._open_key("**", '"null"')
        state.place = "value"
        return position + 1

    def _at_argument_name(self, text: str, position: int) -> int:
        state = self.state
        found = WORD.match(text, position)
        if found:
            state.word += found.group()
            return found.end() if len(state.word) < WORD_LIMIT else self._fail(position)
        if state.strict and text[position] != "=":
            return self._fail(position)
        state.place = "argument_gap"
        return position

    def _at_argument_gap(self, text: str, position: int) -> int:
        after = self._blank(text, position)
        if after != position:
            return after
        if text[position] != "=":
            return self._positional(self.state.word + " ", position)
        self.state.place = "equals"
        return position + 1

    def _at_equals(self, text: str, position: int) -> int:
        """Behind `name=`; a second sign would make it a comparison."""
        state = self.state
        state.strict = False
        if text[position] == "=":
            return self._positional(state.word + "=", position)
        name = unicodedata.normalize("NFKC", state.word)
        if keyword.iskeyword(name):
            state.reserved = True
        if not name.isidentifier() or (state.reserved and not self._keyword_names):
            return self._fail(position)
        state.keywords = True
        self._open_key(name, json.dumps(name, ensure_ascii=False))
        state.place = "value"
        return position

    # --- positional arguments: ignored, but they must be Python -----------------------------------------------------

    # What is in their strings does not matter.

    def _positional(self, begun: str, position: int) -> int:
        state = self.state
        if state.strict or state.unpacked or (state.keywords and begun != "*"):
            return self._fail(position)
        state.raw, state.raw_stack, state.place = [begun], "", "raw"
        return position

    def _at_raw(self, text: str, position: int) -> int:
        state = self.state
        found = _RAW_RUN.match(text, position)
        if found:
            state.raw.append(found.group())
            return found.end()
        character = text[position]
        if character == "#":
            state.back, state.place = "raw", "comment"
            return position + 1
        if not state.raw_stack and character in ",)":
            return self._end_raw(character, position)
        state.raw.append(character)
        if character in "'\"":
            state.raw.append(character)
            state.literal, state.place = LiteralState(quote=character, raw=True), "raw_literal"
        elif character in "[({":
            state.raw_stack += character
        elif character in BRACKETS:
            if not state.raw_stack.endswith(BRACKETS[character]):
                return self._fail(position)
            state.raw_stack = state.raw_stack[:-1]
        return position + 1 if len(state.raw_stack) < NESTING_LIMIT else self._fail(position)

    def _at_raw_literal(self, text: str, position: int) -> int:
        state = self.state
        assert state.literal is not None
        literal = StringLiteral(state.literal)
        _, behind = literal.feed(text, position)
        if state.literal.invalid:
            return self._fail(behind)
        if state.literal.closed:
            state.literal, state.place = None, "raw"
        return behind

    def _end_raw(self, character: str, position: int) -> int:
        state = self.state
        expression = "".join(state.raw)
        state.raw = []
        if not expression:
            return self._fail(position)
        try:
            ast.parse(f"f({expression}\n)", mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return self._fail(position)
        if character == ")":
            self._close_call()
        else:
            state.place = "argument"
        return position + 1

    # --- what may be sent -----------------------------------------------------------------------------------------

    def ready(self, stack: str, *, comma: bool) -> bool:
        """Whether closing the open brackets and quote, `stack`, would give a call list that holds all text so far.

        `comma`: one follows the text so far, which will be read later.
        """
        state = self.state
        if self._waits and state.place == "after" and state.kind in ("string", "format") and not comma:
            return False
        if state.place == "end" or not self._place_ready():
            return state.place == "end"
        opened = "[" + "".join(_OPENED_BY[frame.kind] for frame in state.frames)
        if state.literal is not None and not StringLiteral(state.literal).maybe_closed:
            opened += state.literal.quote
        if opened != stack or (state.sets and "{" in stack):
            return False
        return all(self._frame_ready(frame, frame is state.frames[-1]) for frame in state.frames)

    def _place_ready(self) -> bool:
        state = self.state
        match state.place:
            case "between" | "argument" | "after":
                return True
            case "argument_name" | "argument_gap":
                return not state.keywords and not state.unpacked and not keyword.iskeyword(state.word)
            case "value":
                top = state.frames[-1]
                return top.kind in ("[", "{", "dict") and not top.count and not top.keyed and not state.signs
            case "number":
                return early_part(state.signs, state.word) is not None
            case "word":
                return state.word in CONSTANTS and not state.signs
            case "literal":
                assert state.literal is not None
                literal = StringLiteral(state.literal)
                return literal.open_cleanly or (literal.maybe_closed and not self._waits)
        return False

    def _frame_ready(self, frame: Frame, top: bool) -> bool:
        if frame.repeated or frame.kind in ("(", "tuple", "set"):
            return False
        if frame.kind in ("{", "dict") and not frame.keyed:
            return top and self.state.place == "value"
        return True

    def take(self) -> list[Event]:
        """Everything that is certain and was not taken yet, as events."""
        state = self.state
        events: list[Event] = []
        for call in state.finished:
            _announce(events, call.index, call.name, call.arguments)
            events.append(CallEnd(call.index))
        state.finished = []
        state.announced = state.announced or bool(events)
        if state.frames:
            state.announced = True
            self._write_early()
            _announce(events, state.index, state.name, "".join(state.out))
            state.name = ""
            state.taken += len(state.out)
            state.out = []
        return events

    def _write_early(self) -> None:
        """Writes of the open value what is certain."""
        state = self.state
        if state.place == "number":
            part = early_part(state.signs, state.word) or ""
            if part.startswith(state.early):
                self._put(part[len(state.early) :])
                state.early = part
        elif state.place == "word" and not state.early:
            state.early = CONSTANTS[state.word]
            self._put(state.early)
        elif state.place == "after" and state.kind in ("string", "format") and not state.quoted:
            self._put('"')
            state.quoted = True
        elif state.place == "value" and state.frames[-1].kind == "{":
            self._settle_brace(state.frames[-1], "dict")


def _announce(events: list[Event], index: int, name: str, arguments: str) -> None:
    if name:
        events.append(CallStart(index, name))
    if arguments:
        events.append(CallArguments(index, arguments))


def ends_statement(trail: str) -> bool:
    """Whether `trail`, the text behind a list, leaves the list a statement of its own in valid Python."""
    if not trail.strip():
        return True
    try:
        first = ast.parse("[]" + trail).body[0]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.List)
