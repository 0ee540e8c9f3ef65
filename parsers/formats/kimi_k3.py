"""Kimi K3: channels of thoughts, answer and calls, in tags between the tokens `<|open|>` or `<|close|>`, and `<|sep|>`.

    The user asks for the weather.<|close|>think<|sep|><|open|>response<|sep|>Let me look.<|close|>response<|sep|>
    <|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="string"
    <|sep|>Paris<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>

The line breaks are not part of it. One stage reads it all, whichever of the two parsers is named.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from parsers.engine.assembly import dump_json
from parsers.engine.context import RequestContext
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
)
from parsers.engine.exceptions import ParserConfigurationError
from parsers.engine.stage import Outcome, UnifiedFormat, UnifiedStage
from parsers.engine.vocabulary import Vocabulary

OPEN, CLOSE, SEPARATOR = "<|open|>", "<|close|>", "<|sep|>"
END_OF_MESSAGE = "<|end_of_msg|>"

Place = Literal["think", "hidden", "outside", "response", "tools", "call", "argument", "unseen"]

_TAG_LIMIT = 2000
_WORD = re.compile(r"\s*(\w*)(\s[^\0]*)?\Z")
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_WITH_ATTRIBUTES = ("call", "argument")

_TAGS: Mapping[Place, Mapping[str, tuple[str, ...]]] = {
    "think": {OPEN: ("think",), CLOSE: ("think",)},
    "hidden": {OPEN: ("response", "tools"), CLOSE: ("think",)},
    "outside": {OPEN: ("think", "response", "tools"), CLOSE: ("think", "response", "message")},
    "response": {OPEN: ("response", "tools"), CLOSE: ("response", "message")},
    "tools": {OPEN: ("call", "response"), CLOSE: ("tools", "message")},
    "call": {OPEN: ("argument", "call"), CLOSE: ("call", "tools", "message")},
    "argument": {OPEN: (), CLOSE: ("argument", "call")},
    "unseen": {OPEN: ("response",), CLOSE: ("tools", "message")},
}
"""The tags that mean something in each place; any other is text."""


@dataclass(slots=True)
class ChannelState:
    """`place`: the open channel; "hidden" thoughts and "unseen" calls are shown to nobody.

    `tag` is a tag that is not complete, `tail` the spelled beginning of a token. `opened`: the model opened its
    thoughts itself; `thought`: they are not blank, `spoke`: some were sent. `answered`: a response is complete; `done`:
    text outside of channels is no answer any more; `visible`: such text was sent, `blank`: white space before it.
    `name`, `arguments`, `key`, `type` and `value` belong to the open call.
    """

    place: Place = "outside"
    tag: str | None = None
    tail: str = ""
    opened: bool = False
    spoke: bool = False
    thought: bool = False
    answered: bool = False
    done: bool = False
    visible: bool = False
    blank: str = ""
    index: int = 0
    name: str | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    key: str = ""
    type: str = ""
    value: str = ""


class ChannelStage(UnifiedStage):
    """Reads tags and text; a call is sent whole when it is complete (deepseek_kimi_harmony 7)."""

    State: ClassVar[type] = ChannelState

    def __init__(
        self, markers: Mapping[int, str], *, thinks: bool, ended: bool, knows_tools: bool, calls: bool
    ) -> None:
        super().__init__()
        self._markers = markers
        self._thinks = thinks
        self._knows_tools = knows_tools
        self._calls = calls
        self.state.place = "think" if thinks and not ended else "outside"

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        events: list[Event] = []
        for segment in segments:
            if isinstance(segment, Text):
                self._read(segment.text, events)
            else:
                self._token(self._markers[segment.token_id], events)
        return events

    def finish(self) -> list[Event]:
        """What is held back is text after all. A call that is not complete is none."""
        events: list[Event] = []
        state = self.state
        self._drop_tag(events)
        tail, state.tail = state.tail, ""
        self._emit(tail, events)
        if state.blank:
            events.append(Content(state.blank))
            state.blank = ""
        return events

    # --- tags -----------------------------------------------------------------------------------------------------

    def _token(self, marker: str, events: list[Event]) -> None:
        state = self.state
        tail, state.tail = state.tail, ""
        self._emit(tail, events)
        if marker != SEPARATOR:
            if state.tag is not None and _ATTRIBUTE.search(state.tag):
                self._complete_tag(events)
            self._drop_tag(events)
            state.tag = marker
        elif state.tag is None:
            self._emit(marker, events)
        else:
            self._complete_tag(events)

    def _complete_tag(self, events: list[Event]) -> None:
        tag, self.state.tag = self.state.tag or "", None
        self._tag(tag, events)

    def _drop_tag(self, events: list[Event]) -> None:
        tag, self.state.tag = self.state.tag, None
        self._emit(tag or "", events)

    def _read(self, text: str, events: list[Event]) -> None:
        state = self.state
        if state.tag is not None:
            state.tag += text
            if not self._may_be_tag(state.tag):
                self._drop_tag(events)
            return
        text = state.tail + text
        start = text.rfind("<")
        if start >= 0 and any(
            len(text) - start < len(each) and each.startswith(text[start:]) for each in (OPEN, CLOSE)
        ):
            state.tail, text = text[start:], text[:start]
        else:
            state.tail = ""
        self._emit(text, events)

    def _names(self, marker: str) -> tuple[str, ...]:
        """The tags to look for.

        The answer may begin although the prompt's thoughts were not closed, before any thought a call may, too. Without
        a tool parser calls are text, unless the answer is complete.
        """
        state = self.state
        names = _TAGS[state.place][marker]
        if state.place == "think" and marker == OPEN and not state.opened:
            names += ("response",) if state.thought else ("response", "tools")
        if not self._knows_tools and not state.done and state.place != "response":
            names = tuple(name for name in names if name != "tools")
        return names

    def _may_be_tag(self, tag: str) -> bool:
        marker = OPEN if tag.startswith(OPEN) else CLOSE
        found = _WORD.match(tag, len(marker))
        if found is None or len(tag) > _TAG_LIMIT:
            return False
        word, rest = found.groups()
        names = self._names(marker)
        if rest is None:
            return any(name.startswith(word) for name in names)
        return word in names and (not rest.strip() or (marker == OPEN and word in _WITH_ATTRIBUTES))

    def _tag(self, tag: str, events: list[Event]) -> None:
        marker = OPEN if tag.startswith(OPEN) else CLOSE
        found = _WORD.match(tag, len(marker))
        name = found.group(1) if found else ""
        if name not in self._names(marker) or (name == "think" and marker == OPEN and self.state.opened):
            self._emit(tag + SEPARATOR, events)
        elif marker == OPEN:
            self._open(name, dict(_ATTRIBUTE.findall(tag)), events)
        else:
            self._close(name, events)

    def _open(self, name: str, attributes: Mapping[str, str], events: list[Event]) -> None:
        state = self.state
        if name == "think":
            self._open_thoughts(events)
        elif name == "response":
            state.place, state.blank = "outside" if state.answered else "response", ""
        elif name == "tools":
            self._open_tools()
        elif name == "call":
            if state.place == "call":
                self._end_call(events)
            state.place, state.arguments = "call", {}
            state.name = _unescaped(attributes["tool"]) if "tool" in attributes else None
        else:
            state.place, state.value = "argument", ""
            state.key = _unescaped(attributes.get("key", ""))
            state.type = attributes.get("type", "string")

    def _open_thoughts(self, events: list[Event]) -> None:
        """White space before the opening tag is no thought."""
        state = self.state
        if state.place != "think" and (state.done or not self._thinks):
            state.place = "hidden"
            return
        state.place, state.opened, state.blank = "think", True, ""
        if state.spoke and not state.thought:
            events.append(ReasoningRetracted())

    def _open_tools(self) -> None:
        state = self.state
        state.place, state.blank, state.done = ("tools" if self._calls else "unseen"), "", True

    def _close(self, name: str, events: list[Event]) -> None:
        state = self.state
        if name == "argument":
            self._end_argument()
        elif name == "call":
            self._end_call(events)
            state.place = "tools"
        else:
            if state.place == "call":
                self._end_call(events)
            state.place = "outside"
            state.answered = state.answered or name == "response"
            state.done = state.done or name in ("response", "message")

    def _end_argument(self) -> None:
        """Arguments marked as text, or not marked, are text; others are JSON where they can be read."""
        state = self.state
        value: Any = state.value
        if state.type != "string":
            try:
                value = json.loads(state.value)
                json.dumps(value, allow_nan=False)
            except (ValueError, RecursionError):
                value = state.value
        state.arguments[state.key] = value
        state.place, state.value = "call", ""

    def _end_call(self, events: list[Event]) -> None:
        """A call without a name is none."""
        state = self.state
        if state.place == "argument":
            self._end_argument()
        name, state.name = state.name, None
        if name is not None:
            events.append(CallStart(state.index, name))
            events.append(CallArguments(state.index, dump_json(state.arguments)))
            events.append(CallEnd(state.index))
            state.index += 1
        state.arguments = {}

    # --- text -----------------------------------------------------------------------------------------------------

    def _emit(self, text: str, events: list[Event]) -> None:
        state = self.state
        if not text:
            return
        match state.place:
            case "think":
                state.spoke, state.thought = True, state.thought or bool(text.strip())
                events.append(Reasoning(text))
            case "argument":
                state.value += text
            case "response":
                events.append(Content(text))
            case "outside" if not state.done:
                self._outside(state.blank + text, events)

    def _outside(self, text: str, events: list[Event]) -> None:
        """Text outside of channels is the answer; white space in front of it may only separate channels."""
        state = self.state
        state.visible = state.visible or bool(text.strip())
        state.blank = "" if state.visible else text
        if state.visible:
            events.append(Content(text))


def _unescaped(text: str) -> str:
    return text.replace("&quot;", '"').replace("&amp;", "&")


class KimiK3(UnifiedFormat):
    """`kimi_k3`, tools and reasoning."""

    names = ("kimi_k3",)
    merges_entries = True

    def __init__(self, vocabulary: Vocabulary, *, tools: bool, reasoning: bool) -> None:
        super().__init__(vocabulary, tools=tools, reasoning=reasoning)
        marks: dict[int, str] = {}
        for marker in (OPEN, CLOSE, SEPARATOR):
            token_id = vocabulary.token_id(marker)
            if token_id is None:
                raise ParserConfigurationError(f"the tokenizer has no {marker} token")
            marks[token_id] = marker
        self.marks = marks
        think = [vocabulary.encode(f"{marker}think{SEPARATOR}") for marker in (OPEN, CLOSE)]
        self._open_think, self._close_think = (tuple(ids) for ids in think)
        self._boundary = vocabulary.token_id(END_OF_MESSAGE)

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> UnifiedStage:
        return ChannelStage(
            self.marks,
            thinks=self.reasoning and _thinks(context),
            ended=self._closed(prompt_token_ids or ()),
            knows_tools=self.tools,
            calls=self.tools and bool(context.tools) and context.tool_choice != "none",
        )

    def _closed(self, prompt: Sequence[int]) -> bool:
        """Whether the last think tag of this turn closes the thoughts."""
        for end in range(len(prompt), 0, -1):
            if prompt[end - 1] == self._boundary:
                return False
            if self.marks.get(prompt[end - 1]) == SEPARATOR:
                for closed, tag in ((True, self._close_think), (False, self._open_think)):
                    if tuple(prompt[max(end - len(tag), 0) : end]) == tag:
                        return closed
        return False

    def settle(self, outcome: Outcome) -> None:
        """Blank content counts only without calls."""
        content = outcome.content or ""
        if not content or (outcome.calls and not content.strip()):
            outcome.content = None


def _thinks(context: RequestContext) -> bool:
    values = (context.template_kwargs.get(name) for name in ("thinking", "enable_thinking"))
    return next((bool(value) for value in values if value is not None), True)
