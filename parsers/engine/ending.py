"""The token that ends an answer, where a stage has held text back before.

A host may send the end-of-turn token in a chunk of its own, ahead of the finish reason; its text is then not cut. vLLM
shows it, unless its parser has swallowed the answer so far. A stage that gives such an answer back must not add that
token to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .events import Content, Event, Segment, Token


@dataclass(slots=True)
class EndingState:
    """`active`: text was held back once. `held`: a token's text at the end; `fresh`: it came with the last chunk."""

    active: bool = False
    held: str = ""
    fresh: bool = False


class Ending:
    """Sits between a stage's content and its events."""

    def __init__(self, state: EndingState) -> None:
        self.state = state

    def take(self, text: str) -> str:
        """A chunk's text, behind what was held."""
        self.state.fresh = bool(text)
        if text:
            text, self.state.held = self.state.held + text, ""
        return text

    def release(self, segments: Sequence[Segment]) -> str:
        """What was held, once a chunk has more text."""
        self.state.fresh = any(segment.text for segment in segments)
        if not self.state.fresh:
            return ""
        held, self.state.held = self.state.held, ""
        return held

    def hold(self, text: str, segments: Sequence[Segment]) -> str:
        """A chunk's text less a marked token at its end, which is held."""
        last = segments[-1] if segments else None
        if isinstance(last, Token) and last.text and text.endswith(last.text):
            self.state.held = last.text
            return text[: -len(last.text)]
        return text

    def content(self, text: str, segments: Sequence[Segment]) -> list[Event]:
        """The event for a chunk's content `text`, less a marked token at its end."""
        if self.state.held and not text:
            return []
        kept = self.hold(text, segments) if self.state.active else text
        return [Content(kept)] if kept or kept == text else []

    def finish(self) -> list[Event]:
        """A token that came together with the finish reason is content."""
        return [Content(self.state.held)] if self.state.held and self.state.fresh else []
