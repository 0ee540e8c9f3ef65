"""Requests that no client library sends, on the wire: none of them is a failure of the server's."""

import re
import socket
from collections.abc import Iterator

import httpx
import pytest

from tests.servers import Server, serving

pytestmark = pytest.mark.live

HOST = b"Host: x\r\n"
POST = b"POST /v1/chat/completions/derender HTTP/1.1\r\nContent-Type: application/json\r\n" + HOST
CASES = {
    "a path of any bytes": b"GET /\xff\xfe HTTP/1.1\r\n" + HOST,
    "an escaped path that is no UTF-8": b"GET /%ff%00%fe HTTP/1.1\r\n" + HOST,
    "half a surrogate pair": b"GET /%ed%a0%80 HTTP/1.1\r\n" + HOST,
    "a query of any bytes": b"GET /health?a=\xff HTTP/1.1\r\n" + HOST,
    "no host": b"GET /health HTTP/1.1\r\n",
    "a host of any bytes": b"GET /v1/models HTTP/1.1\r\nHost: a b/\xff\r\n",
    "HTTP 1.0": b"GET /health HTTP/1.0\r\n",
    "HTTP 2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00",
    "a length that is a word": POST + b"Content-Length: abc\r\n",
    "a negative length": POST + b"Content-Length: -1\r\n",
    "two lengths": POST + b"Content-Length: 2\r\nContent-Length: 3\r\n",
    "a length beside chunks": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n",
    "a chunk that is none": POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}",
    "a compressed body": POST + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
    "an unknown method": b"BREW /v1/models HTTP/1.1\r\n" + HOST,
    "TRACE": b"TRACE /v1/models HTTP/1.1\r\n" + HOST,
    "CONNECT": b"CONNECT a:443 HTTP/1.1\r\n" + HOST,
    "OPTIONS of everything": b"OPTIONS * HTTP/1.1\r\n" + HOST,
    "a path of 60 KB": b"GET /" + b"a" * 60_000 + b" HTTP/1.1\r\n" + HOST,
    "a header of 200 KB": b"GET /health HTTP/1.1\r\nX-A: " + b"a" * 200_000 + b"\r\n" + HOST,
    "many headers": b"GET /health HTTP/1.1\r\n" + HOST + b"".join(b"X-%d: 1\r\n" % number for number in range(200)),
    "headers of any bytes": b"GET /v1/models HTTP/1.1\r\nAuthorization: Bearer \xff\r\nX-Request-Id: \xff\r\n" + HOST,
    "cookies of any bytes": b'GET /admin/ HTTP/1.1\r\nCookie: sessionid=\xff; csrftoken="\r\n' + HOST,
    "a way out of the folder": b"GET /static/../../etc/passwd HTTP/1.1\r\n" + HOST,
    "a line break in a redirect": b"GET /health/?%0d%0aX:1 HTTP/1.1\r\n" + HOST,
    "a websocket": b"GET /health HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + HOST,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all of them."""
    with serving(tmp_path_factory.mktemp("raw"), "--workers", "1") as server:
        yield server


@pytest.mark.parametrize("request_", CASES.values(), ids=CASES)
def test_no_answer_is_a_failure(server: Server, request_: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.settimeout(30)
        connection.sendall(request_ + b"\r\n")
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(65536)

    # A server may also hang up on what is no HTTP.
    assert not answer or re.match(rb"HTTP/1\.[01] [1-4]\d\d ", answer), answer[:200]
    assert httpx.get(server.url + "/health").status_code == 200
