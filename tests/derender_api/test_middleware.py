"""The API key of the settings, the limit of the body, the requests that are worked on; each under WSGI and ASGI."""

import asyncio
import os
import signal
from io import BytesIO
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import AsyncRequestFactory, Client

from derender_api.admission import BODIES_AT_ONCE, SMALL_BODY_BYTES, BodyBudget
from derender_api.exceptions import Overloaded
from derender_api.load import RequestsInFlight, requests_in_flight
from derender_api.middleware import AdmissionMiddleware, ApiKeyMiddleware, BodyLimitMiddleware

UNAUTHORIZED = {"error": {"message": "Unauthorized", "type": "AuthenticationError", "param": None, "code": 401}}


@pytest.fixture
def api_key(settings: Any) -> str:
    """Demand a key."""
    settings.DERENDER = {**settings.DERENDER, "API_KEY": "sesame-ключ"}
    return "sesame-ключ"


def wsgi_request(body: bytes, **environ: str) -> WSGIRequest:
    """A request as a WSGI server hands it over."""
    return WSGIRequest(
        {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": "/x",
            "SERVER_NAME": "s",
            "SERVER_PORT": "80",
            "wsgi.input": BytesIO(body),
        }
        | environ
    )


def echo(request: HttpRequest) -> HttpResponse:
    """A view that answers with the body it got."""
    return HttpResponse(request.body)


class TestApiKey:
    """Paths below /v1 need the key, in the OpenAI error shape."""

    @pytest.mark.parametrize("path", ["/v1/models", "/v1/nope", "/v2/x", "/inference/v1/generate", "/cohere/v2"])
    @pytest.mark.parametrize(
        "header",
        [None, "", "Bearer", "Bearer wrong", "Basic sesame-ключ", "sesame-ключ", "Bearer sesame-ключ1", "Bearer \xff"],
    )
    def test_refuses(self, client: Client, api_key: str, path: str, header: str | None) -> None:
        extra = {} if header is None else {"HTTP_AUTHORIZATION": header}

        answer = client.get(path, **extra)

        assert (answer.status_code, answer.json()) == (401, UNAUTHORIZED)
        assert answer["WWW-Authenticate"] == "Bearer"

    @pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
    def test_lets_the_key_pass(self, client: Client, api_key: str, scheme: str) -> None:
        # A WSGI server hands the header's bytes over as Latin-1.
        header = f"{scheme} {api_key}".encode().decode("latin-1")

        assert client.get("/v1/nope", HTTP_AUTHORIZATION=header).status_code == 404

    @pytest.mark.parametrize(
        ("keys", "token", "status"),
        [
            (["a", "b"], "a", 404),
            (["a", "b"], "b", 404),
            (["a", "b"], "c", 401),
            (["a", "b"], "", 401),
            (["", "b"], "", 401),
            ([""], "", 404),
            ("", "", 404),
        ],
    )
    def test_one_of_several_is_enough(
        self, client: Client, settings: Any, keys: list[str] | str, token: str, status: int
    ) -> None:
        settings.DERENDER = {**settings.DERENDER, "API_KEY": keys}

        assert client.get("/v1/nope", HTTP_AUTHORIZATION=f"Bearer {token}").status_code == status

    @pytest.mark.parametrize("path", ["/health", "/ping", "/version", "/load"])
    def test_leaves_the_rest_open(self, client: Client, api_key: str, path: str) -> None:
        assert client.get(path).status_code == 200

    def test_exempts_options(self, client: Client, api_key: str) -> None:
        assert client.options("/v1/models").status_code == 405

    def test_is_off_without_a_key(self, client: Client) -> None:
        assert client.get("/v1/nope").status_code == 404

    def test_compares_in_constant_time(self, api_key: str, monkeypatch: pytest.MonkeyPatch) -> None:
        seen = []
        monkeypatch.setattr("derender_api.authorization.compare_digest", lambda a, b: seen.append((a, b)) or True)
        request = wsgi_request(b"", PATH_INFO="/v1/models", HTTP_AUTHORIZATION="Bearer guess")

        ApiKeyMiddleware(echo)(request)

        assert seen == [(b"guess", api_key.encode())]


class TestBodyLimit:
    """Bodies above the limit are 413; those without a length are read nevertheless."""

    @pytest.fixture(autouse=True)
    def _limit(self, settings: Any) -> None:
        settings.DERENDER = {**settings.DERENDER, "MAX_BODY_BYTES": 10}

    @pytest.mark.parametrize("size", [0, 9, 10])
    def test_passes_bodies_within_the_limit(self, size: int) -> None:
        request = wsgi_request(b"x" * size, CONTENT_LENGTH=str(size))

        assert BodyLimitMiddleware(echo)(request).content == b"x" * size

    def test_refuses_larger_ones_in_the_error_shape(self, client: Client) -> None:
        answer = client.post("/ping", data=b"x" * 11, content_type="application/json")

        assert answer.status_code == 413
        assert answer.json() == {
            "error": {
                "message": "The request body exceeds the limit of 10 bytes.",
                "type": "RequestEntityTooLargeError",
                "param": None,
                "code": 413,
            }
        }

    @pytest.mark.parametrize("length", ["ten", "-1", "1.5", "\u0663"])
    def test_refuses_a_length_that_is_no_number(self, length: str) -> None:
        assert BodyLimitMiddleware(echo)(wsgi_request(b"", CONTENT_LENGTH=length)).status_code == 400

    def test_reads_a_chunked_body(self) -> None:
        request = wsgi_request(b"0123456789", HTTP_TRANSFER_ENCODING="chunked")

        assert BodyLimitMiddleware(echo)(request).content == b"0123456789"

    def test_refuses_a_larger_chunked_body_without_reading_on(self) -> None:
        request = wsgi_request(b"0123456789abcdef", HTTP_TRANSFER_ENCODING="chunked")

        assert BodyLimitMiddleware(echo)(request).status_code == 413
        assert request.META["wsgi.input"].read() == b"bcdef"

    def test_a_prompt_of_five_megabytes_passes_the_default(self, client: Client, settings: Any) -> None:
        settings.DERENDER = {}

        assert client.post("/ping", data=b" " * 5_000_000, content_type="application/json").status_code == 200

    def test_large_bodies_share_a_budget(self, settings: Any) -> None:
        settings.DERENDER["MAX_BODY_BYTES"] = 2 * SMALL_BODY_BYTES
        body = b"x" * (2 * SMALL_BODY_BYTES)
        inner: list[HttpResponse] = []

        def nested(request: HttpRequest) -> HttpResponse:
            if len(inner) < BODIES_AT_ONCE:
                inner.append(layer(wsgi_request(body, CONTENT_LENGTH=str(len(body)))))  # type: ignore[arg-type]
            return HttpResponse()

        layer = BodyLimitMiddleware(nested)
        first = layer(wsgi_request(body, CONTENT_LENGTH=str(len(body))))

        assert [answer.status_code for answer in [first, *reversed(inner)]] == [200] * BODIES_AT_ONCE + [503]
        assert inner[0]["Retry-After"] == "1"
        assert layer(wsgi_request(body, CONTENT_LENGTH=str(len(body)))).status_code == 200  # type: ignore[union-attr]

    def test_small_bodies_need_no_room(self) -> None:
        budget = BodyBudget()
        with budget.reserved(4 * SMALL_BODY_BYTES, largest=SMALL_BODY_BYTES):
            with budget.reserved(SMALL_BODY_BYTES, largest=SMALL_BODY_BYTES):
                pass
            with pytest.raises(Overloaded), budget.reserved(SMALL_BODY_BYTES + 1, largest=SMALL_BODY_BYTES):
                pass


def answer_of(middleware: Any, request: HttpRequest) -> HttpResponse:
    """The answer of a synchronous middleware."""
    response: HttpResponse = middleware(request)
    return response


class TestAdmission:
    """Requests below /v1 are counted while they are answered, and bounded."""

    def test_counts_requests_that_are_work(self) -> None:
        seen = []
        middleware = AdmissionMiddleware(lambda request: seen.append(requests_in_flight.total()) or HttpResponse())

        middleware(wsgi_request(b"", PATH_INFO="/v1/models"))
        middleware(wsgi_request(b"", PATH_INFO="/tokenize"))
        middleware(wsgi_request(b"", PATH_INFO="/health", REQUEST_METHOD="GET"))
        middleware(wsgi_request(b"", PATH_INFO="/admin/login/"))

        assert seen == [1, 1, 0, 0]
        assert requests_in_flight.total() == 0

    def test_counts_down_after_a_failure(self) -> None:
        def fail(request: HttpRequest) -> HttpResponse:
            raise RuntimeError

        with pytest.raises(RuntimeError):
            AdmissionMiddleware(fail)(wsgi_request(b"", PATH_INFO="/v1/models"))

        assert requests_in_flight.total() == 0

    def test_above_the_limit_is_503_with_retry_after(self, client: Client, settings: Any) -> None:
        settings.DERENDER = {**settings.DERENDER, "MAX_CONCURRENT_REQUESTS": 1}
        with requests_in_flight.counted():
            refused = client.get("/v1/models")
            health = client.get("/health")
        allowed = client.get("/v1/nope")

        assert (refused.status_code, refused["Retry-After"]) == (503, "1")
        assert refused.json()["error"] == {
            "message": "The server is answering as many requests as it may.",
            "type": "ServiceUnavailableError",
            "param": None,
            "code": 503,
        }
        assert (health.status_code, allowed.status_code) == (200, 404)

    def test_the_count_of_a_worker_that_was_killed_does_not_hold_up_others(self) -> None:
        counter = RequestsInFlight()
        assert counter.enter(limit=1)
        counter.leave()
        pid = os.fork()
        if pid == 0:
            counter.enter(limit=5)
            counter.enter(limit=5)
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(pid, 0)

        assert counter.enter(limit=1)

    def test_sums_over_forked_workers_and_forgets_the_dead(self) -> None:
        counter = RequestsInFlight()
        ready, done = os.pipe(), os.pipe()
        with counter.counted():
            pid = os.fork()
            if pid == 0:
                with counter.counted(), counter.counted():
                    os.write(ready[1], b".")
                    os.read(done[0], 1)
                    os._exit(1)
            os.read(ready[0], 1)
            assert counter.total() == 3
            os.write(done[1], b".")
            os.waitpid(pid, 0)
            assert counter.total() == 1


class TestUnderAsgi:
    """The same layers around asynchronous views."""

    @staticmethod
    def answered(layer: Any, **scope: Any) -> HttpResponse:
        """The answer of `layer`, built around an asynchronous view that echoes."""

        async def view(request: HttpRequest) -> HttpResponse:
            return HttpResponse(request.body)

        request = AsyncRequestFactory().generic("POST", scope.pop("path", "/v1/x"), scope.pop("body", b""), **scope)
        response: HttpResponse = asyncio.run(layer(view)(request))
        return response

    def test_the_key_is_demanded(self, api_key: str) -> None:
        bearer = f"Bearer {api_key}".encode().decode("latin-1")

        assert self.answered(ApiKeyMiddleware).status_code == 401
        assert self.answered(ApiKeyMiddleware, headers={"Authorization": bearer}).status_code == 200

    def test_the_body_is_limited(self, settings: Any) -> None:
        settings.DERENDER = {**settings.DERENDER, "MAX_BODY_BYTES": 3}

        assert self.answered(BodyLimitMiddleware, body=b"abc").content == b"abc"
        assert self.answered(BodyLimitMiddleware, body=b"abcd").status_code == 413

    def test_requests_are_limited(self, settings: Any) -> None:
        settings.DERENDER = {**settings.DERENDER, "MAX_CONCURRENT_REQUESTS": 1}
        with requests_in_flight.counted():
            assert self.answered(AdmissionMiddleware).status_code == 503
        assert self.answered(AdmissionMiddleware).status_code == 200
        assert requests_in_flight.total() == 0

    @pytest.mark.django_db
    def test_a_streamed_answer_counts_until_it_is_closed(self) -> None:
        async def view(request: HttpRequest) -> StreamingHttpResponse:
            return StreamingHttpResponse(iter([b"x"]))

        request = AsyncRequestFactory().post("/v1/x")
        response: Any = asyncio.run(AdmissionMiddleware(view)(request))  # type: ignore[arg-type]
        before = requests_in_flight.total()
        response.close()

        assert (before, requests_in_flight.total()) == (1, 0)
