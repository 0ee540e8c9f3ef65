"""Chunks as clients of streamed answers expect them: without what is null."""

from typing import Any

from derender_api.services.common import Json

KEPT_WHILE_NULL = frozenset({"logprobs", "finish_reason"})


def shown_chunk(answer: Json, *, content: str) -> Json | None:
    """The chunk without nulls; None where nothing is left to say.

    `content` is the key of the choice's content: "delta" of a chat, "text" of a completion.
    """
    choices = [_choice(choice) for choice in answer["choices"]]
    if not any(_says_something(choice, content) for choice in choices) and answer.get("usage") is None:
        return None
    return {**_without_nulls(answer), "choices": choices}


def _choice(choice: Json) -> Json:
    shown = {key: value for key, value in choice.items() if value is not None or key in KEPT_WHILE_NULL}
    if isinstance(shown.get("delta"), dict):
        shown["delta"] = _delta(shown["delta"])
    return shown


def _delta(delta: Json) -> Json:
    shown = _without_nulls(delta)
    if "tool_calls" in shown:
        shown["tool_calls"] = [
            {**_without_nulls(call), "function": _without_nulls(call["function"])} for call in shown["tool_calls"]
        ]
    return shown


def _says_something(choice: Json, content: str) -> bool:
    return bool(choice[content] or choice["logprobs"] or choice["finish_reason"] or choice.get("token_ids"))


def _without_nulls(value: dict[str, Any]) -> Json:
    return {key: each for key, each in value.items() if each is not None}
