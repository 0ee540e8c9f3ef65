"""Engine responses to text completions, whole and chunk by chunk. Each of the two reads top to bottom."""

from collections.abc import Iterator, Sequence

from derender_api import answers, limits
from derender_api.catalog import catalog
from derender_api.exceptions import BadRequest
from derender_api.loaded_model import LoadedModel
from derender_api.logprobs import LogprobResolver, completion_limit, next_context
from derender_api.metrics import count_stream_call, count_tokens
from derender_api.output_text import codec_of, decoded_chunk, decoded_output, ending_of
from derender_api.protocol.derender import (
    CompletionStreamRequest,
    DerenderCompletionBulkRequest,
    DerenderCompletionRequest,
    DerenderCompletionStreamRequest,
)
from derender_api.protocol.generate import (
    GenerateTokensResponse,
    GenerateTokensStreamChoice,
    GenerateTokensStreamResponse,
)
from derender_api.protocol.openai_request import CompletionRequest
from derender_api.services.common import Json, form_of, scope_of, stopped
from derender_api.stream_state import Carried

# --- one-shot ---------------------------------------------------------------------------------------------------------


def derender_completion(request: DerenderCompletionRequest) -> Json:
    """Complete engine responses, one per prompt, to one text completion."""
    model = catalog.resolve(request.model or None)
    responses, completion_request = request.generate_responses, request.completion_request
    limits.check_response_count(responses)
    for response in responses:
        limits.check_response(response, model)
    for prompt in request.prompt_token_ids or ():
        limits.check_prompt(prompt, model)
    given = request.prompt_token_ids or [None] * len(responses)
    choices = [
        choice
        for response, prompt in zip(responses, given, strict=True)
        for choice in _completion_choices(response, completion_request, model, prompt=prompt)
    ]
    for number, choice in enumerate(choices):
        choice["index"] = number
    counts = request.prompt_tokens or [len(prompt or ()) for prompt in given]
    generated = sum(len(choice.token_ids or ()) for each in responses for choice in each.choices)
    count_tokens(model.names[0], prompt=sum(counts), generated=generated)
    transfers = [response.kv_transfer_params for response in responses]
    return answers.completion(
        request_id=responses[0].request_id,
        model=request.model or model.names[0],
        choices=choices,
        usage=answers.usage(prompt_tokens=sum(request.prompt_tokens or ()), completion_tokens=generated),
        kv_transfer_params=answers.echoed(transfers[0]) if all(each == transfers[0] for each in transfers) else None,
        metrics=answers.echoed_metrics(responses[0].metrics) if len(responses) == 1 else None,
    )


def _completion_choices(
    response: GenerateTokensResponse,
    request: CompletionRequest | None,
    model: LoadedModel,
    *,
    prompt: Sequence[int] | None,
) -> Iterator[Json]:
    seed = response.prompt_token_ids if prompt is None else prompt
    returns_ids = request is not None and request.return_token_ids
    for choice in response.choices:
        token_ids = choice.token_ids
        if not token_ids:
            raise BadRequest(f"choice {choice.index} in response {response.request_id} has empty or null token_ids")
        texts, stop_reason = decoded_output(
            choice, token_ids, request, model, codec_of(model, request), seed=seed, keeps_special=False
        )
        yield answers.completion_choice(
            index=choice.index,
            text="".join(texts),
            logprobs=LogprobResolver(model.tokenizer, limit=completion_limit(request)).completion(choice.logprobs),
            finish_reason=choice.finish_reason,
            stop_reason=stop_reason,
            token_ids=token_ids if returns_ids else None,
            prompt_token_ids=response.prompt_token_ids if returns_ids else None,
        )


# --- streaming --------------------------------------------------------------------------------------------------------


def derender_completion_chunk(request: DerenderCompletionStreamRequest) -> Json:
    """One chunk of the engine's stream to a text completion chunk and the state for the next call."""
    chunks, state = _completion_chunks(request, [request.generate_chunk])
    return {"chunk": chunks[0], "stream_state": state}


def derender_completion_chunks(request: DerenderCompletionBulkRequest) -> Json:
    """Several chunks of one stream: what a call for each would give."""
    chunks, state = _completion_chunks(request, request.generate_chunks)
    return {"chunks": chunks, "stream_state": state}


def _completion_chunks(
    request: CompletionStreamRequest, chunks: Sequence[GenerateTokensStreamResponse]
) -> tuple[list[Json], Json]:
    model = catalog.resolve(request.model or None)
    limits.check_prompt(request.prompt_token_ids, model)
    scope = scope_of("completion", model)
    carried = Carried.of(request.stream_state, form=form_of(request, model), scope=scope)
    count_stream_call("completion", chunks=len(chunks))
    if carried.is_new:
        count_tokens(model.names[0], prompt=request.prompt_tokens or len(request.prompt_token_ids or ()), generated=0)
    return [completion_chunk(chunk, request, model, carried) for chunk in chunks], carried.answer(scope=scope)


def completion_chunk(
    chunk: GenerateTokensStreamResponse, request: CompletionStreamRequest, model: LoadedModel, carried: Carried
) -> Json:
    """The text completion chunk for one chunk of the engine's stream; moves `carried` on. Raises ApiError."""
    if len(chunk.choices) > 1:
        raise BadRequest("derender_completion_stream expects at most one choice per chunk")
    choices = [_completion_chunk_choice(choice, chunk, request, model, carried) for choice in chunk.choices]
    carried.is_new = False
    count_tokens(model.names[0], prompt=0, generated=sum(len(choice.token_ids or ()) for choice in chunk.choices))
    return answers.completion_chunk(
        request_id=chunk.request_id,
        model=request.model or model.names[0],
        choices=choices,
        usage=answers.chunk_usage(chunk.usage, prompt_tokens=request.prompt_tokens),
        metrics=answers.echoed_metrics(chunk.metrics),
    )


def _completion_chunk_choice(
    choice: GenerateTokensStreamChoice,
    chunk: GenerateTokensStreamResponse,
    request: CompletionStreamRequest,
    model: LoadedModel,
    carried: Carried,
) -> Json:
    completion_request, token_ids = request.completion_request, choice.token_ids or []
    ending = ending_of(choice, token_ids, completion_request, model)
    is_last = choice.finish_reason is not None
    text = decoded_chunk(
        token_ids[: ending.decoded], chunk, request, completion_request, model, carried, is_last=is_last
    )
    resolver = LogprobResolver(
        model.tokenizer, context=carried.logprob_context, limit=completion_limit(completion_request)
    )
    logprobs = resolver.completion(choice.logprobs, text_offset=carried.logprob_text_offset)
    if logprobs is not None and logprobs["tokens"]:
        carried.logprob_text_offset = logprobs["text_offset"][-1] + len(logprobs["tokens"][-1])
    else:
        carried.logprob_text_offset += len(text)
    carried.logprob_context = next_context(carried.logprob_context, token_ids)
    returns_ids = completion_request is not None and completion_request.return_token_ids
    reason, stop_reason = stopped(carried, choice.finish_reason, ending.stop_reason)
    return answers.completion_chunk_choice(
        index=choice.index,
        text=text,
        logprobs=logprobs,
        finish_reason=reason,
        stop_reason=stop_reason,
        prompt_token_ids=chunk.prompt_token_ids if returns_ids else None,
        token_ids=choice.token_ids if returns_ids else None,
    )
