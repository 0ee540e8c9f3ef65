"""Reasoning of OLMo 3: thoughts, `</think>`, answer. The tags are ordinary text, usually three tokens each.

Sample:

    <think>The user greets me.</think>Hello!
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from parsers.engine.context import RequestContext
from parsers.engine.events import Event, Reasoning, Segment, Text, Token
from parsers.engine.exceptions import ParserConfigurationError
from parsers.engine.scanner import text_of
from parsers.engine.stage import ReasoningFormat, ReasoningStage
from parsers.engine.vocabulary import Vocabulary

START, END = "<think>", "</think>"
REQUIRED = ("</", "Ġ</", "think", ">")
HEADER = "<|im_start|>"


def touches(text: str, tag: str) -> bool:
    """Whether a chunk may hold part of `tag`: it is part of it, ends like its beginning or begins like its end."""
    if tag in text:
        return False
    if text in tag:
        return True
    return any(text.endswith(tag[:size]) or text.startswith(tag[-size:]) for size in range(1, len(tag)))


@dataclass(slots=True)
class ThinkState:
    """`held`: chunks that may belong to a tag; `tail`: their end. `begun`: thoughts were sent.

    `steps`: how many tokens of the end tag were just read, in its usual three tokens. `place`: "off" (thinking is
    disabled, but the output may open thoughts all the same), "thoughts", "answer" (the tag was written in those tokens)
    or "merged" (in others: what follows is still sent as the thoughts would be).
    """

    place: str = "thoughts"
    begun: bool = False
    steps: int = 0
    held: list[str] = field(default_factory=list)
    tail: str = ""


class Olmo3ReasoningStage(ReasoningStage):
    """Sends a chunk once it cannot hold part of a tag, as vLLM does (pythonic_misc 12), but loses nothing."""

    State: ClassVar[type] = ThinkState

    def __init__(self, steps: Sequence[frozenset[int]]) -> None:
        super().__init__()
        self._steps = steps

    @property
    def ended(self) -> bool:
        return bool(self.state.place == "answer")

    def feed(self, segments: Sequence[Segment]) -> list[Event | Segment]:
        state = self.state
        if state.place == "off":
            segments = self._begin(segments)
        if state.place in ("answer", "off"):
            return list(segments)
        for position, segment in enumerate(segments):
            if self._tag_ends(segment):
                return self._end(text_of(segments[: position + 1]), segments[position + 1 :])
        chunk, waiting = text_of(segments), any(state.held)
        state.held.append(chunk)
        seen = state.tail + chunk
        state.tail = seen[-len(END) :]
        touched = touches(chunk, END)
        if state.place == "merged":
            if touched or touches(chunk, START):
                return []
            text = self._take()
            return [Text(text)] if waiting else list(segments)
        if END in seen:
            return self._split()
        if touched or (touches(chunk, START) and START not in seen):
            return []
        return [Reasoning(self._thoughts(self._take()))]

    def _begin(self, segments: Sequence[Segment]) -> Sequence[Segment]:
        """Where thinking is disabled: an answer, unless it begins with the opening tag, which is held until then."""
        state = self.state
        seen = state.tail + text_of(segments)
        if seen.startswith(START):
            state.place, state.tail = "thoughts", ""
            return [Text(seen)]
        if START.startswith(seen):
            state.tail = seen
            return []
        held, state.tail = state.tail, ""
        state.place = "answer"
        return [Text(held), *segments] if held else segments

    def _tag_ends(self, segment: Segment) -> bool:
        """Whether the segment is the last token of an end tag in its usual tokens."""
        state = self.state
        if state.place != "thoughts":
            return False
        if isinstance(segment, Token) and segment.token_id in self._steps[state.steps]:
            state.steps = (state.steps + 1) % len(self._steps)
            return bool(state.steps == 0)
        state.steps = int(isinstance(segment, Token) and segment.token_id in self._steps[0])
        return False

    def _take(self) -> str:
        state = self.state
        text = "".join(state.held)
        state.held, state.tail = [], ""
        return text

    def _thoughts(self, text: str) -> str:
        """Thoughts less the tag that opens them."""
        begun, self.state.begun = self.state.begun, True
        return text if begun else text.removeprefix(START)

    def _end(self, chunk: str, rest: Sequence[Segment]) -> list[Event | Segment]:
        """The end tag in its usual tokens: the answer follows, even if nothing of it is there yet."""
        self.state.held.append(chunk)
        if END in "".join(self.state.held).removesuffix(END):
            self.state.held.append(text_of(rest))
            return self._split()
        thoughts = self._thoughts(self._take().removesuffix(END))
        self.state.place = "answer"
        if thoughts:
            return [Reasoning(thoughts), *rest]
        return list(rest) or [Text("")]

    def _split(self) -> list[Event | Segment]:
        """The end tag in other tokens.

        Where thoughts precede it in the chunk, what follows it waits for the next one.
        """
        thoughts, _, answer = self._thoughts(self._take()).partition(END)
        self.state.place = "merged"
        if not thoughts:
            return [Text(answer)]
        self.state.held = [answer]
        return [Reasoning(thoughts)]

    def finish(self) -> list[Event | Segment]:
        if self.state.place == "off":
            return [Text(self.state.tail)] if self.state.tail else []
        text = self._take()
        if not text:
            return []
        return [Text(text)] if self.state.place == "merged" else [Reasoning(self._thoughts(text))]


class Olmo3Reasoning(ReasoningFormat):
    """`olmo3` (pythonic_misc 12)."""

    names = ("olmo3",)

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        for piece in REQUIRED:
            if vocabulary.token_id(piece) is None:
                raise ParserConfigurationError(f"the tokenizer has no token {piece!r}")
        self._steps = tuple(self._ids(*pieces) for pieces in (("</", "Ġ</"), ("think",), (">",)))
        self._open = self._ids("<", "Ġ<")
        self._last = self._ids(">", ">Ċ", ">ĊĊ", ">Ġ")
        self._header = vocabulary.token_id(HEADER)
        self.marks = {
            id_: text
            for texts, ids in zip(("</", "think", ">"), self._steps, strict=True)
            for id_, text in dict.fromkeys(ids, texts).items()
        }
        spaced = vocabulary.token_id("Ġ</")
        if spaced is not None:
            self.marks[spaced] = " </"

    def _ids(self, *pieces: str) -> frozenset[int]:
        return frozenset(id_ for piece in pieces if (id_ := self.vocabulary.token_id(piece)) is not None)

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> ReasoningStage:
        stage = Olmo3ReasoningStage(self._steps)
        prompt = prompt_token_ids or ()
        if self._closed(prompt):
            stage.state.place = "answer"
        elif not context.template_flag("enable_thinking", "thinking", default=True) and not self._opened(prompt):
            stage.state.place = "off"
        return stage

    def _opened(self, prompt: Sequence[int]) -> bool:
        """Whether the prompt ends with the opening tag."""
        return self.vocabulary.decode(prompt[-len(START) :]).rstrip().endswith(START)

    def _closed(self, prompt: Sequence[int]) -> bool:
        """Whether the prompt's last turn, or if that has no tag any turn, ends thinking."""
        turn = 0
        if self._header is not None and self._header in prompt:
            turn = len(prompt) - 1 - list(reversed(prompt)).index(self._header)
        for start in range(len(prompt) - 3, -1, -1):
            first, second, third = prompt[start : start + 3]
            if second not in self._steps[1] or third not in self._last:
                continue
            if first in self._steps[0]:
                return True
            if first in self._open and start >= turn:
                return False
        return False
