"""What the formats with JSON calls have in common: how a chunk is read, what is held back, what can be given back.

A stage reads text step by step, each step within one phase, and sends what is due when the chunk is read. What it has
seen since its first marker is kept until a call is out: should it turn out to be no call, it is content.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from parsers.engine.assembly import unique_keys
from parsers.engine.events import Content, Event, Segment, Text
from parsers.engine.scanner import hold_stop, text_of
from parsers.engine.stage import Outcome, ToolFormat, ToolStage
from parsers.engine.vocabulary import Vocabulary

_STRING = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"(:)?', re.DOTALL)
"""A string of dumped JSON, and whether it is a key."""
NEAR_END = 64
"""How much of what was read of a call says whether a quote is missing in it."""


def lacks_quote(tail: str, bracket: str) -> bool:
    """Whether a string that ends like this most likely lacks its closing quote: a marker behind it is no data.

    `bracket` closes what the marker closes.
    """
    ending = tail.rstrip()
    return ending.endswith(bracket) and ending[:-1].rstrip().endswith("}")


@dataclass(slots=True)
class CallStageState:
    """`phase` is what the next text belongs to, out of a set of the stage's own.

    `held` is text that may begin a marker; `stop` a special token that ended the last chunk; `raw` what was seen since
    the first marker, kept while no call is out.
    """

    phase: str = "content"
    held: str = ""
    stop: str = ""
    raw: list[str] = field(default_factory=list)


class CallStage(ToolStage):
    """Base of the stages.

    A special token that ends a chunk is the stop token unless more follows; in the phases `shows_stop` it is read as
    text with its chunk.
    """

    State: ClassVar[type] = CallStageState
    shows_stop: ClassVar[frozenset[str]] = frozenset(("content",))

    def __init__(self, stops: Collection[int]) -> None:
        super().__init__()
        self._stops = stops
        self._events: list[Event] = []
        self._stopped = False
        self._phase_before = ""

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        state = self.state
        self._events = []
        self._stopped = bool(segments)
        self._phase_before = state.phase
        self._begin_chunk(segments)
        segments, state.stop = hold_stop(segments, state.stop, self._stops)
        self._consume(segments)
        if state.stop and self._is_stop_shown():
            self._release_stop()
        self._end_chunk()
        return self._events

    def finish(self) -> list[Event]:
        state = self.state
        self._events = []
        if state.stop and self._stopped:
            self._release_stop()
        self._end()
        state.held = state.stop = ""
        return self._events

    # --- what a format says ---------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def _sent(self) -> bool:
        """Whether a call is out, so that nothing can be given back."""

    def _step(self, text: str, position: int) -> int:
        """Deals with some of `text` from `position` on, within one phase; the position behind it.

        A phase `x` is read by the method `_in_x`; what has none is not shown.
        """
        reader = getattr(self, "_in_" + self.state.phase, None)
        return reader(text, position) if reader else len(text)

    def _in_text(self, text: str, position: int) -> int:
        """All of it is content."""
        self._content(text[position:])
        return len(text)

    @abstractmethod
    def _end(self) -> None:
        """The output ends, perhaps in the middle of something."""

    def _begin_chunk(self, segments: Sequence[Segment]) -> None:
        """A chunk begins."""

    def _end_chunk(self) -> None:
        """The chunk is read; what it makes ready goes out."""

    def _is_stop_shown(self) -> bool:
        return self.state.phase in self.shows_stop

    # --- reading --------------------------------------------------------------------------------------------------

    def _release_stop(self) -> None:
        stop, self.state.stop = self.state.stop, ""
        self._consume([Text(stop)])

    def _consume(self, segments: Sequence[Segment]) -> None:
        self._run(text_of(segments))

    def _run(self, text: str) -> None:
        state = self.state
        text, state.held = state.held + text, ""
        position = 0
        while position < len(text):
            position = self._step(text, position)

    # --- content --------------------------------------------------------------------------------------------------

    def _content(self, text: str) -> None:
        if text:
            self._events.append(Content(text))

    def _remember(self, text: str) -> None:
        if text and not self._sent:
            self.state.raw.append(text)

    def _give_back(self, phase: str) -> None:
        """What was seen since the first marker is no call but content; `phase` is what follows."""
        state = self.state
        state.phase, raw, state.raw = phase, state.raw, []
        self._content("".join(raw))


class CallFormat(ToolFormat):
    """Base of the formats: one malformed call makes everything text.

    `markers` are read by the stage even if they are special tokens. `streams_arguments`: arguments go out as the model
    writes them, so that only a one-shot answer can merge a key that is repeated.
    """

    markers: ClassVar[tuple[str, ...]] = ()
    streams_arguments: ClassVar[bool] = False

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        special = vocabulary.special_tokens.items()
        self.marks: dict[int, str] = {token_id: text for token_id, text in special if text not in self.markers}

    def settle(self, outcome: Outcome) -> None:
        """All or nothing."""
        if outcome.malformed:
            outcome.calls = []
        if self.streams_arguments:
            merge_repeated_keys(outcome)
        outcome.called = bool(outcome.calls)


def merge_repeated_keys(outcome: Outcome) -> None:
    """Of a key that the model repeats, arguments keep the last value."""
    for call in outcome.calls:
        keys = [key for key, is_key in _STRING.findall(call.arguments) if is_key]
        if len(keys) > len(set(keys)):
            call.arguments = unique_keys(call.arguments)
