"""Reads the bodies of requests on a worker's event loop, where slow clients hold up nobody.

What all of them hold in memory is bounded, and so is the time that one may take.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from derender_api.admission import SMALL_BODY_BYTES, BodyBudget
from derender_api.conf import conf
from derender_api.exceptions import BadRequest, PayloadTooLarge, RequestTimeout

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]

SWEEP_SECONDS = 2.0
"""How often bodies are looked for that take too long. One look for all costs less than a timer for each."""


@dataclass(slots=True)
class Held:
    """Bytes that a request has taken from the budget, until it is answered."""

    size: int = 0


class BodyReader:
    """Reads bodies in one worker."""

    def __init__(self) -> None:
        self._budget = BodyBudget()
        self._reading: dict[asyncio.Task[Any] | None, float] = {}
        self._late: set[asyncio.Task[Any]] = set()
        self._sweeping = False

    async def read(self, scope: Message, receive: Receive, held: Held) -> bytes:
        """The body; `release` what is `held` then, be it read or not.

        Raises BadRequest (the body breaks off or is no HTTP), PayloadTooLarge, Overloaded (too much in memory) or
        RequestTimeout.
        """
        limit = conf.max_body_bytes
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
        if length.isdigit() and int(length) > limit:
            raise PayloadTooLarge.of(limit)
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        self._reading[task] = loop.time()
        if not self._sweeping:
            self._sweeping = True
            loop.call_later(SWEEP_SECONDS, self._sweep, loop)
        try:
            return await self._read(receive, held, limit)
        except asyncio.CancelledError:
            if task is None or task not in self._late:
                raise
            self._late.discard(task)
            task.uncancel()
            raise RequestTimeout from None
        finally:
            del self._reading[task]

    async def _read(self, receive: Receive, held: Held, limit: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise BadRequest("The request body could not be read.")
            part = message.get("body", b"")
            size += len(part)
            if size > limit:
                raise PayloadTooLarge.of(limit)
            if size > SMALL_BODY_BYTES:
                self._budget.take(size - held.size, largest=limit)
                held.size = size
            if not message.get("more_body", False):
                return b"".join([*parts, part]) if parts else part
            parts.append(part)

    def release(self, held: Held) -> None:
        """The body is no longer needed."""
        if held.size:
            self._budget.give(held.size)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """End the reading of bodies that take too long; look again while any is being read."""
        deadline = loop.time() - conf.max_body_seconds
        for task, since in list(self._reading.items()):
            if since < deadline and task is not None and task not in self._late:
                self._late.add(task)
                task.cancel()
        self._sweeping = bool(self._reading)
        if self._sweeping:
            loop.call_later(SWEEP_SECONDS, self._sweep, loop)
