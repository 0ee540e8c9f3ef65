"""Inkling: messages with a kind each; a call is a JSON object.

<|message_model|><|content_thinking|>The user asks for the weather.<|end_message|>
<|message_model|><|content_text|>Let me look.<|end_message|>
<|message_model|><|content_invoke_tool_json|>{"name": "get_weather", "args": {"city": "Paris"}}<|end_message|>
<|content_model_end_sampling|>

(in one line, and without the first marker, which ends the prompt). What stands between `<|message_model|>` and the next
marker is a header. The markers count wherever they are spelled.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from parsers.engine.call_payload import Payload, PayloadState
from parsers.engine.context import RequestContext
from parsers.engine.events import (
    CallArguments,
    CallEnd,
    CallStart,
    Content,
    Event,
    Malformed,
    Reasoning,
    Segment,
    Text,
)
from parsers.engine.lexer import Lexer
from parsers.engine.stage import Format, Outcome, ReasoningFormat, ReasoningStage, Stage, ToolFormat, ToolStage
from parsers.engine.vocabulary import Vocabulary

MODEL, THINKING, CALL = "<|message_model|>", "<|content_thinking|>", "<|content_invoke_tool_json|>"
END, STOP = "<|end_message|>", "<|content_model_end_sampling|>"
TEXTS = ("<|content_text|>", "<|content_invoke_tool_text|>", "<|content_tool_error|>")
MARKERS = (MODEL, THINKING, CALL, END, STOP, *TEXTS)
_LEXER = Lexer(MARKERS)


class Markers(Format):
    """Base of both formats: declared special tokens that are no markers are dropped."""

    engine_based = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self.marks = {token_id: text for token_id, text in vocabulary.special_tokens.items() if text not in MARKERS}


@dataclass(slots=True)
class MessageState:
    """`place`: "content", "header", "reasoning" or "call". `held` begins a marker, `header` is the open header.

    `blank` is white space of a thought that only counts if more of it follows; `ended`: the answer has begun.
    """

    place: str = "header"
    held: str = ""
    header: list[str] = field(default_factory=list)
    blank: str = ""
    ended: bool = False


class MessageReader(Stage):
    """Walks over messages (newest 8's table of places and markers). Subclasses say what becomes of the text."""

    def _read(self, segments: Sequence[Segment], out: list[Any]) -> None:
        for segment in segments:
            if isinstance(segment, Text):
                pieces, self.state.held = _LEXER.cut(self.state.held, segment.text)
                self._pieces(pieces, out)
            else:
                self._flush(out)

    def _flush(self, out: list[Any]) -> None:
        held, self.state.held = self.state.held, ""
        self._pieces(_LEXER.flush(held), out)

    def _pieces(self, pieces: Sequence[tuple[str, bool]], out: list[Any]) -> None:
        for text, is_marker in pieces:
            if is_marker:
                self._marker(text, out)
            else:
                self._plain(text, out)

    def _marker(self, marker: str, out: list[Any]) -> None:
        state = self.state
        if state.place == "call":
            self._in_call(marker, out)
            return
        if state.place == "reasoning" and marker in (MODEL, *TEXTS):
            self._plain(marker, out)
            return
        header, state.header = "".join(state.header), []
        if header and marker in (END, STOP):
            self._content(header, out)
        state.ended = state.ended or marker in (CALL, *TEXTS) or (marker == STOP and state.place == "reasoning")
        state.place = {MODEL: "header", THINKING: "reasoning", CALL: "call"}.get(marker, "content")
        if marker == CALL:
            self._call_begins(out)

    def _in_call(self, marker: str, out: list[Any]) -> None:
        if marker in (END, STOP):
            self._call_ends(marker, out)
            self.state.place = "content"
        else:
            self._payload(marker, out)

    def _plain(self, text: str, out: list[Any]) -> None:
        state = self.state
        match state.place:
            case "content":
                self._content(text, out)
            case "header":
                state.header.append(text)
            case "reasoning":
                self._thought(text, out)
            case _:
                self._payload(text, out)

    def _thought(self, text: str, out: list[Any]) -> None:
        text = self.state.blank + text
        visible = text.rstrip()
        self.state.blank = text[len(visible) :]
        if visible:
            out.append(Reasoning(visible))

    def _close(self, out: list[Any]) -> None:
        """End of output: a header that no marker followed was an answer."""
        self._flush(out)
        header, self.state.header = "".join(self.state.header), []
        if header:
            self._content(header, out)

    @abstractmethod
    def _content(self, text: str, out: list[Any]) -> None:
        """Text of an answer."""

    @abstractmethod
    def _call_begins(self, out: list[Any]) -> None:
        """A call's name is complete."""

    @abstractmethod
    def _payload(self, text: str, out: list[Any]) -> None:
        """Text of a call's payload."""

    @abstractmethod
    def _call_ends(self, marker: str, out: list[Any]) -> None:
        """`marker` ends the call."""


class InklingThoughts(MessageReader, ReasoningStage):
    """Thoughts out, text on, calls on as they are written."""

    State: ClassVar[type] = MessageState

    @property
    def ended(self) -> bool:
        return bool(self.state.ended)

    def feed(self, segments: Sequence[Segment]) -> list[Event | Segment]:
        out: list[Event | Segment] = []
        self._read(segments, out)
        return out

    def finish(self) -> list[Event | Segment]:
        out: list[Event | Segment] = []
        self._close(out)
        return out

    def _content(self, text: str, out: list[Any]) -> None:
        out.append(Text(text))

    _payload = _content

    def _call_begins(self, out: list[Any]) -> None:
        out.append(Text(CALL))

    def _call_ends(self, marker: str, out: list[Any]) -> None:
        out.append(Text(marker))


class InklingReasoning(Markers, ReasoningFormat):
    """`inkling` as reasoning parser (newest 8)."""

    names = ("inkling",)

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> ReasoningStage:
        stage = InklingThoughts()
        stage.state.place, stage.state.ended = self._start(prompt_token_ids or ())
        return stage

    def _start(self, prompt: Sequence[int]) -> tuple[str, bool]:
        """Where the prompt left off, and whether that is past the thoughts: its last marker tells."""
        places = {MODEL: ("header", False), THINKING: ("reasoning", False), TEXTS[0]: ("content", True)}
        markers = {self.vocabulary.token_id(marker): marker for marker in MARKERS}
        last = next((markers[token_id] for token_id in reversed(prompt) if token_id in markers), MODEL)
        return places.get(last, ("header", last == STOP))


@dataclass(slots=True)
class CallsState(MessageState):
    """`blank` also keeps white space before the first visible text. `sent`: the open call's name went out.

    `ready` are arguments that wait until the text behind the name has come.
    """

    place: str = "content"
    visible: bool = False
    space: str = ""
    index: int = 0
    sent: bool = False
    ready: list[str] = field(default_factory=list)
    call: PayloadState | None = None


class InklingCalls(MessageReader, ToolStage):
    """Calls out of messages. Thoughts have gone before; without a reasoning parser they are nobody's."""

    State: ClassVar[type] = CallsState

    def __init__(self, context: RequestContext) -> None:
        super().__init__()
        self._context = context
        self._parses = bool(context.tools)
        self._silent = context.tool_choice == "none"

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        events: list[Event] = []
        self._read(segments, events)
        return events

    def finish(self) -> list[Event]:
        events: list[Event] = []
        self._close(events)
        if self.state.place == "call":
            self._call_ends("", events)
            self.state.place = "content"
        if self.state.space and not self.state.index:
            events.append(Content(self.state.space))
            self.state.space = ""
        return events

    def _thought(self, text: str, out: list[Any]) -> None:
        """Not asked for."""

    def _content(self, text: str, out: list[Any]) -> None:
        state = self.state
        if not state.visible:
            text = state.space + text
            if not text.strip():
                state.space = text
                return
            state.space, state.visible = "", True
        out.append(Content(text))

    def _call_begins(self, out: list[Any]) -> None:
        self.state.call = PayloadState()
        self.state.sent = False
        if not self._parses:
            self._content(CALL, out)

    def _payload(self, text: str, out: list[Any]) -> None:
        if not self._parses:
            self._content(text, out)
            return
        state = self.state
        assert state.call is not None
        fresh = Payload(state.call, self._context).feed(text)
        if self._silent:
            return
        if state.call.name is not None and not state.sent:
            state.sent, state.space = True, ""
            out.append(CallStart(state.index, state.call.name))
        if fresh:
            state.ready.append(fresh)
        if state.ready and state.call.due:
            out.append(CallArguments(state.index, "".join(state.ready)))
            state.ready = []

    def _call_ends(self, marker: str, out: list[Any]) -> None:
        if not self._parses:
            self._content(marker, out)
            return
        state = self.state
        call, state.call = state.call, None
        assert call is not None
        if self._silent:
            return
        if call.name is None:
            self._give_back("".join(call.text), marker, out)
            return
        rest = "".join(state.ready) + Payload(call, self._context).finish()
        state.ready = []
        if rest:
            out.append(CallArguments(state.index, rest))
        out.append(CallEnd(state.index, redumped=call.members.changed and call.members.place == "done"))
        state.index += 1

    def _give_back(self, text: str, marker: str, out: list[Any]) -> None:
        """Text that is no call is content after all."""
        if text.strip():
            out.append(Malformed())
            self._content(CALL + text + marker, out)


class InklingTools(Markers, ToolFormat):
    """`inkling` as tool parser (newest 8)."""

    names = ("inkling",)
    merges_entries = True

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return InklingCalls(context)

    def settle(self, outcome: Outcome) -> None:
        outcome.called = bool(outcome.calls)
