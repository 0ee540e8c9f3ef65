"""Where a worker answers: on its event loop, in a thread, or as a stream.

Small derender calls take less time than handing them to a thread, and are answered where they arrive. Everything else
that Django answers runs in threads. The gateway's endpoints, which wait for engines, run as coroutines.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from django.conf import settings

from derender_api.api_keys import key_store
from derender_api.catalog import catalog
from derender_api.conf import conf
from derender_api.django_bridge import Answer, AsgiApplication, DjangoBridge, Message, Receive, Send
from derender_api.exceptions import PayloadTooLarge
from derender_api.views_errors import error_response

STREAMED = frozenset({"/v1/chat/completions", "/v1/completions"})
"""Paths of the gateway."""
SMALL = frozenset({"/v1/chat/completions/derender", "/v1/completions/derender", "/health", "/ping", "/version"})
"""Paths whose answers take about a millisecond where the request is small."""
SMALL_BODY = 32 * 1024
"""Bytes. A larger body means many tokens, or a long history to replay."""


class ClientGone(Exception):
    """The client closed its connection before its request was complete."""


class Dispatcher:
    """An ASGI application over Django's two sides."""

    def __init__(self, bridge: DjangoBridge, asgi: AsgiApplication, *, threads: int) -> None:
        self._bridge = bridge
        self._asgi = asgi
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        # A shared cache is asked over the network.
        self._may_answer_here = "locmem" in settings.CACHES["default"]["BACKEND"]

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            body = await _read(scope, receive)
        except ClientGone:
            return
        if body is None:
            await _too_large().send_to(send)
        elif scope["path"] in STREAMED:
            await self._asgi(scope, _again(body, receive), send)
        elif self._is_small(scope, body):
            await self._bridge.answer_small(scope, body).send_to(send)
        else:
            # Made here, since threads do not survive the fork.
            self._pool = self._pool or ThreadPoolExecutor(self._threads, thread_name_prefix="answer")
            answer = await asyncio.get_running_loop().run_in_executor(self._pool, self._bridge.answer, scope, body)
            await answer.send_to(send)

    def _is_small(self, scope: Message, body: bytes) -> bool:
        return (
            len(body) <= SMALL_BODY
            and scope["path"] in SMALL
            and self._may_answer_here
            and catalog.is_fresh
            and key_store.is_fresh
        )


async def _read(scope: Message, receive: Receive) -> bytes | None:
    """The body; None where it is larger than the limit, of which no more is read. Raises ClientGone."""
    limit, parts, size = conf.max_body_bytes, list[bytes](), 0
    length = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    if length.isdigit() and int(length) > limit:
        return None
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            return None
        if not message.get("more_body", False):
            return b"".join([*parts, part]) if parts else part
        parts.append(part)


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


def _too_large() -> Answer:
    return Answer.of(
        error_response(PayloadTooLarge(f"The request body exceeds the limit of {conf.max_body_bytes} bytes."))
    )
