"""Tool calls of Hermes 2 and 3, Qwen 2.5 and 3, LongCat and many others: JSON objects between two tags.

    I will check.<tool_call>
    {"name": "get_weather", "arguments": {"city": "Paris"}}
    </tool_call>

The tags are text; they need not be tokens. Text behind the first opening tag is never shown. If anything between the
tags is no call, nothing is called and the text is the answer; what a stream has announced by then it cannot take
back. Two things do not count as such: an opening tag that only begins another attempt, and text behind a complete
call.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, Literal

from parsers.engine.call_object import CallObject, CallObjectState
from parsers.engine.context import RequestContext
from parsers.engine.events import CallArguments, CallEnd, CallStart, Content, Malformed
from parsers.engine.lexer import Lexer
from parsers.engine.stage import ToolStage
from parsers.formats.call_stage import CallFormat, CallStage, CallStageState


@dataclass(slots=True)
class TaggedState(CallStageState):
    """Where the stage stands.

    Phases: `content` before the first tag, `call` inside tags, `between` behind them; `text`: what followed the first
    tag was no call, everything is content; `silent`: the same, but calls were sent already, so that nothing more is.
    `sent`: something of what follows the first tag is out; `index` is the open or next call, `call` its reader,
    `announced` whether its name is out, `blank` white space at the end of its arguments, which waits for more,
    `damaged` that its arguments are no JSON and go out as they are.
    """

    phase: Literal["content", "call", "between", "text", "silent"] = "content"
    sent: bool = False
    index: int = 0
    call: CallObjectState | None = None
    announced: bool = False
    blank: str = ""
    damaged: bool = False


class TaggedCalls(CallStage):
    """Calls between two tags; arguments are sent as they come (json 1)."""

    State: ClassVar[type] = TaggedState

    def __init__(self, opening: str, closing: str, stops: Collection[int]) -> None:
        super().__init__(stops)
        self._opening = opening
        self._outside = Lexer([opening])
        self._inside = Lexer([opening, closing])
        self._in_string = Lexer([closing])
        self._passed: list[str] = []

    @property
    def _sent(self) -> bool:
        return bool(self.state.sent)

    def _end_chunk(self) -> None:
        state = self.state
        if state.call is not None:
            CallObject(state.call).pause()
            self._send_arguments()
        if not state.sent and any(isinstance(event, CallStart) for event in self._events):
            state.sent, state.raw = True, []

    def _end(self) -> None:
        if self.state.phase == "call":
            self._close(None)
        if self.state.phase in ("content", "text"):
            self._content(self.state.held)

    def _in_content(self, text: str, position: int) -> int:
        end, tag = self._outside.next(text, position)
        if self.state.phase == "content":
            self._content(text[position:end])
        else:
            self._remember(text[position:end])
        if tag:
            self._open()
            return end + len(tag)
        self.state.held = text[end:]
        return len(text)

    _in_between = _in_content

    def _in_call(self, text: str, position: int) -> int:
        """Up to the next tag, or to what may begin one. An opening tag inside a JSON string is data."""
        end, tag = self._inside.next(text, position)
        self._read(text[position:end])
        in_string = CallObject(self.state.call).in_string
        if tag == self._opening and in_string:
            self._read(tag)
        elif tag:
            self._close(tag)
        elif in_string:
            start, (end, _) = end, self._in_string.next(text, end)
            self._read(text[start:end])
        if tag:
            return end + len(tag)
        self.state.held = text[end:]
        return len(text)

    def _open(self) -> None:
        state = self.state
        state.phase, state.call = "call", CallObjectState()
        state.announced, state.blank, state.damaged = False, "", False
        self._passed = []
        self._remember(self._opening)

    def _read(self, text: str) -> None:
        """Text of the open call."""
        if not text:
            return
        state = self.state
        self._remember(text)
        call = CallObject(state.call)
        if not state.damaged:
            position = call.feed(text)
            if state.call.name is not None and not state.announced:
                state.announced = True
                self._events.append(CallStart(state.index, state.call.name))
            state.damaged = call.bad and call.in_arguments
            text = call.unread + text[position:]
        if state.damaged:
            self._passed.append(text)

    def _send_arguments(self, *, last: bool = False) -> None:
        """Sends what is new, but white space at its end. The brace that ends a damaged call is not its arguments'."""
        state = self.state
        if not state.announced:
            return
        text = state.blank + CallObject(state.call).take() + "".join(self._passed)
        self._passed = []
        kept = text.rstrip()
        if last and state.damaged:
            kept = kept.removesuffix("}").rstrip()
        state.blank = text[len(kept) :]
        if kept:
            self._events.append(CallArguments(state.index, kept))

    def _close(self, tag: str | None) -> None:
        """The open call ends at `tag`, or with the output."""
        state = self.state
        self._send_arguments(last=True)
        complete = CallObject(state.call).complete
        state.call = None
        if complete or (state.announced and state.sent):
            self._events.append(CallEnd(state.index, malformed=not complete))
            state.index += 1
            state.phase = "between"
        elif state.sent and tag != self._opening:
            self._events.append(Malformed())
            state.phase = "silent"
        elif tag != self._opening or state.announced:
            self._give_up()
        if tag == self._opening and state.phase != "text":
            self._open()
        elif tag:
            self._remember(tag)

    def _give_up(self) -> None:
        """What followed the first tag was no call, and nothing of it is sent yet."""
        self._events = [event for event in self._events if isinstance(event, Content)]
        self._give_back("text")

    def _remember(self, text: str) -> None:
        if self.state.phase == "text":
            self._content(text)
        else:
            super()._remember(text)


class HermesTools(CallFormat):
    """`hermes`, `qwen3_json` (json 1)."""

    names: ClassVar[tuple[str, ...]] = ("hermes", "qwen3_json")
    markers: ClassVar[tuple[str, ...]] = ("<tool_call>", "</tool_call>")
    streams_arguments = True

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        opening, closing = self.markers
        return TaggedCalls(opening, closing, self.marks.keys())


class LongCatTools(HermesTools):
    """`longcat`: the same with tags of its own."""

    names = ("longcat",)
    markers = ("<longcat_tool_call>", "</longcat_tool_call>")
