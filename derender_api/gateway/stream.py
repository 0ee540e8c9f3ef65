"""A streamed answer: chunks of engines to server-sent events, with a live parser for every choice."""

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from typing import ClassVar

from derender_api import answers
from derender_api.exception_handler import api_error
from derender_api.gateway.engine_request import engine_request
from derender_api.gateway.engines import EngineStream, engines
from derender_api.gateway.events import DONE, error_events, event
from derender_api.gateway.merge import all_of, merged
from derender_api.gateway.shape import shown_chunk
from derender_api.loaded_model import LoadedModel
from derender_api.protocol.generate import GenerateTokensStreamChoice, GenerateTokensStreamResponse
from derender_api.protocol.openai_request import ChatCompletionRequest, CompletionRequest
from derender_api.services.common import Json
from derender_api.stream_state import Carried


async def open_streams(model: LoadedModel, rendered: Sequence[Json]) -> list[EngineStream]:
    """A stream for each engine request, all begun. Raises ApiError; then none is left open."""
    opened: list[EngineStream] = []

    async def opening(each: Json) -> EngineStream:
        stream = await engines.stream(model.configuration.engine_urls, engine_request(each, model))
        opened.append(stream)
        return stream

    try:
        return await all_of(opening(each) for each in rendered)
    except BaseException:
        for stream in opened:
            stream.close()
        raise


class AnswerStream(ABC):
    """The events of an answer. `streams[i]` is the engine's answer to `rendered[i]`; all have begun.

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
        prompt_tokens: int,
    ) -> None:
        options = request.stream_options
        self._streams = streams
        self._model = model
        self._n = request.n or 1
        self._ends_with_usage = bool(options and options.include_usage)
        self._has_usage = self._ends_with_usage and bool(options and options.continuous_usage_stats)
        self._head = {
            "id": request_id,
            "object": self.kind,
            "created": int(time.time()),
            "model": request.model or model.names[0],
        }
        self._prompt_tokens = prompt_tokens
        self._generated = 0
        self._carried: dict[int, Carried] = {}
        self._over: set[int] = set()
        self._events = self._run()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._events

    def close(self) -> None:
        """End the engines' work."""
        for stream in self._streams:
            stream.close()

    @abstractmethod
    def derendered(self, prompt: int, chunk: GenerateTokensStreamResponse, carried: Carried) -> Json:
        """The answer's chunk for one of engine `prompt`, which has one choice. Raises ApiError."""

    async def _run(self) -> AsyncIterator[bytes]:
        try:
            async for prompt, chunk in merged([stream.chunks() for stream in self._streams]):
                for choice in chunk.choices:
                    part = self._part(prompt, choice, chunk)
                    if part is not None:
                        yield event(part)
                if len(self._over) == self._n * len(self._streams):
                    break
            if self._ends_with_usage:
                yield event({**self._head, "choices": [], "usage": self._usage()})
            yield DONE
        except Exception as error:
            yield error_events(api_error(error))
        finally:
            self.close()

    def _part(
        self, prompt: int, choice: GenerateTokensStreamChoice, chunk: GenerateTokensStreamResponse
    ) -> Json | None:
        """The answer's chunk for one choice; None where it has nothing to say."""
        index = prompt * self._n + choice.index
        if index in self._over:
            return None
        self._generated += len(choice.token_ids or ())
        choice.index = index
        carried = self._carried.setdefault(index, Carried(is_new=True, form="live"))
        one = chunk if len(chunk.choices) == 1 else chunk.model_copy(update={"choices": [choice]})
        one.request_id, one.usage = str(self._head["id"]), None
        answer = {**self.derendered(prompt, one, carried), **self._head}
        answer["usage"] = self._usage() if self._has_usage else None
        if answer["choices"][0]["finish_reason"] is not None:
            self._over.add(index)
        return shown_chunk(answer, content=self.content)

    def _usage(self) -> Json:
        return answers.usage(prompt_tokens=self._prompt_tokens, completion_tokens=self._generated)
