"""Engine responses to chat completions, whole and chunk by chunk. Each of the two reads top to bottom."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from derender_api import answers, context_store, limits
from derender_api.catalog import catalog
from derender_api.exceptions import ApiError, BadRequest, InvalidStreamState
from derender_api.loaded_model import LoadedModel
from derender_api.logprobs import LogprobResolver, chat_limit, next_context
from derender_api.metrics import count_outcome, count_stream_call, count_tokens
from derender_api.output_text import codec_of, decoded_chunk, decoded_output, ending_of
from derender_api.parsing import StreamParsers, parse_output, random_seed, request_context, stream_seed
from derender_api.protocol.derender import (
    ChatStreamRequest,
    DerenderChatBulkRequest,
    DerenderChatRequest,
    DerenderChatStreamRequest,
)
from derender_api.protocol.generate import (
    GenerateTokensChoice,
    GenerateTokensResponse,
    GenerateTokensStreamChoice,
    GenerateTokensStreamResponse,
)
from derender_api.protocol.openai_request import ChatCompletionRequest
from derender_api.services.common import Json, form_of, scope_of, stopped
from derender_api.stop import Ending, StopRules
from derender_api.stream_state import Carried
from parsers.engine.assembly import Delta, Message
from parsers.engine.context import RequestContext, finish_reason
from parsers.engine.parser import ParserPlan

logger = logging.getLogger(__name__)

CHAT_REQUEST_NEEDED = (
    "chat_request is required when a tool or reasoning parser is configured because plain detokenization would leak "
    "raw parser markup into content."
)
PROMPT_NEEDED = (
    "prompt_token_ids is required when a tool or reasoning parser is configured. Without it parse_delta cannot tell "
    "whether the prompt left reasoning open (e.g. a chat template that pre-opens <think>) and would misclassify "
    "reasoning content as plain content."
)


# --- one-shot ---------------------------------------------------------------------------------------------------------


def derender_chat(request: DerenderChatRequest, *, model: LoadedModel | None = None) -> Json:
    """A complete engine response to a chat completion; by `model`, where it is not the request that names one."""
    model = model or catalog.resolve(request.model or None)
    response, chat_request = request.generate_response, request.chat_request
    limits.check_response(response, model)
    limits.check_prompt(request.prompt_token_ids, model)
    _require_chat_request(model, chat_request)
    seed = response.prompt_token_ids if request.prompt_token_ids is None else request.prompt_token_ids
    choices = [_chat_choice(choice, response, chat_request, model, seed=seed) for choice in response.choices]
    returns_ids = chat_request is not None and chat_request.return_token_ids
    generated = sum(len(choice.token_ids or ()) for choice in response.choices)
    count_tokens(model.names[0], prompt=request.prompt_tokens or len(seed or ()), generated=generated)
    return answers.chat_completion(
        request_id=response.request_id,
        model=request.model or model.names[0],
        choices=choices,
        usage=answers.usage(prompt_tokens=request.prompt_tokens or 0, completion_tokens=generated),
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
            plan,
            context,
            token_ids=token_ids,
            texts=texts,
            prompt_token_ids=response.prompt_token_ids,
            truncated=choice.finish_reason == "length",
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


# --- streaming --------------------------------------------------------------------------------------------------------


def derender_chat_chunk(request: DerenderChatStreamRequest) -> Json:
    """One chunk of the engine's stream to a chat completion chunk and the state for the next call."""
    chunks, state = _chat_chunks(request, [request.generate_chunk])
    return {"chunk": chunks[0], "stream_state": state}


def derender_chat_chunks(request: DerenderChatBulkRequest, *, model: LoadedModel | None = None) -> Json:
    """Several chunks of one stream: what a call for each would give; by `model`, as in `derender_chat`."""
    chunks, state = _chat_chunks(request, request.generate_chunks, model=model)
    return {"chunks": chunks, "stream_state": state}


def _chat_chunks(
    request: ChatStreamRequest,
    chunks: Sequence[GenerateTokensStreamResponse],
    *,
    model: LoadedModel | None = None,
) -> tuple[list[Json], Json]:
    model = model or catalog.resolve(request.model or None)
    scope = scope_of("chat", model)
    carried = Carried.of(request.stream_state, form=form_of(request, model), scope=scope)
    _remember_context(request, carried)
    count_stream_call("chat", chunks=len(chunks))
    if carried.is_new:
        count_tokens(model.names[0], prompt=request.prompt_tokens or len(request.prompt_token_ids or ()), generated=0)
    return [chat_chunk(chunk, request, model, carried) for chunk in chunks], carried.answer(scope=scope)


def _remember_context(request: ChatStreamRequest, carried: Carried) -> None:
    """Gives the request the chat request that an earlier call of the stream sent, or remembers its own."""
    if carried.form != "compact":
        return
    if request.chat_request is not None:
        carried.context = context_store.remember(request.chat_request, known=carried.context)
    elif carried.context:
        request.chat_request = context_store.recall(carried.context)


def chat_chunk(
    chunk: GenerateTokensStreamResponse, request: ChatStreamRequest, model: LoadedModel, carried: Carried
) -> Json:
    """The chat completion chunk for one chunk of the engine's stream; moves `carried` on. Raises ApiError."""
    _check_chat_chunk(chunk, request, model, carried)
    chat_request = request.chat_request
    with _failures_are_bad_state(model):
        choices = [_chat_chunk_choice(choice, chunk, request, model, carried) for choice in chunk.choices]
    count_tokens(model.names[0], prompt=0, generated=sum(len(choice.token_ids or ()) for choice in chunk.choices))
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
        text = decoded_chunk(
            token_ids[: ending.decoded], chunk, request, chat_request, model, carried, is_last=reason is not None
        )
        delta = Delta(content=text or None)
    else:
        context = carried.request_context or _open_context(choice, chunk, request, chat_request, model, carried)
        delta = _parsed_chunk(choice, token_ids, ending, context, request, model.plan, model, carried)
        if carried.matched is not None:
            reason = "stop"
        if reason is not None:
            reason = finish_reason(context, reason, carried.tools_streamed)
    reason, stop_reason = stopped(carried, reason, ending.stop_reason)
    shows_metadata = not _hides_metadata(model, chat_request)
    returns_ids = shows_metadata and chat_request is not None and chat_request.return_token_ids
    resolver = LogprobResolver(model.tokenizer, context=carried.logprob_context, limit=chat_limit(chat_request))
    answer = answers.chat_chunk_choice(
        index=choice.index,
        delta=answers.chat_delta(delta, is_first=not carried.role_sent),
        logprobs=resolver.chat(choice.logprobs) if shows_metadata else None,
        finish_reason=reason,
        stop_reason=stop_reason,
        token_ids=choice.token_ids if returns_ids else None,
    )
    carried.role_sent = True
    carried.logprob_context = next_context(carried.logprob_context, token_ids)
    return answer


def _open_context(
    choice: GenerateTokensStreamChoice,
    chunk: GenerateTokensStreamResponse,
    request: ChatStreamRequest,
    chat_request: ChatCompletionRequest,
    model: LoadedModel,
    carried: Carried,
) -> RequestContext:
    """What the parser needs to know of the request; the same for all chunks of a call, or of a live stream."""
    seed = stream_seed(chunk.request_id, choice.index, request.prompt_token_ids or (), carried)
    carried.call_id_seed = seed.hex()
    carried.prompt_count = carried.prompt_count or len(request.prompt_token_ids or ())
    carried.request_context = request_context(chat_request, model, call_id_seed=seed)
    return carried.request_context


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
        stop_rules=StopRules.of(request.chat_request),
    )
    if not (token_ids or (ends and carried.has_output)):
        if carried.form == "compact" and carried.parser is None:
            parsers.close(parsers.open())
        return Delta()
    parser = parsers.open()
    if parser.matched is not None:
        carried.is_stopped = True
        return Delta()
    delta = parser.step(token_ids, decoded=ending.decoded, finished=ends)
    outcome = parser.outcome(delta, ends=ends, truncated=choice.finish_reason == "length")
    if outcome is not None:
        count_outcome(plan.name, outcome)
    carried.matched = parser.matched
    carried.tools_streamed = (carried.tools_streamed or parser.calls_streamed) and not parser.calls_revoked
    for call in delta.calls:
        if call.id is not None:
            call.id = carried.pinned_call_id(call.index, call.id)
    carried.extend_output(token_ids)
    parsers.close(parser)
    return delta


# --- steps ------------------------------------------------------------------------------------------------------------


def _require_chat_request(model: LoadedModel, request: ChatCompletionRequest | None) -> None:
    if model.plan is not None and request is None:
        raise BadRequest(CHAT_REQUEST_NEEDED)


def _hides_metadata(model: LoadedModel, request: ChatCompletionRequest | None) -> bool:
    """Whether token IDs and log probabilities would show reasoning that the request leaves out (protocol 8.6)."""
    return model.plan is not None and request is not None and not request.include_reasoning


@contextmanager
def _failures_are_bad_state(model: LoadedModel) -> Iterator[None]:
    """Whatever fails while a chat chunk is worked on, the client is told that its state does not fit (protocol 6)."""
    try:
        yield
    except ApiError:
        raise
    except Exception as error:
        if not isinstance(error, ValueError):
            logger.exception("chat chunk failed")
            if model.plan is not None:
                count_outcome(model.plan.name, "failed")
        raise InvalidStreamState from error
