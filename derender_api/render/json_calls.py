"""JSON schemas of calls, for formats whose forced calls are plain JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]

NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}


def single_call_schema(name: str, tools: Sequence[Json]) -> Json:
    """The arguments of the function `name`."""
    function = next(tool["function"] for tool in tools if tool["function"]["name"] == name)
    return function["parameters"] or dict(NO_PARAMETERS)


def calls_schema(tools: Sequence[Json], *, single: bool) -> Json:
    """A list of calls as `{"name", "parameters"}`. Definitions move to the top, where references look for them."""
    definitions: Json = {}
    items = []
    for tool in tools:
        parameters = dict(tool["function"]["parameters"] or NO_PARAMETERS)
        definitions |= parameters.pop("$defs", {})
        name = {"type": "string", "enum": [tool["function"]["name"]]}
        items.append({"properties": {"name": name, "parameters": parameters}, "required": ["name", "parameters"]})
    schema: Json = {"type": "array", "minItems": 1, "items": {"type": "object", "anyOf": items}}
    if definitions:
        schema["$defs"] = definitions
    return {**schema, "maxItems": 1} if single else schema


def mistral_calls_schema(tools: Sequence[Json], *, single: bool) -> Json:
    """A list of calls as `{"name", "arguments"}`."""
    items = [
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "enum": [tool["function"]["name"]]},
                "arguments": tool["function"]["parameters"] or {"type": "object"},
            },
            "required": ["name", "arguments"],
        }
        for tool in tools
    ]
    limits = {"minItems": 1, "maxItems": 1} if single else {"minItems": 1}
    return {"type": "array", **limits, "items": {"type": "object", "anyOf": items}}
