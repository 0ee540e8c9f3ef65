"""One streamed call of an engine: its chunks, its end, and what breaks it off."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import aiohttp
from pydantic import ValidationError

from derender_api.conf import conf
from derender_api.event_loop import on_event_loop
from derender_api.gateway.errors import (
    EngineError,
    EngineFailed,
    EngineTimeout,
    error_of_event,
    first_problem,
    name_of,
)
from derender_api.gateway.events import EventReader
from derender_api.protocol.generate import GenerateTokensStreamResponse

END_OF_STREAM = b"[DONE]"
END_SECONDS = 1.0
"""How long the end of a stream may take once all of its outputs are complete."""


class EngineStream:
    """The chunks of one streamed call. Must be closed, which makes the engine give up what it has not sent."""

    def __init__(
        self, response: aiohttp.ClientResponse, *, release: Callable[[], None], note: Callable[[EngineError], None]
    ) -> None:
        self._response = response
        self._release = release
        self._note = note
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._chunks = self._read()
        self._first: GenerateTokensStreamResponse | None = None

    async def begin(self) -> None:
        """Wait for the first chunk. Raises ApiError."""
        self._first = await anext(self._chunks, None)
        if self._first is None:
            raise EngineFailed("The engine's stream ended before its first chunk.")

    async def chunks(self) -> AsyncIterator[GenerateTokensStreamResponse]:
        """Every chunk, the first one included. Raises EngineError where the stream breaks off."""
        if self._first is not None:
            yield self._first
        try:
            async for chunk in self._chunks:
                yield chunk
        except EngineError as failure:
            self._note(failure)
            raise

    async def finish(self) -> None:
        """Read what comes behind complete outputs, so that the connection can be used again; close the stream."""
        with suppress(TimeoutError, aiohttp.ClientError, OSError):
            async with asyncio.timeout(END_SECONDS):
                await self._response.content.read()
        self.close()

    def close(self) -> None:
        """Close the connection unless the stream has ended. From any thread."""
        if self._closed:
            return
        if not on_event_loop():
            self._loop.call_soon_threadsafe(self.close)
        else:
            self._closed = True
            self._response.close()
            self._release()

    async def _read(self) -> AsyncIterator[GenerateTokensStreamResponse]:
        reader = EventReader()
        try:
            async for part in self._response.content.iter_any():
                for data in reader.feed(part):
                    if data == END_OF_STREAM:
                        return
                    yield _chunk(data)
        except TimeoutError:
            raise EngineTimeout(f"The engine sent nothing for {conf.engine_read_seconds:g} seconds.") from None
        except (aiohttp.ClientError, OSError) as error:
            raise EngineFailed(f"The engine broke off its stream: {name_of(error)}.") from error
        raise EngineFailed("The engine's stream ended without [DONE].")


def _chunk(data: bytes) -> GenerateTokensStreamResponse:
    error = error_of_event(data)
    if error is not None:
        raise error
    try:
        return GenerateTokensStreamResponse.model_validate_json(data)
    except ValidationError as problem:
        raise EngineFailed(f"The engine sent what is no chunk: {first_problem(problem)}") from problem
