"""Reads one call written as a JSON object, `{"name": "f", "arguments": {...}}`, as it arrives.

The keys may come in any order and other keys may stand beside them. The arguments come out in the style in which a
one-shot answer dumps them, as soon as they are read; whoever uses the reader keeps them until the name is known.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Literal

from .assembly import dump_json
from .json_stream import SPACE, JsonStream, JsonStreamState

Place = Literal["start", "first", "key", "colon", "value", "next", "done", "bad"]

_HEAD = re.compile(
    r'[ \t\n\r]*+\{[ \t\n\r]*+"name":[ \t\n\r]*+"([^"\\\x00-\x1f]*+)",[ \t\n\r]*+"arguments":[ \t\n\r]*+(?=\{)'
)
"""What most calls begin with, up to their arguments."""
_OPENED_STRING = re.compile(r'"(?: |\\[nrt])*+.', re.DOTALL)

_STEPS: dict[tuple[Place, str], Place] = {
    ("start", "{"): "first",
    ("first", "}"): "done",
    ("colon", ":"): "value",
    ("next", ","): "key",
    ("next", "}"): "done",
}


@dataclass(slots=True)
class CallObjectState:
    """Where the reader stands.

    `key` is the member being read and `value` its reader; `pieces` the key, the name, or arguments given as a string;
    `ready` arguments that were not taken yet; `quoted` that the arguments are a string which may hold an object;
    `has_arguments` that a value for them has begun, with the character `opened_by`, `arguments_done` that it is
    complete.
    """

    place: Place = "start"
    key: str = ""
    pieces: list[str] = field(default_factory=list)
    value: JsonStreamState | None = None
    name: str | None = None
    ready: list[str] = field(default_factory=list)
    quoted: bool = False
    has_arguments: bool = False
    opened_by: str = ""
    arguments_done: bool = False


@dataclass(frozen=True, slots=True)
class CallStyle:
    """How a format writes its call objects.

    `keys` are the names under which arguments may stand; the first that occurs counts, and so does the first name.
    Arguments given as a string that holds a JSON object are that object (vllm-project/vllm#35948); `verbatim`: a string
    of arguments is used as it is, whatever it holds. `keyed`: the first key is the name, its value the arguments.
    `whole_numbers` and `controls` are those of `JsonStreamState`.
    """

    keys: tuple[str, ...] = ("arguments",)
    verbatim: bool = False
    keyed: bool = False
    whole_numbers: bool = False
    controls: bool = False


PLAIN = CallStyle()
EITHER_KEY = CallStyle(keys=("arguments", "parameters"))
VERBATIM = CallStyle(verbatim=True)


class CallObject:
    """Incremental reader of one call object. Nothing raises: what is no such object ends in `bad`."""

    def __init__(self, state: CallObjectState, style: CallStyle = PLAIN) -> None:
        self.state = state
        self._style = style

    @property
    def done(self) -> bool:
        """The object is closed, whatever it holds."""
        return self.state.place == "done"

    @property
    def bad(self) -> bool:
        """The text is no JSON object with a string for a name."""
        return self.state.place == "bad"

    @property
    def complete(self) -> bool:
        """The object is closed and is a call."""
        return self.done and self.state.name is not None and self.state.has_arguments

    @property
    def in_string(self) -> bool:
        """The next character belongs to a string of the object, or ends it."""
        return not self.bad and self.state.value is not None and JsonStream(self.state.value).in_string

    @property
    def in_arguments(self) -> bool:
        """The arguments are being read, or were when the text turned out bad."""
        state = self.state
        return state.value is not None and state.has_arguments and not state.arguments_done and self._is_arguments

    @property
    def unread(self) -> str:
        """Text of an open or bad value that was held back."""
        value = self.state.value
        return value.held[len(value.sent) :] if value is not None else ""

    @property
    def _is_arguments(self) -> bool:
        state = self.state
        named = state.key == state.name if self._style.keyed else state.key in self._style.keys
        return named and not state.arguments_done

    def take(self) -> str:
        """The arguments that became ready since the last call."""
        text = "".join(self.state.ready)
        self.state.ready = []
        return text

    def pause(self) -> None:
        """The input pauses here; see `JsonStream.pause`."""
        if self.in_arguments and not self.bad and not self.state.quoted:
            text = JsonStream(self.state.value).pause()
            if text:
                self.state.ready.append(text)

    def closed(self, tail: str, *, strings: bool = True, numbers: bool = True) -> str | None:
        """How the dump of the arguments would end if the text ended here; see `JsonStream.closed`."""
        if not self.in_arguments:
            return tail if self.state.arguments_done else None
        if self.state.quoted:
            return None
        return JsonStream(self.state.value).closed(tail, strings=strings, numbers=numbers)

    def feed(self, text: str, position: int = 0) -> int:
        """Reads `text` from `position`; the position behind what was read: the object's end, or what made it bad."""
        state = self.state
        if state.place == "start" and not self._style.keyed and "arguments" in self._style.keys:
            position = self._head(text, position)
        while position < len(text) and state.place not in ("done", "bad"):
            if state.value is not None:
                position = self._value(text, position)
            elif text[position] in SPACE:
                position += 1
            else:
                position = self._structure(text[position], position)
        return position

    def _head(self, text: str, position: int) -> int:
        """Reads the usual beginning of a call at once, where all of it is there."""
        head = _HEAD.match(text, position)
        if head is None:
            return position
        state = self.state
        state.name, state.key, state.place = head.group(1), "arguments", "value"
        self._open_value("{")
        return head.end()

    def _structure(self, character: str, position: int) -> int:
        state = self.state
        follow = _STEPS.get((state.place, character))
        if follow is not None:
            state.place = follow
            return position + 1
        if state.place == "value":
            self._open_value(character)
        elif state.place in ("first", "key") and character == '"':
            state.place, state.value, state.pieces = "key", JsonStreamState(controls=self._style.controls), []
        else:
            state.place = "bad"
        return position

    def _open_value(self, character: str) -> None:
        state = self.state
        style = self._style
        state.value = JsonStreamState(whole_numbers=style.whole_numbers, controls=style.controls)
        state.pieces = []
        if self._is_arguments and not state.has_arguments:
            state.has_arguments, state.opened_by = True, character
            state.quoted = character == '"'

    def _value(self, text: str, position: int) -> int:
        state = self.state
        stream = JsonStream(state.value)
        out, position = stream.feed(text, position)
        if out:
            self._collect(out)
        if stream.state.invalid:
            state.place = "bad"
        elif stream.done:
            self._close_value()
        return position

    def _collect(self, out: str) -> None:
        state = self.state
        if state.place == "key" or (state.key == "name" and state.name is None):
            state.pieces.append(out)
        elif self._is_arguments and not state.quoted:
            state.ready.append(out)
        elif self._is_arguments:
            state.pieces.append(out)
            self._settle_quoted()

    def _settle_quoted(self) -> None:
        """A string is passed on as it is once it can hold no object."""
        state = self.state
        if self._style.verbatim:
            return
        if len(state.pieces) > 1 and len(state.pieces[0]) > 1 and state.pieces[0][-1] == "{":
            return
        text = "".join(state.pieces)
        opened = _OPENED_STRING.match(text)
        if opened is None:
            return
        if opened.group().endswith("{"):
            state.pieces = [opened.group(), text[opened.end() :]]
        else:
            state.quoted = False
            state.ready.append(text)

    def _close_value(self) -> None:
        state = self.state
        state.value = None
        if state.place == "key":
            state.key, state.place = json.loads("".join(state.pieces)), "colon"
            if self._style.keyed and state.name is None:
                state.name = state.key
            return
        state.place = "next"
        if state.key == "name" and state.name is None:
            name = json.loads("".join(state.pieces))
            state.name = name if isinstance(name, str) else None
            if state.name is None:
                state.place = "bad"
        elif self._is_arguments:
            if state.quoted:
                text = "".join(state.pieces)
                state.ready.append(_decoded(text) if self._style.verbatim else _unquoted(text))
            state.arguments_done, state.quoted = True, False
        state.pieces = []


def _decoded(text: str) -> str:
    """The content of the JSON string `text`.

    Half a surrogate pair becomes a question mark: no answer could carry it.
    """
    value: str = json.loads(text)
    return value.encode("utf-8", "replace").decode()


def _unquoted(text: str) -> str:
    """The object in the JSON string `text`, dumped, or `text` itself."""
    try:
        value = json.loads(json.loads(text))
        return dump_json(value) if isinstance(value, dict) else text
    except (ValueError, RecursionError):
        return text
