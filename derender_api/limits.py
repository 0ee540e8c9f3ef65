"""Bounds on what a request may hold, checked before anything is decoded (protocol 6)."""

from collections.abc import Sequence

from derender_api.catalog import LoadedModel
from derender_api.conf import conf
from derender_api.exceptions import BadRequest
from derender_api.protocol.generate import GenerateTokensChoice, GenerateTokensResponse


def check_response_count(responses: Sequence[GenerateTokensResponse]) -> None:
    """Completions: at least one response, and not more than a request may have sequences."""
    if not responses:
        raise BadRequest("generate_responses must not be empty")
    limit = conf.max_n_sequences
    if len(responses) > limit:
        raise BadRequest(
            f"generate_responses count ({len(responses)}) exceeds server maximum ({limit}). "
            "Set VLLM_MAX_N_SEQUENCES to increase this limit."
        )


def check_response(response: GenerateTokensResponse, model: LoadedModel) -> None:
    """The bounds of one complete response of the engine."""
    limit = conf.max_n_sequences
    if len(response.choices) > limit:
        raise BadRequest(
            f"choices count ({len(response.choices)}) in response {response.request_id!r} "
            f"exceeds server maximum ({limit})."
        )
    for choice in response.choices:
        _check_choice(choice, model)
    length = len(response.prompt_logprobs or ())
    if length > model.max_model_len:
        raise BadRequest(
            f"prompt_logprobs length ({length}) in response {response.request_id!r} "
            f"exceeds max_model_len ({model.max_model_len})."
        )


def _check_choice(choice: GenerateTokensChoice, model: LoadedModel) -> None:
    limit, where = model.max_model_len, f"in choice {choice.index}"
    if len(choice.token_ids or ()) > limit:
        raise BadRequest(f"token_ids length ({len(choice.token_ids or ())}) {where} exceeds max_model_len ({limit}).")
    entries = (choice.logprobs and choice.logprobs.content) or ()
    if len(entries) > limit:
        raise BadRequest(f"logprobs.content length ({len(entries)}) {where} exceeds max_model_len ({limit}).")
    if model.max_logprobs == -1:
        return
    for entry in entries:
        count = len(entry.get("top_logprobs", ()))
        if count > model.max_logprobs:
            raise BadRequest(f"top_logprobs count ({count}) {where} exceeds max_logprobs ({model.max_logprobs}).")


def check_prompt(prompt_token_ids: Sequence[int] | None, model: LoadedModel) -> None:
    """The length of a prompt given beside the engine's response."""
    length = len(prompt_token_ids or ())
    if length > model.max_model_len:
        raise BadRequest(f"prompt_token_ids length ({length}) exceeds max_model_len ({model.max_model_len}).")


def check_stream_length(*, prompt: int, output: int, delta: int, model: LoadedModel) -> None:
    """Chat streams: prompt, output so far and this chunk, in tokens, must fit the context together."""
    if prompt + output + delta > model.max_model_len:
        raise BadRequest(
            f"prompt_token_ids length ({prompt}) plus output_token_ids length ({output}) plus delta ({delta}) "
            f"exceeds max_model_len ({model.max_model_len})."
        )
