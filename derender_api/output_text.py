"""The text of outputs and chunks: seeded, decoded token by token, cut where it stops (protocol 8.2 to 8.4)."""

from collections.abc import Sequence

from derender_api.loaded_model import LoadedModel
from derender_api.protocol.derender import StreamRequest
from derender_api.protocol.generate import (
    GenerateTokensChoice,
    GenerateTokensStreamChoice,
    GenerateTokensStreamResponse,
)
from derender_api.protocol.openai_request import GenerationRequest
from derender_api.stop import Ending, StopRules, cut_at_stop_string, end_of_output
from derender_api.stream_state import Carried
from parsers.engine.detokenizer import Codec, Detokenizer, seeded_window


def codec_of(model: LoadedModel, request: GenerationRequest | None) -> Codec:
    """The codec that the rendered request asks for."""
    spaced = request is None or request.spaces_between_special_tokens
    return model.tokenizer.codec if spaced else model.tokenizer.codec_unspaced


def _skips_special(request: GenerationRequest | None) -> bool:
    return request is None or request.skip_special_tokens is not False


def ending_of(
    choice: GenerateTokensChoice | GenerateTokensStreamChoice,
    token_ids: Sequence[int],
    request: GenerationRequest | None,
    model: LoadedModel,
) -> Ending:
    """Where an output or chunk ends (protocol 8.2)."""
    return end_of_output(
        token_ids,
        finish_reason=choice.finish_reason,
        stop_reason=choice.stop_reason,
        rules=StopRules.of(request),
        tokenizer=model.tokenizer,
    )


def decoded_output(
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
    ending = ending_of(choice, token_ids, request, model)
    window = seeded_window(codec, seed, skip_special=skip_special)
    texts = Detokenizer(codec, skip_special=skip_special, window=window).decode(token_ids[: ending.decoded])
    texts, stop = cut_at_stop_string(
        texts, finish_reason=choice.finish_reason, reported=choice.stop_reason, rules=StopRules.of(request)
    )
    texts += [""] * (len(token_ids) - len(texts))
    return texts, ending.stop_reason if stop is None else stop


def decoded_chunk(
    token_ids: Sequence[int],
    chunk: GenerateTokensStreamResponse,
    request: StreamRequest,
    rendered: GenerationRequest | None,
    model: LoadedModel,
    carried: Carried,
) -> str:
    """The text that a chunk adds where no parser runs; moves the window on."""
    codec, skip_special = codec_of(model, rendered), _skips_special(rendered)
    window = carried.window
    if carried.is_new:
        seed = request.prompt_token_ids
        if seed is None:
            seed = chunk.prompt_token_ids
        window = seeded_window(codec, seed, skip_special=skip_special)
    detokenizer = Detokenizer(codec, skip_special=skip_special, window=window)
    text = "".join(detokenizer.decode(token_ids))
    carried.window = detokenizer.window
    return text
