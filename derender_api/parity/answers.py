"""What an answer says, apart from how it was sent: reasoning, content, calls, finish reason.

A one-shot message and the sum of a stream's deltas become the same kind of value, so that they can be compared.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """The compared part of an answer. `calls` are pairs of name and argument text, in order."""

    reasoning: str | None
    content: str | None
    calls: tuple[tuple[str, str], ...]
    finish_reason: str | None

    @property
    def filled(self) -> "Answer":
        """The same answer with null texts as "", as a sum of deltas has them."""
        return Answer(self.reasoning or "", self.content or "", self.calls, self.finish_reason)

    @property
    def loose(self) -> "Answer":
        """The same answer without white space at the ends of reasoning and content."""
        return Answer((self.reasoning or "").strip(), (self.content or "").strip(), self.calls, self.finish_reason)

    def as_json(self) -> dict[str, Any]:
        """The answer as divergences.json writes it."""
        return {
            "reasoning": self.reasoning,
            "content": self.content,
            "tool_calls": [{"name": name, "arguments": arguments} for name, arguments in self.calls],
            "finish_reason": self.finish_reason,
        }


def answer_from_json(value: Mapping[str, Any]) -> Answer:
    """The inverse of `Answer.as_json`; absent texts are null, absent calls are none."""
    calls = tuple((call["name"], call["arguments"]) for call in value.get("tool_calls") or ())
    return Answer(value.get("reasoning"), value.get("content"), calls, value.get("finish_reason"))


def answer_from_message(message: Mapping[str, Any], *, finish_reason: str | None) -> Answer:
    """The answer in a one-shot `message` object."""
    calls = tuple((call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or ())
    return Answer(message.get("reasoning"), message.get("content"), calls, finish_reason)


def fold(chunks: Sequence[Any]) -> Answer | None:
    """The sum of a stream's chunks (`[delta, finish_reason]` each); None where a call was refused.

    Deltas of one call are found by their index; names and arguments are joined.
    """
    reasoning: list[str] = []
    content: list[str] = []
    calls: dict[int, tuple[list[str], list[str]]] = {}
    finish_reason: str | None = None
    for chunk in chunks:
        if isinstance(chunk, Mapping):
            return None
        delta, finish = chunk
        reasoning.append(delta.get("reasoning") or "")
        content.append(delta.get("content") or "")
        for call in delta.get("tool_calls") or ():
            names, arguments = calls.setdefault(call["index"], ([], []))
            function = call.get("function") or {}
            names.append(function.get("name") or "")
            arguments.append(function.get("arguments") or "")
        finish_reason = finish or finish_reason
    joined = tuple(("".join(names), "".join(arguments)) for _, (names, arguments) in sorted(calls.items()))
    return Answer("".join(reasoning), "".join(content), joined, finish_reason)


def is_json(text: str) -> bool:
    """Whether `text` is a whole JSON value."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
