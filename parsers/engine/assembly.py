"""Events to what an answer carries: the deltas of a stream and the message of a one-shot answer."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .events import (
    CallArguments,
    CallEnd,
    CallStart,
    Citation,
    Content,
    Event,
    Malformed,
    Reasoning,
    ReasoningIsAnswer,
    ReasoningRetracted,
)
from .stage import FoundCall, Outcome

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class CallDelta:
    """One tool-call entry of a delta. None fields are absent; an entry with a name opens call `index`.

    `typed`: it says that it is a function's although it opens no call.
    """

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str | None = None
    typed: bool = False

    @property
    def type(self) -> str | None:
        """The entry's `type` on the wire."""
        return "function" if self.typed or self.name is not None else None


@dataclass(slots=True)
class Delta:
    """What one chunk adds. None means absent, "" is sent."""

    reasoning: str | None = None
    content: str | None = None
    calls: list[CallDelta] = field(default_factory=list)
    citations: list[Citation] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.reasoning is not None or self.content is not None or bool(self.calls or self.citations)


@dataclass(frozen=True, slots=True)
class Call:
    """A complete call; `arguments` is JSON text where the model wrote JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """A complete answer."""

    reasoning: str | None
    content: str | None
    calls: tuple[Call, ...] = ()


def delta_of(events: Iterable[Event], *, merge: bool) -> Delta:
    """The delta of one chunk's events; `merge` joins the entries of one call."""
    delta = Delta()
    for event in events:
        match event:
            case Reasoning(late=True):
                pass
            case Reasoning(text):
                delta.reasoning = (delta.reasoning or "") + text
            case Content(text):
                delta.content = (delta.content or "") + text
            case Citation():
                delta.citations.append(event)
            case CallStart(index, name, call_id):
                delta.calls.append(CallDelta(index=index, id=call_id, name=name))
            case CallArguments(index, text, raw, apart) if text or raw is None:
                _add_arguments(delta.calls, index, text, merge=merge, apart=apart)
    return delta


def _add_arguments(calls: list[CallDelta], index: int, text: str, *, merge: bool, apart: bool) -> None:
    last = calls[-1] if calls else None
    if last is not None and last.index == index and not apart and (merge or last.arguments is not None):
        last.arguments = (last.arguments or "") + text
    else:
        calls.append(CallDelta(index=index, arguments=text))


def append_finish(delta: Delta, finish: Delta, *, merge: bool) -> None:
    """Adds what the end of output released to the last chunk's delta.

    Arguments of the call that the chunk itself mentioned last go into its entry where `merge`, else stand in an entry
    of their own, as vLLM sends them (engine 1.3.7).
    """
    if finish.reasoning is not None:
        delta.reasoning = (delta.reasoning or "") + finish.reasoning
    if finish.content is not None:
        delta.content = (delta.content or "") + finish.content
    delta.citations += finish.citations
    for entry in finish.calls:
        last = delta.calls[-1] if delta.calls else None
        if merge and last is not None and last.index == entry.index and entry.name is None:
            last.arguments = (last.arguments or "") + (entry.arguments or "")
        else:
            delta.calls.append(entry)


def collect(events: Iterable[Event]) -> tuple[str | None, Outcome]:
    """(reasoning, everything else) of a whole output's events."""
    reasoning: str | None = None
    outcome = Outcome()
    calls: dict[int, FoundCall] = {}
    content: list[str] = []
    for event in events:
        match event:
            case Reasoning(text):
                reasoning = (reasoning or "") + text
            case ReasoningRetracted():
                reasoning = ""
            case Content(text):
                content.append(text)
            case CallStart(index, name, call_id):
                calls[index] = FoundCall(index=index, name=name, id=call_id)
            case CallArguments(index, text, raw) if index in calls:
                calls[index].arguments += text
                calls[index].raw += text if raw is None else raw
            case CallEnd(index) if index in calls:
                _close(calls[index], event)
            case Malformed():
                outcome.malformed = True
            case ReasoningIsAnswer(repeated=True):
                reasoning = None
            case ReasoningIsAnswer():
                outcome.swapped = True
    outcome.content = "".join(content) if content else None
    outcome.calls = [calls[index] for index in sorted(calls)]
    outcome.malformed = outcome.malformed or any(call.malformed for call in outcome.calls)
    return reasoning, outcome


def _close(call: FoundCall, end: CallEnd) -> None:
    call.malformed = end.malformed
    if end.arguments is not None:
        call.arguments = end.arguments
    elif end.kept is not None:
        call.arguments = call.arguments[: end.kept] + end.tail
    if end.redumped:
        call.arguments = unique_keys(call.arguments)


def dump_json(value: object) -> str:
    """JSON text in the style of all re-dumped arguments: `", "` and `": "`, non-ASCII kept (json 0.8).

    Half a surrogate pair keeps its escape: no answer could carry the character.
    """
    return _SURROGATE.sub(lambda half: f"\\u{ord(half.group()):04x}", json.dumps(value, ensure_ascii=False))


def load_json(text: str) -> Any:
    """The value of JSON text. A number that JSON cannot say (NaN, infinities) stays the text it is.

    Raises ValueError.
    """
    return json.loads(text, parse_constant=str, parse_float=_float)


def _float(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text


def unique_keys(arguments: str) -> str:
    """Dumped JSON in which a repeated key has its last value, at its first place.

    Other text stays, and so does a number that is too large to be dumped.
    """
    try:
        value = json.loads(arguments)
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return arguments
    return dump_json(value)
