"""Request IDs, the access log, and what the log says of failures."""

import asyncio
import json
import logging
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError
from django.http import HttpResponse
from django.test import AsyncClient, Client

from derender_api.load import requests_in_flight
from derender_api.log_format import JsonLines, TextLines, described
from derender_api.observation import ObservationMiddleware, access_log
from derender_api.request_id import id_for, request_id
from parsers.configuration import ModelConfigurationError
from tests.derender_api.support import CHAT, HELLO, MESSAGES, oneshot, parsed_model, served
from tests.derender_api.test_middleware import wsgi_request

SECRET = "the client's own words"


class TestRequestId:
    """Each request has an ID, in its answer and in its lines of the log."""

    @pytest.mark.parametrize("given", ["abc", "0af7651916cd43dd8448eb211c80319c", "a-b_c.d:e@f/g+h=", "x" * 128])
    def test_the_clients_is_kept(self, client: Client, given: str) -> None:
        assert client.get("/health", HTTP_X_REQUEST_ID=given)["X-Request-Id"] == given

    @pytest.mark.parametrize("given", [None, "", "a b", 'a"b', "a\nb", "é", "x" * 129])
    def test_another_one_is_replaced(self, given: str | None) -> None:
        made = id_for(given)

        assert re.fullmatch("[0-9a-f]{32}", made)
        assert made != id_for(given)

    @pytest.mark.parametrize("path", ["/nope", "/v1/models", "/admin/", "/static/nope", "/metrics"])
    def test_every_answer_has_one(self, client: Client, path: str) -> None:
        with served():
            assert client.get(path, HTTP_X_REQUEST_ID="i")["X-Request-Id"] == "i"

    def test_a_refused_request_has_one(self, client: Client, settings: Any) -> None:
        settings.DERENDER = {**settings.DERENDER, "API_KEY": "k"}

        answer = client.get("/v1/models", HTTP_X_REQUEST_ID="i")

        assert (answer.status_code, answer["X-Request-Id"]) == (401, "i")

    def test_it_is_known_within_the_request_alone(self) -> None:
        seen = []
        middleware = ObservationMiddleware(lambda request: seen.append(request_id.get()) or HttpResponse())

        middleware(wsgi_request(b"", HTTP_X_REQUEST_ID="i"))

        assert (seen, request_id.get()) == (["i"], "")

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize(
        ("path", "status"),
        [
            ("/health", 200),
            ("/admin/login/", 200),
            ("/admin/", 302),
            ("/static/admin/css/base.css", 200),
            ("/nope", 404),
        ],
    )
    def test_asynchronous_requests_have_one(self, path: str, status: int) -> None:
        answer = asyncio.run(AsyncClient().get(path, headers={"X-Request-Id": "i"}))

        assert (answer.status_code, answer["X-Request-Id"]) == (status, "i")


class TestAccessLog:
    """One line per request where it is on."""

    def test_it_is_off(self) -> None:
        assert not access_log.isEnabledFor(logging.INFO)

    def test_a_line_has_the_facts(self, client: Client, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.INFO, logger="derender.access"):
            client.get("/nope?secret=1")
        (record,) = caplog.records

        assert re.fullmatch(r"GET /nope 404 \d+\.\d\d ms", record.message)
        assert {key: getattr(record, key) for key in ("method", "path", "status", "key")} == {
            "method": "GET",
            "path": "/nope",
            "status": 404,
            "key": None,
        }


def failure() -> Any:
    """What the logging module calls exc_info, of a failure that quotes a client."""
    try:
        try:
            raise KeyError(SECRET)
        except KeyError as error:
            raise OperationalError("the database is gone") from error
    except OperationalError:
        return sys.exc_info()


class TestLines:
    """Lines are JSON or text, and quote nobody."""

    @pytest.fixture
    def record(self) -> logging.LogRecord:
        record = logging.LogRecord("some.logger", logging.ERROR, __file__, 1, "it %s", ("failed",), failure())
        record.model = "m"
        return record

    @pytest.fixture(autouse=True)
    def _within_a_request(self) -> Iterator[None]:
        before = request_id.set("i")
        yield
        request_id.reset(before)

    def test_json(self, record: logging.LogRecord) -> None:
        line = JsonLines().format(record)
        fields = json.loads(line)
        trace = fields.pop("exc_info")

        assert "\n" not in line
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", fields.pop("time"))
        assert fields == {
            "level": "ERROR",
            "logger": "some.logger",
            "message": "it failed",
            "request_id": "i",
            "model": "m",
        }
        assert trace.splitlines()[-1] == "OperationalError: the database is gone"
        assert "\nKeyError\n" in trace
        assert SECRET not in line

    def test_text(self, record: logging.LogRecord) -> None:
        first, *rest = TextLines("%(levelname)s %(name)s%(request)s: %(message)s").format(record).splitlines()

        assert first == "ERROR some.logger [i]: it failed"
        assert rest[-1] == "OperationalError: the database is gone"
        assert SECRET not in "\n".join(rest)

    def test_content_is_shown_where_it_may_be(self, record: logging.LogRecord, settings: Any) -> None:
        settings.DERENDER = {"LOG_CONTENT": True}

        assert SECRET in JsonLines().format(record)

    @pytest.mark.parametrize(
        ("error", "text"),
        [
            (ValueError(SECRET), "ValueError"),
            (ModelConfigurationError("no such folder"), "ModelConfigurationError: no such folder"),
            (ConnectionError("refused"), "ConnectionError: refused"),
            (ValueError(), "ValueError"),
        ],
    )
    def test_messages_are_shown_that_are_no_clients(self, error: Exception, text: str) -> None:
        assert described(error) == text


class TestRefusals:
    """Refused requests leave no line, be they errors of the server's."""

    def test_an_overload_leaves_no_line(self, client: Client, settings: Any, caplog: pytest.LogCaptureFixture) -> None:
        settings.DERENDER = {**settings.DERENDER, "MAX_CONCURRENT_REQUESTS": 1}
        with requests_in_flight.counted():
            assert client.get("/v1/models").status_code == 503

        assert caplog.records == []


class TestFailures:
    """A failure is logged with its place; what the client sent or the model wrote is not."""

    @pytest.mark.parametrize("shown", [False, True])
    def test_of_a_view(self, client: Client, monkeypatch: pytest.MonkeyPatch, settings: Any, shown: bool) -> None:
        settings.DERENDER = {**settings.DERENDER, "LOG_CONTENT": shown}
        log, answer = self.failing(client, monkeypatch, "derender_api.views.derender_chat")

        assert answer.status_code == 500
        assert "ValueError" in log
        assert (SECRET in log) is shown
        assert SECRET not in answer.content.decode()

    @pytest.mark.parametrize("shown", [False, True])
    def test_of_a_parser(self, client: Client, monkeypatch: pytest.MonkeyPatch, settings: Any, shown: bool) -> None:
        settings.DERENDER = {**settings.DERENDER, "LOG_CONTENT": shown}
        log, answer = self.failing(client, monkeypatch, "derender_api.parsing.open_parser")

        assert answer.json()["choices"][0]["message"]["content"] == "Hello"
        assert "parser hermes+qwen3 failed on a complete output" in log
        assert (SECRET in log) is shown
        assert ("Hello" in log) is shown

    @staticmethod
    def failing(client: Client, monkeypatch: pytest.MonkeyPatch, place: str) -> tuple[str, Any]:
        """The log and the answer of a chat request that fails at `place`."""

        def fail(*args: Any, **kwargs: Any) -> None:
            raise ValueError(SECRET)

        monkeypatch.setattr(place, fail)
        lines: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: lines.append(JsonLines().format(record))  # type: ignore[method-assign]
        logging.getLogger().addHandler(handler)
        client.raise_request_exception = False
        try:
            with parsed_model():
                body = oneshot([HELLO], chat_request={"messages": MESSAGES})
                answer = client.post(CHAT, body, content_type="application/json")
        finally:
            logging.getLogger().removeHandler(handler)
        return "\n".join(lines), answer
