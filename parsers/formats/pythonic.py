"""Calls as a Python list, nothing before and nothing behind it (Llama 3.2, ToolACE).

[get_weather(city='Paris', days=3), search(query="museums")]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from parsers.engine.context import RequestContext
from parsers.engine.events import Content, Event, Segment, Token
from parsers.engine.python_stream import CallStream, CallStreamState
from parsers.engine.scanner import text_of
from parsers.engine.stage import Outcome, ToolFormat, ToolStage
from parsers.engine.vocabulary import Vocabulary


@dataclass(slots=True)
class PythonicState:
    """`mode`: "start" (no text yet), "text", "list" (the answer is a list) or "last" (a list that may end the answer).

    `refused`: some text looked like a list and was none. From then on `ending`, a special token at the end of the text
    so far, waits for more text; `fresh` says that it came with the last chunk.
    """

    mode: Literal["start", "text", "list", "last"] = "start"
    line_start: bool = False
    refused: bool = False
    ending: str = ""
    fresh: bool = False
    calls: CallStreamState | None = None


class PythonicStage(ToolStage):
    """An answer that begins with a bracket is a call list until that is impossible.

    In an answer that begins otherwise a list on the last lines counts as well, once nothing has followed it.
    """

    State: ClassVar[type] = PythonicState

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        state = self.state
        chunk = text_of(segments)
        text, state.fresh = chunk, bool(chunk)
        if chunk:
            text, state.ending = state.ending + chunk, ""
        content: list[str] = []
        if state.mode == "start" and text:
            self._open("list" if text.startswith("[") else "text")
        while text:
            text = self._step(text, content)
        if content or state.mode in ("start", "text"):
            return self._content("".join(content), segments)
        return self._stream().events() if state.mode == "list" else []

    def _open(self, mode: Literal["text", "list", "last"]) -> None:
        self.state.mode = mode
        self.state.calls = None if mode == "text" else CallStreamState()

    def _stream(self) -> CallStream:
        return CallStream(self.state.calls, alone=self.state.mode == "last")

    def _step(self, text: str, content: list[str]) -> str:
        """Reads text as what it seems to be; returns what is still to be read as something else."""
        state = self.state
        if state.mode != "text":
            failed = self._stream().feed(text)
            if failed is None:
                return ""
            released, text = failed
            content.append(released)
            state.line_start = released.endswith("\n")
            state.refused = True
            self._open("text")
            return text
        position = 0 if state.line_start and text.startswith("[") else text.find("\n[") + 1 or -1
        if position < 0:
            content.append(text)
            state.line_start = text.endswith("\n")
            return ""
        if position:
            content.append(text[:position])
        self._open("last")
        return text[position:]

    def _content(self, text: str, segments: Sequence[Segment]) -> list[Event]:
        """Text of the answer. The token that ends the answer is no part of it where the stream has held text back."""
        last = segments[-1] if segments else None
        if self.state.refused and isinstance(last, Token) and last.text and text.endswith(last.text):
            self.state.ending = last.text
            text = text[: -len(last.text)]
            return [Content(text)] if text else []
        return [Content(text)]

    def finish(self) -> list[Event]:
        state = self.state
        if state.mode in ("list", "last"):
            return self._stream().finish()
        return [Content(state.ending)] if state.ending and state.fresh else []


class Pythonic(ToolFormat):
    """`pythonic` (pythonic_misc 2)."""

    names = ("pythonic",)
    guided_choice = True
    merges_entries = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self.marks = dict(vocabulary.special_tokens)

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return PythonicStage()

    def settle(self, outcome: Outcome) -> None:
        """One malformed call spoils the list."""
        if outcome.malformed:
            outcome.calls = []
        outcome.called = bool(outcome.calls)
