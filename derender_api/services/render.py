"""Requests to engine requests: the prompt's token IDs, sampling parameters, and what a later derender call needs.

Plain functions without HTTP. They work for a few milliseconds and may wait for a sandbox process; from a coroutine
they are called in a thread.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from derender_api.exceptions import BadRequest
from derender_api.loaded_model import LoadedModel
from derender_api.parsing import request_context, template_kwargs
from derender_api.protocol.openai_request import GenerationRequest, NamedTool
from derender_api.protocol.render import ChatRenderRequest, CompletionRenderRequest
from derender_api.render.chat_prompt import chat_prompt
from derender_api.render.completion_prompts import completion_prompts
from derender_api.render.constraints import chat_constraint, completion_constraint
from derender_api.render.families import is_harmony
from derender_api.render.prompt import Prompt
from derender_api.render.reasoning import keeps_special_tokens, reasoning_ended, reasoning_kwargs, wants_exact_text
from derender_api.render.sampling import COMPLETION_TOKENS, chat_sampling, check_max_tokens, completion_sampling
from derender_api.render.tools import tool_objects
from derender_api.services.common import Json

MM_KWARGS = (
    "Per-request mm_processor_kwargs are not supported: only text can be rendered. (parameter=mm_processor_kwargs)"
)
NO_BEAM_SEARCH = "Beam search is not supported by the render endpoint"

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Rendering(Generic[Answer]):
    """A rendered request. `warnings` say what of the request the engine request does not hold the engine to."""

    answer: Answer
    warnings: tuple[str, ...] = ()


def render_chat(request: ChatRenderRequest, model: LoadedModel, *, request_id: str | None = None) -> Rendering[Json]:
    """A chat request to one engine request. `request_id` goes before the request's own.

    Raises ApiError.
    """
    _check_chat(request, model)
    kwargs = template_kwargs(request, model)
    tools = tool_objects(request.tools)
    prompt = chat_prompt(request, model, tools=tools, kwargs=kwargs)
    context = request_context(request, model, call_id_seed=b"")
    constraint = chat_constraint(request, model, tools=tools or [], context=context)
    sampling = chat_sampling(
        request,
        model,
        prompt_tokens=len(prompt.token_ids),
        structured_outputs=constraint.structured_outputs,
        keeps_special=keeps_special_tokens(request, model),
        exact_text=wants_exact_text(model),
    )
    answer = _generate_request(
        request,
        prompt,
        request_id=f"chatcmpl-{_identity(request, request_id)}",
        sampling=sampling,
        reasoning_ended=reasoning_ended(model, context, prompt.token_ids),
        reasoning_parser_kwargs=reasoning_kwargs(model, kwargs),
        parse_context=_parse_context(request, tools, {} if is_harmony(model) else kwargs, context.history_tool_calls),
    )
    return Rendering(answer, constraint.warnings)


def render_completion(
    request: CompletionRenderRequest, model: LoadedModel, *, request_id: str | None = None
) -> Rendering[list[Json]]:
    """A completion request to one engine request per prompt, in order.

    Raises ApiError.
    """
    if request.use_beam_search:
        raise BadRequest(NO_BEAM_SEARCH)
    check_max_tokens(COMPLETION_TOKENS if request.max_tokens is None else request.max_tokens, model)
    prompts = completion_prompts(request, model)
    constraint = completion_constraint(request)
    identity = f"cmpl-{_identity(request, request_id)}"
    answers = [
        _generate_request(
            request,
            prompt,
            request_id=identity if len(prompts) == 1 else f"{identity}-{number}",
            sampling=completion_sampling(
                request,
                model,
                prompt_tokens=len(prompt.token_ids),
                structured_outputs=constraint.structured_outputs,
            ),
        )
        for number, prompt in enumerate(prompts)
    ]
    return Rendering(answers, constraint.warnings)


def _check_chat(request: ChatRenderRequest, model: LoadedModel) -> None:
    if request.use_beam_search:
        raise BadRequest(NO_BEAM_SEARCH)
    if request.mm_processor_kwargs:
        raise BadRequest(MM_KWARGS, param="mm_processor_kwargs")
    _check_tool_choice(request, model)
    limit = request.max_completion_tokens if request.max_completion_tokens is not None else request.max_tokens
    check_max_tokens(limit, model)


def _check_tool_choice(request: ChatRenderRequest, model: LoadedModel) -> None:
    """What a choice needs of the server's flags."""
    choice = request.tool_choice
    if model.configuration.active_tool_parser or is_harmony(model) or model.tokenizer.chat_encoder:
        return
    if choice == "auto":
        raise BadRequest('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set')
    if choice == "required":
        raise BadRequest('tool_choice="required" requires --tool-call-parser to be set')
    if isinstance(choice, NamedTool):
        raise BadRequest(f'tool_choice=function "{choice.function.name}" requires --tool-call-parser to be set')


def _identity(request: GenerationRequest, request_id: str | None) -> str:
    return request_id if request_id is not None else request.request_id or secrets.token_hex(8)


def _parse_context(
    request: ChatRenderRequest, tools: list[Json] | None, kwargs: Mapping[str, Any], history_tool_calls: int
) -> Json:
    choice = request.tool_choice
    return {
        "tools": tools,
        "tool_choice": {"function": {"name": choice.function.name}, "type": "function"}
        if isinstance(choice, NamedTool)
        else choice,
        "parallel_tool_calls": request.parallel_tool_calls,
        "include_reasoning": request.include_reasoning,
        "chat_template_kwargs": dict(kwargs),
        "history_tool_call_cnt": history_tool_calls,
    }


def _generate_request(
    request: ChatRenderRequest | CompletionRenderRequest,
    prompt: Prompt,
    *,
    request_id: str,
    sampling: Json,
    reasoning_ended: bool | None = None,
    reasoning_parser_kwargs: Json | None = None,
    parse_context: Json | None = None,
) -> Json:
    """The engine request, every key in vLLM's order (protocol 10.1)."""
    transfer = request.kv_transfer_params or {}
    if isinstance(request, ChatRenderRequest):
        transfer = {key: value for key, value in transfer.items() if key != "prompt_token_ids"}
    return {
        "request_id": request_id,
        "token_ids": prompt.token_ids,
        "token_offsets": prompt.offsets if request.return_token_offsets else None,
        "features": None,
        "content_parts": None,
        "sampling_params": sampling,
        "model": request.model,
        "reasoning_ended": reasoning_ended,
        "reasoning_parser_kwargs": reasoning_parser_kwargs,
        "return_token_ids": request.return_token_ids,
        "output_mode": "tokens",
        "parse_context": parse_context,
        "stream": bool(request.stream),
        "stream_options": _stream_options(request),
        "cache_salt": request.cache_salt,
        "priority": request.priority,
        "kv_transfer_params": transfer or None,
        "ec_transfer_params": request.ec_transfer_params,
    }


def _stream_options(request: GenerationRequest) -> Json | None:
    if not request.stream or request.stream_options is None:
        return None
    sent = request.stream_options.model_dump(include={"include_usage", "continuous_usage_stats"}, exclude_unset=True)
    return {"include_usage": False, "continuous_usage_stats": False, **sent}
