"""Where a worker answers: on its event loop, in a thread, or as a stream.

Small derender calls take less time than handing them to a thread, and are answered where they arrive. Everything else
that Django answers runs in threads. The gateway's endpoints, which wait for engines, run as coroutines.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from django.conf import settings

from derender_api.admission import admit
from derender_api.api_keys import key_store
from derender_api.bodies import BodyReader, Held
from derender_api.catalog import catalog
from derender_api.django_bridge import Answer, AsgiApplication, DjangoBridge, Message, Receive, Send
from derender_api.exceptions import ApiError
from derender_api.middleware import ADMITTED, REFUSED, takes_place

STREAMED = frozenset({"/v1/chat/completions", "/v1/completions"})
"""Paths of the gateway."""
SMALL = frozenset({"/v1/chat/completions/derender", "/v1/completions/derender", "/health", "/ping", "/version"})
"""Paths whose answers take about a millisecond where the request is small."""
SMALL_BODY = 32 * 1024
"""Bytes. A larger body means many tokens, or a long history to replay."""
ASIDE = frozenset({"/metrics", "/ready", "/load"})
"""Paths that those who watch the server ask; they do not wait behind work."""


class Dispatcher:
    """An ASGI application over Django's two sides."""

    def __init__(self, bridge: DjangoBridge, asgi: AsgiApplication, *, threads: int) -> None:
        self._bridge = bridge
        self._asgi = asgi
        self._threads = threads
        self._bodies = BodyReader()
        self._pool: ThreadPoolExecutor | None = None
        self._aside: ThreadPoolExecutor | None = None
        # A shared cache is asked over the network.
        self._may_answer_here = "locmem" in str(settings.CACHES["default"]["BACKEND"])

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        held = Held()
        try:
            body = await self._bodies.read(scope, receive, held)
            if scope["path"] in STREAMED:
                await self._asgi(scope, _again(body, receive), send)
            else:
                await (await self._answer(scope, body)).send_to(send)
        except ApiError as error:
            # Django's middleware answers it, which looks for the API key first, counts and logs.
            scope[REFUSED] = error
            await self._bridge.answer_small(scope, b"").send_to(send)
        finally:
            self._bodies.release(held)

    async def _answer(self, scope: Message, body: bytes) -> Answer:
        """The answer, here or in a thread. Raises Overloaded where too many requests wait."""
        path = scope["path"]
        if self._is_small(path, body):
            return self._bridge.answer_small(scope, body)
        # Made here, since threads do not survive the fork.
        if path in ASIDE:
            self._aside = self._aside or ThreadPoolExecutor(1, thread_name_prefix="aside")
            return await self._in_thread(self._aside, scope, body)
        self._pool = self._pool or ThreadPoolExecutor(self._threads, thread_name_prefix="answer")
        if not takes_place(scope["method"], path):
            return await self._in_thread(self._pool, scope, body)
        leave = admit()
        try:
            scope[ADMITTED] = True
            return await self._in_thread(self._pool, scope, body)
        finally:
            leave()

    async def _in_thread(self, pool: ThreadPoolExecutor, scope: Message, body: bytes) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(pool, self._bridge.answer, scope, body)

    def _is_small(self, path: str, body: bytes) -> bool:
        return (
            len(body) <= SMALL_BODY
            and path in SMALL
            and self._may_answer_here
            and catalog.is_fresh
            and key_store.is_fresh
        )


def _again(body: bytes, receive: Receive) -> Receive:
    """`receive` for an application that comes after the body was read."""
    unread: bytes | None = body

    async def received() -> Message:
        nonlocal unread
        if unread is None:
            return await receive()
        part, unread = unread, None
        return {"type": "http.request", "body": part, "more_body": False}

    return received
