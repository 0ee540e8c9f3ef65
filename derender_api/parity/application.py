"""The service as its clients see it: HTTP in, JSON out; in this process through the WSGI application, or over the wire.

Both sides of a comparison are posted the same bodies: those that were posted to vLLM for the recordings.
"""

import io
import json
from collections.abc import Mapping, Sequence
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Protocol
from urllib.parse import urlsplit

from derender_api.parity.observed import HttpAnswer, Streamed, recorded_chunk
from derender_api.parity.suite import JSON_TYPE, Case, Exchange, dumps

CHAT = "/v1/chat/completions/derender"
REQUEST_ID = "rec"


class Application(Protocol):
    """Something that answers HTTP requests."""

    def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        """The answer to one request."""
        ...


class InProcess:
    """The project's WSGI application, called in this process."""

    def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        """The answer to one request, through every middleware."""
        status: list[int] = []

        def start_response(line: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
            status.append(int(line.split(" ", 1)[0]))

        response = _wsgi_application()(_environ(method, path, headers, body), start_response)
        try:
            content = b"".join(response)
        finally:
            if hasattr(response, "close"):
                response.close()
        return HttpAnswer(status[0], decoded(content))


class Remote:
    """A running server, over one kept connection."""

    def __init__(self, url: str, *, timeout: float = 120.0, headers: Mapping[str, str] | None = None) -> None:
        self._parts = urlsplit(url)
        self._headers = headers or {}
        kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
        self._connection = kind(self._parts.hostname or "127.0.0.1", self._parts.port, timeout=timeout)

    def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        """The answer to one request; a connection that the server closed meanwhile is opened again once."""
        status, content = self.exchange(method, path, headers, body)
        return HttpAnswer(status, decoded(content))

    def exchange(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        """Status and undecoded body of one answer."""
        for attempt in (1, 2):
            try:
                self._connection.request(method, self._parts.path + path, body or None, {**self._headers, **headers})
                response = self._connection.getresponse()
                return response.status, response.read()
            except (HTTPException, ConnectionError):
                self._connection.close()
                if attempt == 2:
                    raise
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def post_oneshot(application: Application, case: Case) -> HttpAnswer:
    """The one-shot answer to a case."""
    return application.send("POST", CHAT, JSON_TYPE, dumps(oneshot_body(case)))


def post_stream(application: Application, case: Case, lens: Sequence[int], *, compact: bool = False) -> Streamed:
    """The streamed answer to a case in chunks of `lens` tokens; ends with the first refusal.

    `compact`: in the compact form, with prompt and request in the first call and where they are asked for.
    """
    chunks: list[Any] = []
    state: Any = None
    start = 0
    for index, length in enumerate(lens):
        part = case.output_token_ids[start : start + length]
        start += length
        body = chunk_body(case, part, state=state, last=index == len(lens) - 1)
        answer = (_send_compact if compact else _send_chunk)(application, body)
        if answer.status != 200:
            return Streamed(answer.status, [*chunks, answer.body])
        chunks.append(recorded_chunk(answer.body))
        state = answer.body["stream_state"]
    return Streamed(200, chunks)


def _send_chunk(application: Application, body: Mapping[str, Any]) -> HttpAnswer:
    return application.send("POST", CHAT, JSON_TYPE, dumps(body))


def _send_compact(application: Application, body: Mapping[str, Any]) -> HttpAnswer:
    if body["stream_state"] is None:
        return _send_chunk(application, {**body, "stream_state_format": "compact"})
    short = {key: value for key, value in body.items() if key not in ("prompt_token_ids", "chat_request")}
    answer = _send_chunk(application, short)
    return _send_chunk(application, {**short, "chat_request": body["chat_request"]}) if answer.status == 409 else answer


def post_exchanges(application: Application, exchanges: Sequence[Exchange]) -> list[HttpAnswer]:
    """The answers to the requests of an HTTP case."""
    return [application.send(each.method, each.path, each.headers, each.sent) for each in exchanges]


def oneshot_body(case: Case) -> dict[str, Any]:
    """The one-shot request of a case, as it was posted for the recordings."""
    choice = {
        "index": 0,
        "finish_reason": case.finish_reason,
        "stop_reason": case.stop_reason,
        "token_ids": case.output_token_ids,
    }
    if case.logprobs:
        choice["logprobs"] = case.logprobs
    prompt = case.prompt_token_ids
    return {
        "generate_response": {"request_id": REQUEST_ID, "choices": [choice], "prompt_token_ids": prompt},
        "prompt_tokens": len(prompt),
        "chat_request": case.request,
    }


def chunk_body(case: Case, token_ids: Sequence[int], *, state: Any, last: bool) -> dict[str, Any]:
    """The request of one chunk, as it was posted for the recordings; the finish reason travels with the last."""
    choice: dict[str, Any] = {"index": 0, "token_ids": token_ids, "finish_reason": None}
    if last:
        choice |= {"finish_reason": case.finish_reason, "stop_reason": case.stop_reason}
    return {
        "stream": True,
        "generate_chunk": {"request_id": REQUEST_ID, "choices": [choice]},
        "stream_state": state,
        "prompt_tokens": len(case.prompt_token_ids),
        "prompt_token_ids": case.prompt_token_ids,
        "chat_request": {**case.request, "stream": True},
    }


def decoded(content: bytes) -> Any:
    """A body as JSON, as text where it is none."""
    try:
        return json.loads(content)
    except ValueError:
        return content.decode("utf-8", "replace")


@cache
def _wsgi_application() -> Any:
    from django.core.handlers.wsgi import WSGIHandler

    return WSGIHandler()


def _environ(method: str, path: str, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """A WSGI environment as a server on localhost makes it."""
    path, _, query = path.partition("?")
    environ = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": "localhost",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": False,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name, value in headers.items():
        key = name.upper().replace("-", "_")
        environ[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"] = value
    return environ
