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
from derender_api.stop_watch import StopWatch
from derender_api.stream_state import Carried
from parsers.engine.detokenizer import Codec, Detokenizer, Window, seeded_window

BEYOND = 2**31 - 1
"""Offset of a window that yields nothing more, ever: a stop string ended the text (protocol 8.4)."""


def codec_of(model: LoadedModel, request: GenerationRequest | None) -> Codec:
    """The codec that the rendered request asks for."""
    spaced = request is None or request.spaces_between_special_tokens
    return model.tokenizer.codec if spaced else model.tokenizer.codec_unspaced


def skips_special(request: GenerationRequest | None) -> bool:
    """Whether the rendered request leaves special tokens out of the text, where no parser runs."""
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
    skip_special = not keeps_special and skips_special(request)
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
    *,
    is_last: bool,
) -> str:
    """The text that a chunk adds where no parser runs; moves the window on. `is_last`: it ends the output."""
    codec, skip_special = codec_of(model, rendered), skips_special(rendered)
    window = carried.window
    if carried.is_new:
        seed = request.prompt_token_ids
        if seed is None:
            seed = chunk.prompt_token_ids
        window = seeded_window(codec, seed, skip_special=skip_special)
    detokenizer = Detokenizer(codec, skip_special=skip_special, window=window)
    watch = StopWatch.of(StopRules.of(rendered), tokens=carried.output_count)
    if watch is not None:
        return _watched_chunk(token_ids, detokenizer, codec, watch, carried, is_last=is_last)
    text = "".join(detokenizer.decode(token_ids))
    carried.window = detokenizer.window
    return text


def _watched_chunk(
    token_ids: Sequence[int],
    detokenizer: Detokenizer,
    codec: Codec,
    watch: StopWatch,
    carried: Carried,
    *,
    is_last: bool,
) -> str:
    """The text that a chunk adds, up to a stop string.

    Tokens of which text is held back are left unread in the window, so that the next chunk decodes them again.
    """
    if carried.window.read == BEYOND:
        carried.is_stopped = True
        return ""
    windows, texts = [], []
    for token_id in token_ids:
        windows.append(detokenizer.window)
        texts += detokenizer.decode([token_id])
    passed = watch.pass_on(texts)
    carried.extend_output(token_ids)
    carried.window = detokenizer.window
    if watch.matched is not None:
        carried.matched, carried.window = watch.matched, Window(read=BEYOND)
        return "".join(passed)
    if is_last:
        return "".join(passed) + watch.release()
    first = _first_held(texts, watch.held)
    if first is None:
        return "".join(passed)
    window = windows[first]
    pieces = (*window.pieces, *map(codec.piece, token_ids[first:]))
    carried.window = Window(pieces=pieces, prefix=window.prefix, read=window.read)
    return "".join(texts[:first])


def _first_held(texts: Sequence[str], held: str) -> int | None:
    """The first token of which text is held back; None where nothing is."""
    length = len(held)
    for position in range(len(texts) - 1, -1, -1):
        if length <= 0:
            return position + 1 if held else None
        length -= len(texts[position])
    return 0 if held else None
