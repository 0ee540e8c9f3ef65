"""What this service answered, in the form of the recordings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from derender_api.parity.answers import Answer, answer_from_message

_MESSAGE_KEYS = ("role", "content", "tool_calls", "reasoning")
_USAGE_KEYS = ("prompt_tokens", "completion_tokens", "total_tokens")


@dataclass(frozen=True, slots=True)
class Streamed:
    """A stream: `chunks` as in RecordedStream; the status is that of the call that was refused, else 200."""

    status: int
    chunks: list[Any]


@dataclass(frozen=True, slots=True)
class Observed:
    """All answers to one case: one-shot (as recorded), the recorded groupings, and those of the self rule.

    `unsteady` holds the streams of the self rule whose deltas changed when the parser was restored from a snapshot at
    every boundary; `core` what the parser core alone answers to those of `streams` that went through HTTP.
    """

    oneshot: Mapping[str, Any]
    streams: Mapping[str, Streamed]
    selves: Mapping[str, Streamed] = field(default_factory=dict)
    unsteady: Mapping[str, Streamed] = field(default_factory=dict)
    core: Mapping[str, Streamed] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Status and body of an answer: JSON, or text where it is none."""

    status: int
    body: Any


def recorded_oneshot(answer: HttpAnswer) -> dict[str, Any]:
    """A one-shot answer in the recordings' form: what is compared of the only choice, or the error body."""
    if answer.status != 200:
        return {"status": answer.status, "body": answer.body}
    choice = answer.body["choices"][0]
    message = {key: choice["message"][key] for key in _MESSAGE_KEYS if key in choice["message"]}
    recorded = {
        "status": 200,
        "message": message,
        "finish_reason": choice["finish_reason"],
        "stop_reason": choice["stop_reason"],
        "usage": {key: answer.body["usage"][key] for key in _USAGE_KEYS},
    }
    return recorded | ({"logprobs": choice["logprobs"]} if choice.get("logprobs") is not None else {})


def recorded_chunk(body: Mapping[str, Any]) -> list[Any]:
    """A streamed chunk in the recordings' form: delta without null and empty fields, finish reason."""
    choices = body["chunk"]["choices"]
    if not choices:
        return [{}, None]
    delta = {key: value for key, value in choices[0]["delta"].items() if value is not None and value != []}
    return [delta, choices[0]["finish_reason"]]


def oneshot_answer(oneshot: Mapping[str, Any]) -> Answer | None:
    """The answer in a one-shot in the recordings' form; None where it was refused."""
    if oneshot["status"] != 200:
        return None
    return answer_from_message(oneshot["message"], finish_reason=oneshot["finish_reason"])
