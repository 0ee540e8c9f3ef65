"""The two endpoints: who may ask, what for, and where they are not."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from derender_api.api_keys import KnownKey, key_store
from derender_api.catalog import catalog
from derender_api.gateway import views
from derender_api.load import requests_in_flight
from derender_api.models import digest_of_key
from derender_api.services.render import Rendering
from tests.derender_api.gateway.support import (
    CHAT,
    COMPLETION,
    Json,
    ask,
    ask_all,
    asking,
    chat,
    completion,
    configured,
    model_on,
    saying,
    streamed,
)
from tests.derender_api.support import served
from tests.replay_engine import Output, ReplayEngine, Script, replaying

BOTH = pytest.mark.parametrize(("path", "body"), [(CHAT, chat()), (COMPLETION, completion())], ids=["chat", "text"])
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}


@pytest.fixture
def engine() -> Iterator[ReplayEngine]:
    """An engine that says "Hello world"."""
    with replaying(Script()) as engine, model_on(engine):
        engine.script = Script(outputs=[saying("Hello world")])
        yield engine


class TestWithoutEngines:
    """The endpoints are not there."""

    @BOTH
    @pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
    def test_no_model_has_engines(self, path: str, body: Json, method: str) -> None:
        with served():
            reply = ask(path, body, method=method)

        assert (reply.status, reply.error["message"], reply.error["type"]) == (404, "Not Found", "NotFoundError")

    @BOTH
    def test_the_model_has_none(self, path: str, body: Json) -> None:
        with catalog.override([configured("other", "http://127.0.0.1:9"), configured("model")]):
            reply = ask(path, body)

        assert (reply.status, reply.error["message"]) == (404, "No engine is configured for the model `model`.")

    @BOTH
    def test_an_unknown_model(self, engine: ReplayEngine, path: str, body: Json) -> None:
        reply = ask(path, {**body, "model": "nobody"})

        assert (reply.status, reply.error["param"]) == (404, "model")

    @BOTH
    def test_the_first_model_answers_where_none_is_named(self, engine: ReplayEngine, path: str, body: Json) -> None:
        answer = ask(path, {key: value for key, value in body.items() if key != "model"}).json

        assert answer["model"] == "model"


class TestRefused:
    """Requests that reach no engine."""

    @BOTH
    @pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "OPTIONS"])
    def test_other_methods(self, engine: ReplayEngine, path: str, body: Json, method: str) -> None:
        reply = ask(path, b"", method=method)

        assert (reply.status, reply.headers["allow"]) == (405, "POST")

    @pytest.mark.parametrize(
        ("body", "problem"),
        [
            (b"{", "JSON decode error"),
            (b"", "body"),
            ({"model": "model"}, "body.messages"),
            (chat(n="x"), "body.n"),
            (chat(stream_options={"include_usage": True}), "stream"),
            (chat(echo=True), "echo"),
            (chat(temperature=-1), "temperature"),
            (chat(use_beam_search=True), "Beam search"),
            ({"model": "model", "messages": [{"role": "user", "content": [IMAGE]}]}, "image"),
        ],
    )
    def test_what_cannot_be_rendered(self, engine: ReplayEngine, body: Any, problem: str) -> None:
        reply = ask(CHAT, body)

        assert reply.status == 400
        assert problem in reply.error["message"]
        assert engine.asked == []

    def test_a_prompt_beyond_the_models_length(self) -> None:
        with replaying(Script()) as engine, model_on(engine, max_model_len=16):
            reply = ask(CHAT, chat("word " * 50))

        assert reply.status == 400
        assert engine.asked == []

    @pytest.mark.parametrize("fields", [{"cache_salt": "\ud800"}, {"thinking_token_budget": 2**70}])
    def test_what_json_holds_with_difficulty(self, engine: ReplayEngine, fields: Json) -> None:
        assert ask(COMPLETION, completion(**fields)).status in (200, 400)

    def test_a_large_body(self, engine: ReplayEngine) -> None:
        assert ask(CHAT, chat(user="x" * 5_000_000)).status == 200

    def test_another_content_type(self, engine: ReplayEngine) -> None:
        assert ask(CHAT, chat(), headers={"content-type": "text/plain"}).status == 400

    @pytest.mark.parametrize("announced", [True, False])
    def test_a_body_beyond_the_limit(self, engine: ReplayEngine, settings: Any, announced: bool) -> None:
        settings.DERENDER = {**settings.DERENDER, "MAX_BODY_BYTES": 100}
        body = orjson.dumps(chat("x" * 100))
        reply = ask(CHAT, body, headers={"content-length": str(len(body))} if announced else {})

        assert (reply.status, reply.error["type"]) == (413, "RequestEntityTooLargeError")

    def test_more_requests_than_permitted(self, engine: ReplayEngine, settings: Any) -> None:
        settings.DERENDER = {**settings.DERENDER, "MAX_CONCURRENT_REQUESTS": 2}
        engine.script = Script(outputs=[saying("Hello world")], pause=0.05)
        replies = ask_all(*(asking(CHAT, streamed(chat())) for _ in range(4)))

        assert sorted(reply.status for reply in replies) == [200, 200, 503, 503]
        assert requests_in_flight.total() == 0


class TestKeys:
    """API keys, and the models that a key is for."""

    @pytest.fixture(autouse=True)
    def _keys(self) -> Iterator[None]:
        every = KnownKey(id=1, name="all", digest=digest_of_key("all"))
        other = KnownKey(id=2, name="other", digest=digest_of_key("other"), models=frozenset(["other"]))
        with key_store.override([every, other]):
            yield

    @BOTH
    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize(
        ("headers", "status"),
        [
            ({}, 401),
            ({"authorization": "Bearer wrong"}, 401),
            ({"authorization": "Bearer other"}, 403),
            ({"authorization": "Bearer all"}, 200),
        ],
        ids=["none", "wrong", "for another model", "right"],
    )
    def test_who_may_ask(
        self, engine: ReplayEngine, path: str, body: Json, stream: bool, headers: dict[str, str], status: int
    ) -> None:
        reply = ask(path, {**body, "stream": stream}, headers=headers)

        assert reply.status == status
        assert len(engine.asked) == (status == 200)

    def test_requests_per_minute(self, engine: ReplayEngine) -> None:
        limited = KnownKey(id=3, name="limited", digest=digest_of_key("limited"), requests_per_minute=1)
        with key_store.override([limited]):
            headers = {"authorization": "Bearer limited"}
            replies = [ask(CHAT, streamed(chat()), headers=headers) for _ in range(3)]

        assert replies[0].status == 200
        assert (replies[2].status, replies[2].error["type"]) == (429, "RateLimitError")
        assert len(engine.asked) < 3

    def test_the_clients_key_is_not_the_engines(self, engine: ReplayEngine) -> None:
        ask(CHAT, chat(), headers={"authorization": "Bearer all"})

        assert "Authorization" not in engine.only.headers


class TestHeaders:
    """What answers carry besides their body."""

    @BOTH
    @pytest.mark.parametrize("stream", [False, True])
    def test_the_request_id_is_the_clients(self, engine: ReplayEngine, path: str, body: Json, stream: bool) -> None:
        reply = ask(path, {**body, "stream": stream}, headers={"x-request-id": "mine"})
        answer = reply.events[0] if stream else reply.json

        assert reply.headers["x-request-id"] == "mine"
        assert answer["id"] == engine.only.request["request_id"]
        assert answer["id"].endswith("-mine")

    @BOTH
    def test_the_length_of_what_comes_whole(self, engine: ReplayEngine, path: str, body: Json) -> None:
        for sent in (body, {**body, "model": "nobody"}, {}):
            reply = ask(path, sent)

            assert reply.headers["content-length"] == str(len(b"".join(reply.parts)))
        assert "content-length" not in ask(path, streamed(body)).headers

    @BOTH
    @pytest.mark.parametrize("accept", ["text/event-stream", "application/json", "*/*", "text/html"])
    def test_any_accept_header_will_do(self, engine: ReplayEngine, path: str, body: Json, accept: str) -> None:
        assert ask(path, streamed(body), headers={"accept": accept}).status == 200

    @pytest.mark.parametrize("stream", [False, True])
    def test_what_the_engine_is_not_held_to(
        self, engine: ReplayEngine, monkeypatch: pytest.MonkeyPatch, stream: bool
    ) -> None:
        rendered = views.rendered_chat

        async def warned(*args: Any, **kwargs: Any) -> Rendering[Json]:
            return Rendering((await rendered(*args, **kwargs)).answer, ("a", "b"))

        monkeypatch.setattr(views, "rendered_chat", warned)

        assert ask(CHAT, chat(stream=stream)).headers["x-derender-warning"] == "a; b"


class TestSpread:
    """Several engines of a model."""

    def test_requests_at_once_go_to_all(self) -> None:
        script = Script(outputs=[Output(token_ids=[2541, 4002])], pause=0.02)
        with replaying(script) as first, replaying(script) as second, model_on(first, second):
            replies = ask_all(*(asking(CHAT, streamed(chat())) for _ in range(8)))

        assert [reply.status for reply in replies] == [200] * 8
        assert (len(first.asked), len(second.asked)) == (4, 4)

    @pytest.mark.parametrize("stream", [False, True])
    def test_an_engine_that_is_gone_is_not_noticed(self, stream: bool) -> None:
        with replaying(Script()) as engine, model_on("http://127.0.0.1:9", engine):
            engine.script = Script(outputs=[saying("Hello world")])
            replies = [ask(CHAT, chat(stream=stream)) for _ in range(3)]

        assert [reply.status for reply in replies] == [200] * 3
