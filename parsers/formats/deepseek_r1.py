"""Reasoning of DeepSeek-R1: thoughts, `</think>`, answer. The prompt usually ends with the opening tag.

<think>The user greets me.</think>Hello!
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from parsers.engine.context import RequestContext
from parsers.engine.events import Event, Reasoning, ReasoningRetracted, Segment, Text
from parsers.engine.exceptions import ParserConfigurationError
from parsers.engine.stage import ReasoningFormat, ReasoningStage
from parsers.engine.vocabulary import Vocabulary

START, END = "<think>", "</think>"


@dataclass(slots=True)
class ThinkState:
    """`opened`: the opening tag was seen; `ended`: the closing one was, or the prompt held it."""

    opened: bool = False
    ended: bool = False


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
        state = self.state
        if state.ended:
            return list(segments)
        if not segments:
            return [Reasoning("")]
        out: list[Event | Segment] = []
        for position, segment in enumerate(segments):
            if isinstance(segment, Text):
                out.append(Reasoning(segment.text))
            elif segment.token_id == self._end_id:
                state.ended = True
                return out + list(segments[position + 1 :])
            elif segment.token_id == self._start_id and not state.opened:
                state.opened = True
                out.append(ReasoningRetracted())
            else:
                out.append(Reasoning(segment.text))
        return out


def last_of(token_ids: Sequence[int], wanted: Sequence[int]) -> int | None:
    """The last ID of `token_ids` that is in `wanted`."""
    return next((token_id for token_id in reversed(token_ids) if token_id in wanted), None)


class DeepSeekR1Reasoning(ReasoningFormat):
    """`deepseek_r1` (deepseek_kimi_harmony 6)."""

    names = ("deepseek_r1",)

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        start_id, end_id = vocabulary.token_id(START), vocabulary.token_id(END)
        if start_id is None or end_id is None:
            raise ParserConfigurationError(f"the tokenizer has no {START} and {END} tokens")
        self._start_id, self._end_id = start_id, end_id
        self.marks = {start_id: START, end_id: END}

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> ReasoningStage:
        stage = ThinkStage(self._start_id, self._end_id)
        stage.state.ended = last_of(prompt_token_ids or (), (self._start_id, self._end_id)) == self._end_id
        return stage
