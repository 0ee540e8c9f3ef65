"""A streamed answer: chunks of engines to server-sent events, with a live parser for every choice."""

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from functools import partial
from itertools import chain
from typing import ClassVar

from derender_api import answers
from derender_api.exception_handler import noted_error
from derender_api.gateway.engine_request import constrained_if_possible, engine_request
from derender_api.gateway.engine_stream import EngineStream
from derender_api.gateway.engines import engines
from derender_api.gateway.errors import engine_to_blame
from derender_api.gateway.events import DONE, error_events, event
from derender_api.gateway.merge import all_of, merged
from derender_api.gateway.shape import shown_chunk
from derender_api.gateway.stop_strings import one_by_one
from derender_api.loaded_model import LoadedModel
from derender_api.metrics import count_tokens
from derender_api.protocol.generate import GenerateTokensStreamChoice, GenerateTokensStreamResponse
from derender_api.protocol.openai_request import ChatCompletionRequest, CompletionRequest
from derender_api.services.common import Json
from derender_api.stop import StopRules
from derender_api.stream_state import Carried


async def open_streams(
    request: ChatCompletionRequest | CompletionRequest, model: LoadedModel, rendered: Sequence[Json]
) -> list[EngineStream]:
    """A stream for each engine request, all begun. Raises ApiError; then none is left open."""
    opened: list[EngineStream] = []

    async def opening(each: Json) -> EngineStream:
        call = partial(engines.stream, model.configuration.engine_urls)
        stream = await constrained_if_possible(call, engine_request(each, model), request)
        opened.append(stream)
        return stream

    try:
        return await all_of(opening(each) for each in rendered)
    except BaseException:
        for stream in opened:
            stream.close()
        raise


class AnswerStream(ABC):
    """The events of an answer. `streams[i]` is the engine's output for `prompts[i]`, its token IDs; all have begun.

    Closing it makes the engines stop. Once the client has gone, whoever iterates must close it.
    """

    kind: ClassVar[str]
    """`object` of the chunks."""
    content: ClassVar[str]
    """Key of a choice's content."""

    def __init__(
        self,
        streams: Sequence[EngineStream],
        request: ChatCompletionRequest | CompletionRequest,
        model: LoadedModel,
        *,
        request_id: str,
        prompts: Sequence[list[int]],
    ) -> None:
        options = request.stream_options
        self._streams = streams
        self._model = model
        self._n = request.n or 1
        self._has_stops = bool(StopRules.of(request).stop)
        self._ends_with_usage = bool(options and options.include_usage)
        self._has_usage = self._ends_with_usage and bool(options and options.continuous_usage_stats)
        self._head = {
            "id": request_id,
            "object": self.kind,
            "created": int(time.time()),
            "model": request.model or model.names[0],
        }
        self._prompts = prompts
        self._generated: Counter[int] = Counter()
        self._carried: dict[int, Carried] = {}
        self._over: set[int] = set()
        self._is_cut = False
        self._events = self._run()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._events

    def close(self) -> None:
        """End the engines' work. From any thread."""
        for stream in self._streams:
            stream.close()

    @abstractmethod
    def derendered(self, prompt: int, chunk: GenerateTokensStreamResponse, carried: Carried) -> Json:
        """The answer's chunk for one of engine `prompt`, which has one choice. Raises ApiError."""

    async def _run(self) -> AsyncIterator[bytes]:
        count_tokens(self._model.names[0], prompt=sum(map(len, self._prompts)), generated=0)
        try:
            async with aclosing(merged([stream.chunks() for stream in self._streams])) as chunks:
                async for prompt, chunk in chunks:
                    for choice in self._choices(chunk):
                        part = self._part(prompt, choice, chunk)
                        if part is not None:
                            yield event(part)
                    if len(self._over) == self._n * len(self._streams):
                        break
            if self._ends_with_usage:
                counts = sum(map(len, self._prompts)), self._generated.total()
                yield event({**self._head, "choices": [], "usage": _usage(*counts)})
            yield DONE
            if not self._is_cut:
                for stream in self._streams:
                    await stream.finish()
        except Exception as error:
            yield error_events(noted_error(error))
        finally:
            self.close()

    def _choices(self, chunk: GenerateTokensStreamResponse) -> Iterable[GenerateTokensStreamChoice]:
        """The choices of a chunk, token by token where one of them may complete a stop string."""
        return chain.from_iterable(map(one_by_one, chunk.choices)) if self._has_stops else chunk.choices

    def _part(
        self, prompt: int, choice: GenerateTokensStreamChoice, chunk: GenerateTokensStreamResponse
    ) -> Json | None:
        """The answer's chunk for one choice; None where it has nothing to say."""
        index = prompt * self._n + choice.index
        if index in self._over:
            return None
        self._generated[index] += len(choice.token_ids or ())
        choice.index = index
        carried = self._carried.setdefault(index, Carried(is_new=True, form="live"))
        is_alone = len(chunk.choices) == 1 and chunk.choices[0] is choice
        one = chunk if is_alone else chunk.model_copy(update={"choices": [choice]})
        one.request_id, one.usage = str(self._head["id"]), None
        one.prompt_token_ids = self._prompts[prompt] if carried.is_new else None
        with engine_to_blame():
            answer = {**self.derendered(prompt, one, carried), **self._head}
        answer["usage"] = _usage(len(self._prompts[prompt]), self._generated[index]) if self._has_usage else None
        if answer["choices"][0]["finish_reason"] is not None:
            self._over.add(index)
            self._is_cut |= choice.finish_reason is None
        return shown_chunk(answer, content=self.content)


def _usage(prompt: int, generated: int) -> Json:
    return answers.usage(prompt_tokens=prompt, completion_tokens=generated)
