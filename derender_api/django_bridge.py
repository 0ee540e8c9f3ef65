"""ASGI requests whose body has been read, answered by Django's synchronous side.

WSGI's own call has a cost per request that matters to small ones; what Django needs of it is a handful of variables.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from django.core import signals
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.http.response import HttpResponseBase

from derender_api.middleware import ADMITTED, REFUSED

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApplication = Callable[[Message, Receive, Send], Awaitable[None]]

BODILESS = (204, 304)
"""Statuses of answers that have no body, and do not tell its length."""
_NOTHING = BytesIO()
KNOWN_NAMES = 256
"""Most header names whose translation is remembered; clients choose them."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes

    @classmethod
    def of(cls, response: HttpResponseBase) -> "Answer":
        """The answer that Django gave, with its length."""
        headers = [
            (name.encode("latin-1"), value.encode("latin-1"))
            for name, value in response.items()
            if name != "Content-Length"
        ]
        headers += [(b"Set-Cookie", each.output(header="").strip().encode()) for each in response.cookies.values()]
        body = b"".join(response) if response.streaming else response.content  # type: ignore[attr-defined]
        if response.status_code not in BODILESS:
            headers.append((b"content-length", b"%d" % len(body)))
        return cls(response.status_code, headers, body)

    async def send_to(self, send: Send) -> None:
        """Send it."""
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": self.body})


class DjangoBridge(WSGIHandler):
    """Django's handler of synchronous requests, with its middleware."""

    def __init__(self) -> None:
        super().__init__()
        self._names = {b"content-type": "CONTENT_TYPE", b"content-length": "CONTENT_LENGTH"}

    def answer(self, scope: Message, body: bytes) -> Answer:
        """The answer to a request; the beginning and the end of it are signalled, which looks after connections."""
        environ = self.environ(scope, body)
        signals.request_started.send(sender=type(self), environ=environ)
        response = self.get_response(self._request(environ, body))
        try:
            return Answer.of(response)
        finally:
            response.close()

    def answer_small(self, scope: Message, body: bytes) -> Answer:
        """The same for a request that touches neither a database nor a shared cache."""
        return Answer.of(self.get_response(self._request(self.environ(scope, body), body)))

    def _request(self, environ: dict[str, Any], body: bytes) -> WSGIRequest:
        request = self.request_class(environ)
        request._body = body
        return request

    def environ(self, scope: Message, body: bytes) -> dict[str, Any]:
        """The variables of WSGI that Django reads. Headers that came several times are joined by commas."""
        host, port = scope.get("server") or ("localhost", 80)
        environ: dict[str, Any] = {
            "REQUEST_METHOD": scope["method"],
            "PATH_INFO": scope["path"].encode("utf-8", "surrogatepass").decode("latin-1"),
            "QUERY_STRING": scope["query_string"].decode("latin-1"),
            "SERVER_NAME": host,
            "SERVER_PORT": str(port),
            "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
            "wsgi.url_scheme": scope["scheme"],
            "wsgi.input": _NOTHING,
        }
        if scope.get("client"):
            environ["REMOTE_ADDR"] = scope["client"][0]
        for name, raw in scope["headers"]:
            key, value = self._names.get(name) or self._name(name), raw.decode("latin-1")
            environ[key] = f"{environ[key]},{value}" if key in environ else value
        if body:
            environ["CONTENT_LENGTH"] = str(len(body))
        for noted in (ADMITTED, REFUSED):
            if noted in scope:
                environ[noted] = scope[noted]
        return environ

    def _name(self, header: bytes) -> str:
        # It would pass for the header with hyphens, which a proxy may have set.
        if b"_" in header:
            return "derender.ignored"
        name = "HTTP_" + header.decode("latin-1").upper().replace("-", "_")
        if len(self._names) < KNOWN_NAMES:
            self._names[header] = name
        return name
