"""What the playground's form holds at first: an output in the wire format of the model's parsers, and tools for it."""

from collections.abc import Mapping
from typing import Any

from derender_api.loaded_model import LoadedModel
from derender_api.parity.suite import Profile
from parsers.catalogue import entries
from parsers.configuration import ModelConfigurationError

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather in a city.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city"],
            },
        },
    }
]
THOUGHTS = "<think>\nThe user wants the weather.\n</think>\n\n"
HERMES = """I will look it up.
<tool_call>
{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}
</tool_call>"""


def example(model: LoadedModel) -> dict[str, Any]:
    """Initial values for a served model. The end-of-sequence token closes the output, as an engine sends it."""
    tools, reasoning = model.configuration.active_tool_parser, model.configuration.reasoning_parser
    thoughts = THOUGHTS if reasoning == "qwen3" else _sample("reasoning", reasoning)
    calls = HERMES if tools == "hermes" else _sample("tool calls", tools)
    # A sample of a format that does both jobs shows both.
    text = calls if calls and thoughts in (calls, "") else thoughts + calls
    return {"model": model.names[0], "output": (text or "Hello, world!") + _end(model)}


def _end(model: LoadedModel) -> str:
    try:
        end = model.tokenizer.eos_id
    except ModelConfigurationError:
        return ""
    return "" if end is None else model.tokenizer.piece(end)


def of_case(case: Mapping[str, Any], profile: Mapping[str, Any], *, folder: str) -> dict[str, Any]:
    """Initial values for a recorded case and its profile; `folder` is where its tokenizer is."""
    request = {key: value for key, value in case["request"].items() if key not in ("model", "stream")}
    choice = request.pop("tool_choice", "")
    known = Profile(**profile)
    values = {
        "model": "",
        "tokenizer": folder,
        "tool_parser": known.tool_parser or "",
        "reasoning_parser": known.reasoning_parser or "",
        "kind": "ids",
        "output": ", ".join(map(str, case["output_token_ids"])),
        "finish_reason": case.get("finish_reason") or "",
        "tools": request.pop("tools", None),
        "kwargs": {**(known.default_chat_template_kwargs or {}), **request.pop("chat_template_kwargs", {})} or None,
        "tool_choice": choice["function"]["name"] if isinstance(choice, dict) else choice or "",
        "more": request or None,
        "prompt_ids": ", ".join(map(str, case["prompt_token_ids"])),
    }
    return {key: value for key, value in values.items() if value is not None}


def _sample(role: str, name: str | None) -> str:
    """The wire text in the description of a format, "" where it has none."""
    found = next((entry for entry in entries() if role in entry.roles and name in entry.names), None)
    return found.sample if found else ""
