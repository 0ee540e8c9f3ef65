"""Calls of FunctionGemma: a name and its arguments in braces, every value between two escape tokens.

Sample:

    <start_function_call>call:get_weather{city:<escape>Paris<escape>,days:<escape>3<escape>}<end_function_call>
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from parsers.engine.assembly import dump_json, load_json
from parsers.engine.context import RequestContext
from parsers.engine.ending import Ending, EndingState
from parsers.engine.events import CallArguments, CallEnd, CallStart, Content, Event, Segment
from parsers.engine.partial import held_back
from parsers.engine.scanner import text_of
from parsers.engine.stage import Outcome, ToolFormat, ToolStage
from parsers.engine.vocabulary import Vocabulary

START, END, ESCAPE = "<start_function_call>", "<end_function_call>", "<escape>"

# The model stops with this token where it expects the function's answer.
RESPONSE = "<start_function_response>"

_HEAD = re.compile(r"call:(\w+)\{")
_HEAD_BEGUN = re.compile(r"(?:c(?:a(?:l(?:l(?::\w*)?)?)?)?)?\Z")
_MARK = re.compile(f"{ESCAPE}|{END}")
_VALUE_END = re.compile(f"{ESCAPE}|}}{END}")
_KEY = re.compile(r"(\w+):\Z")
_NAME_LIMIT = 1024


@dataclass(slots=True)
class GemmaState:
    """`mode`: "text", "head" (up to the brace), "arguments" or "value". `held`: text that was not read yet.

    Of the open call: `name`, while it is not sent; `lead`, the arguments' text before the next value, as far as it may
    hold a key; the open `key` and its `value` so far; `pairs`, the complete ones as JSON text.
    """

    mode: Literal["text", "head", "arguments", "value"] = "text"
    held: str = ""
    index: int = -1
    name: str | None = None
    lead: str = ""
    key: str = ""
    value: list[str] = field(default_factory=list)
    pairs: dict[str, str] = field(default_factory=dict)
    ending: EndingState = field(default_factory=EndingState)


class FunctionGemmaStage(ToolStage):
    """A call's name is sent at once, its arguments when it ends: only then it is known that none follows or changes.

    Text between the markers that is no call is content.
    """

    State: ClassVar[type] = GemmaState

    def __init__(self) -> None:
        super().__init__()
        self._content: list[str] = []
        self._events: list[Event] = []
        self._fresh = False

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        state = self.state
        self._content, self._events, self._fresh = [], [], False
        self._announce()
        text = Ending(state.ending).take(text_of(segments))
        if text:
            text, state.held = state.held + text, ""
        while text:
            text = getattr(self, "_in_" + state.mode)(text)
        content = "".join(self._content)
        return (Ending(state.ending).content(content, segments) if content else []) + self._events

    def _in_text(self, text: str) -> str:
        before, marker, behind = text.partition(START)
        if not marker:
            size = held_back(text, START, END)
            before, self.state.held = text[: len(text) - size], text[len(text) - size :]
        self._content.append(before)
        if marker:
            self.state.mode, self._fresh = "head", True
            self.state.ending.active = True
            return behind or self._in_head("")
        return ""

    def _in_head(self, text: str) -> str:
        """Between the marker and the brace."""
        state = self.state
        found = _HEAD.match(text)
        if found:
            state.index += 1
            state.mode, state.lead, state.pairs = "arguments", "", {}
            state.name = found.group(1)
            if not self._fresh:
                self._announce()
            return text[found.end() :]
        if _HEAD_BEGUN.match(text) and len(text) < _NAME_LIMIT:
            state.held = text
            return ""
        state.mode = "text"
        self._content.append(START)
        return text

    def _announce(self) -> None:
        """Sends the name, at the earliest with the chunk behind the one that brought the marker."""
        state = self.state
        if state.name is not None:
            self._events.append(CallStart(state.index, state.name))
            state.name = None

    def _in_arguments(self, text: str) -> str:
        state = self.state
        found = _MARK.search(text)
        if not found:
            size = held_back(text, ESCAPE, END)
            state.held = text[len(text) - size :]
            state.lead = (state.lead + text[: len(text) - size])[-_NAME_LIMIT:]
            return ""
        lead, state.lead = state.lead + text[: found.start()], ""
        if found.group() == END:
            self._close()
        else:
            key = _KEY.search(lead[-_NAME_LIMIT:])
            if key:
                state.mode, state.key, state.value = "value", key.group(1), []
        return text[found.end() :]

    def _in_value(self, text: str) -> str:
        state = self.state
        found = _VALUE_END.search(text)
        if not found:
            size = held_back(text, ESCAPE, "}" + END)
            state.held = text[len(text) - size :]
            state.value.append(text[: len(text) - size])
            return ""
        state.value.append(text[: found.start()])
        if found.group() == ESCAPE:
            state.pairs[state.key] = decoded("".join(state.value))
            state.mode = "arguments"
        else:
            self._close()
        state.value = []
        return text[found.end() :]

    def _close(self) -> None:
        state = self.state
        self._announce()
        members = ", ".join(f"{dump_json(key)}: {value}" for key, value in state.pairs.items())
        self._events += [CallArguments(state.index, f"{{{members}}}"), CallEnd(state.index)]
        state.mode, state.pairs = "text", {}

    def finish(self) -> list[Event]:
        """A call without end has the values that are complete."""
        state = self.state
        self._events = []
        if state.mode in ("arguments", "value"):
            self._close()
            return self._events
        text = (START if state.mode == "head" else "") + state.held
        events: list[Event] = [Content(text)] if text else []
        return events + Ending(state.ending).finish()


def decoded(text: str) -> str:
    """JSON text of a value: itself if it is JSON, any other as a string."""
    try:
        return dump_json(load_json(text))
    except (ValueError, RecursionError):
        return dump_json(text)


class FunctionGemma(ToolFormat):
    """`functiongemma` (pythonic_misc 6)."""

    names = ("functiongemma",)
    guided_choice = True
    merges_entries = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        tags = (START, END, ESCAPE)
        self.marks = {token_id: text for token_id, text in vocabulary.special_tokens.items() if text not in tags}
        response_id = vocabulary.token_id(RESPONSE)
        if response_id is not None:
            self.marks[response_id] = RESPONSE

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return FunctionGemmaStage()

    def settle(self, outcome: Outcome) -> None:
        """Text around calls is shown without the white space at its ends."""
        super().settle(outcome)
        if outcome.called and outcome.content is not None:
            outcome.content = outcome.content.strip()
