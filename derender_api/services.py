"""The four things the service does: chat and completions, whole and chunk by chunk. Each reads top to bottom."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from derender_api import answers, limits
from derender_api.catalog import catalog
from derender_api.exceptions import ApiError, BadRequest, InvalidStreamState
from derender_api.loaded_model import LoadedModel
from derender_api.logprobs import LogprobResolver, chat_limit, completion_limit, next_context
from derender_api.output_text import codec_of, decoded_chunk, decoded_output, ending_of
from derender_api.parsing import StreamParsers, parse_output, random_seed, request_context, stream_seed
from derender_api.protocol.derender import (
    ChatStreamRequest,
    CompletionStreamRequest,
    DerenderChatBulkRequest,
    DerenderChatRequest,
    DerenderChatStreamRequest,
    DerenderCompletionBulkRequest,
    DerenderCompletionRequest,
    DerenderCompletionStreamRequest,
    StreamRequest,
)
from derender_api.protocol.generate import (
    GenerateTokensChoice,
    GenerateTokensResponse,
    GenerateTokensStreamChoice,
    GenerateTokensStreamResponse,
)
from derender_api.protocol.openai_request import ChatCompletionRequest, CompletionRequest
from derender_api.stop import Ending
from derender_api.stream_state import Carried, Form
from parsers.engine.assembly import Delta, Message
from parsers.engine.context import RequestContext, finish_reason
from parsers.engine.parser import ParserPlan

logger = logging.getLogger(__name__)

Json = dict[str, Any]

CHAT_REQUEST_NEEDED = (
    "chat_request is required when a tool or reasoning parser is configured because plain detokenization would leak "
    "raw parser markup into content."
)
PROMPT_NEEDED = (
    "prompt_token_ids is required when a tool or reasoning parser is configured. Without it parse_delta cannot tell "
    "whether the prompt left reasoning open (e.g. a chat template that pre-opens <think>) and would misclassify "
    "reasoning content as plain content."
)


# --- chat, one-shot ---------------------------------------------------------------------------------------------------


def derender_chat(request: DerenderChatRequest) -> Json:
    """A complete engine response to a chat completion."""
    model = catalog.resolve(request.model or None)
    response, chat_request = request.generate_response, request.chat_request
    limits.check_response(response, model)
    limits.check_prompt(request.prompt_token_ids, model)
    _require_chat_request(model, chat_request)
    seed = response.prompt_token_ids if request.prompt_token_ids is None else request.prompt_token_ids
    choices = [_chat_choice(choice, response, chat_request, model, seed=seed) for choice in response.choices]
    returns_ids = chat_request is not None and chat_request.return_token_ids
    return answers.chat_completion(
        request_id=response.request_id,
        model=request.model or model.names[0],
        choices=choices,
        usage=answers.usage(
            prompt_tokens=request.prompt_tokens or 0,
            completion_tokens=sum(len(choice.token_ids or ()) for choice in response.choices),
        ),
        prompt_logprobs=answers.echoed_prompt_logprobs(response.prompt_logprobs),
        prompt_token_ids=response.prompt_token_ids if returns_ids else None,
        kv_transfer_params=answers.echoed(response.kv_transfer_params),
        metrics=answers.echoed_metrics(response.metrics),
    )


def _chat_choice(
    choice: GenerateTokensChoice,
    response: GenerateTokensResponse,
    request: ChatCompletionRequest | None,
    model: LoadedModel,
    *,
    seed: Sequence[int] | None,
) -> Json:
    token_ids = choice.token_ids
    if not token_ids:
        raise BadRequest(f"choice {choice.index} has empty or null token_ids")
    codec, plan = codec_of(model, request), model.plan
    texts, stop_reason = decoded_output(choice, token_ids, request, model, codec, seed=seed, keeps_special=bool(plan))
    reason = choice.finish_reason or "stop"
    if plan is None or request is None:
        message = Message(reasoning=None, content="".join(texts))
    else:
        context = request_context(request, model, call_id_seed=random_seed())
        message = parse_output(
            plan, context, token_ids=token_ids, texts=texts, prompt_token_ids=response.prompt_token_ids
        )
        reason = finish_reason(context, reason, bool(message.calls))
    shows_metadata = not _hides_metadata(model, request)
    returns_ids = shows_metadata and request is not None and request.return_token_ids
    resolver = LogprobResolver(model.tokenizer, limit=chat_limit(request))
    return answers.chat_choice(
        index=choice.index,
        message=message,
        logprobs=resolver.chat(choice.logprobs) if shows_metadata else None,
        finish_reason=reason,
        stop_reason=stop_reason,
        token_ids=token_ids if returns_ids else None,
    )


# --- chat, streaming --------------------------------------------------------------------------------------------------


def derender_chat_chunk(request: DerenderChatStreamRequest) -> Json:
    """One chunk of the engine's stream to a chat completion chunk and the state for the next call."""
    chunks, state = _chat_chunks(request, [request.generate_chunk])
    return {"chunk": chunks[0], "stream_state": state}


def derender_chat_chunks(request: DerenderChatBulkRequest) -> Json:
    """Several chunks of one stream: what a call for each would give."""
    chunks, state = _chat_chunks(request, request.generate_chunks)
    return {"chunks": chunks, "stream_state": state}


def _chat_chunks(request: ChatStreamRequest, chunks: Sequence[GenerateTokensStreamResponse]) -> tuple[list[Json], Json]:
    model = catalog.resolve(request.model or None)
    scope = _scope("chat", model)
    carried = Carried.of(request.stream_state, form=_form(request, model), scope=scope)
    return [_chat_chunk(chunk, request, model, carried) for chunk in chunks], carried.answer(scope=scope)


def _chat_chunk(
    chunk: GenerateTokensStreamResponse, request: ChatStreamRequest, model: LoadedModel, carried: Carried
) -> Json:
    _check_chat_chunk(chunk, request, model, carried)
    chat_request = request.chat_request
    with _failures_are_bad_state():
        choices = [_chat_chunk_choice(choice, chunk, request, model, carried) for choice in chunk.choices]
    returns_ids = chat_request is not None and chat_request.return_token_ids
    carried.is_new = False
    return answers.chat_chunk(
        request_id=chunk.request_id,
        model=request.model or model.names[0],
        choices=choices,
        usage=answers.chunk_usage(chunk.usage, prompt_tokens=request.prompt_tokens),
        prompt_token_ids=chunk.prompt_token_ids if returns_ids else None,
        metrics=answers.echoed_metrics(chunk.metrics),
    )


def _check_chat_chunk(
    chunk: GenerateTokensStreamResponse, request: ChatStreamRequest, model: LoadedModel, carried: Carried
) -> None:
    choices = chunk.choices
    limits.check_no_stop_strings(request.chat_request.stop if request.chat_request else None)
    _require_chat_request(model, request.chat_request)
    if model.plan is not None and request.prompt_token_ids is None and carried.parser is None:
        raise BadRequest(PROMPT_NEEDED)
    if len(choices) > 1:
        raise BadRequest(f"derender_chat_stream expects at most one choice per chunk (got {len(choices)}).")
    limits.check_stream_length(
        prompt=carried.prompt_count or len(request.prompt_token_ids or ()),
        output=carried.output_count,
        delta=sum(len(choice.token_ids or ()) for choice in choices),
        model=model,
    )


def _chat_chunk_choice(
    choice: GenerateTokensStreamChoice,
    chunk: GenerateTokensStreamResponse,
    request: ChatStreamRequest,
    model: LoadedModel,
    carried: Carried,
) -> Json:
    chat_request, token_ids = request.chat_request, choice.token_ids or []
    ending = ending_of(choice, token_ids, chat_request, model)
    reason = choice.finish_reason
    if model.plan is None or chat_request is None:
        text = decoded_chunk(token_ids[: ending.decoded], chunk, request, chat_request, model, carried)
        delta = Delta(content=text or None)
    else:
        seed = stream_seed(chunk.request_id, choice.index, request.prompt_token_ids or (), carried)
        context = request_context(chat_request, model, call_id_seed=seed)
        carried.call_id_seed = seed.hex()
        carried.prompt_count = carried.prompt_count or len(request.prompt_token_ids or ())
        delta = _parsed_chunk(choice, token_ids, ending, context, request, model.plan, model, carried)
        if reason is not None:
            reason = finish_reason(context, reason, carried.tools_streamed)
    shows_metadata = not _hides_metadata(model, chat_request)
    returns_ids = shows_metadata and chat_request is not None and chat_request.return_token_ids
    resolver = LogprobResolver(model.tokenizer, context=carried.logprob_context, limit=chat_limit(chat_request))
    answer = answers.chat_chunk_choice(
        index=choice.index,
        delta=answers.chat_delta(delta, is_first=not carried.role_sent),
        logprobs=resolver.chat(choice.logprobs) if shows_metadata else None,
        finish_reason=reason,
        stop_reason=ending.stop_reason,
        token_ids=choice.token_ids if returns_ids else None,
    )
    carried.role_sent = True
    carried.logprob_context = next_context(carried.logprob_context, token_ids)
    return answer


def _parsed_chunk(
    choice: GenerateTokensStreamChoice,
    token_ids: Sequence[int],
    ending: Ending,
    context: RequestContext,
    request: ChatStreamRequest,
    plan: ParserPlan,
    model: LoadedModel,
    carried: Carried,
) -> Delta:
    """The parser's delta. A chunk that neither adds nor ends anything is no step of the parser."""
    ends = choice.finish_reason is not None
    parsers = StreamParsers(
        plan,
        context,
        model,
        prompt_token_ids=request.prompt_token_ids or (),
        carried=carried,
        spaced=request.chat_request is None or request.chat_request.spaces_between_special_tokens,
    )
    if not (token_ids or (ends and carried.has_output)):
        if carried.form == "compact" and carried.parser is None:
            parsers.close(parsers.open())
        return Delta()
    parser = parsers.open()
    delta = parser.step(token_ids, decoded=ending.decoded, finished=ends)
    carried.tools_streamed = (carried.tools_streamed or parser.calls_streamed) and not parser.calls_revoked
    for call in delta.calls:
        if call.id is not None:
            call.id = carried.pinned_call_id(call.index, call.id)
    carried.extend_output(token_ids)
    parsers.close(parser)
    return delta


# --- completions, one-shot --------------------------------------------------------------------------------------------


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
    transfers = [response.kv_transfer_params for response in responses]
    return answers.completion(
        request_id=responses[0].request_id,
        model=request.model or model.names[0],
        choices=choices,
        usage=answers.usage(
            prompt_tokens=sum(request.prompt_tokens or ()),
            completion_tokens=sum(len(choice.token_ids or ()) for each in responses for choice in each.choices),
        ),
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


# --- completions, streaming -------------------------------------------------------------------------------------------


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
    limits.check_no_stop_strings(request.completion_request.stop if request.completion_request else None)
    limits.check_prompt(request.prompt_token_ids, model)
    scope = _scope("completion", model)
    carried = Carried.of(request.stream_state, form=_form(request, model), scope=scope)
    return [_completion_chunk(chunk, request, model, carried) for chunk in chunks], carried.answer(scope=scope)


def _completion_chunk(
    chunk: GenerateTokensStreamResponse, request: CompletionStreamRequest, model: LoadedModel, carried: Carried
) -> Json:
    if len(chunk.choices) > 1:
        raise BadRequest("derender_completion_stream expects at most one choice per chunk")
    choices = [_completion_chunk_choice(choice, chunk, request, model, carried) for choice in chunk.choices]
    carried.is_new = False
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
    text = decoded_chunk(token_ids[: ending.decoded], chunk, request, completion_request, model, carried)
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
    return answers.completion_chunk_choice(
        index=choice.index,
        text=text,
        logprobs=logprobs,
        finish_reason=choice.finish_reason,
        stop_reason=ending.stop_reason,
        prompt_token_ids=chunk.prompt_token_ids if returns_ids else None,
        token_ids=choice.token_ids if returns_ids else None,
    )


# --- common steps -----------------------------------------------------------------------------------------------------


def _scope(endpoint: str, model: LoadedModel) -> tuple[str, str, str]:
    """What a compact stream state belongs to."""
    return endpoint, model.names[0], model.plan.name if model.plan else ""


def _form(request: StreamRequest, model: LoadedModel) -> Form:
    """The form of the states of a stream that begins."""
    return request.stream_state_format or model.configuration.stream_state_format


def _require_chat_request(model: LoadedModel, request: ChatCompletionRequest | None) -> None:
    if model.plan is not None and request is None:
        raise BadRequest(CHAT_REQUEST_NEEDED)


def _hides_metadata(model: LoadedModel, request: ChatCompletionRequest | None) -> bool:
    """Whether token IDs and log probabilities would show reasoning that the request leaves out (protocol 8.6)."""
    return model.plan is not None and request is not None and not request.include_reasoning


@contextmanager
def _failures_are_bad_state() -> Iterator[None]:
    """Whatever fails while a chat chunk is worked on, the client is told that its state does not fit (protocol 6)."""
    try:
        yield
    except ApiError:
        raise
    except Exception as error:
        if not isinstance(error, ValueError):
            logger.exception("chat chunk failed")
        raise InvalidStreamState from error
