"""Load that is held for minutes: calls at a fixed rate, whether earlier ones were answered or not."""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import aiohttp

from derender_api.parity.application import CHAT
from derender_api.parity.suite import JSON_TYPE

LONGEST_WAIT = 30.0
"""Seconds after which a call counts as lost."""


@dataclass(slots=True)
class Outcome:
    """What became of the calls. `latencies` are in seconds; `errors` counts statuses and failures by name."""

    latencies: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)

    @property
    def calls(self) -> int:
        """Calls that were answered or lost."""
        return len(self.latencies) + self.errors.total()

    def percentile(self, share: float) -> float:
        """The latency in milliseconds that `share` of the answered calls stay below."""
        ordered = sorted(self.latencies)
        return ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000 if ordered else 0.0


async def measure_peak(url: str, bodies: Sequence[bytes], *, clients: int, seconds: float) -> float:
    """Calls per second that `clients` get answered, each sending its next call when the last was answered."""
    outcome, turns = Outcome(), itertools.cycle(bodies)
    async with _session() as session:
        started = time.perf_counter()

        async def client() -> None:
            while time.perf_counter() - started < seconds:
                await _call(session, url, next(turns), outcome)

        await asyncio.gather(*(client() for _ in range(clients)))
        return len(outcome.latencies) / (time.perf_counter() - started)


async def hold(
    url: str,
    bodies: Sequence[bytes],
    *,
    rate: float,
    seconds: float,
    every: float | None = None,
    disturb: Callable[[], None] = lambda: None,
) -> Outcome:
    """`rate` calls per second for `seconds`; `disturb` is called each `every` seconds."""
    outcome, turns, calls = Outcome(), itertools.cycle(bodies), set[asyncio.Task[None]]()
    async with _session() as session:
        started = time.perf_counter()
        disturbances = 1
        for number in range(int(rate * seconds)):
            ahead = started + number / rate - time.perf_counter()
            if ahead > 0:
                await asyncio.sleep(ahead)
            if every is not None and time.perf_counter() - started > every * disturbances:
                disturbances += 1
                disturb()
            call = asyncio.ensure_future(_call(session, url, next(turns), outcome))
            calls.add(call)
            call.add_done_callback(calls.discard)
        await asyncio.gather(*calls)
    return outcome


def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=LONGEST_WAIT), headers=JSON_TYPE
    )


async def _call(session: aiohttp.ClientSession, url: str, body: bytes, outcome: Outcome) -> None:
    started = time.perf_counter()
    try:
        async with session.post(url + CHAT, data=body) as response:
            await response.read()
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        outcome.errors[type(error).__name__] += 1
        return
    if response.status == 200:
        outcome.latencies.append(time.perf_counter() - started)
    else:
        outcome.errors[str(response.status)] += 1
