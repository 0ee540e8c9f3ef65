"""K2 Horizon: thoughts, answer, one group of calls in which each call is tagged text or JSON.

    <ifm|think>The user asks for the weather.</ifm|think>Let me look.<ifm|tool_calls>
    <ifm|tool_call>get_weather
    <ifm|arg_key>city</ifm|arg_key>
    <ifm|arg_value>Paris</ifm|arg_value>
    </ifm|tool_call>
    </ifm|tool_calls>

The request's `tool_call_format` says how calls are written: "xml" (as here), "xml_typed" (a type between key and value)
or "json". A group counts as a whole: it is sent when it is complete, and is text if any of it is no call (json 13).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from parsers.engine.assembly import dump_json
from parsers.engine.coercion import coerce_text, types_of
from parsers.engine.context import NamedToolChoice, RequestContext
from parsers.engine.events import CallArguments, CallEnd, CallStart, Content, Event, Reasoning, Segment, Text
from parsers.engine.exceptions import ParserConfigurationError, UnsupportedRequestError
from parsers.engine.lexer import Lexer
from parsers.engine.scanner import text_of
from parsers.engine.stage import Outcome, ReasoningFormat, ReasoningStage, ToolFormat, ToolStage
from parsers.engine.vocabulary import Vocabulary

GROUP, END_GROUP = "<ifm|tool_calls>", "</ifm|tool_calls>"
FORMATS = ("xml", "xml_typed", "json")
EFFORTS = {"high": "think", "medium": "think_fast", "low": "think_faster"}

_CALL = re.compile(r"\s*<ifm\|tool_call>(.*?)</ifm\|tool_call>", re.DOTALL)
_TAG = re.compile(r"\s*<ifm\|(arg_key|arg_type|arg_value)>(.*?)</ifm\|\1>", re.DOTALL)
_NAME = re.compile(r"\S+\Z")


class NoCall(ValueError):
    """A group's text is no call."""


@dataclass(slots=True)
class GroupState:
    """`phase`: "content" before the group, "group" inside, "after". `held` may begin a marker, `blank` is white space
    before any visible content, `group` the text of the open group.
    """

    phase: str = "content"
    held: str = ""
    blank: str = ""
    visible: bool = False
    group: list[str] = field(default_factory=list)


class GroupedCalls(ToolStage):
    """One stream."""

    State: ClassVar[type] = GroupState

    def __init__(self, context: RequestContext, form: str) -> None:
        super().__init__()
        self._context = context
        self._form = form
        self._opening, self._closing = Lexer([GROUP]), Lexer([END_GROUP])

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        state = self.state
        events: list[Event] = []
        text, state.held = state.held + text_of(segments), ""
        while text:
            if state.phase == "after" or self._context.tool_choice == "none":
                self._content(text, events)
                break
            lexer = self._opening if state.phase == "content" else self._closing
            end, marker = lexer.next(text, 0)
            if state.phase == "content":
                self._content(text[:end], events)
            else:
                state.group.append(text[:end])
            if not marker:
                state.held = text[end:]
                break
            text = text[end + len(marker) :]
            if state.phase == "content":
                state.phase, state.group = "group", []
            else:
                self._close(events)
        return events

    def finish(self) -> list[Event]:
        """What is held or open is content."""
        state = self.state
        events: list[Event] = []
        opened = [GROUP, *state.group] if state.phase == "group" else []
        self._content("".join(opened) + state.held, events)
        state.held, state.group, state.phase = "", [], "after"
        return events

    def _content(self, text: str, events: list[Event]) -> None:
        state = self.state
        if not state.visible:
            text, state.blank = state.blank + text, ""
            if not text.strip():
                state.blank = text
                return
            state.visible = True
        if text:
            events.append(Content(text))

    def _close(self, events: list[Event]) -> None:
        state = self.state
        group, state.group, state.phase = "".join(state.group), [], "after"
        try:
            calls = [self._call(body) for body in _bodies(group)]
        except NoCall:
            self._content(GROUP + group + END_GROUP, events)
            return
        for index, (name, arguments) in enumerate(calls):
            events += [CallStart(index, name), CallArguments(index, arguments), CallEnd(index)]

    def _call(self, body: str) -> tuple[str, str]:
        """(name, arguments) of one call. Raises NoCall."""
        name, arguments = self._json_call(body) if self._form == "json" else self._xml_call(body)
        choice = self._context.tool_choice
        offered = self._context.parameters
        if (offered and name not in offered) or (isinstance(choice, NamedToolChoice) and name != choice.name):
            raise NoCall(name)
        try:
            json.dumps(arguments, allow_nan=False)
        except ValueError as error:
            raise NoCall("not finite") from error
        return name, dump_json(arguments)

    def _json_call(self, body: str) -> tuple[str, dict[str, Any]]:
        try:
            call = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise NoCall("no JSON") from error
        name = call.get("name") if isinstance(call, dict) else None
        arguments = call.get("arguments", {}) if isinstance(call, dict) else None
        if not isinstance(name, str) or not _NAME.match(name) or not isinstance(arguments, dict):
            raise NoCall(body)
        properties = _properties(self._context, name)
        typed = {
            key: coerce_text(value if isinstance(value, str) else dump_json(value), properties[key])
            if key in properties
            else value
            for key, value in arguments.items()
        }
        return name, typed

    def _xml_call(self, body: str) -> tuple[str, dict[str, Any]]:
        first = body.find("<ifm|arg_")
        name = (body if first < 0 else body[:first]).strip()
        if not _NAME.match(name):
            raise NoCall(name)
        properties = _properties(self._context, name)
        arguments: dict[str, Any] = {}
        for key, kind, value in self._parameters(body[first:] if first >= 0 else ""):
            if key in arguments:
                raise NoCall(key)
            arguments[key] = _typed(value, kind, properties.get(key))
        return name, arguments

    def _parameters(self, text: str) -> list[tuple[str, str, str]]:
        """(key, type, value) of each parameter, with nothing but white space between the tags. Raises NoCall."""
        found: list[tuple[str, str]] = []
        position = 0
        while match := _TAG.match(text, position):
            found.append((match.group(1), match.group(2)))
            position = match.end()
        expected = ("arg_key", "arg_type", "arg_value") if self._form == "xml_typed" else ("arg_key", "arg_value")
        size = len(expected)
        if text[position:].strip() or len(found) % size:
            raise NoCall("text between tags")
        parameters = []
        for start in range(0, len(found), size):
            tags = dict(found[start : start + size])
            if tuple(tag for tag, _ in found[start : start + size]) != expected or not tags["arg_key"].strip():
                raise NoCall("tags out of order")
            kind = tags.get("arg_type", "").strip()
            if self._form == "xml_typed" and not kind:
                raise NoCall("no type")
            parameters.append((tags["arg_key"].strip(), kind, tags["arg_value"]))
        return parameters


def _bodies(group: str) -> list[str]:
    """The calls of a group, which holds nothing else. Raises NoCall."""
    bodies = []
    position = 0
    while match := _CALL.match(group, position):
        bodies.append(match.group(1))
        position = match.end()
    if not bodies or group[position:].strip():
        raise NoCall("text between calls")
    return bodies


def _properties(context: RequestContext, name: str) -> Mapping[str, Any]:
    properties = context.parameters.get(name, {}).get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _typed(value: str, kind: str, schema: object) -> Any:
    """A value typed by its schema; among several types, or without a schema, the explicit type decides."""
    explicit = kind.partition("[")[0].strip().lower()
    if isinstance(schema, Mapping) and schema:
        types = types_of(schema)
        wanted: Any = {"type": explicit} if len(types) > 1 and explicit in types else schema
    elif explicit == "any":
        return value
    else:
        wanted = {"type": explicit} if explicit else {}
    text = value if "string" in types_of(wanted) else value.strip()
    typed = coerce_text(text, wanted)
    if isinstance(typed, float) and not math.isfinite(typed):
        raise NoCall("not finite")
    return typed


class K2HorizonTools(ToolFormat):
    """`k2_horizon`."""

    names = ("k2_horizon",)
    engine_based = True
    merges_entries = True

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        form = context.own_template_kwargs.get("tool_call_format", "xml")
        if form not in FORMATS:
            supported = ", ".join(sorted(FORMATS))
            raise UnsupportedRequestError(f"Unsupported tool_call_format {form!r}. Supported values: {supported}.")
        return GroupedCalls(context, form)

    def settle(self, outcome: Outcome) -> None:
        outcome.called = bool(outcome.calls)
        if outcome.content is not None and not outcome.content.strip():
            outcome.content = None


@dataclass(slots=True)
class ThoughtState:
    """`held` may begin a marker; `begun`: the start is behind; `ended`: so are the thoughts."""

    held: str = ""
    begun: bool = False
    ended: bool = False


class K2HorizonThoughts(ReasoningStage):
    """Thoughts up to their end marker or a group of calls. The markers count wherever they are spelled."""

    State: ClassVar[type] = ThoughtState

    def __init__(self, start: str, end: str, *, ended: bool) -> None:
        super().__init__()
        self._start, self._end = start, end
        self._lexer = Lexer([end, GROUP])
        self.state.ended = ended

    @property
    def ended(self) -> bool:
        return self.state.ended

    def feed(self, segments: Sequence[Segment]) -> list[Event | Segment]:
        state = self.state
        if state.ended:
            return list(segments)
        text, state.held = state.held + text_of(segments), ""
        if not state.begun:
            if self._start.startswith(text) and text != self._start:
                state.held = text
                return []
            state.begun = True
            if text == self._start:
                return []
            text = text.removeprefix(self._start)
        end, marker = self._lexer.next(text, 0)
        if not marker:
            state.held = text[end:]
            return [Reasoning(text[:end])] if end else []
        state.ended = True
        rest = text[end:] if marker == GROUP else text[end + len(marker) :]
        out: list[Event | Segment] = [Reasoning(text[:end])]
        return [*out, Text(rest)] if rest else out

    def finish(self) -> list[Event | Segment]:
        held, self.state.held = self.state.held, ""
        return [Reasoning(held)] if held else []


class K2HorizonReasoning(ReasoningFormat):
    """`k2_horizon`. The tags depend on the reasoning effort."""

    names = ("k2_horizon",)

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        start, end = _tags("high")
        if vocabulary.token_id(start) is None or vocabulary.token_id(end) is None:
            raise ParserConfigurationError(f"k2_horizon needs the tokens {start} and {end}, which the tokenizer lacks")

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> ReasoningStage:
        effort = context.template_kwargs.get("reasoning_effort") or "high"
        if effort not in EFFORTS:
            supported = ", ".join(EFFORTS)
            raise UnsupportedRequestError(f"Unsupported reasoning_effort {effort!r}. Supported values: {supported}.")
        start, end = _tags(effort)
        closing = {self.vocabulary.token_id(end), self.vocabulary.token_id(GROUP)} - {None}
        opening = {self.vocabulary.token_id(start)} - {None}
        last = next((each for each in reversed(prompt_token_ids or ()) if each in closing | opening), None)
        return K2HorizonThoughts(start, end, ended=last in closing)


def _tags(effort: str) -> tuple[str, str]:
    return f"<ifm|{EFFORTS[effort]}>", f"</ifm|{EFFORTS[effort]}>"
