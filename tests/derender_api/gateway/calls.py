"""Calls of replay engines without the rest of the server."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from derender_api.gateway.engines import Engines
from tests.replay_engine import Output, Script, error_body

REQUEST = {"token_ids": [1, 2], "sampling_params": {}}
WORKING = Script(outputs=[Output(token_ids=[5, 6, 7])])
BROKEN = Script(status=500, body=error_body("out of memory", type="InternalServerError", code=500))


def run(work: Callable[[Engines], Awaitable[Any]]) -> Any:
    """What `work` gives with fresh connections."""

    async def main() -> Any:
        engines = Engines()
        try:
            return await work(engines)
        finally:
            await engines.close()

    return asyncio.run(main())


async def whole(engines: Engines, *urls: str) -> list[int]:
    """The token IDs of a whole response."""
    response = await engines.whole(urls, REQUEST)
    assert response.choices[0].token_ids is not None
    return response.choices[0].token_ids


async def streamed(engines: Engines, *urls: str) -> list[int]:
    """The token IDs of a stream."""
    stream = await engines.stream(urls, REQUEST)
    try:
        return [token_id async for chunk in stream.chunks() for token_id in chunk.choices[0].token_ids or ()]
    finally:
        stream.close()


EITHER = pytest.mark.parametrize("call", [whole, streamed])
"""Whole and streamed."""
