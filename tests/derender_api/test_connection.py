"""Connections on the wire: what a client may take its time for, and how what is no request is refused."""

import asyncio
import socket
import time
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import httpx
import orjson
import pytest
import uvicorn
from uvicorn.server import ServerState

from derender_api import connection as connection_module
from derender_api.connection import Connection
from tests.servers import Server, serving

pytestmark = pytest.mark.live

HEAD = b"GET /health HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all of them."""
    with serving(tmp_path_factory.mktemp("connection"), "--workers", "1") as server:
        yield server


@pytest.fixture
def connection(server: Server) -> Iterator[socket.socket]:
    """A new connection."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.settimeout(30)
        yield connection


def read(connection: socket.socket) -> tuple[bytes, bytes]:
    """Head and body of all that comes until the server hangs up."""
    received = b""
    while part := connection.recv(65536):
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    return head, body


def test_headers_that_do_not_end_are_refused(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"X-A: " + b"a" * 100_000)
    connection.sendall(b"a" * 1_000_000)

    head, body = read(connection)

    assert head.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json")
    assert orjson.loads(body)["error"]["type"] == "RequestHeaderFieldsTooLargeError"


@pytest.mark.parametrize("garbage", [b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/1.1\r\nno header\r\n\r\n"])
def test_what_is_no_http_is_refused_in_the_shape_of_the_api(connection: socket.socket, garbage: bytes) -> None:
    connection.sendall(garbage)

    head, body = read(connection)

    assert head.startswith(b"HTTP/1.1 400 ")
    assert orjson.loads(body)["error"] == {
        "message": "Invalid HTTP request received.",
        "type": "BadRequestError",
        "param": None,
        "code": 400,
    }


def test_slow_headers_end_the_connection(connection: socket.socket, server: Server) -> None:
    started = time.monotonic()
    connection.sendall(HEAD)

    assert connection.recv(65536) == b""
    assert 8 < time.monotonic() - started < 25
    assert httpx.get(server.url + "/health").status_code == 200


def test_headers_that_began_while_another_request_was_answered_have_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "HEADER_SECONDS", -1.0)

    async def late() -> list[bool]:
        answer = asyncio.Event()

        async def application(scope: Any, receive: Any, send: Any) -> None:
            await answer.wait()
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        config = uvicorn.Config(application, http=Connection, ws="none", lifespan="off", log_config=None)
        connection = Connection(config=config, server_state=ServerState(), app_state={})
        connection.connection_made(Mock(asyncio.Transport, **{"is_closing.return_value": False}))
        found = []
        for data in (HEAD + b"\r\n", HEAD, b"X"):
            connection.data_received(data)
            found.append(connection.is_late)
            if data == HEAD:
                answer.set()
                await asyncio.sleep(0.01)
        return found

    # While the first is answered nothing is waited for; the rest of the second is late then.
    assert asyncio.run(late()) == [False, False, True]


def test_requests_follow_each_other_on_a_connection(connection: socket.socket) -> None:
    body = b"{}" * 40_000
    request = b"POST /ping HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    for _ in range(3):
        connection.sendall(request)
        time.sleep(0.1)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
    # Two at once are answered in their order.
    connection.sendall(HEAD + b"\r\n" + HEAD + b"Connection: close\r\n\r\n")
    head, rest = read(connection)

    assert head.startswith(b"HTTP/1.1 200 ")
    assert rest.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close" in rest


@pytest.mark.parametrize("path", ["/health", "/v1/models", "/docs", "/admin/login/", "/static/nope", "/nope", "/admin"])
def test_answers_tell_their_length(server: Server, path: str) -> None:
    answer = httpx.get(server.url + path)

    assert answer.headers.get_list("content-length") == [str(len(answer.content))]
    assert "server" not in answer.headers
