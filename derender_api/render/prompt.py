"""Prompts as token IDs: encoding, truncation, the context limit, offsets (protocol 10)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from derender_api.exceptions import BadRequest, RequestRuleViolation
from derender_api.loaded_model import LoadedModel
from derender_api.protocol.openai_request import GenerationRequest

NO_TOKENS = "No token_ids rendered"
GIVEN = "kv_transfer_params.prompt_token_ids"
NOT_TOKEN_IDS = "`kv_transfer_params['prompt_token_ids']` must be a non-empty list of non-negative integers."

Offsets = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt. `offsets` are the characters that each token covers, where they were asked for and are known."""

    token_ids: list[int]
    offsets: Offsets | None = None


def prompt_of_text(text: str, request: GenerationRequest, model: LoadedModel, *, with_offsets: bool) -> Prompt:
    """The tokens of a text. Raises BadRequest where they do not fit into the context."""
    check_encodable(text)
    offsets: Offsets | None = None
    if with_offsets:
        token_ids, offsets = model.tokenizer.encode_with_offsets(text, add_special_tokens=request.add_special_tokens)
    else:
        token_ids = model.tokenizer.encode(text, add_special_tokens=request.add_special_tokens)
    limit = model.max_model_len
    if request.truncate_prompt_tokens is None and len(token_ids) > limit:
        raise _too_long(limit + 1, limit)
    return _truncated(Prompt(token_ids, offsets), request, model)


def prompt_of_ids(token_ids: Sequence[int], request: GenerationRequest, model: LoadedModel) -> Prompt:
    """Token IDs that the request brought along. Raises BadRequest where they do not fit into the context."""
    limit = model.max_model_len
    if request.truncate_prompt_tokens is None and len(token_ids) > limit:
        raise _too_long(len(token_ids), limit)
    return _truncated(Prompt(list(token_ids)), request, model)


def given_prompt(params: dict[str, Any] | None, model: LoadedModel) -> Prompt | None:
    """The prompt of `kv_transfer_params`, which takes the place of template and tokenizer; None where there is none."""
    token_ids = (params or {}).get("prompt_token_ids")
    if token_ids is None:
        return None
    if (
        not isinstance(token_ids, list)
        or not token_ids
        or not all(type(each) is int and each >= 0 for each in token_ids)
    ):
        raise RequestRuleViolation(NOT_TOKEN_IDS, param=GIVEN)
    if (largest := max(token_ids)) >= model.tokenizer.size:
        raise RequestRuleViolation(f"Token id {largest} is out of vocabulary", param=GIVEN)
    return ready_prompt(token_ids, model)


def ready_prompt(token_ids: list[int], model: LoadedModel) -> Prompt:
    """A prompt that is never truncated. Raises BadRequest where it does not fit into the context."""
    limit = model.max_model_len
    if len(token_ids) > limit:
        raise BadRequest(f"Input length ({len(token_ids)}) exceeds model's maximum context length ({limit}).")
    return Prompt(token_ids)


def _truncated(prompt: Prompt, request: GenerationRequest, model: LoadedModel) -> Prompt:
    """The prompt cut to `truncate_prompt_tokens`, at its beginning unless `truncation_side` says otherwise."""
    wanted, limit = request.truncate_prompt_tokens, model.max_model_len
    if wanted is not None and wanted > limit:
        raise RequestRuleViolation(
            f"truncate_prompt_tokens={wanted} cannot be greater than max_model_len = {limit}. Please request a smaller "
            "truncation size.",
            param="truncate_prompt_tokens",
            value=wanted,
        )
    count = len(prompt.token_ids)
    keep = count if wanted is None else limit - 1 if wanted == -1 else wanted
    if keep < count:
        kept = slice(keep) if request.truncation_side == "right" else slice(count - keep, None)
        prompt = Prompt(prompt.token_ids[kept], prompt.offsets and prompt.offsets[kept])
    if not prompt.token_ids:
        raise BadRequest(NO_TOKENS)
    return prompt


def _too_long(count: int, limit: int) -> RequestRuleViolation:
    """The error for a prompt of `count` tokens; counting stops one token above the limit."""
    counted = f"at least {count}" if count == limit + 1 else str(count)
    return RequestRuleViolation(
        f"This model's maximum context length is {limit} tokens. However, your prompt contains {counted} input tokens, "
        "which exceeds this limit even without any output tokens. Please reduce the length of the input prompt.",
        param="input_tokens",
        value=count,
    )


def check_encodable(text: str) -> None:
    """Raise BadRequest for a text with lone surrogates, which no tokenizer takes."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadRequest(str(error)) from error
