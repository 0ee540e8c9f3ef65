"""Tool calls of Apertus: a list of objects whose only key is the function.

    I will check.<|tools_prefix|>[{"get_weather": {"city": "Paris"}}]<|tools_suffix|> One moment.

All text outside the markers is content. A list that is no JSON is text; what a stream has announced by then it cannot
take back. A call that the output was cut in is none, and its markup is no content. Arguments go out as far as they are
certain, but for closing brackets and quotes at their end, which wait until the call is followed by something.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from parsers.engine.call_list import CallList, CallListState
from parsers.engine.call_object import CallObject, CallStyle
from parsers.engine.context import RequestContext
from parsers.engine.events import CallArguments, CallEnd, CallStart, Content, Malformed, Segment
from parsers.engine.json_stream import SPACE, common_length
from parsers.engine.lexer import Lexer
from parsers.engine.partial import held_back
from parsers.engine.scanner import text_of
from parsers.engine.stage import Outcome, ToolStage
from parsers.formats.call_stage import (
    NEAR_END,
    CallFormat,
    CallStage,
    CallStageState,
    lacks_quote,
    merge_repeated_keys,
)

PREFIX, SUFFIX = "<|tools_prefix|>", "<|tools_suffix|>"
WAITING = '}" ],'
STYLE = CallStyle(keyed=True, whole_numbers=True)


@dataclass(slots=True)
class ApertusState(CallStageState):
    """Where the stage stands.

    Phases: `content`; `list`: behind a prefix; `text`: a list was none, everything is content; `silent`: the same, but
    calls are announced. `calls` is the reader of the open list, `single` that it is one object.
    `index` is the last call announced, `first` the first of the list, `sent` that it is sent; `named` that the open
    element is announced, `unsent` its arguments that wait, `tail` the end of what was read; `back` may begin a marker
    at the end of the output so far, even within a string, where it is read. `spoken`: visible content is out,
    `on_new_line` that it ends with a line break; `gap`: markup followed it, so that a line break comes before more;
    `blank`: so that white space is left out; `seen`: there was a list.
    """

    phase: Literal["content", "list", "text", "silent"] = "content"
    calls: CallListState = field(default_factory=CallListState)
    single: bool = False
    index: int = -1
    first: int = 0
    sent: bool = False
    named: bool = False
    unsent: str = ""
    tail: str = ""
    spoken: bool = False
    on_new_line: bool = False
    gap: bool = False
    blank: bool = False
    seen: bool = False
    back: str = ""


class ApertusCalls(CallStage):
    """One step of arguments a chunk (json 11)."""

    State: ClassVar[type] = ApertusState

    def __init__(self, stops: Collection[int]) -> None:
        super().__init__(stops)
        self._outside, self._inside = Lexer([PREFIX, SUFFIX]), Lexer([SUFFIX])
        self._mark = 0
        self._waits = False

    @property
    def _sent(self) -> bool:
        return bool(self.state.sent)

    def _begin_chunk(self, segments: Sequence[Segment]) -> None:
        self._mark = 0
        state = self.state
        seen = state.back + text_of(segments)
        size = held_back(seen, PREFIX, SUFFIX)
        state.back, self._waits = seen[len(seen) - size :], size == len(seen)

    def _is_stop_shown(self) -> bool:
        return super()._is_stop_shown() and not self.state.seen

    def _end_chunk(self) -> None:
        state = self.state
        if state.phase == "list":
            if not self._waits:
                self._send_step()
            if state.index >= state.first:
                state.sent, state.raw = True, []

    def _end(self) -> None:
        state = self.state
        if state.phase == "list":
            self._end_list(cut=True)
        elif state.phase in ("content", "text"):
            self._content(state.held)

    def _in_content(self, text: str, position: int) -> int:
        """Up to a prefix. A suffix is left out once there was a list."""
        state = self.state
        end, marker = self._outside.next(text, position)
        self._content(text[position:end])
        if not marker:
            state.held = text[end:]
            return len(text)
        if marker == PREFIX:
            self._open()
        elif state.seen:
            state.gap, state.blank = state.spoken, False
        else:
            self._content(marker)
        return end + len(marker)

    # --- a list ---------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        state = self.state
        state.phase, state.raw, state.calls, state.single = "list", [PREFIX], CallListState(), False
        state.first, state.sent, state.named, state.unsent, state.tail = state.index + 1, False, False, "", ""
        self._mark = len(self._events)

    def _in_list(self, text: str, position: int) -> int:
        """Up to the suffix. In a string it is data, unless brackets before it show that a quote is missing."""
        state = self.state
        end, suffix = self._inside.next(text, position)
        position = self._read(text, position, end)
        if state.phase != "list" or position < end:
            return position
        calls = self._calls()
        if calls.in_element and calls.call.in_string and not lacks_quote(state.tail, "]"):
            return self._read(text, end, end + len(suffix) if suffix else len(text))
        if not suffix:
            state.held = text[end:]
            return len(text)
        self._end_list(cut=False)
        return end + len(suffix)

    def _calls(self) -> CallList:
        return CallList(self.state.calls, STYLE)

    def _read(self, text: str, position: int, end: int) -> int:
        """Reads to `end`, or to the end of the list; the position behind what was read."""
        state = self.state
        calls = self._calls()
        piece = text[position:end]
        state.tail = (state.tail + piece)[-NEAR_END:]
        at = 0
        while at < len(piece) and state.phase == "list":
            start = at
            if state.calls.place == "outside":
                while at < len(piece) and piece[at] in SPACE:
                    at += 1
                if piece[at : at + 1] == "{":
                    state.calls.place, state.single = "first", True
            before = state.calls.call
            at = calls.feed(piece, at)
            self._remember(piece[start:at])
            if calls.bad:
                self._remember(piece[at:])
                at = len(piece)
                self._reject()
            elif before is not None and state.calls.call is not before:
                self._end_call(CallObject(before, STYLE))
            elif calls.closed or (state.single and state.calls.place == "between"):
                self._end_list(cut=False)
        return position + at

    def _end_list(self, *, cut: bool) -> None:
        """The list is closed, the suffix is there, or the output ends."""
        state = self.state
        if state.calls.call is not None:
            call = self._calls().call
            if cut and not call.state.arguments_done:
                if state.named:
                    self._events.append(CallEnd(state.index, malformed=True))
            else:
                self._end_call(call)
        state.phase, state.raw, state.calls = "content", [], CallListState()
        state.seen, state.gap, state.blank = True, state.spoken, True

    def _end_call(self, call: CallObject) -> None:
        """Nothing follows in this call. An open value is closed, an object without members is no call."""
        state = self.state
        if call.state.name is not None and call.state.has_arguments:
            state.unsent += call.take()
            rest = call.closed(state.unsent)
            if rest is not None:
                self._announce(call)
                self._send(rest)
                self._events.append(CallEnd(state.index))
        state.named, state.unsent = False, ""

    def _send_step(self) -> None:
        """Announces the open call once it has a value, and sends what of it is new."""
        state = self.state
        if state.calls.call is None:
            return
        call = self._calls().call
        state.unsent += call.take()
        now = call.closed(state.unsent, numbers=False)
        if now is not None or call.state.quoted:
            self._announce(call)
        certain = (now or "").rstrip(WAITING)
        self._send(certain[: common_length(certain, state.unsent)])

    def _announce(self, call: CallObject) -> None:
        state = self.state
        if not state.named:
            state.index += 1
            state.named = True
            self._events += [CallStart(state.index, call.state.name or ""), CallArguments(state.index, "")]

    def _send(self, text: str) -> None:
        state = self.state
        if text:
            self._events.append(CallArguments(state.index, text, apart=True))
            state.unsent = state.unsent[len(text) :]

    def _reject(self) -> None:
        """The list is no JSON."""
        state = self.state
        if state.sent:
            self._events.append(Malformed())
            state.phase = "silent"
            return
        self._events = self._events[: self._mark]
        state.index = state.first - 1
        state.seen = state.gap = state.blank = False
        self._give_back("text" if state.index < 0 else "content")

    # --- text -----------------------------------------------------------------------------------------------------

    def _content(self, text: str) -> None:
        """Content. Behind markup it begins on a line of its own, if there was content before."""
        state = self.state
        if state.gap or state.blank:
            text = text.lstrip()
        if text:
            text = "\n" + text if state.gap and not state.on_new_line else text
            state.on_new_line = text.endswith("\n")
            state.gap = state.blank = False
            state.spoken = state.spoken or not text.isspace()
            self._events.append(Content(text))


class ApertusTools(CallFormat):
    """`apertus` (json 11)."""

    names = ("apertus",)
    markers = (PREFIX, SUFFIX)
    guided_choice = True
    merges_entries = True
    cut_calls_count = False

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return ApertusCalls(self.marks.keys())

    def settle(self, outcome: Outcome) -> None:
        """Even a list without calls is no content. Text before and behind it stands without white space at its ends."""
        outcome.calls = [call for call in outcome.calls if not call.malformed]
        merge_repeated_keys(outcome)
        content = outcome.content or ""
        outcome.called = bool(outcome.calls) or (PREFIX in outcome.raw and PREFIX not in content)
        if outcome.called:
            before = outcome.raw.partition(PREFIX)[0]
            behind = content.removeprefix(before) if content.startswith(before) else ""
            if behind or content == before:
                content = "\n".join(part for part in (before.strip(), behind.strip()) if part)
            outcome.content = content.strip() or None
