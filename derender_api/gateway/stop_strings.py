"""One-shot requests with stop strings: read from the engine as streams, which end where a stop string is complete."""

from collections.abc import Iterator, Sequence
from typing import Any

from derender_api.gateway.engine_stream import EngineStream
from derender_api.loaded_model import LoadedModel
from derender_api.output_text import codec_of, skips_special
from derender_api.protocol.generate import (
    GenerateLogProbs,
    GenerateTokensChoice,
    GenerateTokensResponse,
    GenerateTokensStreamChoice,
)
from derender_api.protocol.openai_request import ChatCompletionRequest, CompletionRequest
from derender_api.stop import StopRules
from derender_api.stop_watch import StopWatch
from parsers.engine.detokenizer import Detokenizer, seeded_window


class Gathered:
    """One output of a stream, as a one-shot response would hold it."""

    def __init__(self, index: int, detokenizer: Detokenizer, watch: StopWatch) -> None:
        self.is_over = self.is_cut = False
        self._detokenizer = detokenizer
        self._watch = watch
        self._choice = GenerateTokensChoice(index=index, token_ids=[], finish_reason=None)
        self._logprobs: list[Any] = []

    def add(self, chunk: GenerateTokensStreamChoice) -> None:
        """Add a chunk of one token, or of none, unless the output is over."""
        if self.is_over:
            return
        choice, token_ids = self._choice, chunk.token_ids or ()
        assert choice.token_ids is not None
        choice.token_ids.extend(token_ids)
        self._watch.pass_on(self._detokenizer.decode(token_ids))
        if chunk.logprobs is not None:
            self._logprobs.extend(chunk.logprobs.content or ())
        if self._watch.matched is not None:
            choice.finish_reason, choice.stop_reason, self.is_over = "stop", self._watch.matched, True
            self.is_cut = chunk.finish_reason is None
        elif chunk.finish_reason is not None:
            choice.finish_reason, choice.stop_reason, self.is_over = chunk.finish_reason, chunk.stop_reason, True

    def choice(self) -> GenerateTokensChoice:
        """The output so far."""
        if self._logprobs:
            self._choice.logprobs = GenerateLogProbs.model_construct(content=self._logprobs)
        return self._choice


def one_by_one(chunk: GenerateTokensStreamChoice) -> Iterator[GenerateTokensStreamChoice]:
    """A chunk for each token, so that an output can end behind any of them; the last one ends as `chunk` does."""
    token_ids, logprobs = chunk.token_ids or [], chunk.logprobs and chunk.logprobs.content
    last = max(len(token_ids) - 1, 0)
    for position in range(last):
        one = slice(position, position + 1)
        yield chunk.model_copy(
            update={
                "token_ids": token_ids[one],
                "logprobs": GenerateLogProbs.model_construct(content=logprobs[one]) if logprobs else None,
                "finish_reason": None,
                "stop_reason": None,
            }
        )
    chunk.token_ids = token_ids[last:]
    if logprobs:
        chunk.logprobs = GenerateLogProbs.model_construct(content=logprobs[last:])
    yield chunk


async def gather(
    stream: EngineStream,
    request: ChatCompletionRequest | CompletionRequest,
    model: LoadedModel,
    *,
    prompt_token_ids: Sequence[int],
    keeps_special: bool,
) -> GenerateTokensResponse:
    """The whole response of a stream; ends the engine's work where all of its outputs have met a stop string.

    `keeps_special`: special tokens are text, because a parser reads it.
    """
    codec, skip_special = codec_of(model, request), not keeps_special and skips_special(request)
    outputs: dict[int, Gathered] = {}
    request_id, metrics = "", None
    try:
        async for chunk in stream.chunks():
            request_id, metrics = chunk.request_id, chunk.metrics or metrics
            for choice in chunk.choices:
                if choice.index not in outputs:
                    window = seeded_window(codec, prompt_token_ids, skip_special=skip_special)
                    detokenizer = Detokenizer(codec, skip_special=skip_special, window=window)
                    watch = StopWatch.of(StopRules.of(request))
                    assert watch is not None
                    outputs[choice.index] = Gathered(choice.index, detokenizer, watch)
                for each in one_by_one(choice):
                    outputs[choice.index].add(each)
            if len(outputs) == (request.n or 1) and all(output.is_over for output in outputs.values()):
                break
        if not any(output.is_cut for output in outputs.values()):
            await stream.finish()
    finally:
        stream.close()
    choices = [outputs[index].choice() for index in sorted(outputs)]
    return GenerateTokensResponse(request_id=request_id, choices=choices, metrics=metrics)
