"""Rules of chat and completion requests that vLLM checks before their schema (protocol 9.3).

They look at the request as it was sent. The first one broken ends validation, whatever else is wrong with the body;
what is not even of the right kind is left to the schema.
"""

import json
from collections.abc import Mapping
from typing import Any

from derender_api.exceptions import RequestRuleViolation as Violation

CORRECT_USAGE = 'Correct usage: `{"type": "function", "function": {"name": "my_function"}}`'
SALT_LIMIT = 128
SALT_FORBIDDEN = frozenset("@/\\\0")
EXCLUSIVE_CONSTRAINTS = ("json", "regex", "choice")
CONSTRAINTS = (*EXCLUSIVE_CONSTRAINTS, "grammar", "json_object", "structural_tag")
OUTPUT_OPTIONS = {  # every key of structured outputs with its default, in the order in which an error shows them
    **dict.fromkeys(CONSTRAINTS[:-1]),
    "disable_any_whitespace": False,
    "disable_additional_properties": False,
    "whitespace_pattern": None,
    "structural_tag": None,
    "_backend": None,
    "_backend_was_auto": False,
}

CONTINUES_AND_GENERATES = "Cannot set both `continue_final_message` and `add_generation_prompt` to True."

Request = Mapping[str, Any]


def check_chat_request(request: Request) -> None:
    """Raise RequestRuleViolation for the first rule that a `chat_request` breaks."""
    if request.get("continue_final_message") and request.get("add_generation_prompt"):
        raise Violation(CONTINUES_AND_GENERATES)
    _check_tools(request)
    _check_structured_outputs(request, param=None)
    _check_logprob_token_ids(request, is_on=bool(request.get("logprobs")), demand="set to true")
    _check_prompt_logprobs(request)
    _check_top_logprobs(request)
    _check_stream_options(request)
    _check_response_format(request)
    _check_cache_salt(request)
    _check_thinking_budget(request)


def check_completion_request(request: Request, *, max_prompts: int) -> None:
    """Raise RequestRuleViolation for the first rule that a `completion_request` breaks."""
    _check_prompt(request, max_prompts)
    _check_stream_options(request)
    _check_logprob_token_ids(request, is_on=request.get("logprobs") is not None, demand="set")
    _check_prompt_logprobs(request)
    _check_count(request, "logprobs")
    _check_structured_outputs(request, param="structured_outputs")
    _check_response_format(request)
    _check_cache_salt(request)


def _check_stream_options(request: Request) -> None:
    if request.get("stream_options") and not request.get("stream"):
        raise Violation("Stream options can only be defined when `stream=True`.", param="stream_options")


def _check_tools(request: Request) -> None:
    tools, choice = request.get("tools"), request.get("tool_choice")
    if isinstance(tools, list) and not tools:
        raise Violation(
            "`tools` must not be an empty array. Either provide at least one tool or omit the field entirely.",
            param="tools",
        )
    if choice is None or choice == "none":
        return
    if tools is None:
        raise Violation("When using `tool_choice`, `tools` must be set.", param="tool_choice")
    if choice in ("auto", "required"):
        return
    if not isinstance(choice, Mapping):
        raise Violation(
            f'Invalid value for `tool_choice`: {choice}! Only named tools, "none", "auto" or "required" are supported.',
            param="tool_choice",
        )
    _check_named_choice(choice.get("function"), tools)


def _check_named_choice(function: Any, tools: Any) -> None:
    if not isinstance(function, Mapping):
        raise Violation(
            f"Invalid value for `function`: `{function}` in `tool_choice`! {CORRECT_USAGE}",
            param="tool_choice.function",
        )
    if "name" not in function:
        raise Violation(
            f"Expected field `name` in `function` in `tool_choice`! {CORRECT_USAGE}", param="tool_choice.function.name"
        )
    name = function["name"]
    if not isinstance(name, str) or not name:
        raise Violation(
            f"Invalid `name` in `function`: `{name}` in `tool_choice`! {CORRECT_USAGE}",
            param="tool_choice.function.name",
        )
    if not isinstance(tools, list):
        return
    entries = [tool for tool in tools if isinstance(tool, Mapping)]
    functions = [entry["function"] for entry in entries if isinstance(entry.get("function"), Mapping)]
    if len(functions) == len(tools) and name not in [each.get("name") for each in functions]:
        raise Violation(
            "The tool specified in `tool_choice` does not match any of the specified `tools`", param="tool_choice"
        )


def _check_structured_outputs(request: Request, *, param: str | None) -> None:
    outputs = request.get("structured_outputs")
    if not isinstance(outputs, Mapping):
        return
    if sum(outputs.get(kind) is not None for kind in EXCLUSIVE_CONSTRAINTS) > 1:
        raise Violation(
            "You can only use one kind of constraints for structured outputs ('json', 'regex' or 'choice').",
            param=param,
        )
    count = sum(outputs.get(kind) is not None for kind in CONSTRAINTS)
    if count and isinstance(request.get("tool_choice"), Mapping):
        raise Violation("You can only either use constraints for structured outputs or tools, not both.")
    if not _is_tag_text(outputs.get("structural_tag")):
        raise Violation("Invalid structured_outputs structural_tag specification.", param="structured_outputs")
    check_constraint_count(outputs)


def check_constraint_count(outputs: Request) -> None:
    """Raise RequestRuleViolation unless exactly one constraint is given."""
    count = sum(outputs.get(kind) is not None for kind in CONSTRAINTS)
    if count != 1:
        given = {key: outputs.get(key, default) for key, default in OUTPUT_OPTIONS.items()}
        problem = "You must use one kind" if not count else "You can only use one kind"
        rest = "but none are specified" if not count else "but multiple are specified"
        raise Violation(f"{problem} of structured outputs constraint {rest}: {given}")


def _is_tag_text(text: Any) -> bool:
    """Whether a structural tag, a JSON object in a string, has the right outline; null and other kinds pass."""
    if not isinstance(text, str):
        return True
    try:
        specification = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(specification, Mapping) and _is_structural_tag(specification)


def _check_thinking_budget(request: Request) -> None:
    budget = request.get("thinking_token_budget")
    if budget is not None and (not isinstance(budget, int) or budget < -1):
        raise Violation(
            "`thinking_token_budget` must be a non-negative integer or -1 for unlimited.",
            param="thinking_token_budget",
            value=budget,
        )


def _check_logprob_token_ids(request: Request, *, is_on: bool, demand: str) -> None:
    if not request.get("logprob_token_ids"):
        return
    if not is_on:
        raise Violation(f"when using `logprob_token_ids`, `logprobs` must be {demand}.", param="logprob_token_ids")
    if request.get("use_beam_search"):
        raise Violation("`logprob_token_ids` is not supported with beam search.", param="logprob_token_ids")


def _check_count(request: Request, name: str) -> None:
    """A number of log probabilities: any number that is not negative, or -1."""
    count = request.get(name)
    if count is None:
        return
    if not isinstance(count, (int, float)):
        raise Violation(f"`{name}` must be an integer.", param=name, value=count)
    if count < 0 and count != -1:
        raise Violation(f"`{name}` must be a positive value or -1.", param=name, value=count)


def _check_prompt_logprobs(request: Request) -> None:
    _check_count(request, "prompt_logprobs")
    count = request.get("prompt_logprobs")
    if count and request.get("stream"):
        raise Violation("`prompt_logprobs` are not available when `stream=True`.", param="prompt_logprobs")


def _check_top_logprobs(request: Request) -> None:
    _check_count(request, "top_logprobs")
    if request.get("top_logprobs") and not request.get("logprobs"):
        raise Violation("when using `top_logprobs`, `logprobs` must be set to true.", param="top_logprobs")


def _check_response_format(request: Request) -> None:
    response_format = request.get("response_format")
    if not isinstance(response_format, Mapping):
        return
    kind = response_format.get("type")
    if kind == "json_schema" and response_format.get("json_schema") is None:
        raise Violation(
            "When response_format type is 'json_schema', the 'json_schema' field must be provided.",
            param="response_format",
        )
    if kind == "structural_tag" and not _is_structural_tag(response_format):
        raise Violation("Invalid response_format structural_tag specification.", param="response_format")


def _is_structural_tag(specification: Mapping[str, Any]) -> bool:
    """Whether the outline is right; its inside means something to the engine alone."""
    inner = specification.get("format")
    if isinstance(inner, Mapping):
        return isinstance(inner.get("type"), str)
    lists = specification.get("structures"), specification.get("triggers")
    return all(isinstance(each, list) and each for each in lists)


def _check_cache_salt(request: Request) -> None:
    salt = request.get("cache_salt")
    if salt is None:
        return
    if not isinstance(salt, str) or not salt:
        raise Violation("Parameter 'cache_salt' must be a non-empty string if provided.", param="cache_salt")
    if len(salt) > SALT_LIMIT or not SALT_FORBIDDEN.isdisjoint(salt):
        raise Violation(
            "Parameter 'cache_salt' must be at most 128 characters and must not contain '@', '/', '\\\\', or NUL.",
            param="cache_salt",
        )


def _check_prompt(request: Request, max_prompts: int) -> None:
    prompt = request.get("prompt")
    if (prompt is None or prompt == "") and not request.get("prompt_embeds"):
        raise Violation("Either prompt or prompt_embeds must be provided and non-empty.", param="prompt")
    if isinstance(prompt, list) and len(prompt) > max_prompts and not isinstance(prompt[0], int):
        raise Violation(
            f"prompt list length {len(prompt)} exceeds the maximum allowed count of {max_prompts}. "
            "To increase this limit, set the VLLM_MAX_COMPLETION_PROMPTS environment variable.",
            param="prompt",
        )
