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
from derender_api.parsing import StreamParsers, chunk_seed, parse_output, random_seed, request_context
from derender_api.protocol.derender import (
    DerenderChatRequest,
    DerenderChatStreamRequest,
    DerenderCompletionRequest,
    DerenderCompletionStreamRequest,
)
from derender_api.protocol.generate import (
    GenerateTokensChoice,
    GenerateTokensResponse,
    GenerateTokensStreamChoice,
)
from derender_api.protocol.openai_request import ChatCompletionRequest, CompletionRequest, GenerationRequest
from derender_api.stop import Ending, StopRules, cut_at_stop_string, end_of_output
from derender_api.stream_state import Carried, Form
from parsers.engine.assembly import Delta, Message
from parsers.engine.context import RequestContext, finish_reason
from parsers.engine.detokenizer import Codec, Detokenizer, seeded_window
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
    codec, plan = _codec(model, request), model.plan
    texts, stop_reason = _decoded_output(choice, token_ids, request, model, codec, seed=seed, keeps_special=bool(plan))
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
    model = catalog.resolve(request.model or None)
    scope = _scope("chat", model)
    carried = Carried.of(request.stream_state, form=_form(request, model), scope=scope)
    _check_chat_chunk(request, model, carried)
    chunk, chat_request = request.generate_chunk, request.chat_request
    with _failures_are_bad_state():
        choices = [_chat_chunk_choice(choice, request, model, carried) for choice in chunk.choices]
    returns_ids = chat_request is not None and chat_request.return_token_ids
    answer = answers.chat_chunk(
        request_id=chunk.request_id,
        model=request.model or model.names[0],
        choices=choices,
        usage=answers.chunk_usage(chunk.usage, prompt_tokens=request.prompt_tokens),
        prompt_token_ids=chunk.prompt_token_ids if returns_ids else None,
        metrics=answers.echoed_metrics(chunk.metrics),
    )
    return {"chunk": answer, "stream_state": carried.answer(scope=scope)}


def _check_chat_chunk(request: DerenderChatStreamRequest, model: LoadedModel, carried: Carried) -> None:
    choices = request.generate_chunk.choices
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
    choice: GenerateTokensStreamChoice, request: DerenderChatStreamRequest, model: LoadedModel, carried: Carried
) -> Json:
    chat_request, token_ids = request.chat_request, choice.token_ids or []
    ending = _ending(choice, token_ids, chat_request, model)
    reason = choice.finish_reason
    if model.plan is None or chat_request is None:
        text = _decoded_chunk(token_ids[: ending.decoded], request, chat_request, model, carried)
        delta = Delta(content=text or None)
    else:
        seed = chunk_seed(request.generate_chunk.request_id, choice.index, request.prompt_token_ids or (), carried)
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
    request: DerenderChatStreamRequest,
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
        texts, stop_reason = _decoded_output(
            choice, token_ids, request, model, _codec(model, request), seed=seed, keeps_special=False
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
    model = catalog.resolve(request.model or None)
    chunk = request.generate_chunk
    limits.check_no_stop_strings(request.completion_request.stop if request.completion_request else None)
    limits.check_prompt(request.prompt_token_ids, model)
    if len(chunk.choices) > 1:
        raise BadRequest("derender_completion_stream expects at most one choice per chunk")
    scope = _scope("completion", model)
    carried = Carried.of(request.stream_state, form=_form(request, model), scope=scope)
    choices = [_completion_chunk_choice(choice, request, model, carried) for choice in chunk.choices]
    answer = answers.completion_chunk(
        request_id=chunk.request_id,
        model=request.model or model.names[0],
        choices=choices,
        usage=answers.chunk_usage(chunk.usage, prompt_tokens=request.prompt_tokens),
        metrics=answers.echoed_metrics(chunk.metrics),
    )
    return {"chunk": answer, "stream_state": carried.answer(scope=scope)}


def _completion_chunk_choice(
    choice: GenerateTokensStreamChoice,
    request: DerenderCompletionStreamRequest,
    model: LoadedModel,
    carried: Carried,
) -> Json:
    completion_request, token_ids = request.completion_request, choice.token_ids or []
    ending = _ending(choice, token_ids, completion_request, model)
    text = _decoded_chunk(token_ids[: ending.decoded], request, completion_request, model, carried)
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
        prompt_token_ids=request.generate_chunk.prompt_token_ids if returns_ids else None,
        token_ids=choice.token_ids if returns_ids else None,
    )


# --- common steps -----------------------------------------------------------------------------------------------------


def _scope(endpoint: str, model: LoadedModel) -> tuple[str, str, str]:
    """What a compact stream state belongs to."""
    return endpoint, model.names[0], model.plan.name if model.plan else ""


def _form(request: DerenderChatStreamRequest | DerenderCompletionStreamRequest, model: LoadedModel) -> Form:
    """The form of the states of a stream that begins."""
    return request.stream_state_format or model.configuration.stream_state_format


def _require_chat_request(model: LoadedModel, request: ChatCompletionRequest | None) -> None:
    if model.plan is not None and request is None:
        raise BadRequest(CHAT_REQUEST_NEEDED)


def _hides_metadata(model: LoadedModel, request: ChatCompletionRequest | None) -> bool:
    """Whether token IDs and log probabilities would show reasoning that the request leaves out (protocol 8.6)."""
    return model.plan is not None and request is not None and not request.include_reasoning


def _codec(model: LoadedModel, request: GenerationRequest | None) -> Codec:
    spaced = request is None or request.spaces_between_special_tokens
    return model.tokenizer.codec if spaced else model.tokenizer.codec_unspaced


def _skips_special(request: GenerationRequest | None) -> bool:
    return request is None or request.skip_special_tokens is not False


def _ending(
    choice: GenerateTokensChoice | GenerateTokensStreamChoice,
    token_ids: Sequence[int],
    request: GenerationRequest | None,
    model: LoadedModel,
) -> Ending:
    return end_of_output(
        token_ids,
        finish_reason=choice.finish_reason,
        stop_reason=choice.stop_reason,
        rules=StopRules.of(request),
        tokenizer=model.tokenizer,
    )


def _decoded_output(
    choice: GenerateTokensChoice,
    token_ids: Sequence[int],
    request: GenerationRequest | None,
    model: LoadedModel,
    codec: Codec,
    *,
    seed: Sequence[int] | None,
    keeps_special: bool,
) -> tuple[list[str], int | str | None]:
    """Text per ID of a complete output, cut where it stops, and the stop reason to answer."""
    skip_special = not keeps_special and _skips_special(request)
    ending = _ending(choice, token_ids, request, model)
    window = seeded_window(codec, seed, skip_special=skip_special)
    texts = Detokenizer(codec, skip_special=skip_special, window=window).decode(token_ids[: ending.decoded])
    texts, stop = cut_at_stop_string(
        texts, finish_reason=choice.finish_reason, reported=choice.stop_reason, rules=StopRules.of(request)
    )
    texts += [""] * (len(token_ids) - len(texts))
    return texts, ending.stop_reason if stop is None else stop


def _decoded_chunk(
    token_ids: Sequence[int],
    request: DerenderChatStreamRequest | DerenderCompletionStreamRequest,
    rendered: GenerationRequest | None,
    model: LoadedModel,
    carried: Carried,
) -> str:
    """The text that a chunk adds where no parser runs; moves the window on."""
    codec, skip_special = _codec(model, rendered), _skips_special(rendered)
    window = carried.window
    if carried.is_new:
        seed = request.prompt_token_ids
        if seed is None:
            seed = request.generate_chunk.prompt_token_ids
        window = seeded_window(codec, seed, skip_special=skip_special)
    detokenizer = Detokenizer(codec, skip_special=skip_special, window=window)
    text = "".join(detokenizer.decode(token_ids))
    carried.window = detokenizer.window
    return text


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
