"""Calls of LiquidAI LFM2: Python lists in markers, with the slips that these models make.

Sample:

    Let me see.<|tool_call_start|>[get_weather(city='Martha's Vineyard', days=07)]<|tool_call_end|>
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from parsers.engine.context import RequestContext
from parsers.engine.ending import Ending, EndingState
from parsers.engine.events import Content, Event, Malformed, Segment, Token
from parsers.engine.exceptions import ParserConfigurationError
from parsers.engine.python_repairs import RepairState, SourceRepair
from parsers.engine.python_state import CallListState
from parsers.engine.python_stream import CallStream, CallStreamState, ListStyle
from parsers.engine.stage import Outcome, ToolStage
from parsers.engine.vocabulary import Vocabulary

from .pythonic import Pythonic

START, END = "<|tool_call_start|>", "<|tool_call_end|>"
STYLE = ListStyle(gated=False, keyword_names=True, waits=True, alone=True)

# Text behind a call that may repeat a list of calls.
_ECHO = re.compile(r"\s*\[\s*(?:[\w.]+\s*(?:\(.*)?)?\Z", re.DOTALL)
_ECHO_LIMIT = 4096


@dataclass(slots=True)
class Lfm2State:
    """`mode`: "text" before the first list, "list" in one, "after" one, or "plain": a list was malformed, all is
    content.

    `called`: calls were sent; `malformed`: some of them were none. `trailed`: text behind a list was sent, `echo`: text
    that may repeat the list. `began`: the list's first bracket was read.
    """

    mode: Literal["text", "list", "after", "plain"] = "text"
    began: bool = False
    called: bool = False
    malformed: bool = False
    trailed: bool = False
    echo: str = ""
    calls: CallStreamState | None = None
    repair: RepairState = field(default_factory=RepairState)
    ending: EndingState = field(default_factory=EndingState)


class Lfm2Stage(ToolStage):
    """Text outside the markers is content; a list of calls that is repeated behind its end marker is not.

    An end marker within a string is data.
    """

    State: ClassVar[type] = Lfm2State

    def __init__(self, start_id: int, end_id: int) -> None:
        super().__init__()
        self._start_id = start_id
        self._end_id = end_id
        self._content: list[str] = []
        self._events: list[Event] = []

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        state = self.state
        self._content, self._events = [], []
        answered = state.mode == "after" and state.called
        ending = Ending(state.ending)
        self._text(ending.release(segments))
        for segment in segments:
            self._segment(segment)
        if state.mode == "list" and not state.repair.held:
            self._events += self._stream().events()
        content = "".join(self._content)
        if answered and not state.ending.active:
            return [Content(content), *self._events]
        if not content and (self._events or state.mode in ("list", "after")):
            return self._events
        return ending.content(content, [each for each in segments if not self._is_marker(each)]) + self._events

    def _is_marker(self, segment: Segment) -> bool:
        return isinstance(segment, Token) and segment.token_id in (self._start_id, self._end_id)

    def _segment(self, segment: Segment) -> None:
        mode, token_id = self.state.mode, segment.token_id if isinstance(segment, Token) else None
        if token_id == self._start_id and mode in ("text", "after"):
            self._open()
        elif token_id == self._end_id and mode == "list" and not self._stream().in_string:
            self._close(segment.text)
        elif token_id == self._end_id and mode == "after":
            self.state.echo = ""
        elif token_id is not None and mode == "after" and not self.state.trailed:
            self.state.ending.held += segment.text
        else:
            self._text(segment.text)

    def _text(self, text: str) -> None:
        if not text:
            return
        if self.state.mode == "list":
            self._list_text(text)
        elif self.state.mode == "after":
            self._text_after(text)
        else:
            self._content.append(text)

    def _stream(self) -> CallStream:
        return CallStream(self.state.calls, STYLE)

    def _open(self) -> None:
        state = self.state
        index = state.calls.calls.index if state.calls is not None else -1
        if state.echo:
            self._content.append(state.echo)
        state.mode, state.began, state.trailed, state.echo = "list", False, False, ""
        state.repair = RepairState()
        state.calls = CallStreamState(calls=CallListState(index=index), raw=[START])

    def _list_text(self, text: str) -> None:
        state = self.state
        source = SourceRepair(state.repair, numbers=True).feed(text)
        if not state.began:
            source = source.lstrip()
            state.began = bool(source)
        failed = self._stream().feed(source, raw=text)
        if failed is not None:
            self._give_back("".join(failed))

    def _close(self, marker: str) -> None:
        """The end marker."""
        state, stream = self.state, self._stream()
        failed = stream.feed(SourceRepair(state.repair, numbers=True).finish(), raw="")
        failed = failed or stream.mend()
        if failed is None and not stream.closed:
            self._events += stream.events() if state.calls.sent else []
            failed = stream.give_up()
        if failed is not None:
            self._give_back(failed[0] + marker)
            return
        state.mode = "after"
        events = stream.events()
        state.called = state.called or state.calls.sent
        self._events += events
        state.malformed = state.malformed or not stream.closed

    def _give_back(self, text: str) -> None:
        self.state.mode, self.state.ending.active = "plain", True
        self._content.append(text)

    def _text_after(self, text: str) -> None:
        """Behind a list: content, unless it may be the list once more."""
        state = self.state
        text, state.echo = state.echo + text, ""
        if text.strip() and _ECHO.match(text) and len(text) < _ECHO_LIMIT:
            blank = text[: len(text) - len(text.lstrip())]
            text, state.echo = blank, text[len(blank) :]
        if text:
            self._content.append(text)
        if not state.trailed and text.strip():
            state.trailed, state.ending.active = True, text.lstrip().startswith(("[", "<"))

    def finish(self) -> list[Event]:
        state = self.state
        events: list[Event] = []
        if state.mode == "list":
            stream = self._stream()
            stream.feed(SourceRepair(state.repair, numbers=True).finish(), raw="")
            failed = stream.mend()
            events = [Content(failed[0])] if failed else stream.finish()
        elif state.echo:
            events.append(Content(state.echo))
        if state.malformed:
            events.append(Malformed())
        return events + Ending(state.ending).finish()


class Lfm2Tools(Pythonic):
    """`lfm2` (pythonic_misc 5)."""

    names = ("lfm2",)
    tags: ClassVar[tuple[str, ...]] = (START, END)

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        start_id, end_id = vocabulary.token_id(START), vocabulary.token_id(END)
        if start_id is None or end_id is None:
            raise ParserConfigurationError(f"the tokenizer has no {START} and {END} tokens")
        self._start_id, self._end_id = start_id, end_id
        self.marks = {**self.marks, start_id: START, end_id: END}

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return Lfm2Stage(self._start_id, self._end_id)

    def settle(self, outcome: Outcome) -> None:
        """Text before and behind the calls stands on lines of its own."""
        super().settle(outcome)
        if outcome.called and outcome.content is not None:
            lead = len(outcome.raw.partition(START)[0])
            parts = (outcome.content[:lead].strip(), outcome.content[lead:].strip())
            outcome.content = "\n".join(part for part in parts if part)
