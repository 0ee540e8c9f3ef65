"""A stream's cost: token by token, with what a call costs at its beginning and at its end."""

import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from derender_api.parity.application import CHAT, Remote
from derender_api.parity.benchmark_work import Work
from derender_api.parity.suite import JSON_TYPE

SAMPLE = 9
"""Calls whose median stands for one of them."""


class BenchmarkError(Exception):
    """A server did not answer as it should: nothing can be measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCost:
    """One stream. `total` seconds of all calls; seconds and bytes, both ways, of a call near the tenth and of the last.

    `carried` is the number of bytes, both ways, of all calls.
    """

    total: float
    tenth: float
    last: float
    last_bytes: int
    carried: int


def stream_cost(url: str, work: Work, token_ids: Sequence[int], *, prompt: Sequence[int], form: str) -> StreamCost:
    """Sends a whole stream, a token a call. Raises BenchmarkError."""
    server, state = Remote(url), None
    seconds, sizes = [], []
    for index, token_id in enumerate(token_ids):
        body = work.chunk([token_id], prompt=prompt, state=state, form=form, last=index == len(token_ids) - 1)
        started = time.perf_counter()
        status, content = server.exchange("POST", CHAT, JSON_TYPE, body)
        seconds.append(time.perf_counter() - started)
        if status != 200:
            raise BenchmarkError(f"{url} answered {status}: {content[:300]!r}")
        sizes.append(len(body) + len(content))
        state = json.loads(content)["stream_state"]
    server.close()
    return StreamCost(
        total=sum(seconds),
        tenth=statistics.median(seconds[10 - SAMPLE // 2 - 1 : 10 + SAMPLE // 2] or seconds),
        last=statistics.median(seconds[-SAMPLE:]),
        last_bytes=sizes[-1],
        carried=sum(sizes),
    )
