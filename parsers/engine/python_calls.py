"""Reads a Python list of calls, `[f(x=1), g(y='a')]`, as it arrives and writes each call's arguments as JSON text.

The JSON is what converting and dumping the whole list would give (pythonic_misc 1.1), whatever the chunks. Only what
cannot be known yet is held: half a number, a bracket that may be a tuple or a set, a positional argument.
"""

from __future__ import annotations

import ast
import json
import keyword
import re
import unicodedata
from dataclasses import dataclass, field

from .events import CallArguments, CallEnd, CallStart, Event
from .python_gate import NESTING_LIMIT
from .python_numbers import NUMBER_LIMIT, as_json, early_part
from .python_strings import PREFIXES, LiteralState, StringLiteral

_WORD = re.compile(r"\w+")
_DOTTED = re.compile(r"[\w.]+")
_SPACE = re.compile(r"[ \t\n\r\f]+")
_RAW_RUN = re.compile(r"[^\[\](){}'\",\\#]+")
_TAIL = re.compile(r"\)\s*\]")
_CONSTANTS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
_CLOSED_BY = {"call": ")", "(": ")", "tuple": ")", "[": "]", "{": "}", "dict": "}", "set": "}"}
_OPENED_BY = {"call": "(", "(": "(", "tuple": "(", "[": "[", "{": "{", "dict": "{", "set": "{"}
_BRACKETS = {")": "(", "]": "[", "}": "{"}
_WORD_LIMIT = 4096


@dataclass(slots=True)
class Frame:
    """An open bracket.

    `kind`: "call", "[", "(" (parentheses or a tuple, not known yet), "tuple", "{" (not known yet), "dict" or "set".
    `slot` and `mark` are pieces of output, numbered from the call's first: where the bracket goes once it is known,
    where the open key begins. `keyed`: the value of `key` is open, `start` being its first piece; `repeated`: that key
    was there before. `keys`: for each key its value's first piece, the piece behind it, and whether it is a string.
    """

    kind: str
    count: int = 0
    slot: int = 0
    mark: int = 0
    keyed: bool = False
    key: str = ""
    signs: str = ""
    start: int = 0
    repeated: bool = False
    keys: dict[str, list[int]] = field(default_factory=dict)


@dataclass(slots=True)
class FinishedCall:
    """A call that is complete but not all sent; `name` is "" where that was sent."""

    index: int
    name: str
    arguments: str


@dataclass(slots=True)
class CallListState:
    """Where in the list the reader is (`place`), and what of it was not taken yet.

    `strict`: the list must still have the narrow form in which vLLM's one-shot answer expects its beginning; `tail`:
    the end of that form was seen, `refused`: the list ended in another form; `announced`: some of the list was taken;
    `bracket`: what was read ends in `)`. `kind` is that of the value just read; `signs`, `word`, `early`, `literal`,
    `quoted` belong to the value being read: early is what was written of it before its end was known. `out` holds JSON
    of the open call in pieces, `taken` counts those that are gone.
    """

    place: str = "open"
    back: str = ""
    strict: bool = True
    tail: bool = False
    bracket: bool = False
    announced: bool = False
    refused: bool = False
    index: int = -1
    name: str = ""
    frames: list[Frame] = field(default_factory=list)
    keywords: bool = False
    unpacked: bool = False
    sets: bool = False
    kind: str = ""
    word: str = ""
    signs: str = ""
    early: str = ""
    literal: LiteralState | None = None
    quoted: bool = False
    raw: list[str] = field(default_factory=list)
    raw_stack: str = ""
    out: list[str] = field(default_factory=list)
    taken: int = 0
    finished: list[FinishedCall] = field(default_factory=list)
    trail: list[str] = field(default_factory=list)


class CallListReader:
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
        self.state = state
        self._gated = gated
        self._keyword_names = keyword_names
        self._waits = waits
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

    # --- what may be sent -----------------------------------------------------------------------------------------

    def ready(self, stack: str) -> bool:
        """Whether closing the open brackets and quote, `stack`, would give a call list that holds all text so far."""
        state = self.state
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
            case "between" | "argument":
                return True
            case "argument_name" | "argument_gap":
                return not state.keywords and not state.unpacked and not keyword.iskeyword(state.word)
            case "value":
                top = state.frames[-1]
                return top.kind in ("[", "{", "dict") and not top.count and not top.keyed and not state.signs
            case "number":
                return early_part(state.signs, state.word) is not None
            case "word":
                return state.word in _CONSTANTS and not state.signs
            case "literal":
                assert state.literal is not None
                literal = StringLiteral(state.literal)
                return literal.open_cleanly or literal.maybe_closed
            case "after":
                return not (self._waits and state.kind in ("string", "format"))
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
            state.early = _CONSTANTS[state.word]
            self._put(state.early)
        elif state.place == "after" and state.kind in ("string", "format") and not state.quoted:
            self._put('"')
            state.quoted = True
        elif state.place == "value" and state.frames[-1].kind == "{":
            self._settle_brace(state.frames[-1], "dict")

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

    # --- list and calls -------------------------------------------------------------------------------------------

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
        found = re.compile(r"[\n\r]").search(text, position)
        if found is None:
            return len(text)
        self.state.place = self.state.back
        return found.start()

    def _at_continuation(self, text: str, position: int) -> int:
        if text[position] not in "\n\r":
            return self._fail(position)
        self.state.place = self.state.back
        return position + 1

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
        found = _DOTTED.match(text, position)
        if found:
            state.word += found.group()
            return found.end() if len(state.word) < _WORD_LIMIT else self._fail(position)
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
        found = _WORD.match(text, position)
        if found:
            state.word += found.group()
            return found.end() if len(state.word) < _WORD_LIMIT else self._fail(position)
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
        if not name.isidentifier() or (keyword.iskeyword(name) and not self._keyword_names):
            return self._fail(position)
        state.keywords = True
        self._open_key(name, json.dumps(name, ensure_ascii=False))
        state.place = "value"
        return position

    # --- positional arguments: ignored, but they must be Python ---------------------------------------------------

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
            state.literal, state.place = LiteralState(quote=character, raw=True), "raw_literal"
        elif character in "[({":
            state.raw_stack += character
        elif character in _BRACKETS:
            if not state.raw_stack.endswith(_BRACKETS[character]):
                return self._fail(position)
            state.raw_stack = state.raw_stack[:-1]
        return position + 1 if len(state.raw_stack) < NESTING_LIMIT else self._fail(position)

    def _at_raw_literal(self, text: str, position: int) -> int:
        state = self.state
        assert state.literal is not None
        literal = StringLiteral(state.literal)
        _, behind = literal.feed(text, position)
        state.raw.append(text[position:behind])
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

    # --- values ---------------------------------------------------------------------------------------------------

    def _at_value(self, text: str, position: int) -> int:
        state = self.state
        after = self._blank(text, position)
        if after != position:
            return after
        character = text[position]
        frame = state.frames[-1]
        if character in _BRACKETS:
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
            state.literal, state.place = None, "after"
        return position

    def _at_number(self, text: str, position: int) -> int:
        state = self.state
        found = _DOTTED.match(text, position)
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
        found = _WORD.match(text, position)
        if found:
            state.word += found.group()
            return found.end() if len(state.word) < _WORD_LIMIT else self._fail(position)
        if text[position] in "'\"" and state.word.lower() in PREFIXES:
            return self._open_string(text[position], state.word.lower(), position)
        if state.word not in _CONSTANTS:
            return self._fail(position)
        if not state.early:
            self._put(_CONSTANTS[state.word])
        state.kind, state.place = "constant", "after"
        return position

    def _at_joined_word(self, text: str, position: int) -> int:
        """A word behind a string: the prefix of a literal that goes on with it, or an error."""
        state = self.state
        found = _WORD.match(text, position)
        if found:
            state.word += found.group()
            return found.end() if len(state.word) < _WORD_LIMIT else self._fail(position)
        if text[position] in "'\"" and state.word.lower() in PREFIXES:
            return self._open_string(text[position], state.word.lower(), position)
        return self._fail(position)

    def _at_after(self, text: str, position: int) -> int:
        """Behind a value."""
        state = self.state
        after = self._blank(text, position)
        if after != position:
            return after
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
        if character in _BRACKETS and self._end_value():
            return self._close(character, position)
        return self._fail(position)

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
        self._open_key(_canonical(state.kind, text), text if state.kind == "string" else f'"{text}"')
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
        number = "".join(state.out[frame.slot - state.taken :])
        dumped = as_json(frame.signs, number.lstrip("-"), "") if state.kind in ("number", "signed") else None
        state.kind = "signed"
        if dumped is None:
            return False
        if number.startswith("-"):
            dumped = dumped[1:] if dumped.startswith("-") else "-" + dumped
        state.out[frame.slot - state.taken :] = [dumped]
        return True


def _announce(events: list[Event], index: int, name: str, arguments: str) -> None:
    if name:
        events.append(CallStart(index, name))
    if arguments:
        events.append(CallArguments(index, arguments))


def _canonical(kind: str, text: str) -> str:
    """What a key is compared by: 1, 1.0 and True are one key, "1" is another."""
    if kind == "string" or text == "null":
        return text
    value = {"true": 1, "false": 0}.get(text)
    if value is None:
        value = json.loads(text)
    return f"#{int(value)}" if value == value // 1 else f"#{value}"


def ends_statement(trail: str) -> bool:
    """Whether `trail`, the text behind a list, leaves the list a statement of its own in valid Python."""
    if not trail.strip():
        return True
    try:
        first = ast.parse("[]" + trail).body[0]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.List)
