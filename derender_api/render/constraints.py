"""What the engine's output is held to: `structured_outputs` of the sampling parameters (protocol 10.1).

It comes from `structured_outputs`, `response_format` or the tools. Most formats have a grammar of their calls; some
expect plain JSON of forced calls, some are never held to anything, as in vLLM.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from derender_api.exceptions import RequestRuleViolation
from derender_api.loaded_model import LoadedModel
from derender_api.protocol.openai_request import GenerationRequest
from derender_api.protocol.render import ChatRenderRequest
from derender_api.protocol.rules import OUTPUT_OPTIONS, check_constraint_count
from derender_api.render.call_formats import call_grammar
from derender_api.render.families import is_harmony
from derender_api.render.grammars.base import CallGrammar, CallTool, guards_calls
from derender_api.render.grammars.harmony import answer_constraint
from derender_api.render.json_calls import calls_schema, mistral_calls_schema, single_call_schema
from derender_api.render.structural_tags import Node, const, either, regex, schema, structural_tag
from parsers.engine.context import NamedToolChoice, RequestContext

Json = dict[str, Any]

UNCONSTRAINED = "tool_choice: calls of {parser} have no grammar here, so the engine is not held to make one"

TEMPLATE_PARSER = "hf"
MISTRAL = "mistral"
NATIVE_CALLS = 11
"""Version of Mistral's format from which on calls are not JSON."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """`structured_outputs`, None for free output, and what could not be expressed."""

    structured_outputs: Json | None
    warnings: tuple[str, ...] = ()


def completion_constraint(request: GenerationRequest) -> Constraint:
    """The constraint that a completion request names."""
    return Constraint(_complete(_named_by_request(request)))


def chat_constraint(
    request: ChatRenderRequest, model: LoadedModel, *, tools: Sequence[Json], context: RequestContext
) -> Constraint:
    """The constraint that a chat request names, or that its tools ask for.

    Raises RequestRuleViolation where the model's format could not keep what is demanded.
    """
    named = _named_by_request(request)
    parser = model.configuration.active_tool_parser
    calls = [_call_tool(tool["function"]) for tool in tools]
    if not parser or not calls or context.tool_choice in ("none", None):
        return Constraint(_answer(named, model))
    if parser == TEMPLATE_PARSER:
        _refuse_guarantees(calls, context)
    grammar = call_grammar(parser, model)
    if grammar is not None:
        return Constraint(_with_calls(grammar, calls, named, model, context))
    if not context.forces_call:
        return Constraint(_answer(named, model))
    if _writes_json(model):
        return Constraint(_complete({"json": _json_calls(tools, context)}))
    if parser == MISTRAL and not _writes_natively(model) and request.structured_outputs is None:
        return Constraint(_complete({"json": _mistral_calls(tools, context)}))
    return Constraint(_answer(named, model), (UNCONSTRAINED.format(parser=parser),))


def _call_tool(function: Mapping[str, Any]) -> CallTool:
    return CallTool(name=function["name"], parameters=function["parameters"], strict=function.get("strict") is True)


def _named_by_request(request: GenerationRequest) -> Json:
    """The options that the request names itself, {} for none. Raises RequestRuleViolation for an empty constraint."""
    given = {key: value for key, value in (request.structured_outputs or {}).items() if key in OUTPUT_OPTIONS}
    if request.response_format is not None:
        given |= _of_response_format(request.response_format.model_dump(by_alias=True, exclude_unset=True))
    if given:
        check_constraint_count(given)
    return given


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


def _complete(given: Json) -> Json | None:
    """All options in order, those of `given` set; None where there are none."""
    return {**OUTPUT_OPTIONS, **given} if given else None


def _answer(named: Json, model: LoadedModel) -> Json | None:
    """The request's own constraint, put into the answer's channel where the model has channels."""
    if named and is_harmony(model):
        return _complete({"structural_tag": structural_tag(answer_constraint(named, _node(named)))})
    return _complete(named)


def _with_calls(
    grammar: CallGrammar, tools: Sequence[CallTool], named: Json, model: LoadedModel, context: RequestContext
) -> Json | None:
    """The grammar's constraint; beside it the request's own, where the model may choose."""
    single = context.parallel_tool_calls is False
    choice = context.tool_choice
    if isinstance(choice, NamedToolChoice):
        node: Node | None = grammar.named(next(tool for tool in tools if tool.name == choice.name))
    elif choice == "required":
        node = grammar.forced(tools, single=single)
    else:
        node = _guarded(grammar, tools, named, model, single=single)
    return _answer(named, model) if node is None else _complete({"structural_tag": structural_tag(node)})


def _guarded(
    grammar: CallGrammar, tools: Sequence[CallTool], named: Json, model: LoadedModel, *, single: bool
) -> Node | None:
    if not named:
        return grammar.guarded(tools, single=single)
    if grammar.guarded(tools, single=single) is None and not guards_calls(tools, single=single):
        return None
    answer = _node(named)
    return either(
        [grammar.forced(tools, single=single), answer_constraint(named, answer) if is_harmony(model) else answer]
    )


def _node(named: Json) -> Node:
    """The request's constraint as part of a structural tag."""
    if named.get("json") is not None:
        value = named["json"]
        return schema(json.loads(value) if isinstance(value, str) else value)
    if named.get("json_object"):
        return schema({"type": "object"})
    if named.get("regex") is not None:
        return regex(named["regex"])
    if named.get("choice") is not None:
        return either(map(const, named["choice"]))
    if named.get("grammar") is not None:
        return {"type": "grammar", "grammar": named["grammar"]}
    return _inner_tag(named["structural_tag"])


def _inner_tag(text: str) -> Node:
    content = json.loads(text)
    return content.get("format", content)


def _writes_json(model: LoadedModel) -> bool:
    """Whether forced calls are plain JSON instead of the format's own."""
    return model.plan is not None and model.plan.tools is not None and model.plan.tools.guided_choice


def _writes_natively(model: LoadedModel) -> bool:
    """Whether a Mistral model names its calls in tokens of their own instead of JSON."""
    encoder = model.tokenizer.chat_encoder
    return encoder is not None and encoder.version >= NATIVE_CALLS


def _json_calls(tools: Sequence[Json], context: RequestContext) -> Json:
    if isinstance(context.tool_choice, NamedToolChoice):
        return single_call_schema(context.tool_choice.name, tools)
    return calls_schema(tools, single=context.parallel_tool_calls is False)


def _mistral_calls(tools: Sequence[Json], context: RequestContext) -> Json:
    choice = context.tool_choice
    if isinstance(choice, NamedToolChoice):
        return mistral_calls_schema([each for each in tools if each["function"]["name"] == choice.name], single=True)
    return mistral_calls_schema(tools, single=False)


def _refuse_guarantees(tools: Sequence[CallTool], context: RequestContext) -> None:
    """Response templates describe how to read calls, not how to write them."""
    choice = context.tool_choice
    if any(tool.strict for tool in tools):
        demand, param = "strict tools", "tools"
    elif context.forces_call:
        demand = f"{'required' if choice == 'required' else 'named'} tool choice"
        param = "tool_choice"
    else:
        return
    raise RequestRuleViolation(
        f"response_template parsing cannot guarantee {demand} without a format-compatible structural grammar",
        param=param,
    )
