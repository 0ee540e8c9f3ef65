"""Reasoning of DeepSeek-R1 and its relatives: thoughts, `</think>`, answer. The prompt often ends with the first tag.

    <think>The user greets me.</think>Hello!

`deepseek_v3` and `holo2` think or not as the request's template kwargs say; `deepseek_r1` and `step5` always.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from parsers.engine.context import RequestContext
from parsers.engine.events import Event, Reasoning, ReasoningRetracted, Segment, Text, Token
from parsers.engine.exceptions import ParserConfigurationError
from parsers.engine.lexer import Lexer, Piece
from parsers.engine.stage import ReasoningFormat, ReasoningStage
from parsers.engine.vocabulary import Vocabulary

START, END = "<think>", "</think>"
_BLANKS = ("\n", "\n\n", "\n\n\n", " ", "  ", "\t", "\r\n")


@dataclass(slots=True)
class ThinkState:
    """`opened`: the opening tag was seen; `ended`: the closing one was, or the prompt held it.

    `spoke`: some reasoning was sent, `thought`: it was not blank; `reopens`: the prompt closed reasoning and the output
    so far is blank, so that an opening tag still begins it.
    """

    opened: bool = False
    ended: bool = False
    spoke: bool = False
    thought: bool = False
    reopens: bool = False


class ThinkStage(ReasoningStage):
    """Everything up to the end token is reasoning; everything behind it is handed on untouched."""

    State: ClassVar[type] = ThinkState

    def __init__(self, start_id: int, end_id: int) -> None:
        super().__init__()
        self._start_id = start_id
        self._end_id = end_id

    @property
    def ended(self) -> bool:
        return self.state.ended

    def feed(self, segments: Sequence[Segment]) -> list[Event | Segment]:
        if self.state.reopens:
            return self._reopened(segments)
        if self.state.ended:
            return list(segments)
        return self._thoughts(segments)

    def _reopened(self, segments: Sequence[Segment]) -> list[Event | Segment]:
        """A model that thinks although the prompt closed its thoughts begins with the opening tag."""
        for position, segment in enumerate(segments):
            if self._is(segment, self._start_id):
                self.state.reopens = self.state.ended = False
                return list(segments[:position]) + self._thoughts(segments[position:])
            if segment.text.strip():
                self.state.reopens = False
                break
        return list(segments)

    def _thoughts(self, segments: Sequence[Segment]) -> list[Event | Segment]:
        """A tag alone sends nothing, any other chunk some reasoning, be it "" (deepseek_kimi_harmony 6)."""
        out: list[Event | Segment] = []
        for position, segment in enumerate(segments):
            if self._is(segment, self._end_id):
                return out + self._ended() + list(segments[position + 1 :])
            if self._is(segment, self._start_id) and not self.state.opened:
                out = self._opened(out)
            else:
                self.state.spoke = True
                self.state.thought = self.state.thought or bool(segment.text.strip())
                out.append(Reasoning(segment.text))
        return out or [Reasoning("")]

    def _opened(self, out: list[Event | Segment]) -> list[Event | Segment]:
        """Blank text before the opening tag is no reasoning; other text is, since it may have been sent."""
        self.state.opened = True
        return out if self.state.thought else [ReasoningRetracted()]

    def _ended(self) -> list[Event | Segment]:
        self.state.ended = True
        events: list[Event | Segment] = [] if self.state.spoke else [ReasoningRetracted()]
        return events if self.token_count == 1 else [*events, Reasoning("")]

    @staticmethod
    def _is(segment: Segment, token_id: int) -> bool:
        return isinstance(segment, Token) and segment.token_id == token_id


@dataclass(slots=True)
class SpelledThinkState(ThinkState):
    """`held` may be the beginning of a tag."""

    held: str = ""


class SpelledThinkStage(ThinkStage):
    """The same for a tokenizer without the tags: they are found in the text of the thoughts."""

    State: ClassVar[type] = SpelledThinkState

    def __init__(self, start: str, end: str) -> None:
        super().__init__(-1, -2)
        self._ids = {start: -1, end: -2}
        self._lexer = Lexer(self._ids)

    def feed(self, segments: Sequence[Segment]) -> list[Event | Segment]:
        state = self.state
        if state.ended and not state.reopens:
            return list(segments)
        cut: list[Segment] = []
        for segment in segments:
            if isinstance(segment, Text):
                pieces, state.held = self._lexer.cut(state.held, segment.text)
                cut += self._segments(pieces)
            else:
                cut += [*self._flushed(), segment]
        out: list[Event | Segment] = [
            Text(item.text) if isinstance(item, Token) and item.token_id < 0 else item for item in super().feed(cut)
        ]
        return [*out, *self._flushed()] if state.ended and not state.reopens else out

    def finish(self) -> list[Event | Segment]:
        held = self._flushed()
        return super().feed(held) if held else []

    def _segments(self, pieces: Sequence[Piece]) -> list[Segment]:
        return [Token(self._ids[text], text) if literal else Text(text) for text, literal in pieces]

    def _flushed(self) -> list[Segment]:
        held, self.state.held = self.state.held, ""
        return [Text(held)] if held else []


class PromptEnd:
    """Tells whether a prompt closed reasoning for the turn to come. Built once per model.

    `tags` is None where the tokenizer lacks them.
    """

    def __init__(self, vocabulary: Vocabulary, start: str = START, end: str = END) -> None:
        start_id, end_id = vocabulary.token_id(start), vocabulary.token_id(end)
        self.tags = (start_id, end_id) if start_id is not None and end_id is not None else None
        self._blank_ids = {token_id for blank in _BLANKS for token_id in vocabulary.encode(blank)}

    def opens(self, prompt: Sequence[int]) -> bool:
        """Whether the last tag is an opening one."""
        tags = self.tags or ()
        return next((token_id for token_id in reversed(prompt) if token_id in tags), None) in tags[:1]

    def closes(self, prompt: Sequence[int], context: RequestContext) -> bool:
        """Whether an end token is the last one that is not blank.

        An end token with text behind it belongs to an earlier turn, unless the last message is being continued.
        """
        if self.tags is None:
            return False
        if context.template_kwargs.get("continue_final_message"):
            last = (token_id for token_id in reversed(prompt) if token_id in self.tags)
        else:
            last = (token_id for token_id in reversed(prompt) if token_id not in self._blank_ids)
        return next(last, None) == self.tags[1]


class ThinkFormat(ReasoningFormat):
    """Base of the family.

    `needs_tags`: a tokenizer without the tags is refused at start, else they are found in the text. `obeys_prompt`: an
    end token at the end of the prompt means that the answer has begun.
    """

    needs_tags: ClassVar[bool] = True
    obeys_prompt: ClassVar[bool] = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        spellings = self.spellings()
        self._prompt_end = PromptEnd(vocabulary, *spellings)
        self._tags = self._prompt_end.tags
        if self.needs_tags and self._tags is None:
            raise ParserConfigurationError("the tokenizer has no {} and {} tokens".format(*spellings))
        self.marks = dict(zip(self._tags, spellings, strict=True)) if self._tags else {}

    def spellings(self) -> tuple[str, str]:
        """The opening and the closing tag."""
        return START, END

    def thinks(self, context: RequestContext) -> bool:
        """Whether this request's output holds reasoning at all."""
        return True

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> ReasoningStage | None:
        if not self.thinks(context):
            return None
        stage = ThinkStage(*self._tags) if self._tags else SpelledThinkStage(*self.spellings())
        if self.obeys_prompt and self._prompt_end.closes(prompt_token_ids or (), context):
            stage.state.ended = stage.state.reopens = True
        return stage


class DeepSeekR1Reasoning(ThinkFormat):
    """`deepseek_r1` and `step5` (deepseek_kimi_harmony 6, xml 14): the template kwargs change nothing."""

    names = ("deepseek_r1", "step5")


class DeepSeekV3Reasoning(ThinkFormat):
    """`deepseek_v3`: thinks if the template kwargs say so."""

    names = ("deepseek_v3",)
    needs_tags = False

    def thinks(self, context: RequestContext) -> bool:
        return context.template_flag("thinking", "enable_thinking", default=False)


class Holo2Reasoning(ThinkFormat):
    """`holo2`: thinks unless the template kwargs say otherwise; they alone decide, not the prompt."""

    names = ("holo2",)
    obeys_prompt = False

    def thinks(self, context: RequestContext) -> bool:
        return context.template_flag("thinking", "enable_thinking", default=True)
