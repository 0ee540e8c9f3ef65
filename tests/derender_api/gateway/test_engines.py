"""Calls of engines: which URL, how long, and once more elsewhere."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from derender_api.gateway.engine_stream import EngineStream
from derender_api.gateway.engines import Engines
from derender_api.gateway.errors import EngineFailed, EngineRefused, EngineTimeout
from tests.derender_api.gateway.calls import BROKEN, EITHER, REQUEST, WORKING, run, streamed, whole
from tests.replay_engine import Output, ReplayEngine, Script, error_body, replaying, until


@pytest.fixture
def two() -> Iterator[tuple[ReplayEngine, ReplayEngine]]:
    """Two engines that work."""
    with replaying(WORKING) as first, replaying(WORKING) as second:
        yield first, second


class TestCalls:
    """One engine."""

    @EITHER
    def test_tokens_come_back(self, call: Any) -> None:
        with replaying(WORKING) as engine:
            assert run(lambda engines: call(engines, engine.url)) == [5, 6, 7]

        assert engine.only.request["stream"] is (call is streamed)
        assert engine.only.request["token_ids"] == [1, 2]

    @pytest.mark.parametrize("tail", ["/", "/engine-1"])
    def test_a_url_may_have_a_path(self, tail: str) -> None:
        with replaying(WORKING) as engine, pytest.raises(EngineFailed, match="404") if tail != "/" else nullcontext():
            run(lambda engines: whole(engines, engine.url + tail))

    def test_the_key_of_the_engines_is_sent(self, settings_of_engines: Callable[..., None]) -> None:
        settings_of_engines(ENGINE_API_KEY="secret")
        with replaying(WORKING) as engine:
            run(lambda engines: whole(engines, engine.url))

        assert engine.only.headers["Authorization"] == "Bearer secret"

    @EITHER
    def test_a_connection_is_used_again(self, call: Any) -> None:
        async def several(engines: Engines) -> None:
            for _ in range(3):
                if call is whole:
                    await whole(engines, engine.url)
                else:
                    stream = await engines.stream([engine.url], REQUEST)
                    async for chunk in stream.chunks():
                        if chunk.choices[0].finish_reason:
                            break
                    await stream.finish()

        with replaying(WORKING) as engine:
            run(several)

        assert len({asked.connection for asked in engine.asked}) == 1
        assert not any(asked.was_aborted for asked in engine.asked)

    def test_a_stream_whose_end_does_not_come_is_closed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("derender_api.gateway.engine_stream.END_SECONDS", 0.05)

        async def complete(engines: Engines) -> None:
            stream = await engines.stream([engine.url], REQUEST)
            await stream.finish()
            assert engines.in_flight(engine.url) == 0

        with replaying(Script(outputs=[Output(token_ids=[5])], hangs_at=1)) as engine:
            run(complete)
            until(lambda: engine.only.was_aborted)

    def test_a_closed_stream_aborts_the_engines_work(self) -> None:
        async def one_chunk(engines: Engines) -> None:
            stream = await engines.stream([engine.url], REQUEST)
            assert engines.in_flight(engine.url) == 1
            stream.close()
            stream.close()
            assert engines.in_flight(engine.url) == 0

        with replaying(Script(outputs=[Output(token_ids=[5] * 1000)], pause=0.01)) as engine:
            run(one_chunk)
            until(lambda: engine.only.was_aborted)

        assert engine.only.sent < 1000

    def test_a_stream_may_be_closed_from_another_thread(self) -> None:
        async def close(engines: Engines) -> None:
            stream = await engines.stream([engine.url], REQUEST)
            await asyncio.to_thread(stream.close)
            await asyncio.sleep(0)
            assert engines.in_flight(engine.url) == 0

        with replaying(Script(outputs=[Output(token_ids=[5] * 1000)], pause=0.01)) as engine:
            run(close)
            until(lambda: engine.only.was_aborted)


class TestChoice:
    """Several URLs."""

    def test_urls_take_turns(self, two: tuple[ReplayEngine, ReplayEngine]) -> None:
        async def several(engines: Engines) -> None:
            for _ in range(6):
                await whole(engines, *(engine.url for engine in two))

        run(several)

        assert [len(engine.asked) for engine in two] == [3, 3]

    def test_the_one_with_fewer_calls_in_flight_is_next(self, two: tuple[ReplayEngine, ReplayEngine]) -> None:
        async def several(engines: Engines) -> None:
            busy: list[EngineStream] = [await engines.stream([two[0].url], REQUEST) for _ in range(3)]
            for _ in range(4):
                await whole(engines, *(engine.url for engine in two))
            for stream in busy:
                stream.close()

        run(several)

        assert [len(engine.asked) for engine in two] == [3, 4]

    def test_calls_at_once_are_spread(self, two: tuple[ReplayEngine, ReplayEngine]) -> None:
        async def at_once(engines: Engines) -> None:
            await asyncio.gather(*(streamed(engines, *(engine.url for engine in two)) for _ in range(10)))

        run(at_once)

        assert [len(engine.asked) for engine in two] == [5, 5]

    def test_one_that_failed_comes_last_for_a_while(self, two: tuple[ReplayEngine, ReplayEngine]) -> None:
        two[0].script = BROKEN

        async def several(engines: Engines) -> None:
            for _ in range(6):
                assert await whole(engines, *(engine.url for engine in two)) == [5, 6, 7]
            asked = len(two[0].asked)
            engines._down[two[0].url] = 0.0
            two[0].script = WORKING
            for _ in range(4):
                await whole(engines, *(engine.url for engine in two))
            assert (asked, len(two[0].asked)) == (1, 3)

        run(several)

    def test_one_that_failed_is_used_where_there_is_no_other(self) -> None:
        async def twice(engines: Engines) -> list[int]:
            with pytest.raises(EngineFailed):
                await whole(engines, engine.url)
            engine.script = WORKING
            return await whole(engines, engine.url)

        with replaying(BROKEN) as engine:
            assert run(twice) == [5, 6, 7]


class TestRetry:
    """Once, on another URL, before the first token."""

    @EITHER
    @pytest.mark.parametrize(
        "script",
        [
            BROKEN,
            Script(status=503, body=b"busy"),
            Script(outputs=WORKING.outputs, breaks_at=0),
            Script(outputs=WORKING.outputs, instead={0: b"data: {garbage\n\n"}),
            Script(outputs=WORKING.outputs, instead={0: b'data: {"error": {"message": "out of memory"}}\n\n'}),
            Script(ends=b""),
        ],
        ids=["500", "503", "break", "garbage", "error", "nothing"],
    )
    def test_an_engine_that_fails_before_its_first_token_is_replaced(self, call: Any, script: Script) -> None:
        if call is whole and script.ends == b"":
            script = Script(instead={0: b""})
        with replaying(script) as broken, replaying(WORKING) as working:

            async def several(engines: Engines) -> None:
                for _ in range(2):
                    assert await call(engines, broken.url, working.url) == [5, 6, 7]
                assert engines.in_flight(broken.url) == engines.in_flight(working.url) == 0

            run(several)

        assert (len(broken.asked), len(working.asked)) == (1, 2)

    @EITHER
    def test_an_engine_that_is_gone_is_replaced(self, call: Any, nobody: str) -> None:
        with replaying(WORKING) as working:
            tokens = run(lambda engines: _twice(call, engines, nobody, working.url))

        assert tokens == [5, 6, 7] * 2
        assert len(working.asked) == 2

    @EITHER
    def test_there_is_one_retry(self, call: Any) -> None:
        with (
            replaying(BROKEN) as first,
            replaying(BROKEN) as second,
            replaying(BROKEN) as third,
            pytest.raises(EngineFailed, match="out of memory"),
        ):
            run(lambda engines: call(engines, first.url, second.url, third.url))

        assert sum(len(engine.asked) for engine in (first, second, third)) == 2

    @EITHER
    def test_a_refused_request_is_refused_elsewhere_too(self, call: Any) -> None:
        refusing = Script(status=400, body=error_body("too long"))
        with (
            replaying(refusing) as first,
            replaying(refusing) as second,
            pytest.raises(EngineRefused, match="too long"),
        ):
            run(lambda engines: call(engines, first.url, second.url))

        assert len(first.asked) + len(second.asked) == 1

    def test_nothing_is_repeated_after_the_first_token(self) -> None:
        breaking = Script(outputs=WORKING.outputs, breaks_at=1)
        with (
            replaying(breaking) as first,
            replaying(breaking) as second,
            pytest.raises(EngineFailed, match="broke off"),
        ):
            run(lambda engines: streamed(engines, first.url, second.url))

        assert len(first.asked) + len(second.asked) == 1

    @EITHER
    def test_an_engine_that_hangs_is_not_waited_for_twice(
        self, call: Any, settings_of_engines: Callable[..., None]
    ) -> None:
        settings_of_engines(ENGINE_READ_SECONDS=0.1)
        hanging = Script(outputs=WORKING.outputs, hangs_at=0)
        with replaying(hanging) as first, replaying(hanging) as second:
            with pytest.raises(EngineTimeout, match=r"sent nothing for 0\.1 seconds"):
                run(lambda engines: call(engines, first.url, second.url))
            until(lambda: all(asked.was_aborted for asked in first.asked + second.asked))

        assert len(first.asked) + len(second.asked) == 1


async def _twice(call: Any, engines: Engines, *urls: str) -> list[int]:
    first: list[int] = await call(engines, *urls)
    second: list[int] = await call(engines, *urls)
    return first + second
