"""Several coroutines or streams as one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from derender_api.gateway.merge import WAITING, all_of, merged


class Numbers:
    """A source that counts what was taken from it, and notes its end."""

    def __init__(self, count: int, *, fails: bool = False, pause: float = 0.0) -> None:
        self.count, self.fails, self.pause = count, fails, pause
        self.given = 0
        self.is_closed = False

    async def __aiter__(self) -> AsyncIterator[int]:
        try:
            for number in range(self.count):
                await asyncio.sleep(self.pause)
                self.given += 1
                yield number
            if self.fails:
                raise ValueError("broken")
        finally:
            self.is_closed = True


async def collected(*sources: Numbers) -> list[tuple[int, int]]:
    """Everything that the sources give."""
    async with aclosing(merged([aiter(source) for source in sources])) as items:
        return [item async for item in items]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_everything_comes_in_the_order_of_its_source(count: int) -> None:
    items = asyncio.run(collected(*(Numbers(40) for _ in range(count))))

    for source in range(count):
        assert [number for origin, number in items if origin == source] == list(range(40))
    assert len(items) == 40 * count


def test_a_slow_source_does_not_hold_up_the_others() -> None:
    items = asyncio.run(collected(Numbers(2, pause=0.05), Numbers(2)))

    assert [source for source, _ in items] == [1, 1, 0, 0]


@pytest.mark.parametrize("others", [0, 1])
def test_a_failure_ends_all(others: int) -> None:
    rest = [Numbers(1000, pause=0.01) for _ in range(others)]

    with pytest.raises(ValueError, match="broken"):
        asyncio.run(collected(Numbers(2, fails=True), *rest))

    assert all(source.is_closed and source.given < 1000 for source in rest)


def test_what_is_not_taken_is_not_read() -> None:
    sources = [Numbers(1000), Numbers(1000)]

    async def take_one() -> int:
        async with aclosing(merged([aiter(source) for source in sources])) as items:
            await anext(items)
            await asyncio.sleep(0.02)
            return sum(source.given for source in sources)

    assert asyncio.run(take_one()) <= WAITING + 3
    assert [source.is_closed for source in sources] == [True, True]


def test_results_keep_their_order() -> None:
    async def later(seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds

    async def main() -> list[float]:
        return await all_of(later(seconds) for seconds in (0.02, 0.0, 0.01))

    assert asyncio.run(main()) == [0.02, 0.0, 0.01]


def test_a_failed_call_ends_the_others() -> None:
    ended = []

    async def waiting() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("waiting")

    async def failing() -> None:
        raise ValueError("broken")

    async def main() -> None:
        try:
            await all_of([waiting(), failing()])
        finally:
            assert ended == ["waiting"]

    with pytest.raises(ValueError, match="broken"):
        asyncio.run(main())
