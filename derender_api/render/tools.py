"""Tools of a request as chat templates and parse contexts get them."""

from collections.abc import Mapping, Sequence
from typing import Any

from derender_api.protocol.openai_request import Tool

ALWAYS = ("name", "description", "parameters")
SOMETIMES = ("strict", "defer_loading")


def tool_objects(tools: Sequence[Tool] | None) -> list[dict[str, Any]] | None:
    """The tools with the fields that vLLM knows: null where they are absent, the rarer ones left out then."""
    if tools is None:
        return None
    return [{"type": "function", "function": _function(tool.function.model_dump())} for tool in tools]


def _function(given: Mapping[str, Any]) -> dict[str, Any]:
    return {key: given.get(key) for key in ALWAYS} | {
        key: given[key] for key in SOMETIMES if given.get(key) is not None
    }
