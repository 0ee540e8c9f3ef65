"""Finds stop strings in a stream: holds back what may begin one, and ends the text where one is complete.

vLLM refuses streams with stop strings; here they end as its one-shot answers do (protocol 8.3), token by token.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from derender_api.stop import StopRules


@dataclass(slots=True)
class StopWatch:
    """The search in one stream.

    `held` is text that may begin a stop string; its first `head` code points belong to the first `min_tokens` tokens,
    in which no stop string ends. `tokens` counts what was seen, `matched` is the stop string that ended the text.
    """

    stops: Sequence[str]
    min_tokens: int = 0
    keeps_stop: bool = False
    held: str = ""
    head: int = 0
    tokens: int = 0
    matched: str | None = None
    _longest: int = field(init=False)

    def __post_init__(self) -> None:
        self._longest = max(map(len, self.stops), default=0)

    @classmethod
    def of(cls, rules: StopRules, *, tokens: int = 0) -> Self | None:
        """The search that a request asks for, `tokens` into its stream; None without stop strings."""
        if not rules.stop:
            return None
        return cls(stops=rules.stop, min_tokens=rules.min_tokens, keeps_stop=rules.keeps_stop, tokens=tokens)

    def pass_on(self, texts: Sequence[str]) -> list[str]:
        """What may be sent for each of these tokens' texts."""
        return [self._next(text) for text in texts]

    def release(self) -> str:
        """The output is over: what was held back."""
        held, self.held = self.held, ""
        return held

    def state(self) -> list[Any]:
        """What the search must remember, as a JSON-able value."""
        return [self.held, self.head, self.tokens, self.matched]

    def resume(self, state: Sequence[Any]) -> None:
        """Goes on from what `state` gave."""
        self.held, self.head, self.tokens, self.matched = state

    def _next(self, text: str) -> str:
        if self.matched is not None:
            return ""
        self.tokens += 1
        buffer = self.held + text
        if self.tokens <= self.min_tokens:
            self.head = len(buffer)
        match = self._match(buffer)
        if match is not None:
            end, self.matched = match
            self.held = ""
            return buffer[: end if self.keeps_stop else end - len(self.matched)]
        ready = len(buffer) - self._pending(buffer)
        self.held, self.head = buffer[ready:], max(self.head - ready, 0)
        return buffer[:ready]

    def _match(self, buffer: str) -> tuple[int, str] | None:
        """End and text of the stop string that ends first, at least one code point behind the head."""
        matches = []
        for stop in self.stops:
            start = buffer.find(stop, max(self.head - len(stop) + 1, 0))
            if start >= 0:
                matches.append((start + len(stop), stop))
        return min(matches, key=lambda match: match[0], default=None)

    def _pending(self, buffer: str) -> int:
        """Length of the longest end of `buffer` that begins a stop string."""
        for length in range(min(self._longest - 1, len(buffer)), 0, -1):
            end = buffer[-length:]
            if any(stop.startswith(end) for stop in self.stops):
                return length
        return 0
