"""How much is taken on: bodies in the memory of a worker, requests that all workers work on or let wait."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from derender_api.conf import conf
from derender_api.exceptions import Overloaded
from derender_api.load import requests_in_flight

SMALL_BODY_BYTES = 64 * 1024
BODIES_AT_ONCE = 4
"""Bodies of the largest size permitted that a worker holds at once."""


class BodyBudget:
    """Bounds the memory of a worker for request bodies. Small ones are not counted: the connections are bounded."""

    def __init__(self) -> None:
        self._held = 0
        self._lock = threading.Lock()

    def take(self, size: int, *, largest: int) -> None:
        """Room for `size` more bytes, until they are given back. Raises Overloaded where there is none."""
        with self._lock:
            if self._held + size > max(BODIES_AT_ONCE * largest, SMALL_BODY_BYTES):
                raise Overloaded
            self._held += size

    def give(self, size: int) -> None:
        """Give back what was taken."""
        with self._lock:
            self._held -= size

    @contextmanager
    def reserved(self, size: int, *, largest: int) -> Iterator[None]:
        """Room for a body of `size` bytes within the block; raises Overloaded where there is none."""
        if size <= SMALL_BODY_BYTES:
            yield
            return
        self.take(size, largest=largest)
        try:
            yield
        finally:
            self.give(size)


def admit() -> Callable[[], None]:
    """Count a request that is to be worked on; gives what ends it. Raises Overloaded above the limit (settings)."""
    if not requests_in_flight.enter(limit=conf.max_concurrent_requests):
        raise Overloaded
    return requests_in_flight.leave
