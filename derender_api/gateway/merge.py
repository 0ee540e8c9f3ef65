"""Several coroutines or asynchronous streams as one."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

WAITING = 16
"""Items that wait for a slow reader before the sources are no longer read."""


async def all_of(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of all, in order. The first failure is raised, and ends those that have not ended."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        await _ended(tasks)


async def merged(sources: Sequence[AsyncIterator[T]]) -> AsyncGenerator[tuple[int, T]]:
    """Items as they come, with the number of their source. The first failure of a source ends all."""
    if len(sources) == 1:
        async for item in sources[0]:
            yield 0, item
        return
    queue: asyncio.Queue[tuple[int, T] | Exception | None] = asyncio.Queue(WAITING)

    async def read(number: int, source: AsyncIterator[T]) -> None:
        try:
            async for item in source:
                await queue.put((number, item))
        except Exception as error:
            await queue.put(error)
        else:
            await queue.put(None)

    readers = [asyncio.ensure_future(read(number, source)) for number, source in enumerate(sources)]
    left = len(readers)
    try:
        while left:
            entry = await queue.get()
            if isinstance(entry, Exception):
                raise entry
            if entry is None:
                left -= 1
            else:
                yield entry
    finally:
        await _ended(readers)


async def _ended(tasks: Sequence[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
