"""Calls of engines (`POST /inference/v1/generate`): which of a model's URLs, for how long, and once more elsewhere."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import aiohttp
from pydantic import ValidationError

from derender_api.answers import encoded
from derender_api.conf import conf
from derender_api.gateway.engine_stream import EngineStream
from derender_api.gateway.errors import (
    EngineError,
    EngineFailed,
    EngineTimeout,
    EngineUnreachable,
    error_of_status,
    first_problem,
    name_of,
)
from derender_api.protocol.generate import GenerateTokensResponse

logger = logging.getLogger(__name__)

GENERATE = "/inference/v1/generate"
DOWN_SECONDS = 5.0
"""How long a URL that failed is only used where there is no other."""
IDLE_SECONDS = 4.0
"""How long an idle connection is kept: vLLM closes it after five seconds, perhaps in the moment in which it is used."""

T = TypeVar("T")
Json = dict[str, Any]


class Engines:
    """The connections of this process to all engines."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._in_flight: Counter[str] = Counter()
        self._down: dict[str, float] = {}
        self._turn = 0

    async def whole(self, urls: Sequence[str], request: Json) -> GenerateTokensResponse:
        """The engine's whole response. Raises ApiError."""

        async def call(url: str) -> GenerateTokensResponse:
            self._in_flight[url] += 1
            try:
                async with self._post(url, {**request, "stream": False, "stream_options": None}) as response:
                    body = await response.read()
                    _require_success(response, body)
            finally:
                self._in_flight[url] -= 1
            try:
                return GenerateTokensResponse.model_validate_json(body)
            except ValidationError as error:
                raise EngineFailed(f"The engine's response is not one: {first_problem(error)}") from error

        return await self._elsewhere(urls, call)

    async def stream(self, urls: Sequence[str], request: Json) -> EngineStream:
        """A stream whose first chunk has come. Raises ApiError."""

        async def call(url: str) -> EngineStream:
            self._in_flight[url] += 1
            stream = None
            try:
                response = await self._post(url, {**request, "stream": True})
                stream = EngineStream(
                    response, release=lambda: self._release(url), note=lambda failure: self._note(url, failure)
                )
                if response.status != 200:
                    _require_success(response, await response.read())
                await stream.begin()
                return stream
            except BaseException:
                if stream is None:
                    self._release(url)
                else:
                    stream.close()
                raise

        return await self._elsewhere(urls, call)

    def in_flight(self, url: str) -> int:
        """Calls of `url` that have not ended."""
        return self._in_flight[url]

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _release(self, url: str) -> None:
        self._in_flight[url] -= 1

    def _post(self, url: str, request: Json) -> Any:
        # A proxy in between that compresses a stream would collect its events.
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if conf.engine_api_key:
            headers["Authorization"] = f"Bearer {conf.engine_api_key}"
        return self._open_session().post(
            url.rstrip("/") + GENERATE, data=encoded(request), headers=headers, allow_redirects=False
        )

    def _open_session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._session is None or self._loop is not loop:
            self._loop = loop
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS),
                timeout=aiohttp.ClientTimeout(
                    total=None, connect=conf.engine_connect_seconds, sock_read=conf.engine_read_seconds
                ),
                # Whatever an engine's host sends, nothing of it is kept for the next caller.
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    async def _elsewhere(self, urls: Sequence[str], call: Callable[[str], Awaitable[T]]) -> T:
        """`call` with one of the URLs, and where that engine fails before it sent anything, once more with another."""
        url = self._choose(urls)
        try:
            return await self._tried(url, call)
        except (EngineUnreachable, EngineFailed):
            others = [other for other in urls if other != url]
            if not others:
                raise
            return await self._tried(self._choose(others), call)

    async def _tried(self, url: str, call: Callable[[str], Awaitable[T]]) -> T:
        try:
            answer = await _with_named_failures(call(url))
        except EngineError as failure:
            self._note(url, failure)
            raise
        self._down.pop(url, None)
        return answer

    def _note(self, url: str, failure: EngineError) -> None:
        logger.warning("Engine %s: %s", url, failure)
        self._down[url] = time.monotonic() + DOWN_SECONDS

    def _choose(self, urls: Sequence[str]) -> str:
        """The URL with the fewest calls in flight, in turns where several have; one that failed lately comes last."""
        self._turn += 1
        now, count = time.monotonic(), len(urls)
        places = [(self._turn + place) % count for place in range(count)]
        return min(
            (urls[place] for place in places), key=lambda url: (self._down.get(url, 0.0) > now, self._in_flight[url])
        )


async def _with_named_failures(call: Awaitable[T]) -> T:
    try:
        return await call
    except aiohttp.ConnectionTimeoutError as error:
        raise EngineUnreachable("The engine could not be reached in time.") from error
    except TimeoutError as error:
        raise EngineTimeout(f"The engine sent nothing for {conf.engine_read_seconds:g} seconds.") from error
    except aiohttp.ClientConnectorError as error:
        raise EngineUnreachable(f"The engine could not be reached: {name_of(error)}.") from error
    except (aiohttp.ClientError, OSError) as error:
        raise EngineFailed(f"The engine broke off its answer: {name_of(error)}.") from error


def _require_success(response: aiohttp.ClientResponse, body: bytes) -> None:
    if response.status != 200:
        raise error_of_status(response.status, body, retry_after=response.headers.get("Retry-After"))


engines = Engines()
