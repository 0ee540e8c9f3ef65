"""Load at a fixed rate, and what is counted of it."""

import asyncio

import pytest
from aiohttp import web

from derender_api.parity.application import CHAT
from derender_api.parity.held_load import Outcome, hold, measure_peak


class Server:
    """Answers with the next of `statuses`, again and again; None hangs up."""

    def __init__(self, statuses: list[int | None]) -> None:
        self.bodies: list[bytes] = []
        self._statuses = statuses

    async def answer(self, request: web.Request) -> web.Response:
        """One answer."""
        self.bodies.append(await request.read())
        status = self._statuses[(len(self.bodies) - 1) % len(self._statuses)]
        if status is None:
            assert request.transport is not None
            request.transport.close()
        return web.Response(status=status or 200, body=b"{}")


async def against(server: Server, measure) -> object:
    """What `measure` makes of the URL of `server`."""
    application = web.Application()
    application.router.add_post(CHAT, server.answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        return await measure(f"http://127.0.0.1:{runner.addresses[0][1]}")
    finally:
        await runner.cleanup()


def test_calls_keep_to_the_rate_and_faults_are_counted_by_name() -> None:
    server, disturbances = Server([200, 503, 200, None]), []

    outcome = asyncio.run(
        against(
            server,
            lambda url: hold(
                url, [b"a", b"b"], rate=100, seconds=0.4, every=0.1, disturb=lambda: disturbances.append(1)
            ),
        )
    )

    assert outcome.calls == 40
    assert len(outcome.latencies) == 20
    assert outcome.errors.pop("503") == 10
    assert len(outcome.errors) == 1
    assert server.bodies.count(b"a") == server.bodies.count(b"b") == 20
    assert disturbances
    assert outcome.percentile(0.5) > 0


def test_the_peak_counts_answers_only() -> None:
    server = Server([200, 500])

    peak = asyncio.run(against(server, lambda url: measure_peak(url, [b"x"], clients=2, seconds=0.2)))

    assert 0 < peak < len(server.bodies) / 0.2


@pytest.fixture
def outcome() -> Outcome:
    """A hundred calls of 1 to 100 milliseconds."""
    return Outcome(latencies=[number / 1000 for number in range(100, 0, -1)])


@pytest.mark.parametrize(("share", "milliseconds"), [(0.0, 1), (0.5, 51), (0.99, 100), (1.0, 100)])
def test_percentiles(outcome: Outcome, share: float, milliseconds: float) -> None:
    assert outcome.percentile(share) == pytest.approx(milliseconds)


def test_no_answer_has_no_percentile() -> None:
    assert Outcome().percentile(0.5) == 0.0
