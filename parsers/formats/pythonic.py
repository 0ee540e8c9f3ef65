"""Calls as a Python list, nothing before and nothing behind it (Llama 3.2, ToolACE).

Sample:

    [get_weather(city='Paris', days=3), search(query="museums")]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from parsers.engine.context import RequestContext
from parsers.engine.ending import Ending, EndingState
from parsers.engine.events import Content, Event, Segment
from parsers.engine.python_stream import CallStream, CallStreamState, ListStyle
from parsers.engine.scanner import text_of
from parsers.engine.stage import Outcome, ToolFormat, ToolStage
from parsers.engine.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Markers:
    """What may stand around a list: `start` only at the beginning of the answer, `end` anywhere behind it."""

    start: str
    end: str


@dataclass(slots=True)
class PythonicState:
    """`mode`: "start" (not known yet), "text", "list" (the answer is a list) or "last" (a list that may end the
    answer).

    `held`: text that may become the start marker; `marked`: the list followed one, `ended`: an end marker followed the
    list, `behind`: so did text; `barred`: what followed a start marker was no list. `prose`: the answer has other text,
    and `line_start` says that it ends with a line break.
    """

    mode: Literal["start", "text", "list", "last"] = "start"
    held: str = ""
    marked: bool = False
    ended: bool = False
    behind: bool = False
    barred: bool = False
    prose: bool = False
    line_start: bool = False
    ending: EndingState = field(default_factory=EndingState)
    calls: CallStreamState | None = None


class PythonicStage(ToolStage):
    """An answer that begins with a bracket (or the marker) is a call list until that is impossible.

    In an answer that begins with prose a list on the last lines counts as well, once nothing has followed it.
    """

    State: ClassVar[type] = PythonicState

    def __init__(self, markers: Markers | None = None) -> None:
        super().__init__()
        self._markers = markers

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        state = self.state
        text = Ending(state.ending).take(text_of(segments))
        if state.mode == "start" and text:
            text = self._begin(state.held + text)
        content: list[str] = []
        while text:
            text = self._step(text, content)
        if content or state.mode == "text" or (state.mode == "start" and not state.held):
            return Ending(state.ending).content("".join(content), segments)
        return self._stream().events() if state.mode == "list" and not state.behind else []

    def _begin(self, text: str) -> str:
        """Decides what the answer is; returns the text to read as that, "" while it may still become the marker."""
        state = self.state
        start = self._markers.start if self._markers else ""
        if start and text.startswith(start):
            self._open("list")
            state.calls.raw.append(start)
            state.marked, text = True, text[len(start) :]
        elif start and len(text) > 1 and start.startswith(text):
            state.held = text
            return ""
        else:
            self._open("list" if text.startswith("[") else "text")
        state.held = ""
        return text

    def _open(self, mode: Literal["text", "list", "last"]) -> None:
        self.state.mode = mode
        self.state.marked = self.state.ended = self.state.behind = False
        self.state.calls = None if mode == "text" else CallStreamState()

    def _stream(self) -> CallStream:
        return CallStream(self.state.calls, ListStyle(alone=self.state.mode == "last"))

    def _step(self, text: str, content: list[str]) -> str:
        """Reads text as what it seems to be; returns what is still to be read as something else."""
        state = self.state
        if state.mode == "text":
            return self._prose(text, content)
        failed = self._read_list(text)
        if failed is None:
            return ""
        released, text = failed
        state.barred = state.marked
        self._open("text")
        self._prose(released, content, whole=True)
        state.ending.active = True
        return text

    def _read_list(self, text: str) -> tuple[str, str] | None:
        """Feeds the list, without end markers: all of them behind a start marker, else one behind the list."""
        stream = self._stream()
        if self._markers is None:
            return stream.feed(text)
        if self.state.marked:
            self._note_end(text, self._markers.end, closed=stream.closed)
            return stream.feed(text.replace(self._markers.end, ""), raw=text)
        before, marker, behind = text.rpartition(self._markers.end)
        failed = stream.feed(before) if before else None
        if failed is not None:
            return failed[0], failed[1] + marker + behind
        return stream.feed(behind, raw=marker + behind) if stream.closed else stream.feed(marker + behind)

    def _note_end(self, text: str, end: str, *, closed: bool) -> None:
        """Text behind the end marker makes the answer no list for vLLM, which then sends nothing."""
        state = self.state
        before, marker, behind = text.rpartition(end)
        if not closed and not before.rstrip().endswith("]"):
            return
        follows = (state.ended and before) or ((state.ended or marker) and behind)
        state.behind = state.behind or bool(follows)
        state.ended = state.ended or bool(marker)

    def _prose(self, text: str, content: list[str], *, whole: bool = False) -> str:
        """Text of the answer, up to where a list may begin; all of it if `whole`."""
        state = self.state
        position = len(text) if whole else self._list_line(text)
        if position:
            content.append(text[:position])
            state.prose = state.prose or not text[:position].isspace()
            state.line_start = text[:position].endswith("\n")
        if position < len(text):
            self._open("last")
        return text[position:]

    def _list_line(self, text: str) -> int:
        """Where a line behind prose begins with a bracket; the end of `text` if none does."""
        state = self.state
        if state.barred:
            return len(text)
        if state.prose and state.line_start and text.startswith("["):
            return 0
        position = text.find("\n[")
        while position >= 0 and not (state.prose or text[:position].strip()):
            position = text.find("\n[", position + 1)
        return position + 1 or len(text)

    def finish(self) -> list[Event]:
        state = self.state
        if state.mode in ("list", "last"):
            return self._stream().finish()
        if state.held:
            return [Content(state.held)]
        return Ending(state.ending).finish()


class Pythonic(ToolFormat):
    """`pythonic` (pythonic_misc 2). `tags` are the markers that its answers may hold."""

    names = ("pythonic",)
    tags: ClassVar[tuple[str, ...]] = ()
    guided_choice = True
    merges_entries = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        spelled = vocabulary.special_tokens.items()
        self.marks = {token_id: text for token_id, text in spelled if text not in self.tags}

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return PythonicStage(Markers(*self.tags) if self.tags else None)

    def settle(self, outcome: Outcome) -> None:
        """One malformed call spoils the list."""
        if outcome.malformed:
            outcome.calls = []
        outcome.called = bool(outcome.calls)
