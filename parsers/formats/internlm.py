"""Tool calls of InternLM 2: one JSON object between special tokens, with `parameters` or `arguments`.

    I will check.<|action_start|><|plugin|>
    {"name": "get_weather", "parameters": {"city": "Paris"}}<|action_end|>

Text before the call is content, text behind it is dropped. What is no call is content, where vLLM answers with an
error; so is code for `<|interpreter|>`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from parsers.engine.call_object import CallStyle
from parsers.engine.context import RequestContext
from parsers.engine.events import CallEnd, Content, Malformed, Segment, Token
from parsers.engine.json_stream import common_length
from parsers.engine.lexer import Lexer
from parsers.engine.stage import ToolStage
from parsers.engine.vocabulary import Vocabulary
from parsers.formats.call_stage import NEAR_END, CallFormat, lacks_quote
from parsers.formats.stepping import SearchingCalls, StepState

START, PLUGIN, END = "<|action_start|>", "<|plugin|>", "<|action_end|>"
_MARKERS = (START, PLUGIN, END)


@dataclass(slots=True)
class InternlmState(StepState):
    """Where the stage stands.

    Phases: `content`; `opened`: the start marker was seen; `body`: both, but no object yet; `object`; `behind` it;
    `text`: the body was no call, everything is content; `silent`: the same, but a part of it is sent. `pending` is text
    before a start marker, which goes out with what follows; `noisy`: other text than an end marker followed the object;
    `ended`: an end marker did. `tail` is the end of what was read of the object.
    """

    phase: Literal["content", "opened", "body", "object", "behind", "text", "silent"] = "content"
    pending: str = ""
    noisy: bool = False
    ended: bool = False
    tail: str = ""


class InternlmCalls(SearchingCalls):
    """One step a chunk (json 5)."""

    State: ClassVar[type] = InternlmState
    style = CallStyle(keys=("parameters", "arguments"))
    shows_stop = frozenset(("content", "behind"))

    def __init__(self, markers: Collection[int], stops: Collection[int], lexer: Lexer) -> None:
        super().__init__(stops)
        self._markers = markers
        self._lexer = lexer
        self._spoke = False

    def _begin_chunk(self, segments: Sequence[Segment]) -> None:
        super()._begin_chunk(segments)
        self._spoke = False

    def _end_chunk(self) -> None:
        state = self.state
        if self._phase_before == state.phase == "content" and not self._events:
            self._events.append(Content(""))
        if state.call is not None and not self._spoke:
            self._send_step(reads_on=state.ended or not state.noisy)

    def _end(self) -> None:
        state = self.state
        for piece in self._lexer.flush(state.held):
            self._take(*piece)
        if state.phase == "opened" and state.call is not None:
            self._open_nothing()
        if state.phase == "behind" and state.call is not None:
            self._send_rest(empty=False)
            self._events.append(CallEnd(state.index))
        elif state.phase in ("opened", "body", "object"):
            self._reject()

    def _consume(self, segments: Sequence[Segment]) -> None:
        state = self.state
        for segment in segments:
            if isinstance(segment, Token) and segment.token_id in self._markers:
                self._take(segment.text, True)
            elif segment.text:
                pieces, state.held = self._lexer.cut(state.held, segment.text)
                for piece in pieces:
                    self._take(*piece)

    def _take(self, text: str, is_marker: bool) -> None:
        """A marker, or text without one."""
        state = self.state
        if is_marker and text == START and state.phase in ("content", "behind"):
            self._open()
        elif state.phase == "opened" and is_marker and text == PLUGIN:
            self._enter(text)
        elif state.phase == "opened":
            self._open_nothing()
            self._take(text, is_marker)
        elif is_marker and text == END and state.phase in ("body", "object") and not self._is_data():
            state.raw.append(text)
            self._stepped = True
            self._reject()
        elif state.phase in ("body", "object"):
            self._read(text)
        elif state.phase == "behind":
            state.ended = state.ended or (is_marker and text == END and not state.noisy)
            state.noisy = state.noisy or (not is_marker and not text.isspace() and not state.ended)
        elif state.phase in ("content", "text"):
            self._content(text)

    def _open(self) -> None:
        """A start marker; what the chunk has said so far waits for its second half."""
        state = self.state
        if state.index < 0:
            state.pending = "".join(event.text for event in self._events if isinstance(event, Content))
            self._events = []
        state.raw.append(START)
        state.phase = "opened"

    def _open_nothing(self) -> None:
        """What follows a start marker is no call: content, or behind a call not shown."""
        if self.state.call is None:
            self._give_up("content")
        else:
            self._content(self.state.pending)
            self.state.phase, self.state.pending = "behind", ""

    def _enter(self, text: str) -> None:
        state = self.state
        self._content(state.pending)
        self._spoke, state.pending = bool(state.pending), ""
        state.raw.append(text)
        if state.call is not None:
            self._send_rest(empty=False)
            self._events.append(CallEnd(state.index))
        self._begin_call()
        state.phase, state.noisy, state.ended, state.tail = "body", False, False, ""

    def _read(self, text: str) -> None:
        state = self.state
        self._remember(text)
        position = 0
        if state.phase == "body":
            position = text.find("{")
            if position < 0:
                return
            state.phase = "object"
        call = self._call()
        start, position = position, call.feed(text, position)
        state.tail = (state.tail + text[start:position])[-NEAR_END:]
        if call.done and call.state.name is not None:
            state.phase = "behind"
            state.noisy = bool(text[position:].strip())
        elif call.bad or call.done:
            self._reject()

    def _is_data(self) -> bool:
        """Whether a marker in the object is part of a string."""
        return self.state.phase == "object" and self._call().in_string and not lacks_quote(self.state.tail, "}")

    def _reject(self) -> None:
        """The body is no call, or was cut."""
        state = self.state
        if not state.named and state.index < 0:
            self._give_up("text")
        elif state.named:
            self._send_cut()
            state.phase, state.call = "silent", None
        else:
            self._events.append(Malformed())
            state.phase, state.call = "silent", None

    def _give_up(self, phase: Literal["content", "text"]) -> None:
        state = self.state
        if state.index < 0:
            self._content(state.pending)
        state.pending, state.call = "", None
        self._give_back(phase)

    def _send_rest(self, *, empty: bool) -> None:
        call = self._call()
        if call.done and not call.state.has_arguments:
            call.state.has_arguments = call.state.arguments_done = True
            self.state.unsent = "{}"
        super()._send_rest(empty=empty)

    def _step_length(self, now: str) -> int | None:
        state = self.state
        if not state.previous:
            return None
        before, state.previous = state.previous, now
        return common_length(before, now) if now != before else 0


class InternlmTools(CallFormat):
    """`internlm` (json 5)."""

    names = ("internlm",)
    guided_choice = True
    streams_arguments = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        tokens = {vocabulary.token_id(marker): marker for marker in _MARKERS}
        self._markers = {token_id: marker for token_id, marker in tokens.items() if token_id is not None}
        self._stops = self.marks.keys() - self._markers.keys()
        self._lexer = Lexer([marker for marker in _MARKERS if marker not in self._markers.values()])
        self.marks |= self._markers

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return InternlmCalls(self._markers, self._stops, self._lexer)
