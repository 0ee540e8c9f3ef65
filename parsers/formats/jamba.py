"""Tool calls of AI21 Jamba: a JSON list between two special tokens.

    I will check. <tool_calls>[
        {"name": "get_weather", "arguments": {"city": "Paris"}}
    ]</tool_calls>

Text before the list is content, everything behind it is dropped. A list that is no list of calls is text; one that the
output was cut in is dropped, and its calls do not count as made (bugs/jamba-truncated-body).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from parsers.engine.call_list import CallList, CallListState
from parsers.engine.call_object import CallObject
from parsers.engine.context import RequestContext
from parsers.engine.events import CallEnd, Content, Malformed, Segment, Token
from parsers.engine.exceptions import ParserConfigurationError
from parsers.engine.json_stream import SPACE
from parsers.engine.stage import Outcome, ToolStage
from parsers.engine.vocabulary import Vocabulary
from parsers.formats.call_stage import NEAR_END, CallFormat, lacks_quote, merge_repeated_keys
from parsers.formats.stepping import SearchingCalls, StepState

OPENING, CLOSING = "<tool_calls>", "</tool_calls>"

_EMPTY_LIST = re.compile(rf"{OPENING}\s*\[\s*\]\s*{CLOSING}")
_CUT_LIST = re.compile(rf"{OPENING}(?!.*{CLOSING})", re.DOTALL)


@dataclass(slots=True)
class JambaState(StepState):
    """Where the stage stands.

    Phases: `content`; `list`; `closed`: behind the list, before its end token; `behind` that; `text`: it was no list of
    calls, everything is content; `silent`: nothing more is sent. `calls` is the reader of the list, `tail` the end of
    what it read.
    """

    phase: Literal["content", "list", "closed", "behind", "text", "silent"] = "content"
    calls: CallListState = field(default_factory=CallListState)
    tail: str = ""


class JambaCalls(SearchingCalls):
    """One step a chunk, mostly (json 4)."""

    State: ClassVar[type] = JambaState
    closes_at_once = False
    shows_stop = frozenset(("content", "behind"))

    def __init__(self, opening: int, closing: int, stops: Collection[int]) -> None:
        super().__init__(stops)
        self._opening = opening
        self._closing = closing

    def _end_chunk(self) -> None:
        if self._phase_before == self.state.phase == "content" and not self._events:
            self._events.append(Content(""))
        if self._has_call and not self._fresh:
            self._send_step(reads_on=True)

    def _end(self) -> None:
        if self._has_call and self._call().complete:
            self._end_calls()
        elif self._has_call and self.state.named:
            self._send_cut()

    def _end_calls(self) -> None:
        """The last call goes out to its end, and nothing behind it."""
        if self._has_call:
            self._send_rest(empty=False)
            self._events.append(CallEnd(self.state.index))
        self.state.phase = "silent"

    @property
    def _has_call(self) -> bool:
        return self.state.phase in ("list", "closed", "behind") and self.state.calls.call is not None

    def _call(self) -> CallObject:
        return CallList(self.state.calls).call

    def _consume(self, segments: Sequence[Segment]) -> None:
        state = self.state
        for place, segment in enumerate(segments):
            token_id = segment.token_id if isinstance(segment, Token) else None
            if state.phase == "content" and segment.text.isspace() and self._opens(segments[place + 1 :]):
                state.raw.append(segment.text)
                continue
            if token_id == self._opening and state.phase == "content":
                state.phase = "list"
                state.raw.append(segment.text)
            elif token_id == self._closing and state.phase == "closed":
                state.phase = "behind"
            elif token_id == self._opening and state.phase == "behind":
                self._end_calls()
            elif token_id in (self._opening, self._closing) and state.phase == "list" and not self._is_data():
                state.raw.append(segment.text)
                self._reject()
            else:
                self._run(segment.text)

    def _opens(self, segments: Sequence[Segment]) -> bool:
        """Whether a list follows; white space in front of it is not shown if it is all its chunk has to say."""
        follows = segments[0] if segments and not self._events else None
        return isinstance(follows, Token) and follows.token_id == self._opening

    def _is_data(self) -> bool:
        """Whether a marker in the list is part of a string."""
        calls = CallList(self.state.calls)
        return calls.in_element and calls.call.in_string and not lacks_quote(self.state.tail, "]")

    _in_content = SearchingCalls._in_text

    def _in_closed(self, text: str, position: int) -> int:
        """Behind the list, before its end token, there is only white space."""
        self._remember(text[position:])
        if text[position:].strip():
            self._reject()
        return len(text)

    def _in_list(self, text: str, position: int) -> int:
        state = self.state
        calls = CallList(state.calls)
        if not calls.in_element and text[position] in SPACE:
            self._remember(text[position])
            return position + 1
        if text[position] == "{" and state.calls.place in ("first", "element"):
            self._begin()
        was_open = calls.in_element
        end = calls.feed(text, position)
        state.tail = (state.tail + text[position:end])[-NEAR_END:]
        self._remember(text[position:end])
        if calls.bad or (was_open and not calls.in_element and not calls.call.complete):
            if calls.bad and state.index < 0:
                state.raw.append(text[end:])
                end = len(text)
            self._reject()
        elif calls.closed:
            state.phase = "closed"
        return end

    def _begin(self) -> None:
        """A call begins; the one before it is sent to its end."""
        if self._has_call:
            self._send_rest(empty=False)
            self._events.append(CallEnd(self.state.index))
        self._begin_call()
        self.state.call = None
        self._fresh = True

    def _reject(self) -> None:
        """The list is no list of calls."""
        state = self.state
        if state.index < 0:
            self._give_back("text")
            return
        if state.named and self._call().complete:
            self._send_rest(empty=False)
        self._events.append(CallEnd(state.index, malformed=True) if state.named else Malformed())
        state.phase = "silent"

    def _first_length(self, now: str) -> int | None:
        """Everything once the list is closed."""
        found = super()._first_length(now)
        return found if found is not None or self.state.phase == "list" else len(now)

    def _step_length(self, now: str) -> int | None:
        """All but the punctuation with which both the last dump and this one end; nothing while nothing changes."""
        state = self.state
        before, state.previous = state.previous, now
        if state.begun:
            return len(now) - _common_punctuation(before, now)
        if not before or not now:
            state.previous = ""
            return None
        return 0 if now == before else len(now) - _common_punctuation(before, now)


def _common_punctuation(one: str, other: str) -> int:
    """How many characters, none of them a letter or digit, two texts share at their ends."""
    for count, (mine, theirs) in enumerate(zip(reversed(one), reversed(other), strict=False)):
        if mine != theirs or mine.isalnum():
            return count
    return min(len(one), len(other))


class JambaTools(CallFormat):
    """`jamba` (json 4)."""

    names = ("jamba",)
    guided_choice = True
    cut_calls_count = False

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        opening, closing = vocabulary.token_id(OPENING), vocabulary.token_id(CLOSING)
        if opening is None or closing is None:
            raise ParserConfigurationError(f"the tokenizer has no {OPENING} and {CLOSING} tokens")
        self._opening, self._closing = opening, closing
        self._stops = self.marks.keys() - {opening, closing}
        self.marks |= {opening: OPENING, closing: CLOSING}

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return JambaCalls(self._opening, self._closing, self._stops)

    def settle(self, outcome: Outcome) -> None:
        """Complete calls of a list that was cut count; an empty list counts as calls, so its text is not shown."""
        outcome.calls = [call for call in outcome.calls if not call.malformed]
        merge_repeated_keys(outcome)
        is_list = bool(_EMPTY_LIST.search(outcome.raw) or _CUT_LIST.search(outcome.raw))
        outcome.called = bool(outcome.calls) or (is_list and OPENING not in (outcome.content or ""))
