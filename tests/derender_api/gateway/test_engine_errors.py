"""What the caller of an engine is told when the engine fails."""

from collections.abc import Callable
from typing import Any

import pytest

from derender_api.exceptions import ApiError
from derender_api.gateway.engines import Engines
from derender_api.gateway.errors import EngineFailed, EngineRefused, EngineTimeout, EngineUnreachable
from tests.derender_api.gateway.calls import EITHER, WORKING, run, streamed, whole
from tests.replay_engine import Output, Script, error_body, replaying, until


@EITHER
def test_nobody_listens(call: Any, nobody: str) -> None:
    error = _error(call, nobody)

    assert (type(error), error.status, error.code) == (EngineUnreachable, 502, "engine_unreachable")
    assert error.message == "The engine could not be reached: Connection refused."


def test_a_name_that_is_unknown() -> None:
    error = _error(whole, "http://engine.invalid")

    assert type(error) is EngineUnreachable
    assert "engine.invalid" not in error.message


def test_a_whole_response_that_breaks_off() -> None:
    with replaying(Script(outputs=WORKING.outputs, breaks_at=0)) as engine:
        error = _error(whole, engine.url)

    assert (type(error), error.message) == (EngineFailed, "The engine broke off its answer: ServerDisconnectedError.")


@EITHER
def test_an_address_that_does_not_answer(call: Any, settings_of_engines: Callable[..., None]) -> None:
    settings_of_engines(ENGINE_CONNECT_SECONDS=0.001)
    error = _error(call, "http://192.0.2.1:9")

    assert type(error) is EngineUnreachable


@EITHER
@pytest.mark.parametrize("status", [307, 401, 404, 500, 503])
def test_statuses_that_are_about_the_installation(call: Any, status: int) -> None:
    elsewhere = {"Location": "http://192.0.2.1/"}
    with replaying(Script(status=status, body=error_body("no", code=status), headers=elsewhere)) as engine:
        error = _error(call, engine.url)

    assert (type(error), error.status, error.code) == (EngineFailed, 502, "engine_failed")
    assert error.message == f"The engine answered {status}: no"


@EITHER
@pytest.mark.parametrize("status", [400, 413, 422, 429])
def test_statuses_that_are_about_the_request(call: Any, status: int) -> None:
    body = error_body("too much", type="SomeError", param="n", code=status)
    with replaying(Script(status=status, body=body, headers={"Retry-After": "3"})) as engine:
        error = _error(call, engine.url)

    assert (type(error), error.status, error.type, error.param) == (EngineRefused, status, "SomeError", "n")
    assert (error.message, error.retry_after) == ("too much", 3)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "no explanation"),
        (b"<html>bad</html>", "<html>bad</html>"),
        (b'{"error": "text"}', '{"error": "text"}'),
        (b'{"detail": "x"}', '{"detail": "x"}'),
        (b"[1]", "[1]"),
        (b"x" * 10_000, "x" * 500),
    ],
    ids=["empty", "html", "text", "other", "list", "long"],
)
def test_any_body_is_an_explanation(body: bytes, message: str) -> None:
    with replaying(Script(status=400, body=body, headers={"Retry-After": "soon"})) as engine:
        error = _error(whole, engine.url)

    assert (error.message, error.type, error.retry_after) == (message, "BadRequestError", None)


@pytest.mark.parametrize("body", [b"{", b"{}", b"[]", b'{"choices": [{"index": "a"}]}'])
def test_a_response_that_is_none(body: bytes) -> None:
    with replaying(Script(instead={0: body})) as engine:
        assert _error(whole, engine.url).message.startswith("The engine's response is not one: ")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (Script(outputs=WORKING.outputs, breaks_at=2), "The engine broke off its stream: "),
        (Script(outputs=WORKING.outputs, ends=b""), "The engine's stream ended without [DONE]."),
        (Script(outputs=WORKING.outputs, instead={1: b"data: {garbage\n\n"}), "The engine sent what is no chunk: "),
        (Script(outputs=WORKING.outputs, instead={1: b'data: {"choices": 1}\n\n'}), "The engine sent what is no "),
        (
            Script(outputs=WORKING.outputs, instead={1: b'data: {"error": {"message": "out of memory"}}\n\n'}),
            "The engine failed: out of memory",
        ),
        (Script(outputs=WORKING.outputs, instead={1: b'data: {"error": {}}\n\n'}), "The engine sent what is no "),
    ],
    ids=["break", "no end", "garbage", "no chunk", "error", "empty error"],
)
def test_streams_that_fail_after_they_began(script: Script, message: str) -> None:
    with replaying(script) as engine:
        error = _error(streamed, engine.url)

    assert (type(error), error.status) == (EngineFailed, 502)
    assert error.message.startswith(message)


def test_a_silence_within_a_stream(settings_of_engines: Callable[..., None]) -> None:
    settings_of_engines(ENGINE_READ_SECONDS=0.1)
    with replaying(Script(outputs=WORKING.outputs, hangs_at=1)) as engine:
        error = _error(streamed, engine.url)
        until(lambda: engine.only.was_aborted)

    assert (type(error), error.status, error.code) == (EngineTimeout, 504, "engine_timeout")


def test_the_word_error_in_a_chunk_is_none() -> None:
    with replaying(Script(outputs=[Output(token_ids=[5], finish_reason="error")])) as engine:
        assert run(lambda engines: streamed(engines, engine.url)) == [5]


def _error(call: Any, *urls: str) -> ApiError:
    """The error that the call fails with; no call is in flight afterwards."""

    async def failing(engines: Engines) -> ApiError:
        with pytest.raises(ApiError) as raised:
            await call(engines, *urls)
        assert [engines.in_flight(url) for url in urls] == [0] * len(urls)
        return raised.value

    error: ApiError = run(failing)
    return error
