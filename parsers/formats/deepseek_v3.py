"""Tool calls of DeepSeek-V3 and V3.1: one block of calls, each between markers that are single tokens.

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_time
    ```json
    {"tz": "UTC"}
    ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>

and

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_time<｜tool▁sep｜>{"tz": "UTC"}<｜tool▁call▁end｜>
    <｜tool▁calls▁end｜>                                                      (without the line break)

One stage reads both; a call in the other model's form is understood too.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from parsers.engine.context import RequestContext
from parsers.engine.events import CallArguments, CallEnd, CallStart, Content, Event, Segment, Text
from parsers.engine.exceptions import ParserConfigurationError
from parsers.engine.scanner import hold_stop
from parsers.engine.stage import Outcome, ToolFormat, ToolStage
from parsers.engine.vocabulary import Vocabulary

BLOCK_BEGIN, BLOCK_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
CALL_BEGIN, CALL_END = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"
SEPARATOR = "<｜tool▁sep｜>"
MARKERS = (BLOCK_BEGIN, BLOCK_END, CALL_BEGIN, CALL_END, SEPARATOR)

NAME_LIMIT = 200
"""Code points of a line behind the separator after which it is no name."""

_NAME = re.compile(r"\s*[\w.\-/:]+\s*")
_NAME_LINE = re.compile(r"[\r\n]*([^\r\n`]+)(?:\r?\n|(?=```))")
_FENCE = "```"
_FENCE_LINE = re.compile(r"\s*```[A-Za-z]{0,20}[ \t]{0,20}(?:\n|(?=[^\sA-Za-z]))")
_FENCE_LINE_LIMIT = 43
_FENCE_END = re.compile(r"\n?```\s*\Z")
_OUTSIDE = frozenset({"text", "block", "after"})


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between the two models.

    `fenced`: the kind of call stands where V3.1 has the name, the name behind the separator, and the arguments in a
    code fence. `keeps_text_after`: text behind the block is content even if there were calls.
    """

    fenced: bool
    keeps_text_after: bool


V3 = Dialect(fenced=True, keeps_text_after=True)
V31 = Dialect(fenced=False, keeps_text_after=False)


@dataclass(slots=True)
class CallsState:
    """`place`: before the first block ("text"), in one ("block"), behind it ("after"), or in the open call: its "head"
    before the separator, "name", "fence", "arguments", or "junk" that is no call.

    `head` is the open call's text before the separator, `held` what cannot be sent yet, `blank` white space inside the
    block that is content only if text follows, `stop` a special token that ended the last chunk. `index` is that of the
    last announced call, `called` says that some call was closed, `wrote` that the open call has arguments, `fenced`
    that they end with a fence.
    """

    place: str = "text"
    head: str = ""
    held: str = ""
    blank: str | None = ""
    stop: str = ""
    index: int = -1
    called: bool = False
    fenced: bool = False
    wrote: bool = False


class DeepSeekCallStage(ToolStage):
    """Reads the block marker by marker; what a chunk means does not depend on which tokens share it."""

    State: ClassVar[type] = CallsState

    def __init__(
        self, dialect: Dialect, *, markers: Mapping[int, str], stops: Container[int], offered: Container[str]
    ) -> None:
        super().__init__()
        self._dialect = dialect
        self._markers = markers
        self._stops = stops
        self._offered = offered
        self._ends_in_text = False

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        """A chunk outside calls always sends content, be it ""; arguments never share the chunk that announces a call,
        unless the call ends in it (deepseek_kimi_harmony 5.3).
        """
        state = self.state
        outside, announced = state.place in _OUTSIDE, state.index
        events: list[Event] = []
        self._ends_in_text = bool(segments)
        segments, state.stop = hold_stop(segments, state.stop, self._stops)
        for segment in segments:
            marker = "" if isinstance(segment, Text) else self._markers.get(segment.token_id, "")
            if not marker or (state.place == "text" and marker != BLOCK_BEGIN):
                self._text(segment.text, events)
            else:
                self._marker(marker, events)
                outside = outside and marker in (BLOCK_BEGIN, BLOCK_END)
        if state.place == "text":
            self._release_stop(events)
        if state.place == "arguments" and state.index == announced:
            self._send(events)
        return events or ([Content("")] if outside else [])

    def finish(self) -> list[Event]:
        """A call that the output leaves open is no call for one-shot answers."""
        state = self.state
        events: list[Event] = []
        if self._ends_in_text:
            self._release_stop(events)
        if state.place == "arguments":
            self._send(events)
        if state.place in ("arguments", "fence"):
            events.append(CallEnd(state.index, malformed=True))
        return events

    def _release_stop(self, events: list[Event]) -> None:
        """A special token is text where no calls were, and where the finish reason came with it."""
        stop, self.state.stop = self.state.stop, ""
        if stop:
            self._text(stop, events)

    # --- markers --------------------------------------------------------------------------------------------------

    def _marker(self, marker: str, events: list[Event]) -> None:
        state = self.state
        if marker == SEPARATOR:
            self._separator(events)
            return
        if marker == BLOCK_BEGIN:
            if state.place in _OUTSIDE:
                state.place, state.blank = "block", ""
            return
        if state.place not in _OUTSIDE:
            self._close(events)
        if marker == CALL_BEGIN:
            state.place, state.head, state.held = "head", "", ""
            state.fenced = state.wrote = False
        elif marker == BLOCK_END:
            state.place, state.blank = "after", ""

    def _separator(self, events: list[Event]) -> None:
        state = self.state
        if state.place != "head":
            self._text(SEPARATOR, events)
        elif self._dialect.fenced or state.head == "function":
            state.place = "name"
        elif state.head and not self._is_name(state.head):
            self._spill(events, SEPARATOR)
        else:
            self._announce(state.head.strip("\n"), events)
            state.place = "arguments"

    def _close(self, events: list[Event]) -> None:
        """End of the open call."""
        state = self.state
        place, state.place, state.blank = state.place, "block", ""
        if place == "name" and not self._dialect.fenced:
            self._announce(state.head, events)
        elif place in ("head", "name", "junk"):
            if place != "junk":
                self._spill(events, SEPARATOR if place == "name" else "")
            events.append(Content(CALL_END))
            state.place, state.blank = "block", None
            return
        rest = state.held if place != "fence" else _FENCE_LINE.sub("", state.held + "\n", count=1)
        if state.fenced or place == "fence":
            end = _FENCE_END.search(rest)
            rest = rest[: end.start()] if end else rest.rstrip("\n")
        if not state.wrote and not rest.strip():
            rest = "{}"
        if rest:
            events.append(CallArguments(state.index, rest))
        events.append(CallEnd(state.index))
        state.called = True
        state.head = state.held = ""

    def _spill(self, events: list[Event], separator: str) -> None:
        """What turns out to be no call is content, markers and all, rather than lost."""
        state = self.state
        events.append(Content(f"{CALL_BEGIN}{state.head}{separator}{state.held}"))
        state.place, state.head, state.held = "junk", "", ""

    # --- text -----------------------------------------------------------------------------------------------------

    def _text(self, text: str, events: list[Event]) -> None:
        state = self.state
        if state.place in ("text", "junk"):
            events.append(Content(text))
        elif state.place in _OUTSIDE:
            self._outside(text, events)
        elif state.place == "head":
            state.head += text
            if len(state.head) > NAME_LIMIT:
                self._spill(events, "")
        else:
            state.held += text
            if state.place == "name":
                self._name(events)
            if state.place == "fence":
                self._fence()

    def _outside(self, text: str, events: list[Event]) -> None:
        """Text in or behind a block that is in no call."""
        state = self.state
        if self._dialect.keeps_text_after and state.place == "after":
            events.append(Content(text))
        elif state.called:
            return
        elif state.blank is None:
            events.append(Content(text))
        elif text.strip():
            events.append(Content(state.blank + text))
            state.blank = None
        else:
            state.blank += text

    def _name(self, events: list[Event]) -> None:
        """Behind the separator: the arguments of the plain form, or the name line of the fenced one."""
        state = self.state
        text = state.held.lstrip()
        if text.startswith("{") and self._is_name(state.head):
            self._announce(state.head.strip(), events)
            state.place, state.held = "arguments", text
            return
        found = _NAME_LINE.match(state.held)
        if found and self._is_name(found.group(1)):
            self._announce(found.group(1), events)
            state.place, state.held = "fence", state.held[found.end() :]
        elif (found and found.group(1).strip()) or len(text) > NAME_LIMIT:
            self._spill(events, SEPARATOR)

    def _is_name(self, text: str) -> bool:
        """Whether `text` can name a function: a word, or whatever the request offers."""
        if text.strip() in self._offered:
            return True
        return len(text) <= NAME_LIMIT and "\n" not in text.strip("\n") and _NAME.fullmatch(text) is not None

    def _fence(self) -> None:
        state = self.state
        found = _FENCE_LINE.match(state.held)
        text = state.held.lstrip()
        if found:
            state.place, state.held, state.fenced = "arguments", state.held[found.end() :], True
        elif len(text) > _FENCE_LINE_LIMIT or not (text.startswith(_FENCE) or _FENCE.startswith(text)):
            state.place, state.held, state.fenced = "arguments", text, True

    def _announce(self, name: str, events: list[Event]) -> None:
        self.state.index += 1
        events.append(CallStart(self.state.index, name))

    def _send(self, events: list[Event]) -> None:
        """Sends the arguments so far, without what may be the closing fence, or all there is."""
        state = self.state
        if not state.wrote and not state.held.strip():
            return
        text, state.held = _before_fence(state.held) if state.fenced else (state.held, "")
        if text:
            state.wrote = True
            events.append(CallArguments(state.index, text))


def _before_fence(text: str) -> tuple[str, str]:
    """(what may be sent, newlines and backticks at the end, which may begin or be the closing fence)."""
    body = text.rstrip(" \t\r\n`")
    fence = text.find(_FENCE, len(body))
    end = fence if fence >= 0 else len(text)
    body = text[:end].rstrip("\n`")
    return body, text[len(body) :]


class DeepSeekTools(ToolFormat):
    """Base of the two parsers (deepseek_kimi_harmony 5)."""

    merges_entries = True
    dialect: ClassVar[Dialect]

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._markers: dict[int, str] = {}
        for marker in MARKERS:
            token_id = vocabulary.token_id(marker)
            if token_id is None:
                raise ParserConfigurationError(f"the tokenizer has no {marker} token")
            self._markers[token_id] = marker
        self._stops = vocabulary.special_tokens.keys() - self._markers.keys()
        self.marks = dict(vocabulary.special_tokens) | self._markers

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return DeepSeekCallStage(
            self.dialect, markers=self._markers, stops=self._stops, offered=context.parameters.keys()
        )

    def settle(self, outcome: Outcome) -> None:
        """A block counts as calls even if none is left."""
        outcome.calls = [call for call in outcome.calls if not call.malformed]
        outcome.called = bool(outcome.calls) or BLOCK_BEGIN in outcome.raw


class DeepSeekV3Tools(DeepSeekTools):
    """`deepseek_v3`: calls with a kind, a name and fenced arguments."""

    names = ("deepseek_v3",)
    dialect = V3


class DeepSeekV31Tools(DeepSeekTools):
    """`deepseek_v31`: calls with a name and bare arguments."""

    names = ("deepseek_v31",)
    dialect = V31
