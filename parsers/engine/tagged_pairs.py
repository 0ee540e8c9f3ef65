"""Calls written as tagged key-value pairs inside a tagged block, with every tag a token where the tokenizer has it.

    <tool_calls><tool_call>get_weather<tool_sep><arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call></tool_calls>

A pair whose parameter is text is sent while it arrives, another when it is complete and typed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .assembly import dump_json
from .context import RequestContext
from .events import CallArguments, CallEnd, CallStart, Content, Event, Malformed, Segment, Text
from .lexer import Lexer
from .literal_values import literal_types, literal_value
from .stage import ToolStage

_COUNTED = {"key": (0, 1), "end_key": (0, -1), "value": (1, 1), "end_value": (1, -1)}


@dataclass(frozen=True, slots=True)
class Tags:
    """The tags of one tokenizer: spelling of each, and which token IDs are which. `spelled` are found in the text."""

    texts: Mapping[str, str]
    by_id: Mapping[int, str]
    spelled: Mapping[str, str]


@dataclass(slots=True)
class TaggedState:
    """`place`: "content", "block", "name", "args", "key", "gap" (between key and value) or "value".

    `parts` is the text of the open name, key or value that is not sent as it comes; `since_end` what followed a
    `</tool_call>` inside a value, which either ended the call or is part of the value; `opener` all text since a block
    began, while no call did. Of the open call: `sent` counts its arguments' code points, `settled` those of closed
    pairs. `queue` holds what later chunks send: [kind, call, text]. `began`: a block was seen; `blocks`: those that are
    complete; `blank`: white space precedes the next call. `excess` counts opening less closing tags of the open call's
    keys and values.
    """

    place: str = "content"
    held: str = ""
    opener: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    since_end: list[str] | None = None
    index: int = 0
    name: str = ""
    key: str = ""
    streams: bool = False
    pairs: int = 0
    excess: list[int] = field(default_factory=lambda: [0, 0])
    sent: int = 0
    settled: int = 0
    began: bool = False
    blocks: int = 0
    blank: bool = False
    announced: bool = False
    queue: list[list[Any]] = field(default_factory=list)


class TaggedCalls(ToolStage):
    """Calls as tagged pairs, sent in vLLM's rhythm (newest 2.2).

    A name goes out alone, its arguments from the next chunk on, unless the call is complete by then. `strict`: anything
    but tags and pairs inside a block is malformed. `header_ends`: the tags that end a name.
    """

    State: ClassVar[type] = TaggedState
    strict: ClassVar[bool] = False
    header_ends: ClassVar[frozenset[str]] = frozenset({"separator"})
    spells_content = False

    def __init__(self, tags: Tags, context: RequestContext) -> None:
        super().__init__()
        self._tags = tags
        self._parameters = context.parameters
        self._names = dict(tags.spelled)
        self._lexers: Mapping[str, Lexer] = {}
        if tags.spelled:
            lexer = Lexer(tags.spelled)
            self._lexers = dict.fromkeys(("block", "name", "args", "key", "gap", "value"), lexer)

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        events: list[Event] = []
        for segment in segments:
            name = None if isinstance(segment, Text) else self._tags.by_id.get(segment.token_id)
            if name is None:
                self._read(segment.text, events)
            else:
                self._release_held(events)
                self._tag(name, segment.text, events)
        if not events and not self.state.began and not self.spells_content:
            events.append(Content(""))
        return events + self._due()

    def finish(self) -> list[Event]:
        events: list[Event] = []
        self._release_held(events)
        state = self.state
        if state.place not in ("content", "block"):
            self._cut(events)
        if state.place == "block":
            self._close_block("", events)
        events += map(_event, state.queue)
        state.queue = []
        return events

    def _read(self, text: str, events: list[Event]) -> None:
        state = self.state
        text, state.held = state.held + text, ""
        position = 0
        while position < len(text):
            lexer = self._lexers.get(state.place)
            if lexer is None:
                self._text(text[position:], events)
                return
            end, literal = lexer.next(text, position)
            if end > position:
                self._text(text[position:end], events)
            if not literal:
                state.held = text[end:]
                return
            self._tag(self._names[literal], literal, events)
            position = end + len(literal)

    def _release_held(self, events: list[Event]) -> None:
        held, self.state.held = self.state.held, ""
        if held:
            self._text(held, events)

    def _text(self, text: str, events: list[Event]) -> None:
        state = self.state
        self._remember(text)
        if state.place == "content":
            events.append(Content(text))
        elif state.since_end is not None:
            state.since_end.append(text)
        elif state.place == "value":
            self._value(text)
        elif state.place in ("name", "key"):
            state.parts.append(text)
        elif state.place == "block":
            state.blank = True
        elif state.place == "gap" or not text.isspace():
            self._mistake(events)

    def _remember(self, text: str) -> None:
        """Text of a block in which no call was found yet may have to be given back."""
        if self.state.opener:
            self.state.opener.append(text)

    def _mistake(self, events: list[Event]) -> None:
        """Text where none belongs; what follows the first complete block does not count."""
        if self.strict and not self.state.blocks:
            events.append(Malformed())

    def _tag(self, name: str, text: str, events: list[Event]) -> None:
        state = self.state
        if state.place == "content":
            if name == "calls":
                state.place, state.began, state.opener = "block", True, [text]
            else:
                events.append(Content(text))
            return
        self._remember(text)
        self._count(name)
        if state.since_end is not None and not self._after_end(name, text):
            return
        getattr(self, f"_in_{state.place}")(name, text, events)

    def _after_end(self, name: str, text: str) -> bool:
        """A tag behind a `</tool_call>` in an open value tells what that was.

        Returns whether the call is over, so that the tag counts.
        """
        state = self.state
        assert state.since_end is not None
        if name in ("call", "calls", "end_calls"):
            state.since_end = None
            self._close_value()
            self._end_call()
            return True
        if name != "end_value":
            state.since_end.append(text)
            return False
        rest, state.since_end = "".join(state.since_end), None
        self._value(rest)
        self._close_value()
        return False

    def _count(self, name: str) -> None:
        if name in _COUNTED:
            which, step = _COUNTED[name]
            self.state.excess[which] += step

    def _in_block(self, name: str, text: str, events: list[Event]) -> None:
        state = self.state
        if name == "call":
            state.place, state.parts = "name", []
        elif name == "end_calls":
            self._close_block(text, events)
        elif name != "calls":
            self._mistake(events)

    def _in_name(self, name: str, text: str, events: list[Event]) -> None:
        state = self.state
        nameless = self.strict and name in self.header_ends and not "".join(state.parts).strip()
        if name in self.header_ends and not nameless:
            self._start_call()
            if name in ("key", "end_call"):
                self._count(name)
                self._in_args(name, text, events)
        elif nameless or name in ("call", "end_call", "end_calls"):
            self._mistake(events)
            state.place = "block"
            if name in ("call", "end_calls"):
                self._in_block(name, text, events)
        else:
            state.parts.append(text)

    def _in_args(self, name: str, text: str, events: list[Event]) -> None:
        state = self.state
        if name == "key":
            state.place, state.parts = "key", []
        elif name in ("end_call", "call", "end_calls"):
            if any(state.excess):
                self._mistake(events)
            self._end_call()
            if name != "end_call":
                self._mistake(events)
                self._in_block(name, text, events)
        else:
            self._mistake(events)

    def _in_key(self, name: str, text: str, events: list[Event]) -> None:
        state = self.state
        if name == "end_key":
            state.key, state.parts, state.place = "".join(state.parts), [], "gap"
        elif name in ("end_call", "call", "end_calls"):
            self._mistake(events)
            self._in_args(name, text, events)
        else:
            state.parts.append(text)

    def _in_gap(self, name: str, text: str, events: list[Event]) -> None:
        if name == "value":
            self._open_value()
            return
        self._mistake(events)
        if name in ("key", "end_call", "call", "end_calls"):
            self._in_args(name, text, events)

    def _in_value(self, name: str, text: str, events: list[Event]) -> None:
        state = self.state
        if name == "end_value":
            self._close_value()
        elif name == "end_call":
            self._mistake(events)
            state.since_end = [text]
        elif name == "end_calls":
            self._mistake(events)
            self._close_value()
            self._in_args(name, text, events)
        else:
            if name == "call":
                self._mistake(events)
            self._value(text)

    def _start_call(self) -> None:
        state = self.state
        state.name, state.parts = "".join(state.parts).strip(), []
        state.place, state.opener = "args", []
        state.pairs = state.sent = 0
        state.excess = [0, 0]
        state.queue.append(["start", state.index, state.name, state.blank])
        self._send("{")
        state.settled = state.sent

    def _schema(self) -> object:
        properties = self._parameters.get(self.state.name, {}).get("properties")
        return properties.get(self.state.key, {}) if isinstance(properties, Mapping) else {}

    def _open_value(self) -> None:
        state = self.state
        state.place, state.parts = "value", []
        state.streams = literal_types(self._schema()) == {"string"}
        if state.streams:
            self._send(self._key() + '"')

    def _key(self) -> str:
        return (", " if self.state.pairs else "") + dump_json(self.state.key) + ": "

    def _value(self, text: str) -> None:
        if self.state.streams:
            self._send(dump_json(text)[1:-1])
        else:
            self.state.parts.append(text)

    def _close_value(self) -> None:
        state = self.state
        if state.streams:
            self._send('"')
        else:
            self._send(self._key() + dump_json(literal_value("".join(state.parts), self._schema())))
        state.place, state.parts = "args", []
        state.pairs += 1
        state.settled = state.sent

    def _end_call(self) -> None:
        state = self.state
        self._send("}")
        state.queue.append(["end", state.index])
        state.index += 1
        state.place, state.blank = "block", False

    def _send(self, text: str) -> None:
        if text:
            self.state.queue.append(["arguments", self.state.index, text])
            self.state.sent += len(text)

    def _cut(self, events: list[Event]) -> None:
        """The output ended inside a call.

        A pair that is not complete stays as it was sent, one-shot answers leave it out. A strict block is no call then,
        so nothing is closed.
        """
        state = self.state
        self._mistake(events)
        if state.since_end is not None:
            state.since_end = None
            self._close_value()
        if state.place == "value" and state.streams:
            state.queue.append(["cut", state.index, state.settled])
        elif state.place != "name" and not self.strict:
            self._end_call()
        state.place = "block"

    def _close_block(self, text: str, events: list[Event]) -> None:
        """`</tool_calls>`, or the end of output. Text of a block without a call is content after all."""
        state = self.state
        if not text:
            self._mistake(events)
        if state.opener:
            if self.strict or _visible("".join(state.opener), self._tags.texts.values()):
                events += [Malformed(), Content("".join(state.opener))]
            state.place, state.opener = "content", []
        elif self.strict and text:
            state.blocks += 1

    def _due(self) -> list[Event]:
        """What of the queue this chunk sends."""
        state = self.state
        count = 0
        if state.announced:
            count = self._until_end(0)
            state.announced = not (count and state.queue[count - 1][0] == "end")
        elif state.queue:
            count = self._until_end(0)
            if state.queue[count - 1][0] != "end":
                count = 1
                state.announced = True
        while not state.announced and count and count < len(state.queue):
            end = self._until_end(count)
            if state.queue[end - 1][0] != "end" or (self.strict and state.queue[count][3]):
                break
            count = end
        due, state.queue = state.queue[:count], state.queue[count:]
        return list(map(_event, due))

    def _until_end(self, start: int) -> int:
        """The place behind the next end of a call, or behind everything."""
        queue = self.state.queue
        return next((at + 1 for at in range(start, len(queue)) if queue[at][0] == "end"), len(queue))


def _event(item: Sequence[Any]) -> Event:
    match item:
        case ["start", index, name, *_]:
            return CallStart(index, name)
        case ["arguments", index, text]:
            return CallArguments(index, text)
        case ["cut", index, kept]:
            return CallEnd(index, kept=kept, tail="}")
        case _:
            return CallEnd(item[1])


def _visible(text: str, tags: Iterable[str]) -> str:
    """`text` without tags and white space around."""
    for tag in tags:
        text = text.replace(tag, "")
    return text.strip()
