"""Tool calls of GigaChat 3: a marker and a JSON object. Two generations differ in the marker.

    I will check.<|message_sep|>

    function call<|role_sep|>
    {"name": "get_weather", "arguments": {"city": "Paris"}}

    I will check.<|function_call|>{"name": "get_weather", "arguments": {"city": "Paris"}}

Neither markers nor text behind a complete call are shown. A call is announced with the chunk that completes its name,
but not beside content; its arguments follow from the next chunk on.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, Literal

from parsers.engine.call_object import CallObject, CallObjectState, CallStyle
from parsers.engine.context import RequestContext
from parsers.engine.events import CallArguments, CallEnd, CallStart, Content
from parsers.engine.json_stream import SPACE
from parsers.engine.lexer import Lexer
from parsers.engine.stage import Outcome, ToolStage
from parsers.engine.vocabulary import Vocabulary
from parsers.formats.call_stage import CallFormat, CallStage, CallStageState, merge_repeated_keys

SEPARATOR, ROLE, FUNCTION = "<|message_sep|>", "function call<|role_sep|>", "<|function_call|>"
WORD = ROLE.partition(" ")[0]
STYLE = CallStyle(controls=True)


@dataclass(slots=True)
class GigaChatState(CallStageState):
    """Where the stage stands.

    Phases: `content`; `separated`: behind a separator, a call may follow; `call`; `behind` a complete call; `text`:
    what followed a marker was no call, all is content; `silent`: the same, but the call is announced. The first `out`
    code points of `held` are sent already. `call` is the reader of call `index`, kept until its end is sent; `named`
    that it is announced, `blank` white space at the end of its arguments, which waits for more. `in_word`: the content
    ends in a letter or digit.
    """

    phase: Literal["content", "separated", "call", "behind", "text", "silent"] = "content"
    out: int = 0
    index: int = 0
    call: CallObjectState | None = None
    named: bool = False
    blank: str = ""
    in_word: bool = False


class GigaChatCalls(CallStage):
    """Arguments are sent as they come (json 12)."""

    State: ClassVar[type] = GigaChatState

    def __init__(self, stops: Collection[int], *, has_tokens: bool) -> None:
        super().__init__(stops)
        self._has_tokens = has_tokens
        self._outside = Lexer([SEPARATOR, ROLE, FUNCTION])
        self._calls = Lexer([ROLE, FUNCTION])

    @property
    def _sent(self) -> bool:
        return bool(self.state.named or self.state.index)

    def _end_chunk(self) -> None:
        if self.state.phase in ("call", "behind"):
            self._send_step()

    def _end(self) -> None:
        state = self.state
        if state.call is not None and (state.named or state.phase == "behind"):
            self._send_rest()
        elif state.phase == "call" or (state.phase == "separated" and state.held):
            self._give_up("text")
        if state.phase in ("content", "text"):
            self._content(state.held)
        state.raw = []

    def _in_content(self, text: str, position: int) -> int:
        """Up to a marker. What may begin one but most likely does not is sent at once."""
        state = self.state
        end, marker = self._outside.next(text, position)
        self._content(text[position:end])
        if not marker:
            state.held = text[end:]
            if self._is_prose(state.held):
                sent = len(state.held)
                self._content(state.held)
                state.out = sent
            return len(text)
        self._remember(marker[state.out :])
        state.out = 0
        if marker == SEPARATOR:
            state.phase = "separated"
        else:
            self._open()
        return end + len(marker)

    def _is_prose(self, held: str) -> bool:
        """Whether `held` is the end of a word, or a character that begins no token of this vocabulary's markers."""
        return (held == "<" and self._has_tokens) or (self.state.in_word and WORD.startswith(held))

    def _in_separated(self, text: str, position: int) -> int:
        """White space and a marker, else the separator was text."""
        state = self.state
        start = position
        while start < len(text) and text[start] in SPACE:
            start += 1
        self._remember(text[position:start])
        end, marker = self._calls.next(text, start)
        if end > start:
            self._give_up("content")
        elif marker:
            self._remember(marker)
            self._open()
            return start + len(marker)
        else:
            state.held = text[start:]
            return len(text)
        return start

    def _in_behind(self, text: str, position: int) -> int:
        """Another call behind a complete one. Other text is not shown."""
        state = self.state
        end, marker = self._calls.next(text, position)
        if not marker:
            state.held = text[end:]
            return len(text)
        self._send_rest()
        state.index += 1
        self._open()
        return end + len(marker)

    # --- calls ----------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        state = self.state
        state.phase, state.call, state.named, state.blank = "call", CallObjectState(), False, ""

    def _in_call(self, text: str, position: int) -> int:
        state = self.state
        call = CallObject(state.call, STYLE)
        end = call.feed(text, position)
        self._remember(text[position:end])
        if call.state.has_arguments and call.state.opened_by not in '{"':
            call.state.place = "bad"
        if call.bad or (call.done and not call.complete):
            self._reject()
        elif call.done:
            state.phase = "behind"
        return end

    def _reject(self) -> None:
        """What followed the marker is no call. Behind a complete call it is text that is not shown."""
        state = self.state
        if state.named:
            self._events.append(CallEnd(state.index, malformed=True))
            state.phase, state.call = "silent", None
        elif state.index:
            state.phase, state.call = "behind", None
        else:
            self._give_up("text")

    def _send_step(self) -> None:
        """A chunk sends content, or the name, or arguments."""
        state = self.state
        if state.call is None:
            return
        call = CallObject(state.call, STYLE)
        if state.named:
            call.pause()
            self._send_arguments(call)
        elif call.state.name is not None and not any(isinstance(event, Content) for event in self._events):
            self._announce(call)

    def _announce(self, call: CallObject) -> None:
        state = self.state
        self._events.append(CallStart(state.index, call.state.name or ""))
        state.named, state.raw = True, []

    def _send_arguments(self, call: CallObject) -> None:
        text = self.state.blank + call.take()
        kept = text.rstrip()
        self.state.blank = text[len(kept) :]
        if kept:
            self._events.append(CallArguments(self.state.index, kept))

    def _send_rest(self) -> None:
        """What is left of the call that ends here, be it cut."""
        state = self.state
        if state.call is None:
            return
        call = CallObject(state.call, STYLE)
        if not state.named:
            self._announce(call)
        self._send_arguments(call)
        self._events.append(CallEnd(state.index, malformed=not call.complete))
        state.call = None

    # --- text -----------------------------------------------------------------------------------------------------

    def _give_up(self, phase: Literal["content", "text"]) -> None:
        self.state.call = None
        self._give_back(phase)

    def _content(self, text: str) -> None:
        """Content, but what of it is sent already."""
        state = self.state
        text, state.out = text[state.out :], max(0, state.out - len(text))
        if text:
            state.in_word = text[-1].isalnum()
            self._events.append(Content(text))


class GigaChat3Tools(CallFormat):
    """`gigachat3` (json 12)."""

    names = ("gigachat3",)
    markers = (SEPARATOR, "<|role_sep|>", FUNCTION)
    guided_choice = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._has_tokens = all(vocabulary.token_id(marker) is not None for marker in (SEPARATOR, FUNCTION))

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return GigaChatCalls(self.marks.keys(), has_tokens=self._has_tokens)

    def settle(self, outcome: Outcome) -> None:
        """A cut call is text; a separator that nothing follows is not."""
        calls = [call for call in outcome.calls if not call.malformed]
        cut = len(calls) < len(outcome.calls)
        outcome.calls = calls
        merge_repeated_keys(outcome)
        outcome.called = bool(calls) or (not cut and outcome.raw.rstrip().endswith(SEPARATOR))
