"""Chats of `--tokenizer-mode kimi_k3`: the template gets other variables, and results that name their calls."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from derender_api.exceptions import RequestRuleViolation
from derender_api.loaded_model import LoadedModel
from derender_api.protocol.openai_request import NamedTool
from derender_api.protocol.render import ChatRenderRequest

MODE = "kimi_k3"
EFFORTS = ("low", "high", "max")

Message = dict[str, Any]


def is_kimi_k3(model: LoadedModel) -> bool:
    """Whether the model's chats are prepared so."""
    return model.configuration.tokenizer_mode == MODE


def request_variables(request: ChatRenderRequest) -> dict[str, Any]:
    """What the template gets of a request besides its arguments."""
    variables: dict[str, Any] = {}
    if request.response_format is not None:
        variables["response_format"] = request.response_format.model_dump(exclude_none=True)
    choice = request.tool_choice
    if request.tools and choice not in (None, "auto"):
        variables["tool_choice"] = choice.model_dump() if isinstance(choice, NamedTool) else choice
    return variables


def kimi_variables(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with `thinking` and `thinking_effort` for the names that other models have for them.

    Raises RequestRuleViolation for an unknown effort.
    """
    made = {name: value for name, value in kwargs.items() if name not in ("enable_thinking", "reasoning_effort")}
    thinking, effort = kwargs.get("enable_thinking"), kwargs.get("reasoning_effort")
    if effort == "none":
        thinking, effort = False, None
    if made.get("thinking") is None and thinking is not None:
        made["thinking"] = thinking
    if made.get("thinking_effort") is None and effort is not None:
        made["thinking_effort"] = effort
    effort = made.get("thinking_effort")
    if effort is not None and effort not in EFFORTS:
        raise RequestRuleViolation(
            f"Kimi K3 supports thinking_effort values: {', '.join(EFFORTS)}", param="thinking_effort", value=effort
        )
    return made


def kimi_messages(messages: Sequence[Message]) -> list[Message]:
    """The messages; results that all belong to the calls in front of them are in their order, with name and number."""
    made: list[Message] = []
    for is_result, group in groupby(messages, key=lambda message: message["role"] == "tool"):
        run = list(group)
        made += _in_order(run, made[-1] if made else {}) if is_result else run
    return made


def _in_order(results: list[Message], asking: Message) -> list[Message]:
    numbered = list(_numbered(results, asking.get("tool_calls") or ()))
    return sorted(numbered, key=lambda result: result["index"]) if len(numbered) == len(results) else results


def _numbered(results: Sequence[Message], calls: Sequence[Mapping[str, Any]]) -> Iterator[Message]:
    for result in results:
        for number, call in enumerate(calls, start=1):
            if call["id"] == result.get("tool_call_id"):
                yield {**result, "tool": call["function"]["name"], "index": number}
                break
