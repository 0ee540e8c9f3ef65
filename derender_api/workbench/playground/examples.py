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
ANSWERS = ("Let me look.", "I will check.", "Hello!")
"""The answers in the samples of the formats: thoughts stand before them, calls behind."""


def example(model: LoadedModel) -> dict[str, Any]:
    """Initial values for a served model. The end-of-sequence token closes the output, as an engine sends it."""
    configuration = model.configuration
    thoughts = _sample("reasoning", configuration.reasoning_parser)
    calls = _sample("tool calls", configuration.active_tool_parser)
    if thoughts and calls and thoughts != calls:
        thoughts, calls = _parted(thoughts)[0], _parted(calls)[1]
    elif calls:
        thoughts = ""
    return {"model": model.names[0], "output": (thoughts + calls or "Hello, world!") + _end(model)}


def _parted(sample: str) -> tuple[str, str]:
    """A sample's thoughts, and the rest of it. Without an answer all of it is both."""
    place = next((sample.index(answer) for answer in ANSWERS if answer in sample), None)
    return (sample, sample) if place is None else (sample[:place], sample[place:])


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
