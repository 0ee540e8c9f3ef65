"""The marker machine: a grammar bound to a vocabulary, which reads segments as terminals and text.

The stages that run it move its state: `machine_thoughts` as reasoning parser, `machine_calls` as tool parser.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from .events import Segment, Text, Token
from .grammar import Grammar, State, Transition
from .lexer import Lexer
from .vocabulary import Vocabulary

DROP = ""
"""The terminal of declared special tokens: deleted wherever they stand (engine 2.2)."""


class Unit(NamedTuple):
    """Something the machine reads: a terminal, or text where `terminal` is None; `token` where it came as a token."""

    terminal: str | None
    text: str
    token: Token | None


class MarkerMachine:
    """A grammar bound to a vocabulary, once per model."""

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary) -> None:
        self.grammar = grammar
        self.marks: dict[int, str] = {}
        self._terminals: dict[int, str] = {}
        self._spelled = dict(grammar.spellings)
        self._bind_markers(vocabulary)
        dropped = self._bind_special_tokens(vocabulary)
        self._lexer = Lexer([*grammar.spellings, *dropped])
        self.boundaries = frozenset(
            token_id for text in grammar.boundaries if (token_id := vocabulary.token_id(text)) is not None
        )

    def _bind_markers(self, vocabulary: Vocabulary) -> None:
        for terminal in self.grammar.id_markers:
            for spelling in self.grammar.markers[terminal]:
                token_id = vocabulary.token_id(spelling)
                if token_id is not None:
                    self.marks[token_id] = spelling
                    self._terminals[token_id] = terminal
                    del self._spelled[spelling]

    def _bind_special_tokens(self, vocabulary: Vocabulary) -> list[str]:
        dropped = []
        for token_id, text in vocabulary.special_tokens.items():
            if text not in self.grammar.spellings and text not in self.grammar.preserved:
                self.marks[token_id] = text
                self._terminals[token_id] = DROP
                dropped.append(text)
        return dropped

    def ids_of(self, *terminals: str) -> frozenset[int]:
        """Token IDs of these terminals."""
        return frozenset(token_id for token_id, terminal in self._terminals.items() if terminal in terminals)

    def spelled(self, terminal: str) -> bool:
        """Whether the tokenizer lacks a token for this marker, so that it is found in the text."""
        return terminal in self._spelled.values()

    @cached_property
    def reads_content(self) -> bool:
        """Whether content must be searched for markers that are no tokens, those of calls apart."""
        return any(
            self.spelled(marker)
            for (state, marker) in self.grammar.transitions
            if state is State.CONTENT and marker not in self.grammar.call_markers
        )

    def known(self, segments: Sequence[Segment]) -> list[Segment]:
        """Segments with the tokens that only another stage asked for as text."""
        return [
            segment if isinstance(segment, Text) or segment.token_id in self._terminals else Text(segment.text)
            for segment in segments
        ]

    def read(self, held: str, segments: Sequence[Segment]) -> tuple[list[Unit], str]:
        """(units of one chunk, the beginning of a marker that is held back now)."""
        units: list[Unit] = []
        for segment in segments:
            if isinstance(segment, Text):
                pieces, held = self._lexer.cut(held, segment.text)
                self._add(units, pieces)
            else:
                self._add(units, self._lexer.flush(held))
                held = ""
                units.append(Unit(self._terminals.get(segment.token_id), segment.text, segment))
        return units, held

    def flush(self, held: str) -> list[Unit]:
        """What is held back at the end of output."""
        units: list[Unit] = []
        self._add(units, self._lexer.flush(held))
        return units

    def _add(self, units: list[Unit], pieces: Sequence[tuple[str, bool]]) -> None:
        for text, literal in pieces:
            units.append(Unit(self._spelled.get(text) if literal else None, text, None))

    def begins_marker(self, text: str) -> bool:
        """Whether `text` is the beginning of a marker."""
        return any(spelling.startswith(text) for spelling in self.grammar.spellings)

    def transition(self, state: str, terminal: str) -> Transition | None:
        return self.grammar.transitions.get((State(state), terminal))


def prompt_ended(
    token_ids: Sequence[int], *, ends: frozenset[int], starts: frozenset[int], boundaries: frozenset[int], default: bool
) -> bool:
    """Whether the prompt left reasoning behind (engine 2.10): the last of these tokens decides; none: `default`."""
    for token_id in reversed(token_ids):
        if token_id in ends:
            return True
        if token_id in starts:
            return False
        if token_id in boundaries:
            return default
    return default
