"""Poolside's Laguna: calls as a name and tagged pairs of key and value; thoughts only where the request asks for them.

Sample:

    <think>The user asks for the weather.</think>
    <tool_call>get_weather
    <arg_key>city</arg_key>
    <arg_value>Paris</arg_value>
    </tool_call>
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from parsers.engine.assembly import dump_json, load_json
from parsers.engine.context import RequestContext
from parsers.engine.ending import Ending, EndingState
from parsers.engine.events import CallArguments, CallEnd, CallStart, Content, Event, Segment
from parsers.engine.exceptions import ParserConfigurationError
from parsers.engine.partial import held_back
from parsers.engine.scanner import text_of
from parsers.engine.stage import Outcome, ToolFormat, ToolStage
from parsers.engine.vocabulary import Vocabulary

from .deepseek_r1 import ThinkFormat

START, END = "<tool_call>", "</tool_call>"
KEY, KEY_END, VALUE, VALUE_END = "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"
ASSISTANT, ASSISTANT_END = "<assistant>", "</assistant>"

_NAME_END = re.compile(f"\n|{KEY}|{END}")
_NEXT = re.compile(f"{KEY}|{END}")
_TO_VALUE = re.compile(f"{VALUE}|{END}")
_NAME_LIMIT = 4096


@dataclass(slots=True)
class PoolsideState:
    """`mode`: "text"; in a call "name", "pairs" (between them), "key", "between" key and value, "value" (collected) or
    "string" (sent as it arrives). `held`: unread text.

    Of the open call: its name, the open `key` and `value`, which before the name is the opening tag (`muted`: the key
    was there before), the `keys` that were written, and `junk`: something else than a key follows the name, which
    one-shot answers take for no call.
    """

    mode: Literal["text", "name", "pairs", "key", "between", "value", "string"] = "text"
    held: str = ""
    index: int = -1
    name: str = ""
    key: str = ""
    value: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    muted: bool = False
    junk: bool = False
    ending: EndingState = field(default_factory=EndingState)


class PoolsideToolStage(ToolStage):
    """Reads tag by tag. The first of equal keys counts; a tag within a value is data; what is no call is content."""

    State: ClassVar[type] = PoolsideState

    def __init__(self, schemas: Mapping[str, Mapping[str, Any]]) -> None:
        super().__init__()
        self._schemas = schemas
        self._events: list[Event] = []

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        state, ending = self.state, Ending(self.state.ending)
        self._events = []
        text = ending.take(text_of(segments))
        text = ending.hold(text, segments) if state.ending.active and state.mode == "text" else text
        if text:
            text, state.held = state.held + text, ""
        while text:
            text = getattr(self, "_in_" + state.mode)(text)
        return self._events

    def _say(self, text: str) -> None:
        if text:
            self._events.append(Content(text))

    def _write(self, text: str) -> None:
        self._events.append(CallArguments(self.state.index, text))

    def _hold(self, text: str, *tags: str) -> str:
        size = held_back(text, *tags)
        self.state.held = text[len(text) - size :]
        return text[: len(text) - size]

    def _in_text(self, text: str) -> str:
        before, tag, behind = text.partition(START)
        self._say(before if tag else self._hold(text, START))
        if tag:
            self.state.mode, self.state.value = "name", [START]
        return behind

    def _in_name(self, text: str) -> str:
        """Up to the end of the name's line, a key or the call's end."""
        state = self.state
        lead = text[: len(text) - len(text.lstrip())]
        found = _NAME_END.search(text, len(lead))
        name = text[: found.start()] if found else text[: len(text) - held_back(text, KEY, END, START)]
        start = name.find("<")
        if start >= 0 and name.startswith(START, start):
            state.ending.active = True
            state.value.append(text[: start + len(START)])
            return text[start + len(START) :]
        if start >= 0 or (found and not name.strip()) or len(name) > _NAME_LIMIT:
            state.mode, state.ending.active = "text", True
            self._say("".join(state.value))
            state.value = []
            return text
        if not found:
            state.held = text
            return ""
        state.ending.active = state.ending.active or "\n" in lead
        state.mode, state.name, state.keys, state.junk, state.value = "pairs", name.strip(), [], False, []
        state.index += 1
        self._events.append(CallStart(state.index, state.name))
        self._write("")
        return text[found.end() if found.group() == "\n" else found.start() :]

    def _in_pairs(self, text: str) -> str:
        state = self.state
        found = _NEXT.search(text)
        before = text[: found.start()] if found else self._hold(text, KEY, END)
        if before.strip() and not state.keys:
            state.junk = True
        if not found:
            return ""
        if found.group() == END:
            self._close()
        else:
            state.mode = "key"
        return text[found.end() :]

    def _in_key(self, text: str) -> str:
        key, tag, behind = text.partition(KEY_END)
        if not tag:
            self.state.held = text[-_NAME_LIMIT:]
            return ""
        self.state.key, self.state.mode = key.strip(), "between"
        return behind

    def _in_between(self, text: str) -> str:
        """Between a key and its value: anything else is dropped."""
        found = _TO_VALUE.search(text)
        if not found:
            self._hold(text, VALUE, END)
            return ""
        if found.group() == END:
            self._close()
        else:
            self._open_value()
        return text[found.end() :]

    def _open_value(self) -> None:
        state = self.state
        state.muted = state.key in state.keys
        state.mode, state.value = "value", []
        if is_text(self._schemas.get(state.name, {}), state.key):
            state.mode = "string"
            if not state.muted:
                self._write(self._key() + '"')

    def _key(self) -> str:
        state = self.state
        opening = ", " if state.keys else "{"
        state.keys.append(state.key)
        return f"{opening}{json.dumps(state.key, ensure_ascii=False)}: "

    def _in_string(self, text: str) -> str:
        before, tag, behind = text.partition(VALUE_END)
        before = before if tag else self._hold(text, VALUE_END)
        written = json.dumps(before, ensure_ascii=False)[1:-1] + ('"' if tag else "")
        if written and not self.state.muted:
            self._write(written)
        if tag:
            self.state.mode = "pairs"
        return behind

    def _in_value(self, text: str) -> str:
        state = self.state
        before, tag, behind = text.partition(VALUE_END)
        state.value.append(before if tag else self._hold(text, VALUE_END))
        if tag:
            value, state.value, state.mode = "".join(state.value), [], "pairs"
            if not state.muted:
                self._write(self._key() + typed(value))
        return behind

    def _close(self) -> None:
        state = self.state
        self._write("}" if state.keys else "{}")
        self._events.append(CallEnd(state.index, malformed=state.junk))
        state.mode = "text"

    def finish(self) -> list[Event]:
        """A cut call stays open; one-shot answers show it as text."""
        state = self.state
        if state.mode in ("text", "name"):
            text = "".join(state.value) + state.held
            return [*([Content(text)] if text else []), *Ending(state.ending).finish()]
        return [CallEnd(state.index, malformed=True)]


def is_text(schema: Mapping[str, Any], key: str) -> bool:
    """Whether the function's schema says that the parameter is plain text."""
    properties = schema.get("properties")
    declared = properties.get(key) if isinstance(properties, Mapping) else None
    return isinstance(declared, Mapping) and declared.get("type") == "string"


def typed(text: str) -> str:
    """JSON text of a value that is JSON or a Python literal; of the text itself if it is neither."""
    stripped = text.strip()
    for read in (load_json, _literal):
        try:
            return dump_json(read(stripped))
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            continue
    return dump_json(text)


def _literal(text: str) -> Any:
    """The value of a Python literal. Raises ValueError, among others, for one that JSON cannot say."""
    value = ast.literal_eval(text)
    json.dumps(value, allow_nan=False)
    return value


class PoolsideTools(ToolFormat):
    """`poolside_v1` (pythonic_misc 10.2)."""

    names = ("poolside_v1",)
    merges_entries = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        tags = (START, END, KEY, KEY_END, VALUE, VALUE_END)
        self.marks = {token_id: text for token_id, text in vocabulary.special_tokens.items() if text not in tags}
        end_id = vocabulary.token_id(ASSISTANT_END)
        if end_id is not None:
            self.marks[end_id] = ASSISTANT_END

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return PoolsideToolStage(context.parameters)

    def settle(self, outcome: Outcome) -> None:
        """White space behind the first call is no content."""
        super().settle(outcome)
        before = outcome.raw.partition(START)[0]
        if outcome.called and outcome.content and outcome.content.startswith(before):
            behind = outcome.content[len(before) :]
            outcome.content = before + behind if behind.strip() else before


class PoolsideReasoning(ThinkFormat):
    """`poolside_v1` (pythonic_misc 10.1): off, everything is content, tags included."""

    names = ("poolside_v1",)
    needs_tags = False

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        if vocabulary.token_id(ASSISTANT) is None:
            raise ParserConfigurationError(f"the tokenizer has no {ASSISTANT} token")

    def thinks(self, context: RequestContext) -> bool:
        return context.template_flag("thinking", "enable_thinking", default=False)
