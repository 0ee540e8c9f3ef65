"""Meta Muse: messages to recipients, calls in "ATEM" tags; the prompt ends with `<|start|>assistant`.

 to=self<|message|>The user asks for the weather.<|eom|>
<|start|>assistant to=user<|message|>Let me look.<|eom|>
<|start|>assistant to=get_weather<|message|><atem:function_calls>
<atem:invoke name="get_weather">
<atem:parameter name="city">Paris</atem:parameter>
</atem:invoke>
</atem:function_calls><|eot|>

(messages follow each other without line breaks). The markers count wherever they are spelled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from parsers.engine.assembly import dump_json, load_json
from parsers.engine.context import RequestContext
from parsers.engine.events import (
    CallArguments,
    CallEnd,
    CallStart,
    Content,
    Event,
    Malformed,
    Reasoning,
    ReasoningRetracted,
    Segment,
    Text,
)
from parsers.engine.message_frames import BARE, EOM, EOT, MESSAGE, START, Frame, FrameReader, FrameState
from parsers.engine.stage import Outcome, ReasoningFormat, ReasoningStage, ToolFormat, ToolStage
from parsers.engine.vocabulary import Vocabulary

_PROMPT_TAIL = 256
_OPENER = re.compile(r"<atem:(?:function_calls>|invoke)")
_INVOKE = re.compile(r"<atem:invoke\b([^>]*)>(.*?)</atem:invoke>", re.DOTALL)
_PARAMETER = re.compile(r"<atem:parameter\b([^>]*)>(.*?)</atem:parameter>", re.DOTALL)
_NAME = re.compile(r'(?:^|\s)name="([^"]*)"')

TOOL_HEADER = re.compile(r"(?:<\|start\|>\s?assistant)?[^\S\n]*(?:to=(?P<to>[\w.\-]+))?\Z", re.ASCII)
REASONING_HEADER = re.compile(r"(?:<\|start\|>assistant\s*)?(?:to=(?P<to>[^\s<]+))?\Z")
TOOL_FRAME = Frame(
    thoughts=frozenset({"self", BARE}),
    answers=frozenset({"user", "commentary"}),
    dropped=frozenset({"developer"}),
    header=TOOL_HEADER,
)
REASONING_FRAME = Frame(
    thoughts=TOOL_FRAME.thoughts, answers=TOOL_FRAME.answers, dropped=TOOL_FRAME.dropped, header=REASONING_HEADER
)


@dataclass(slots=True)
class ThoughtsState(FrameState):
    """`message` is a tool's message until it turns out to hold a call, `opening` the end of it; `calling`: it does.

    `spare` is what was left out before the first such message; `called`: there was one. `leaked` counts code points of
    `held` that were handed on already. `thought`: some message was a thought; `spoke`: some thought was sent; `joint`
    comes between the last thought and the next.
    """

    message: list[str] = field(default_factory=list)
    opening: str = ""
    spare: list[str] = field(default_factory=list)
    calling: bool = False
    called: bool = False
    leaked: int = 0
    thought: bool = False
    spoke: bool = False
    joint: str = ""


class MuseThoughts(FrameReader, ReasoningStage):
    """Thoughts out, answers on as answers, tools' messages on as they are, from the first ATEM tag in them on."""

    State: ClassVar[type] = ThoughtsState

    @property
    def ended(self) -> bool:
        return bool(self.state.called)

    def feed(self, segments: Sequence[Segment]) -> list[Event | Segment]:
        out: list[Event | Segment] = []
        for segment in segments:
            self._read(segment.text, out)
        self._leak(out)
        return out

    def finish(self) -> list[Event | Segment]:
        out: list[Event | Segment] = []
        self._close(out)
        return out

    def _leak(self, out: list[Any]) -> None:
        """Of a call's message only what may be a header is held back: its reader is the tool stage."""
        state = self.state
        if state.calling and not state.tail:
            fresh = state.held[state.leaked :]
            state.leaked += len(fresh)
            if fresh:
                out.append(Text(fresh))

    def _loose(self, text: str, out: list[Any], *, framed: bool) -> None:
        out.append(Text(text, answer=framed))

    def _begin(self, before: str, header: str, out: list[Any]) -> None:
        state = self.state
        if state.channel == "reasoning":
            state.joint = "\n" if self._frame.joins and state.thought else ""
            state.thought = True
        if self._frame.named:
            state.spare.append(before)
        if state.channel in ("tool", "dropped"):
            state.message, state.opening = [header], ""

    def _think(self, text: str, out: list[Any]) -> None:
        state = self.state
        text, state.joint = state.joint + text, ""
        if text:
            state.spoke = True
            out.append(Reasoning(text))

    def _body(self, text: str, out: list[Any]) -> None:
        state = self.state
        if not text:
            return
        if state.channel == "reasoning":
            self._think(text, out)
        elif state.channel == "content":
            out.append(Text(text, answer=True))
        elif state.calling:
            self._forward(text, out)
        else:
            state.message.append(text)
            self._look_for_call(text, out)

    def _forward(self, text: str, out: list[Any]) -> None:
        leaked = min(self.state.leaked, len(text))
        self.state.leaked -= leaked
        if text[leaked:]:
            out.append(Text(text[leaked:]))

    def _look_for_call(self, text: str, out: list[Any]) -> None:
        state = self.state
        state.opening += text
        if _OPENER.search(state.opening):
            state.calling = state.called = True
            out.append(Text("".join(state.spare + state.message)))
            state.spare, state.message, state.opening = [], [], ""
        else:
            state.opening = state.opening[-len("<atem:function_calls>") :]

    def _end(self, marker: str, out: list[Any]) -> None:
        state = self.state
        if state.channel == "reasoning" and marker and self._frame.joins:
            self._think("", out)
            if not state.spoke:
                out.append(ReasoningRetracted())
        if state.channel not in ("tool", "dropped"):
            return
        if state.calling:
            self._forward(marker, out)
        elif state.channel == "tool" and "".join(state.message[1:]).strip():
            out.append(Text("".join(state.message) + marker))
        elif self._frame.named:
            state.spare += [*state.message, marker]
        state.calling, state.message, state.leaked = False, [], 0


class MuseReasoning(ReasoningFormat):
    """`muse`, alias `musespark1x`, as reasoning parser (newest 7.1)."""

    names: ClassVar[tuple[str, ...]] = ("muse", "musespark1x")
    frame: ClassVar[Frame] = REASONING_FRAME

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> ReasoningStage:
        stage = MuseThoughts(self.frame)
        self._resume(stage, prompt_token_ids or ())
        return stage

    def _resume(self, stage: MuseThoughts, prompt: Sequence[int]) -> None:
        """A message that the prompt left open goes on."""
        start = self.vocabulary.token_id(START)
        tail = list(prompt[-_PROMPT_TAIL:])
        if start in tail:
            tail = tail[len(tail) - 1 - tail[::-1].index(start) :]
        text = self.vocabulary.decode(tail) if tail else ""
        text = text[text.rfind(START) :] if START in text else ""
        head, message, body = text.partition(MESSAGE)
        match = self.frame.header.search(head)
        if message and EOM not in body and EOT not in body and head.startswith(START + "assistant") and match:
            recipient = match["to"] or BARE
            state = stage.state
            state.framed, state.recipient, state.channel = True, recipient, self.frame.channel(recipient)
            if state.channel in ("tool", "dropped"):
                state.message = [f"to={recipient}{MESSAGE}{body}"]
                state.opening = body[-len("<atem:function_calls>") :]


@dataclass(slots=True)
class CallsState(FrameState):
    """`message` is a tool's message until a call in it is complete, `body` its text since the last one."""

    message: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    index: int = 0


class MuseCalls(FrameReader, ToolStage):
    """Calls out of tools' messages, each sent whole when it is complete.

    Thoughts are thoughts even without a reasoning parser, as in vLLM's streams.
    """

    State: ClassVar[type] = CallsState
    body_end: ClassVar[str] = "</atem:invoke>"

    def __init__(self, frame: Frame, context: RequestContext, *, keeps_text: bool) -> None:
        super().__init__(frame)
        self._parameters = context.parameters
        self._keeps_text = keeps_text

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        events: list[Event] = []
        for segment in segments:
            if isinstance(segment, Text) and segment.answer:
                self._flush(events)
                events.append(Content(segment.text))
            else:
                self._read(segment.text, events)
        return events

    def finish(self) -> list[Event]:
        events: list[Event] = []
        self._close(events)
        return events

    def _loose(self, text: str, out: list[Any], *, framed: bool) -> None:
        """Without any header, calls count wherever they stand, and the whole text is the answer too."""
        if not framed:
            for match in _INVOKE.finditer(text):
                self._call(match, out)
        out.append(Content(text))

    def _begin(self, before: str, header: str, out: list[Any]) -> None:
        self.state.message, self.state.body = [before + header], []

    def _body(self, text: str, out: list[Any]) -> None:
        match self.state.channel:
            case "reasoning":
                out.append(Reasoning(text))
            case "content":
                out.append(Content(text))
            case "tool":
                self.state.body.append(text)

    def _body_ended(self, out: list[Any]) -> None:
        state = self.state
        text, state.body = "".join(state.body), []
        match = _INVOKE.search(text)
        if match and self._call(match, out):
            state.message = []
        elif state.message:
            state.message.append(text)

    def _call(self, match: re.Match[str], out: list[Any]) -> bool:
        """Sends one call; a call without a name is none."""
        name = _named(match[1])
        if not name:
            return False
        head, dot, tail = name.partition(".")
        if name not in self._parameters and dot and head == tail and head in self._parameters:
            name = head
        index = self.state.index
        self.state.index += 1
        pairs = ((_named(found[1]), found[2]) for found in _PARAMETER.finditer(match[2]))
        arguments = {key: self._value(name, key, text) for key, text in pairs if key}
        out += [CallStart(index, name), CallArguments(index, dump_json(arguments)), CallEnd(index)]
        return True

    def _value(self, function: str, key: str, text: str) -> Any:
        """JSON where it is some, unless the parameter is text."""
        properties = self._parameters.get(function, {}).get("properties")
        schema = properties.get(key) if isinstance(properties, Mapping) else None
        if self._keeps_text and isinstance(schema, Mapping) and schema.get("type") == "string":
            return text
        try:
            return load_json(text)
        except (ValueError, RecursionError):
            return text

    def _end(self, marker: str, out: list[Any]) -> None:
        """A tool's message without a call is content after all, framing included."""
        state = self.state
        if state.channel == "tool" and state.message and self._gives_back():
            out += [Malformed(), Content("".join(state.message + state.body) + marker)]
        state.message, state.body = [], []

    def _gives_back(self) -> bool:
        text = "".join(self.state.message[1:] + self.state.body)
        return bool(text.strip()) and self.state.recipient not in self._frame.quiet


def _named(attributes: str) -> str:
    """The `name` attribute of a tag, "" where it has none."""
    match = _NAME.search(attributes)
    return match[1] if match else ""


class MuseTools(ToolFormat):
    """`muse`, alias `musespark1x`, as tool parser (newest 6)."""

    names: ClassVar[tuple[str, ...]] = ("muse", "musespark1x")
    merges_entries = True
    frame: ClassVar[Frame] = TOOL_FRAME
    keeps_text: ClassVar[bool] = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return MuseCalls(self.frame, context, keeps_text=self.keeps_text)

    def settle(self, outcome: Outcome) -> None:
        outcome.called = bool(outcome.raw)
