"""A client's connection: uvicorn's protocol, with bounds for the headers of a request and errors in the API's shape."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

import orjson
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from derender_api.exceptions import ApiError, BadRequest, HeadersTooLarge, error_content

HEADER_SECONDS = 10.0
"""How long the headers of a request may take to arrive; the connection is closed then."""
HEADER_BYTES = 64 * 1024
"""How much of a request may arrive before its headers are complete."""
IDLE_SECONDS = 75
"""How long a connection may be kept without a request: longer than nginx keeps its own (60 seconds)."""
LINGER_SECONDS = 2.0
"""How long what a refused client still sends is thrown away."""
SWEEP_SECONDS = 2.0
"""How often connections are looked for whose headers take too long. One look for all costs less than a timer each."""


class _JoiningTransport:
    """Sends the head of an answer together with the body, where that follows at once.

    uvloop makes a system call for each write, and one less is a tenth more requests.
    """

    __slots__ = ("_head", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""

    def write(self, data: bytes) -> None:
        """Sends `data`, unless it is a head."""
        if self._head:
            head, self._head = self._head, b""
            self._transport.writelines((head, data))
        elif data.startswith(b"HTTP/1.1 "):
            self._head = data
            self._loop.call_soon(self._send_head)
        else:
            self._transport.write(data)

    def _send_head(self) -> None:
        if self._head and not self._transport.is_closing():
            self._transport.write(self._head)
        self._head = b""

    def write_eof(self) -> None:
        """Nothing more will be sent."""
        self._send_head()
        self._transport.write_eof()

    def close(self) -> None:
        """Hang up when everything is sent."""
        self._send_head()
        self._transport.close()

    def is_closing(self) -> bool:
        """Whether the connection is being closed."""
        return self._transport.is_closing()


class Connection(HttpToolsProtocol):
    """One connection. All that it waits for has a deadline: a request, its headers, its body (bodies.py)."""

    _is_swept = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: float | None = None
        self._in_body = False
        self._head_size = 0
        self._is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The first request may take its time, as the next one on a kept connection."""
        super().connection_made(transport)
        self.transport = _JoiningTransport(transport, self.loop)  # type: ignore[assignment]
        self._deadline = self.loop.time() + IDLE_SECONDS
        if not Connection._is_swept:
            Connection._is_swept = True
            self.loop.call_later(SWEEP_SECONDS, _sweep, self.connections, self.loop)

    @property
    def is_late(self) -> bool:
        """Whether what it waits for should have arrived by now."""
        return self._deadline is not None and self._deadline < self.loop.time()

    def data_received(self, data: bytes) -> None:
        """Reads on; what comes before the headers are complete is counted, and has a deadline."""
        if self._is_refused:
            return
        if not self._in_body:
            begins = not self._head_size or self._deadline is None  # it may have begun while another was answered
            if begins and (self.cycle is None or self.cycle.response_complete):
                self._deadline = self.loop.time() + HEADER_SECONDS
            self._head_size += len(data)
        super().data_received(data)
        if self._head_size > HEADER_BYTES and not self._is_refused:
            self._refuse(HeadersTooLarge())

    def on_headers_complete(self) -> None:
        """What follows is the body."""
        super().on_headers_complete()
        self._deadline, self._head_size, self._in_body = None, 0, True

    def on_message_complete(self) -> None:
        """What follows is the next request."""
        super().on_message_complete()
        self._in_body = False

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP."""
        self._refuse(BadRequest(msg))

    def _refuse(self, error: ApiError) -> None:
        body = orjson.dumps(error_content(error))
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        self.transport.write(STATUS_LINE[error.status] + head + body)
        # The client may still be sending: a connection that is closed at once would take the answer with it.
        self.transport.write_eof()
        self._is_refused, self._deadline = True, self.loop.time() + LINGER_SECONDS


def _sweep(connections: Collection[Any], loop: asyncio.AbstractEventLoop) -> None:
    """Close the connections that are late; look again while there are any."""
    for connection in [each for each in connections if each.is_late]:
        connection.transport.close()
    Connection._is_swept = bool(connections)
    if connections:
        loop.call_later(SWEEP_SECONDS, _sweep, connections, loop)
