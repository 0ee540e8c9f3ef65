"""Calls of OLMo 3: one a line, in Python, between tags.

Sample:

    <function_calls>get_weather(city="Paris", days=3)
    search(query='museums')</function_calls>
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from parsers.engine.context import RequestContext
from parsers.engine.ending import Ending, EndingState
from parsers.engine.events import Content, Event, Malformed, Segment
from parsers.engine.python_repairs import RepairState, SourceRepair
from parsers.engine.python_state import CallListState
from parsers.engine.python_stream import CallStream, CallStreamState, ListStyle
from parsers.engine.scanner import text_of
from parsers.engine.stage import ToolStage

from .pythonic import Pythonic

OPEN, CLOSE = "<function_calls>", "</function_calls>"
STYLE = ListStyle(lines=True)


@dataclass(slots=True)
class Olmo3State:
    """`mode`: "start" (not known yet), "text", "block" (between the tags), "after" one, or "bare": lines of calls, so
    far, without tags.

    `held`: text that may go on as a tag, or white space behind a block. `barred`: a block was malformed, no other is
    looked for. `index`: calls in the blocks before.
    """

    mode: Literal["start", "text", "block", "after", "bare"] = "start"
    held: str = ""
    barred: bool = False
    malformed: bool = False
    calls: CallStreamState | None = None
    repair: RepairState = field(default_factory=RepairState)
    ending: EndingState = field(default_factory=EndingState)


class Olmo3Stage(ToolStage):
    """Text outside the tags is content; a tag within a string is data.

    An answer that is nothing but calls of functions the request offers needs no tags. It is known only at its end.
    """

    State: ClassVar[type] = Olmo3State

    def __init__(self, functions: Sequence[str], *, split: bool) -> None:
        """`split`: the tags are no tokens of their own, so that a chunk may end within one."""
        super().__init__()
        self._split = split
        self._openings = tuple(name + "(" for name in functions)
        self._content: list[str] = []
        self._events: list[Event] = []

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        state = self.state
        self._content, self._events = [], []
        text = Ending(state.ending).take(text_of(segments))
        silent = state.mode == "after" and bool(state.held)
        if state.mode == "start":
            text = self._begin(text)
        elif text and state.mode in ("text", "block"):
            text, state.held = state.held + text, ""
        if state.mode == "bare":
            text = Ending(state.ending).hold(text, segments)
        while text:
            text = getattr(self, "_in_" + state.mode)(text)
        if state.mode == "block":
            self._events += self._stream().events()
        elif state.mode == "after" and not (self._events or self._content or silent or state.held or state.malformed):
            self._events.append(Content(""))
        if self._content or (state.mode == "text" and not self._events) or (state.mode == "start" and not state.held):
            return Ending(state.ending).content("".join(self._content), segments) + self._events
        return self._events

    def _stream(self) -> CallStream:
        return CallStream(self.state.calls, STYLE)

    def _open(self, mode: Literal["block", "bare"], raw: str) -> None:
        state = self.state
        index = state.calls.calls.index if state.calls is not None else -1
        state.mode, state.held, state.repair = mode, "", RepairState()
        state.calls = CallStreamState(calls=CallListState(index=index), raw=[raw] if raw else [])

    def _begin(self, text: str) -> str:
        """Decides what the answer begins with; "" while that may still become a tag or a function's name."""
        state = self.state
        text = state.held + text
        starts = (OPEN, *self._openings)
        if text and any(len(text) < len(start) and start.startswith(text) for start in starts):
            state.held = text
            return ""
        state.held = ""
        if text.startswith(self._openings):
            self._open("bare", "")
        elif text:
            state.mode, state.ending.active = "text", text.startswith("<")
        return text

    def _in_text(self, text: str) -> str:
        """Content, up to an opening tag."""
        before, tag, behind = (text, "", "") if self.state.barred else text.partition(OPEN)
        if not tag:
            before = self._hold(text, "" if self.state.barred else OPEN)
        if before:
            self._content.append(before)
        if not tag:
            return ""
        self._open("block", OPEN)
        return behind

    def _in_block(self, text: str) -> str:
        """Calls, up to the closing tag."""
        state, stream = self.state, self._stream()
        inside, tag, behind = text.partition(CLOSE)
        if not tag:
            inside = self._hold(text, CLOSE)
        mended = SourceRepair(state.repair, numbers=False)
        failed = stream.feed(mended.feed(inside), raw=inside)
        if failed is None and tag and stream.in_string:
            failed = stream.feed(mended.feed(tag), raw=tag)
        elif failed is None and tag:
            state.calls.raw += [] if state.calls.sent else [tag]
            failed = stream.close()
            if failed is None:
                state.mode = "after"
                self._events += stream.events()
                state.malformed = state.malformed or any(isinstance(each, Malformed) for each in stream.finish())
                return behind
            tag = ""
        if failed is not None:
            state.mode, state.barred, state.ending.active = "text", True, True
            return failed[0] + tag + behind
        return behind

    def _hold(self, text: str, tag: str) -> str:
        """`text` without what may be the beginning of `tag` at its end, which is held."""
        sizes = range(min(len(tag) - 1, len(text)), 0, -1) if self._split else ()
        size = next((size for size in sizes if text.endswith(tag[:size])), 0)
        self.state.held = text[len(text) - size :]
        return text[: len(text) - size]

    def _in_after(self, text: str) -> str:
        """Behind a block: white space is dropped, the rest is content."""
        state = self.state
        text, state.held = state.held + text, ""
        if not text.strip():
            state.held = text
            return ""
        state.mode, state.ending.active = "text", True
        return text.lstrip() if text.lstrip().startswith(OPEN) else text

    def _in_bare(self, text: str) -> str:
        failed = self._stream().feed(SourceRepair(self.state.repair, numbers=False).feed(text), raw=text)
        if failed is None:
            return ""
        self.state.mode, self.state.ending.active = "text", True
        return failed[0]

    def finish(self) -> list[Event]:
        state = self.state
        events: list[Event] = []
        if state.mode in ("start", "text") and state.held:
            events.append(Content(state.held))
        elif state.mode == "block":
            failed = self._stream().feed(state.held)
            events += [Content("".join(failed))] if failed else self._stream().finish()
        elif state.mode == "bare":
            events += self._finish_bare()
        if state.malformed:
            events.append(Malformed())
        return events + Ending(state.ending).finish()

    def _finish_bare(self) -> list[Event]:
        ending = self.state.ending
        text = self._in_bare(ending.held) if ending.held and ending.fresh else ""
        if ending.fresh:
            ending.held = ""
        if text:
            return [Content(text)]
        failed = self._stream().close()
        return [Content(failed[0])] if failed else self._stream().finish()


class Olmo3Tools(Pythonic):
    """`olmo3` (pythonic_misc 4)."""

    names = ("olmo3",)
    tags: ClassVar[tuple[str, ...]] = (OPEN, CLOSE)

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        split = any(self.vocabulary.token_id(tag) is None for tag in self.tags)
        return Olmo3Stage(tuple(context.parameters), split=split)
