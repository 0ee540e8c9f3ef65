"""MiniMax M3: thoughts in tags, answer, calls whose parameters are elements; all tags of a call carry a prefix.

    <mm:think>The user asks for the weather.</mm:think>Let me look.
    ]<]minimax[>[<tool_call>
    ]<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>Paris]<]minimax[>[</city>]<]minimax[>[</invoke>
    ]<]minimax[>[</tool_call>

Elements may hold elements, which make objects and lists as the parameters schema says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from parsers.engine.context import RequestContext
from parsers.engine.element_arguments import ElementArguments
from parsers.engine.events import Event, Reasoning, ReasoningRetracted, Segment, Text, Token
from parsers.engine.exceptions import ParserConfigurationError
from parsers.engine.grammar import Action, Grammar, State, Transition, table
from parsers.engine.lexer import Lexer
from parsers.engine.stage import ReasoningFormat, ReasoningStage
from parsers.engine.vocabulary import Vocabulary
from parsers.formats.base import MarkerTools

_START, _END = Action.CALL_START, Action.CALL_END
PREFIX = "]<]minimax[>["
OPEN, CLOSE = "<mm:think>", "</mm:think>"


class PrefixedElements(ElementArguments):
    """Elements whose tags carry the prefix."""

    prefix = PREFIX
    tag = re.compile(re.escape(PREFIX) + r"<([^/>][^>]*)>")


GRAMMAR = Grammar(
    markers={
        "call": (f"{PREFIX}<tool_call>",),
        "end_call": (f"{PREFIX}</tool_call>",),
        "invoke": (f'{PREFIX}<invoke name="', f"{PREFIX}<invoke name='", f"{PREFIX}<invoke name="),
        "end_invoke": (f"{PREFIX}</invoke>",),
        "close": ('">', "'>", ">"),
    },
    id_markers=frozenset(),
    transitions=table(
        {
            State.CONTENT: {"call": Transition(State.PREAMBLE)},
            State.PREAMBLE: {
                "invoke": Transition(State.NAME, (_START,)),
                "end_call": Transition(State.CONTENT),
            },
            State.NAME: {"close": Transition(State.ARGS)},
            State.ARGS: {"end_invoke": Transition(State.BETWEEN, (_END,))},
            State.BETWEEN: {
                "invoke": Transition(State.NAME, (_START,)),
                "end_call": Transition(State.BETWEEN),
            },
        }
    ),
    writer=PrefixedElements,
    strips_content=False,
)


class MinimaxM3Tools(MarkerTools):
    """`minimax_m3` (xml 9)."""

    names = ("minimax_m3",)
    grammar = GRAMMAR


@dataclass(slots=True)
class TaggedState:
    """`place`: "start" (nothing visible yet), "open" (the same, but the prompt opened the thoughts), "in" the thoughts,
    "before" or "after" them in the answer. `held` may be the beginning of a tag; `idle`: the first chunk had no text.
    """

    place: str = "start"
    held: str = ""
    idle: bool = False


_INSIDE = Lexer([CLOSE])


class TaggedStage(ReasoningStage):
    """The first pair of tags holds the thoughts. In front of any text tags count however they are spelled."""

    State: ClassVar[type] = TaggedState

    def __init__(self, start_id: int, *, opened: bool) -> None:
        super().__init__()
        self._start_id = start_id
        self.state.place = "open" if opened else "start"

    @property
    def ended(self) -> bool:
        return self.state.idle or self.state.place in ("before", "after")

    def feed(self, segments: Sequence[Segment]) -> list[Event | Segment]:
        state = self.state
        if not segments and state.place == "start" and not state.held:
            state.idle = True
        out: list[Event | Segment] = []
        for segment in segments:
            self._segment(segment, out)
        return out

    def finish(self) -> list[Event | Segment]:
        held, self.state.held = self.state.held, ""
        if not held:
            return []
        return [Reasoning(held) if self.state.place in ("open", "in") else Text(held)]

    def _segment(self, segment: Segment, out: list[Event | Segment]) -> None:
        state = self.state
        if state.place in ("start", "open"):
            self._begin(segment.text, out)
        elif state.place == "in":
            self._inside(segment.text, out)
        elif state.place == "before" and isinstance(segment, Token) and segment.token_id == self._start_id:
            self._enter(out)
        elif segment.text:
            out.append(segment)

    def _begin(self, text: str, out: list[Event | Segment]) -> None:
        """The output so far is `held`, and may still turn out to begin with a tag."""
        state = self.state
        text, state.held = state.held + text, ""
        opened = state.place == "open"
        if text.startswith(OPEN):
            self._enter(out)
            self._inside(text[len(OPEN) :], out)
        elif text.startswith(CLOSE):
            if opened:
                out.append(ReasoningRetracted())
            self._leave(text[len(CLOSE) :], out)
        elif OPEN.startswith(text) or CLOSE.startswith(text):
            state.held = text
        elif opened:
            state.place = "in"
            self._inside(text, out)
        else:
            state.place = "before"
            out.append(Text(text))

    def _enter(self, out: list[Event | Segment]) -> None:
        """Thoughts between tags are "" where they are empty, not absent."""
        self.state.place = "in"
        out.append(ReasoningRetracted())

    def _inside(self, text: str, out: list[Event | Segment]) -> None:
        state = self.state
        pieces, state.held = _INSIDE.cut(state.held, text)
        for position, (piece, is_tag) in enumerate(pieces):
            if is_tag:
                rest = "".join(text for text, _ in pieces[position + 1 :]) + state.held
                self._leave(rest, out)
                return
            out.append(Reasoning(piece))

    def _leave(self, rest: str, out: list[Event | Segment]) -> None:
        self.state.place, self.state.held = "after", ""
        if rest:
            out.append(Text(rest))


class MinimaxM3Reasoning(ReasoningFormat):
    """`minimax_m3` (xml 18). The template kwarg `thinking_mode` says whether the prompt opened the thoughts."""

    names = ("minimax_m3",)
    keeps_empty = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        start_id, end_id = vocabulary.token_id(OPEN), vocabulary.token_id(CLOSE)
        if start_id is None or end_id is None:
            raise ParserConfigurationError(f"the tokenizer has no {OPEN} and {CLOSE} tokens")
        self._start_id = start_id
        self.marks = {start_id: OPEN}

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> ReasoningStage:
        return TaggedStage(self._start_id, opened=context.template_kwargs.get("thinking_mode") == "enabled")
