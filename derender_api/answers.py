"""The answers' JSON objects: every key, in vLLM's order, null or absent as there (protocol 7)."""

import json
import time
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import orjson

from derender_api.exceptions import BadRequest
from derender_api.logprobs import NonFiniteNumber
from derender_api.protocol.common import PerRequestMetrics, UsageInfo
from derender_api.protocol.generate import PromptLogprob
from parsers.engine.assembly import Call, CallDelta, Delta, Message
from parsers.engine.events import Citation

Json = dict[str, Any]


def encoded(answer: Json) -> bytes:
    """The body of an answer: compact UTF-8. Raises BadRequest for what JSON or UTF-8 cannot hold."""
    try:
        return orjson.dumps(answer)
    except orjson.JSONEncodeError:
        return _encoded_by_json(answer)


def _encoded_by_json(answer: Json) -> bytes:
    """For integers beyond 64 bits and deep nesting, which JSON may hold, and lone surrogates, which UTF-8 may not."""
    try:
        return json.dumps(answer, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except RecursionError:
        raise BadRequest("the answer would be too deeply nested") from None
    except ValueError as error:
        raise BadRequest(str(error)) from error


def echoed(value: Any) -> Any:
    """`value` as it was given; raises NonFiniteNumber if a NaN or an infinity is anywhere in it."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, float) and not isfinite(each):
            raise NonFiniteNumber
        if isinstance(each, Mapping):
            pending.extend(each.values())
        elif isinstance(each, list):
            pending.extend(each)
    return value


def echoed_metrics(metrics: PerRequestMetrics | None) -> Json | None:
    """The engine's metrics: the known keys, then the others."""
    return None if metrics is None else echoed(metrics.model_dump())


def echoed_prompt_logprobs(logprobs: Sequence[Mapping[int, PromptLogprob] | None] | None) -> list[Json | None] | None:
    """Log probabilities of the prompt, token IDs as strings."""
    if logprobs is None:
        return None
    return echoed(
        [
            position
            and {
                str(token_id): {"logprob": each.logprob, "rank": each.rank, "decoded_token": each.decoded_token}
                for token_id, each in position.items()
            }
            for position in logprobs
        ]
    )


def usage(*, prompt_tokens: int, completion_tokens: int) -> Json:
    """Token counts."""
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
        "prompt_tokens_details": None,
        "completion_tokens_details": None,
    }


def chunk_usage(given: UsageInfo | None, *, prompt_tokens: int | None) -> Json | None:
    """Usage of a chunk, null unless the engine's chunk has one; the request's `prompt_tokens` wins."""
    if given is None:
        return None
    prompt = given.prompt_tokens if prompt_tokens is None else prompt_tokens
    return usage(prompt_tokens=prompt, completion_tokens=given.completion_tokens or 0)


def chat_completion(
    *,
    request_id: str,
    model: str,
    choices: list[Json],
    usage: Json,
    prompt_logprobs: list[Json | None] | None,
    prompt_token_ids: Sequence[int] | None,
    kv_transfer_params: Json | None,
    metrics: Json | None,
) -> Json:
    """A chat completion (protocol 7.1)."""
    return {
        "id": request_id,
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": choices,
        "service_tier": None,
        "system_fingerprint": None,
        "usage": usage,
        "prompt_logprobs": prompt_logprobs,
        "prompt_token_ids": prompt_token_ids,
        "prompt_text": None,
        "kv_transfer_params": kv_transfer_params,
        "ec_transfer_params": None,
        "metrics": metrics,
    }


def chat_choice(
    *,
    index: int,
    message: Message,
    logprobs: Json | None,
    finish_reason: str,
    stop_reason: int | str | None,
    token_ids: Sequence[int] | None,
) -> Json:
    """One choice of a chat completion."""
    return {
        "index": index,
        "message": chat_message(message),
        "logprobs": logprobs,
        "finish_reason": finish_reason,
        "stop_reason": stop_reason,
        "token_ids": token_ids,
        "routed_experts": None,
        "weight_versions": None,
    }


def chat_message(message: Message) -> Json:
    """The assistant's message; `tool_calls` is absent where there are none."""
    answer: Json = {
        "role": "assistant",
        "content": message.content,
        "refusal": None,
        "annotations": None,
        "audio": None,
        "function_call": None,
    }
    if message.calls:
        answer["tool_calls"] = [_tool_call(call) for call in message.calls]
    answer["reasoning"] = message.reasoning
    return answer


def _tool_call(call: Call) -> Json:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def chat_chunk(
    *,
    request_id: str,
    model: str,
    choices: list[Json],
    usage: Json | None,
    prompt_token_ids: Sequence[int] | None,
    metrics: Json | None,
) -> Json:
    """A chunk of a chat completion (protocol 7.2)."""
    return {
        "id": request_id,
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": model,
        "choices": choices,
        "usage": usage,
        "system_fingerprint": None,
        "prompt_token_ids": prompt_token_ids,
        "prompt_text": None,
        "metrics": metrics,
        "kv_transfer_params": None,
    }


def chat_chunk_choice(
    *,
    index: int,
    delta: Json,
    logprobs: Json | None,
    finish_reason: str | None,
    stop_reason: int | str | None,
    token_ids: Sequence[int] | None,
) -> Json:
    """The choice of a chat chunk."""
    return {
        "index": index,
        "delta": delta,
        "logprobs": logprobs,
        "finish_reason": finish_reason,
        "stop_reason": stop_reason,
        "token_ids": token_ids,
        "weight_versions": None,
    }


def chat_delta(delta: Delta, *, is_first: bool) -> Json:
    """What a chunk adds; the first one names the role. `tool_calls` and `citations` are absent where there are none."""
    answer: Json = {
        "role": "assistant" if is_first else None,
        "content": delta.content,
        "reasoning": delta.reasoning,
    }
    if delta.calls:
        answer["tool_calls"] = [_tool_call_delta(call) for call in delta.calls]
    if delta.citations:
        answer["citations"] = [_citation(citation) for citation in delta.citations]
    return answer


def _tool_call_delta(call: CallDelta) -> Json:
    return {
        "id": call.id,
        "type": call.type,
        "index": call.index,
        "function": {"name": call.name, "arguments": call.arguments},
    }


def _citation(citation: Citation) -> Json:
    return {
        "start": citation.start,
        "end": citation.end,
        "text": citation.text,
        "sources": [],
        "content_index": None,
        "type": citation.type,
    }


def completion(
    *,
    request_id: str,
    model: str,
    choices: list[Json],
    usage: Json,
    kv_transfer_params: Json | None,
    metrics: Json | None,
) -> Json:
    """A text completion (protocol 7.3)."""
    return {
        "id": request_id,
        "object": "text_completion",
        "created": int(time.time()),
        "model": model,
        "choices": choices,
        "service_tier": None,
        "system_fingerprint": None,
        "usage": usage,
        "kv_transfer_params": kv_transfer_params,
        "ec_transfer_params": None,
        "metrics": metrics,
    }


def completion_choice(
    *,
    index: int,
    text: str,
    logprobs: Json | None,
    finish_reason: str | None,
    stop_reason: int | str | None,
    token_ids: Sequence[int] | None,
    prompt_token_ids: Sequence[int] | None,
) -> Json:
    """One choice of a text completion."""
    return {
        "index": index,
        "text": text,
        "logprobs": logprobs,
        "finish_reason": finish_reason,
        "stop_reason": stop_reason,
        "token_ids": token_ids,
        "prompt_logprobs": None,
        "prompt_token_ids": prompt_token_ids,
        "routed_experts": None,
        "weight_versions": None,
    }


def completion_chunk(
    *, request_id: str, model: str, choices: list[Json], usage: Json | None, metrics: Json | None
) -> Json:
    """A chunk of a text completion (protocol 7.4)."""
    return {
        "id": request_id,
        "object": "text_completion",
        "created": int(time.time()),
        "model": model,
        "choices": choices,
        "usage": usage,
        "system_fingerprint": None,
        "metrics": metrics,
        "kv_transfer_params": None,
    }


def completion_chunk_choice(
    *,
    index: int,
    text: str,
    logprobs: Json | None,
    finish_reason: str | None,
    stop_reason: int | str | None,
    prompt_token_ids: Sequence[int] | None,
    token_ids: Sequence[int] | None,
) -> Json:
    """The choice of a text completion chunk."""
    return {
        "index": index,
        "text": text,
        "logprobs": logprobs,
        "finish_reason": finish_reason,
        "stop_reason": stop_reason,
        "prompt_token_ids": prompt_token_ids,
        "token_ids": token_ids,
        "weight_versions": None,
    }
