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
from parsers.engine.lexer import Lexer
from parsers.engine.stage import Outcome, ReasoningFormat, ReasoningStage, Stage, ToolFormat, ToolStage
from parsers.engine.vocabulary import Vocabulary

START, MESSAGE, EOM, EOT = "<|start|>", "<|message|>", "<|eom|>", "<|eot|>"
INVOKE_END = "</atem:invoke>"
BARE = ""
"""The recipient of a message whose header names none."""

_HEADER_LIMIT = 256
_HEADER_PARTS = 64
_PROMPT_TAIL = 256
_FRAMES = Lexer((START, MESSAGE, EOM, EOT))
_FRAMES_AND_CALLS = Lexer((START, MESSAGE, EOM, EOT, INVOKE_END))
_OPENER = re.compile(r"<atem:(?:function_calls>|invoke\b)")
_INVOKE = re.compile(r"<atem:invoke\b([^>]*)>(.*?)</atem:invoke>", re.DOTALL)
_PARAMETER = re.compile(r"<atem:parameter\b([^>]*)>(.*?)</atem:parameter>", re.DOTALL)
_NAME = re.compile(r'(?:^|\s)name="([^"]*)"')
_FRAGMENT = re.compile(r"\A\s*to=|<\|(?:start|message|eom|eot)\|>")
"""What is left of a broken header, as opposed to text."""

_UNSURE = re.compile(r"[^\S\n](?:t|to|to=[^\s<]*)\Z")
_UNSURE_BEHIND_BLANK = re.compile(r"(?:t|to|to=[^\s<]*)\Z")


@dataclass(frozen=True, slots=True)
class Frame:
    """How headers look and which recipients are what; any other recipient is a tool.

    `header` matches at the end of what precedes `<|message|>`, its group `to` is the recipient; `named`: a header must
    name one. `quiet`: tools whose messages are dropped where they hold no call. `joins`: thoughts of several messages
    are put on lines of their own.
    """

    thoughts: frozenset[str]
    answers: frozenset[str]
    dropped: frozenset[str]
    header: re.Pattern[str]
    quiet: frozenset[str] = frozenset()
    named: bool = False
    joins: bool = False

    def channel(self, recipient: str) -> str:
        if recipient in self.thoughts:
            return "reasoning"
        if recipient in self.answers:
            return "content"
        return "dropped" if recipient in self.dropped else "tool"


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
class FrameState:
    """`channel`: of the open message, "" between messages, where `header` collects the text.

    `held` is the beginning of a marker, `tail` text of the open message that may turn out to be a header, which follows
    a blank (`behind_blank`). `framed`: a header was seen.
    """

    channel: str = ""
    recipient: str = BARE
    held: str = ""
    tail: str = ""
    header: list[str] = field(default_factory=list)
    framed: bool = False
    behind_blank: bool = False


class FrameReader(Stage):
    """Walks over messages; subclasses say what becomes of their text."""

    State: ClassVar[type] = FrameState
    _tool_lexer: ClassVar[Lexer] = _FRAMES

    def __init__(self, frame: Frame) -> None:
        super().__init__()
        self._frame = frame

    def _read(self, text: str, out: list[Any]) -> None:
        state = self.state
        text, state.held = state.held + text, ""
        position = 0
        while position < len(text):
            lexer = self._tool_lexer if state.channel == "tool" else _FRAMES
            end, marker = lexer.next(text, position)
            if end > position:
                self._plain(text[position:end], out)
            if not marker:
                state.held = text[end:]
                return
            self._marker(marker, out)
            position = end + len(marker)

    def _plain(self, text: str, out: list[Any]) -> None:
        state = self.state
        if not state.channel:
            state.header.append(text)
            return
        text = state.tail + text
        unsure = _UNSURE.search(text, max(0, len(text) - _HEADER_LIMIT))
        if unsure is None and state.behind_blank:
            unsure = _UNSURE_BEHIND_BLANK.match(text)
        certain = text[: unsure.start()] if unsure else text
        state.tail = text[len(certain) :]
        if certain:
            state.behind_blank = certain[-1].isspace() and certain[-1] != "\n"
            self._body(certain, out)

    def _marker(self, marker: str, out: list[Any]) -> None:
        state = self.state
        if marker == INVOKE_END:
            self._plain(marker, out)
            self._invoked(out)
        elif not state.channel:
            self._between(marker, out)
        elif marker == MESSAGE:
            self._header_inside(out)
        else:
            self._flush_tail(out)
            self._end("" if marker == START else marker, out)
            state.channel, state.header = "", [START] if marker == START else []

    def _between(self, marker: str, out: list[Any]) -> None:
        state = self.state
        if marker != MESSAGE:
            if state.framed and marker != START:
                state.header = []
            else:
                state.header.append(marker)
            return
        text = "".join(state.header[-_HEADER_PARTS:])
        match = self._frame.header.search(text, max(0, len(text) - _HEADER_LIMIT))
        recipient = match["to"] if match else None
        if match is None or (self._frame.named and not recipient):
            state.header.append(marker)
            return
        before = "".join(state.header[:-_HEADER_PARTS]) + text[: match.start()]
        if not state.framed and before.strip() and not _FRAGMENT.search(before):
            self._loose(before, out, framed=True)
        self._open(recipient or BARE, before, match.group(), out)

    def _header_inside(self, out: list[Any]) -> None:
        """`<|message|>` in an open message: the end marker was left out, or it is just text."""
        state = self.state
        tail, state.tail = state.tail, ""
        match = self._frame.header.search(tail.lstrip())
        recipient = match["to"] if match and match.start() == 0 else None
        if recipient is None and self._frame.named:
            self._body(tail + MESSAGE, out)
            return
        if recipient:
            tail, header = tail[: -len(tail.lstrip())], tail.lstrip()
        else:
            header = ""
        if tail:
            self._body(tail, out)
        self._end("", out)
        self._open(recipient or BARE, "", header, out)

    def _open(self, recipient: str, before: str, header: str, out: list[Any]) -> None:
        state = self.state
        state.framed, state.behind_blank, state.header = True, False, []
        state.channel, state.recipient = self._frame.channel(recipient), recipient
        self._begin(before, header + MESSAGE, out)

    def _flush_tail(self, out: list[Any]) -> None:
        tail, self.state.tail = self.state.tail, ""
        if tail:
            self._body(tail, out)

    def _flush(self, out: list[Any]) -> None:
        held, self.state.held = self.state.held, ""
        if held:
            self._plain(held, out)

    def _close(self, out: list[Any]) -> None:
        """End of output."""
        state = self.state
        self._flush(out)
        if state.channel:
            self._flush_tail(out)
            self._end("", out)
            state.channel = ""
        elif not state.framed and (loose := "".join(state.header).removesuffix(EOT).removesuffix(EOM)):
            self._loose(loose, out, framed=False)
        state.header = []

    def _loose(self, text: str, out: list[Any], *, framed: bool) -> None:
        """Text before any header; `framed`: a header follows."""
        raise NotImplementedError

    def _begin(self, before: str, header: str, out: list[Any]) -> None:
        """A message was opened; `before` is what its header does not account for."""
        raise NotImplementedError

    def _body(self, text: str, out: list[Any]) -> None:
        raise NotImplementedError

    def _invoked(self, out: list[Any]) -> None:
        """The closing tag of a call, which is part of the body already."""

    def _end(self, marker: str, out: list[Any]) -> None:
        """The open message is over, by `marker` or by what follows."""
        raise NotImplementedError


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
        """Nothing of a call's message is held back: its reader is the tool stage."""
        state = self.state
        if state.calling:
            fresh = (state.tail + state.held)[state.leaked :]
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
    _tool_lexer: ClassVar[Lexer] = _FRAMES_AND_CALLS

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

    def _invoked(self, out: list[Any]) -> None:
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
