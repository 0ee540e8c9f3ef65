"""What the engine's output is held to: `structured_outputs` of the sampling parameters (protocol 10.1).

They come from `structured_outputs`, `response_format`, or a tool choice that forces a call.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from derender_api.loaded_model import LoadedModel
from derender_api.protocol.openai_request import GenerationRequest
from derender_api.protocol.render import ChatRenderRequest
from derender_api.protocol.rules import OUTPUT_OPTIONS, check_constraint_count
from parsers.engine.context import NamedToolChoice, RequestContext

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Constraint:
    """`structured_outputs`, None for free output, and what could not be expressed."""

    structured_outputs: Json | None
    warnings: tuple[str, ...] = ()


def completion_constraint(request: GenerationRequest) -> Constraint:
    """The constraint that a completion request names."""
    return Constraint(_named_by_request(request))


def chat_constraint(
    request: ChatRenderRequest, model: LoadedModel, *, tools: Sequence[Json], context: RequestContext
) -> Constraint:
    """The constraint that a chat request names, or that its tool choice asks for."""
    named = _named_by_request(request)
    if not model.configuration.active_tool_parser or not context.forces_call:
        return Constraint(named)
    if isinstance(context.tool_choice, NamedToolChoice):
        return Constraint(_outputs(json=_parameters(context.tool_choice.name, tools)))
    return Constraint(_outputs(json=_calls_schema(tools, single=not context.parallel_tool_calls)))


def _named_by_request(request: GenerationRequest) -> Json | None:
    given = {key: value for key, value in (request.structured_outputs or {}).items() if key in OUTPUT_OPTIONS}
    if request.response_format is not None:
        given |= _of_response_format(request.response_format.model_dump(by_alias=True, exclude_unset=True))
    if not given:
        return None
    check_constraint_count(given)
    return _outputs(**given)


def _of_response_format(response_format: Json) -> Json:
    match response_format["type"]:
        case "json_object":
            return {"json_object": True}
        case "json_schema":
            return {"json": (response_format.get("json_schema") or {}).get("schema")}
        case "structural_tag":
            return {"structural_tag": json.dumps(response_format)}
        case _:
            return {}


def _outputs(**given: Any) -> Json:
    """All options of `structured_outputs` in order, those of `given` set."""
    return {**OUTPUT_OPTIONS, **given}


def _parameters(name: str, tools: Sequence[Json]) -> Json:
    function = next(tool["function"] for tool in tools if tool["function"]["name"] == name)
    return function["parameters"] or {"type": "object", "properties": {}}


def _calls_schema(tools: Sequence[Json], *, single: bool) -> Json:
    """A list of calls as JSON, for formats whose forced calls are plain JSON."""
    items = [
        {
            "properties": {
                "name": {"type": "string", "enum": [tool["function"]["name"]]},
                "parameters": tool["function"]["parameters"] or {"type": "object", "properties": {}},
            },
            "required": ["name", "parameters"],
        }
        for tool in tools
    ]
    schema: Json = {"type": "array", "minItems": 1, "items": {"type": "object", "anyOf": items}}
    return {**schema, "maxItems": 1} if single else schema
