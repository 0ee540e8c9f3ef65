"""Where a request is answered, and what becomes of its body."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
import pytest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse

from derender_api.admission import BODIES_AT_ONCE, SMALL_BODY_BYTES
from derender_api.api_keys import key_store
from derender_api.catalog import catalog
from derender_api.dispatch import Dispatcher
from derender_api.django_bridge import Answer, DjangoBridge
from derender_api.load import requests_in_flight

CHAT = "/v1/chat/completions/derender"


class Bridge(DjangoBridge):
    """Answers with what it was asked, and notes the thread."""

    def __init__(self, response: Any = None) -> None:
        super().__init__()
        self.threads: list[str] = []
        self.requests: list[HttpRequest] = []
        self.response = response

    def get_response(self, request: Any) -> Any:
        self.threads.append(threading.current_thread().name)
        self.requests.append(request)
        return self.response or HttpResponse(request.body, status=201, headers={"X-Path": request.path})


def scope_of(path: str, *, method: str = "POST", headers: Sequence[tuple[bytes, bytes]] = ()) -> dict[str, Any]:
    """An ASGI scope."""
    return {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"a=1",
        "http_version": "1.1",
        "scheme": "http",
        "server": ("localhost", 80),
        "client": ("10.0.0.1", 1234),
        "headers": [(b"host", b"localhost"), *headers],
    }


def call(application: Any, scope: dict[str, Any], *parts: bytes, gone: bool = False) -> list[dict[str, Any]]:
    """The messages that `application` sends for a body that comes in parts."""
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    messages.append({"type": "http.disconnect"} if gone else {"type": "http.request", "body": b"", "more_body": False})
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(application(scope, receive, send))
    return sent


async def gateway(scope: Any, receive: Any, send: Any) -> None:
    """An ASGI application that tells what body it got."""
    message = await receive()
    await send({"type": "gateway", "body": message["body"], "more": message["more_body"]})


@pytest.fixture
def bridge() -> Bridge:
    """A bridge that answers 201 with the body."""
    return Bridge()


@pytest.fixture
def dispatcher(bridge: Bridge) -> Dispatcher:
    """A dispatcher over `bridge` and `gateway`."""
    return Dispatcher(bridge, gateway, threads=1)


@pytest.fixture
def django() -> Dispatcher:
    """A dispatcher over this project's Django."""
    return Dispatcher(DjangoBridge(), gateway, threads=1)


@pytest.fixture(autouse=True)
def _nothing_to_read() -> Iterator[None]:
    with catalog.override([]):
        yield


class TestPlaces:
    """On the loop, in a thread, or as a coroutine."""

    def test_a_small_call_is_answered_on_the_loop(self, dispatcher: Dispatcher, bridge: Bridge) -> None:
        start, body = call(dispatcher, scope_of(CHAT), b"{", b"}")

        assert bridge.threads == [threading.main_thread().name]
        assert (start["status"], dict(start["headers"])[b"X-Path"]) == (201, CHAT.encode())
        assert body["body"] == b"{}"

    @pytest.mark.parametrize("path", [CHAT, "/admin/", "/v1/models", "/tokenize"])
    def test_a_large_call_and_any_other_path_take_a_thread(
        self, dispatcher: Dispatcher, bridge: Bridge, path: str
    ) -> None:
        call(dispatcher, scope_of(path), b"x" * 40_000 if path == CHAT else b"x")

        assert bridge.threads[0].startswith("answer")

    def test_what_must_ask_the_database_takes_a_thread(
        self, dispatcher: Dispatcher, bridge: Bridge, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(type(key_store), "is_fresh", False)
        call(dispatcher, scope_of(CHAT), b"{}")

        assert bridge.threads[0].startswith("answer")

    @pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
    def test_the_gateway_gets_the_whole_body(self, dispatcher: Dispatcher, bridge: Bridge, path: str) -> None:
        assert call(dispatcher, scope_of(path), b"a", b"b") == [{"type": "gateway", "body": b"ab", "more": False}]
        assert bridge.threads == []


class TestBodies:
    """Limits and clients that leave."""

    @pytest.mark.parametrize("announced", [True, False])
    def test_a_body_beyond_the_limit_is_refused(self, django: Dispatcher, settings: Any, announced: bool) -> None:
        settings.DERENDER = {**settings.DERENDER, "MAX_BODY_BYTES": 10}
        headers = [(b"content-length", b"11")] if announced else []

        start, body = call(django, scope_of(CHAT, headers=headers), b"x" * 6, b"x" * 5, b"never read")

        assert start["status"] == 413
        assert orjson.loads(body["body"])["error"]["code"] == 413
        assert b"X-Request-Id" in dict(start["headers"])

    def test_a_refused_request_needs_a_key_too(self, django: Dispatcher, settings: Any) -> None:
        settings.DERENDER = {**settings.DERENDER, "MAX_BODY_BYTES": 10, "API_KEY": "k"}

        assert call(django, scope_of(CHAT), b"x" * 11)[0]["status"] == 401

    def test_bodies_that_are_held_are_bounded(self, django: Dispatcher, settings: Any) -> None:
        settings.DERENDER = {**settings.DERENDER, "MAX_BODY_BYTES": SMALL_BODY_BYTES}
        budget = django._bodies._budget
        budget.take(BODIES_AT_ONCE * SMALL_BODY_BYTES, largest=SMALL_BODY_BYTES)
        settings.DERENDER["MAX_BODY_BYTES"] = SMALL_BODY_BYTES + 1
        body = [b"x" * SMALL_BODY_BYTES, b"x"]

        start, _ = call(django, scope_of("/ping"), *body)
        small, _ = call(django, scope_of("/ping"), body[0])
        budget.give(BODIES_AT_ONCE * SMALL_BODY_BYTES)
        again, _ = call(django, scope_of("/ping"), *body)

        assert (start["status"], dict(start["headers"])[b"Retry-After"]) == (503, b"1")
        assert (small["status"], again["status"]) == (200, 200)
        assert budget._held == 0

    def test_one_that_takes_too_long_is_408(
        self, django: Dispatcher, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.DERENDER = {**settings.DERENDER, "MAX_BODY_SECONDS": 0.05}
        monkeypatch.setattr("derender_api.bodies.SWEEP_SECONDS", 0.02)
        sent: list[Any] = []

        async def never() -> Any:
            await asyncio.sleep(60)

        async def send(message: Any) -> None:
            sent.append(message)

        async def two() -> None:
            await asyncio.gather(*(django(scope_of(CHAT), never, send) for _ in range(2)))

        asyncio.run(two())

        assert [message["status"] for message in sent[::2]] == [408, 408]
        assert orjson.loads(sent[1]["body"])["error"]["type"] == "RequestTimeoutError"

    def test_one_that_breaks_off_is_400(self, django: Dispatcher) -> None:
        """A client that has gone does not see it; one that sends what is no HTTP does."""
        start, body = call(django, scope_of(CHAT), b"{", gone=True)

        assert start["status"] == 400
        assert orjson.loads(body["body"])["error"]["message"] == "The request body could not be read."


class TestLimit:
    """Requests are counted before they wait for a thread."""

    def test_more_than_may_wait_are_503(self, settings: Any) -> None:
        settings.DERENDER = {**settings.DERENDER, "MAX_CONCURRENT_REQUESTS": 2}
        go = threading.Event()

        class Waiting(DjangoBridge):
            def answer(self, scope: Any, body: bytes) -> Answer:
                go.wait(10)
                return Answer(200, [], b"")

        dispatcher = Dispatcher(Waiting(), gateway, threads=1)
        statuses: list[int] = []

        async def one() -> None:
            async def receive() -> Any:
                return {"type": "http.request", "body": b"", "more_body": False}

            async def send(message: Any) -> None:
                if "status" in message:
                    statuses.append(message["status"])

            await dispatcher(scope_of("/v1/models"), receive, send)

        async def several() -> None:
            first = [asyncio.create_task(one()) for _ in range(4)]
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(0.05)
            go.set()
            await asyncio.gather(*first)

        asyncio.run(several())

        assert statuses == [503, 503, 200, 200]
        assert requests_in_flight.total() == 0

    @pytest.mark.parametrize("path", ["/metrics", "/ready", "/load"])
    def test_those_who_watch_do_not_wait_behind_work(self, dispatcher: Dispatcher, bridge: Bridge, path: str) -> None:
        call(dispatcher, scope_of(path, method="GET"))

        assert bridge.threads[0].startswith("aside")


class TestRequests:
    """What Django sees."""

    def test_a_header_with_an_underscore_passes_for_no_other(self, dispatcher: Dispatcher, bridge: Bridge) -> None:
        call(dispatcher, scope_of(CHAT, headers=[(b"x_forwarded_proto", b"https")]), b"{}")

        assert "X-Forwarded-Proto" not in bridge.requests[0].headers

    def test_headers_query_and_client_arrive(self, dispatcher: Dispatcher, bridge: Bridge) -> None:
        headers = [(b"x-one", b"1"), (b"x-one", b"2"), (b"content-type", b"application/json"), (b"x-word", b"\xe9")]
        call(dispatcher, scope_of("/a/\u00fc", headers=headers), b"abc")

        request = bridge.requests[0]
        assert request.path_info == "/a/\u00fc"
        assert request.GET == {"a": ["1"]}
        assert request.headers["X-One"] == "1,2"
        assert request.headers["X-Word"] == "\xe9"
        assert request.META["REMOTE_ADDR"] == "10.0.0.1"
        assert (request.content_type, request.META["CONTENT_LENGTH"]) == ("application/json", "3")

    def test_cookies_and_streamed_parts_are_sent(self) -> None:
        response = StreamingHttpResponse(iter([b"a", b"b"]))
        response.set_cookie("name", "value")

        start, body = call(Dispatcher(Bridge(response), gateway, threads=1), scope_of("/static/x", method="GET"))

        assert dict(start["headers"])[b"Set-Cookie"] == b"name=value; Path=/"
        assert body["body"] == b"ab"

    def test_names_of_headers_are_remembered_in_limits(self, dispatcher: Dispatcher, bridge: Bridge) -> None:
        call(dispatcher, scope_of(CHAT, headers=[(b"x-%d" % number, b"") for number in range(1000)]), b"{}")

        assert len(bridge._names) == 256
        assert bridge.requests[0].META["HTTP_X_999"] == ""
