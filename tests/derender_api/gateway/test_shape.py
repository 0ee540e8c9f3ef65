"""Chunks without nulls, and which have nothing to say."""

from typing import Any

import pytest

from derender_api.gateway.shape import shown_chunk

HEAD = {"id": "i", "object": "o", "created": 1, "model": "m", "system_fingerprint": None, "usage": None}
OPEN = {"logprobs": None, "finish_reason": None}


def chunk(**choice: Any) -> dict[str, Any]:
    """A chat chunk as the derender endpoint answers it."""
    empty = {"delta": {"role": None, "content": None, "reasoning": None}, "logprobs": None, "finish_reason": None}
    return {**HEAD, "choices": [{"index": 0, **empty, "stop_reason": None, "token_ids": None, **choice}]}


def test_nulls_are_left_out_but_for_those_that_clients_expect() -> None:
    delta = {"role": "assistant", "content": "a", "reasoning": None}

    assert shown_chunk(chunk(delta=delta), content="delta") == {
        "id": "i",
        "object": "o",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "delta": {"role": "assistant", "content": "a"}, "logprobs": None, "finish_reason": None}
        ],
    }


def test_calls_hold_what_is_new() -> None:
    first = {"id": "c", "type": "function", "index": 0, "function": {"name": "f", "arguments": None}}
    second = {"id": None, "type": None, "index": 0, "function": {"name": None, "arguments": "{"}}
    shown = shown_chunk(
        chunk(delta={"role": None, "content": None, "tool_calls": [first, second]}, stop_reason=7), content="delta"
    )

    assert shown is not None
    assert shown["choices"][0]["delta"] == {
        "tool_calls": [
            {"id": "c", "type": "function", "index": 0, "function": {"name": "f"}},
            {"index": 0, "function": {"arguments": "{"}},
        ]
    }
    assert shown["choices"][0]["stop_reason"] == 7


def test_a_chunk_that_says_nothing_is_none() -> None:
    assert shown_chunk(chunk(), content="delta") is None
    assert shown_chunk({**HEAD, "choices": [{"index": 0, "text": "", **OPEN}]}, content="text") is None


@pytest.mark.parametrize(
    "choice", [{"finish_reason": "stop"}, {"logprobs": {"content": []}}, {"token_ids": [1]}, {"delta": {"content": ""}}]
)
def test_a_chunk_without_text_may_say_something(choice: dict[str, Any]) -> None:
    assert shown_chunk(chunk(**choice), content="delta") is not None


def test_usage_is_something_to_say() -> None:
    answer = {**chunk(), "usage": {"prompt_tokens": 1, "prompt_tokens_details": None}}

    shown = shown_chunk(answer, content="delta")

    assert shown is not None
    assert shown["usage"] == answer["usage"]
