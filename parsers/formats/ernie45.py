"""ERNIE 4.5: thoughts, an answer that may stand in tags of its own, calls as JSON objects in tags.

Sample:

    <think>
    The user asks for the weather.
    </think>

    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Paris"}}
    </tool_call>

and `</think>` followed by `<response>` ... `</response>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from parsers.engine.assembly import dump_json, load_json
from parsers.engine.context import RequestContext
from parsers.engine.ending import Ending, EndingState
from parsers.engine.events import (
    CallArguments,
    CallEnd,
    CallStart,
    Content,
    Event,
    Reasoning,
    ReasoningRetracted,
    Segment,
    Text,
    Token,
)
from parsers.engine.partial import held_back
from parsers.engine.scanner import text_of
from parsers.engine.stage import Outcome, ReasoningStage, ToolFormat, ToolStage
from parsers.engine.vocabulary import Vocabulary

from .deepseek_r1 import ThinkFormat, ThinkStage, ThinkState

START, END = "<tool_call>", "</tool_call>"
ANSWER, ANSWER_END = "<response>", "</response>"

_OUTSIDE = re.compile(rf'["{{}}]|{START}|{END}')
_INSIDE = re.compile(r'["\\]')


@dataclass(slots=True)
class AnswerState:
    """Where the answer's own tags are: `inside` them, `behind` them; `begun`: some text of the answer was passed on.

    `blank`: white space and special tokens behind them, which matter only if text follows.
    """

    inside: bool = False
    behind: bool = False
    begun: bool = False
    blank: str = ""


class AnswerTags:
    """Drops the answer's tags, and white space around them."""

    def __init__(self, state: AnswerState, ids: tuple[int | None, int | None]) -> None:
        self.state = state
        self._open_id, self._close_id = ids

    def strip(self, segments: Sequence[Segment]) -> list[Segment]:
        """A chunk without the tags. White space before the opening one goes if it came in the same chunk."""
        state = self.state
        kept: list[Segment] = []
        for segment in segments:
            token_id = segment.token_id if isinstance(segment, Token) else None
            if token_id is not None and token_id == self._open_id:
                if not state.begun:
                    kept = []
                state.inside, state.behind = True, False
            elif token_id is not None and token_id == self._close_id and state.inside:
                state.inside, state.behind = False, True
            else:
                kept += self._passed(segment)
        return kept

    def _passed(self, segment: Segment) -> list[Segment]:
        state = self.state
        is_stop = isinstance(segment, Token) and segment.text not in (START, END)
        if state.behind and (is_stop or not segment.text.strip()):
            state.blank += segment.text
            return []
        blank, state.blank, state.behind = state.blank, "", False
        state.begun = state.begun or bool(segment.text.strip())
        return [Text(blank), segment] if blank else [segment]


@dataclass(slots=True)
class ErnieThinkState(ThinkState):
    """Thoughts, and the tags of the answer behind them."""

    answer: AnswerState = field(default_factory=AnswerState)


class ErnieThinkStage(ThinkStage):
    """Hands on the answer without its tags."""

    State: ClassVar[type] = ErnieThinkState

    def __init__(self, start_id: int, end_id: int, answer_ids: tuple[int | None, int | None]) -> None:
        super().__init__(start_id, end_id)
        self._answer_ids = answer_ids

    def feed(self, segments: Sequence[Segment]) -> list[Event | Segment]:
        items = super().feed(segments)
        thoughts = [item for item in items if isinstance(item, Reasoning | ReasoningRetracted)]
        rest = [item for item in items if isinstance(item, Text | Token)]
        return [*thoughts, *AnswerTags(self.state.answer, self._answer_ids).strip(rest)]


class Ernie45Reasoning(ThinkFormat):
    """`ernie45` (pythonic_misc 9.1)."""

    names = ("ernie45",)

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._answer_ids = answer_ids(vocabulary)
        self.marks = {**vocabulary.special_tokens, **self.marks, **answer_marks(vocabulary)}

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> ReasoningStage:
        assert self._tags is not None
        stage = ErnieThinkStage(*self._tags, self._answer_ids)
        if self._prompt_end.closes(prompt_token_ids or (), context):
            stage.state.ended = stage.state.reopens = True
        return stage


def answer_ids(vocabulary: Vocabulary) -> tuple[int | None, int | None]:
    return vocabulary.token_id(ANSWER), vocabulary.token_id(ANSWER_END)


def answer_marks(vocabulary: Vocabulary) -> dict[int, str]:
    pairs = zip(answer_ids(vocabulary), (ANSWER, ANSWER_END), strict=True)
    return {token_id: text for token_id, text in pairs if token_id is not None}


@dataclass(slots=True)
class ErnieState:
    """`mode`: "text", "call" (between the tags) or "after" a call. `held`: unread text, or white space behind a call.
    `begun`: there was some other text than line breaks.

    Of the open call: the line breaks before it, its text so far, `depth` of its braces, `quoted` and `escaped` within a
    string, `object`: it began with a brace. `calls` are complete but not sent: pairs of name and arguments.
    """

    mode: Literal["text", "call", "after"] = "text"
    begun: bool = False
    held: str = ""
    gap: str = ""
    text: list[str] = field(default_factory=list)
    depth: int = 0
    quoted: bool = False
    escaped: bool = False
    object: bool = False
    calls: list[list[str]] = field(default_factory=list)
    index: int = -1
    answer: AnswerState = field(default_factory=AnswerState)
    ending: EndingState = field(default_factory=EndingState)


class ErnieToolStage(ToolStage):
    """A call is sent once it is complete, one a chunk, as vLLM does. A malformed one is content."""

    State: ClassVar[type] = ErnieState

    def __init__(self, answer_ids: tuple[int | None, int | None], *, split: bool) -> None:
        """`split`: the tags are no tokens of their own, so that they are found in text, and a chunk may end in one."""
        super().__init__()
        self._answer_ids = answer_ids
        self._split = split
        self._content: list[str] = []
        self._tagged = False

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        state, ending = self.state, Ending(self.state.ending)
        self._content = []
        segments = AnswerTags(state.answer, self._answer_ids).strip(segments)
        text = ending.take(text_of(segments))
        start = len(text) - len(text_of(segments))
        if state.ending.active and not (segments and self._is_part(segments[-1])):
            text = ending.hold(text, segments)
        for piece, tagged in self._pieces(text, segments, start):
            self._tagged = tagged
            self._read(piece)
        content = "".join(self._content)
        events: list[Event] = [Content(content)] if content else []
        return events + (self._sent(state.calls.pop(0)) if state.calls else [])

    def _is_part(self, segment: Segment) -> bool:
        """Whether a token that ends a chunk belongs to the format, so that it is none that ends the output."""
        return _is_tag(segment) or (isinstance(segment, Token) and segment.token_id in self._answer_ids)

    def _pieces(self, text: str, segments: Sequence[Segment], end: int) -> Iterator[tuple[str, bool]]:
        """The chunk's `text` in pieces, cut behind tags that are tokens; whether a piece ends with one.

        `end`: where the first segment's text begins, behind what was held.
        """
        start = 0
        for segment in () if self._split else segments:
            end += len(segment.text)
            if _is_tag(segment):
                yield text[start:end], True
                start = end
        yield text[start:], False

    def _read(self, text: str) -> None:
        if text:
            text, self.state.held = self.state.held + text, ""
        while text:
            text = getattr(self, "_in_" + self.state.mode)(text)

    def _sent(self, call: Sequence[str]) -> list[Event]:
        self.state.index += 1
        index = self.state.index
        return [CallStart(index, call[0]), CallArguments(index, call[1]), CallEnd(index)]

    def _hold(self, text: str, *tags: str) -> str:
        size = held_back(text, *tags) if self._split else 0
        self.state.held = text[len(text) - size :]
        return text[: len(text) - size]

    def _in_text(self, text: str) -> str:
        """Content, up to a call.

        Line breaks before it go if they came in the same chunk, or if nothing precedes them.
        """
        state = self.state
        before, tag, behind = self._to_opening(text)
        if tag:
            state.gap = before[len(before.rstrip("\n")) :]
            before = before.rstrip("\n")
        else:
            before = self._hold(text, START)
        if not tag and (state.index >= 0 or state.calls):
            state.held = before[len(before.rstrip("\n")) :] + state.held
            before = before.rstrip("\n")
        if before and not state.begun and not before.strip("\n"):
            state.held, before = before + state.held, ""
        state.begun = state.begun or bool(before)
        self._content.append(before)
        if tag:
            self._open()
        return behind

    def _to_opening(self, text: str) -> tuple[str, str, str]:
        if self._split:
            return text.partition(START)
        if self._tagged and text.endswith(START):
            return text.removesuffix(START), START, ""
        return text, "", ""

    def _in_after(self, text: str) -> str:
        """Behind a call: white space is dropped, other text is content."""
        blank = text[: len(text) - len(text.lstrip())]
        rest = text[len(blank) :]
        if not rest or (self._split and START.startswith(rest)):
            self.state.held = text
            return ""
        self.state.mode = "text"
        return text

    def _open(self) -> None:
        state = self.state
        state.mode, state.text, state.depth = "call", [], 0
        state.quoted = state.escaped = state.object = False

    def _in_call(self, text: str) -> str:
        """Up to the closing tag, which counts outside strings only."""
        state = self.state
        position = 0
        while position < len(text):
            if state.escaped:
                state.escaped = False
                position += 1
                continue
            found = (_INSIDE if state.quoted else _OUTSIDE).search(text, position)
            if not found:
                break
            position = found.end()
            mark = found.group()
            if mark in (START, END) and not (self._split or (self._tagged and position == len(text))):
                continue
            if mark == END:
                state.text.append(text[: found.start()])
                self._close(END)
                return text[position:]
            if mark == START and not state.object:
                self._open()
                return text[position:]
            self._track(mark)
        if not state.quoted and not state.escaped:
            text = self._hold(text, START, END)
        state.text.append(text)
        return ""

    def _track(self, mark: str) -> None:
        state = self.state
        match mark:
            case '"':
                state.quoted = state.object and not state.quoted
            case "\\":
                state.escaped = True
            case "{":
                state.depth, state.object = state.depth + 1, True
            case "}":
                state.depth -= 1

    def _close(self, tag: str) -> None:
        state = self.state
        text = "".join(state.text)
        state.text, state.mode = [], "after"
        call = read_call(text)
        state.ending.active = True
        if call is not None:
            state.calls.append(call)
        else:
            state.mode = "text"
            self._content.append(state.gap + START + text + tag)

    def finish(self) -> list[Event]:
        """A call without closing tag counts if it is complete; the beginning of one is dropped, as vLLM drops it."""
        state = self.state
        self._content = []
        if state.mode == "call" and state.depth == 0 and state.object:
            call = read_call("".join(state.text) + state.held)
            state.calls += [call] if call else []
        elif state.mode == "text":
            self._content.append(state.held)
        # What stands in a call that was cut is dropped with it.
        ending = [] if state.mode == "call" else Ending(state.ending).finish()
        content = "".join(self._content)
        events: list[Event] = [Content(content)] if content else []
        for call in state.calls:
            events += self._sent(call)
        state.calls = []
        return events + ending


def _is_tag(segment: Segment) -> bool:
    return isinstance(segment, Token) and segment.text in (START, END)


def read_call(text: str) -> list[str] | None:
    """Name and arguments of a call's JSON object; None if it is none."""
    try:
        value = load_json(text.strip())
    except (ValueError, RecursionError):
        return None
    name = value.get("name", "") if isinstance(value, dict) else None
    return [name, dump_json(value.get("arguments", {}))] if isinstance(name, str) else None


class Ernie45Tools(ToolFormat):
    """`ernie45` (pythonic_misc 9.2)."""

    names = ("ernie45",)
    guided_choice = True
    merges_entries = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        tags = {token_id: tag for tag in (START, END) if (token_id := vocabulary.token_id(tag)) is not None}
        self._split = len(tags) < 2
        special = {token_id: text for token_id, text in vocabulary.special_tokens.items() if text not in (START, END)}
        self.marks = {**special, **({} if self._split else tags), **answer_marks(vocabulary)}
        self._answer_ids = answer_ids(vocabulary)

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return ErnieToolStage(self._answer_ids, split=self._split)

    def settle(self, outcome: Outcome) -> None:
        """The beginning of a call, and the tags of the answer, are no content."""
        super().settle(outcome)
        outcome.called = outcome.called or START in outcome.raw or ANSWER in outcome.raw
