"""What the playground's form holds at first: an output in the wire format of the model's parsers, and tools for it."""

from collections.abc import Mapping
from typing import Any

from derender_api.loaded_model import LoadedModel
from derender_api.parity.suite import Profile
from parsers.catalogue import entries

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
HERMES = """<tool_call>
{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}
</tool_call>"""


def example(model: LoadedModel) -> dict[str, Any]:
    """Initial values for a served model. The end-of-sequence token closes the output, as an engine sends it."""
    configuration = model.configuration
    text = ""
    if configuration.reasoning_parser:
        text += _sample("reasoning", configuration.reasoning_parser) or ""
    if configuration.active_tool_parser in ("hermes", "longcat"):
        text = f"<think>\nThe user wants the weather.\n</think>\n\nI will look it up.\n{HERMES}"
    elif configuration.active_tool_parser:
        text = _sample("tool calls", configuration.active_tool_parser) or text
    end = model.tokenizer.eos_id if model.failure is None and model.is_loaded else None
    text = text or "Hello, world!"
    return {"model": model.names[0], "output": text + (model.tokenizer.piece(end) if end is not None else "")}


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


def _sample(role: str, name: str) -> str | None:
    found = next((entry for entry in entries() if role in entry.roles and name in entry.names), None)
    return found.sample if found else None
