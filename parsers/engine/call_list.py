"""Reads a JSON list of call objects, `[{"name": "f", "arguments": {...}}, ...]`, one element at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .call_object import PLAIN, CallObject, CallObjectState, CallStyle
from .json_stream import SPACE

_STEPS: dict[tuple[str, str], Literal["first", "element", "closed"]] = {
    ("outside", "["): "first",
    ("first", "]"): "closed",
    ("between", ","): "element",
    ("between", "]"): "closed",
}


@dataclass(slots=True)
class CallListState:
    """The place in the list; `call` is the reader of the current element, kept until the next one begins."""

    place: Literal["outside", "first", "element", "object", "between", "closed", "bad"] = "outside"
    call: CallObjectState | None = None


class CallList:
    """Incremental reader. Nothing raises: what is no list of objects ends in `bad`, a bad object with it."""

    def __init__(self, state: CallListState, style: CallStyle = PLAIN) -> None:
        self.state = state
        self._style = style

    @property
    def closed(self) -> bool:
        """The list is complete."""
        return self.state.place == "closed"

    @property
    def bad(self) -> bool:
        """The text is no list of objects with strings for names."""
        return self.state.place == "bad"

    @property
    def in_element(self) -> bool:
        """An element is open."""
        return self.state.place == "object"

    @property
    def call(self) -> CallObject:
        """The reader of the current element, which must exist."""
        assert self.state.call is not None
        return CallObject(self.state.call, self._style)

    def feed(self, text: str, position: int = 0) -> int:
        """Reads on up to the beginning or the end of an element or of the list; the position behind what was read."""
        state = self.state
        if state.place == "object":
            call = self.call
            position = call.feed(text, position)
            if call.bad:
                state.place = "bad"
            elif call.done:
                state.place = "between"
            return position
        while position < len(text) and text[position] in SPACE:
            position += 1
        if position == len(text) or self.closed or self.bad:
            return position
        if text[position] == "{" and state.place in ("first", "element"):
            state.place, state.call = "object", CallObjectState()
            return position
        state.place = _STEPS.get((state.place, text[position]), "bad")
        return position if self.bad else position + 1
