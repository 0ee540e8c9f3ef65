"""Every refusal is an OpenAI error body, wherever it comes from."""

import json

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client

from derender_api.catalog import catalog
from parsers.configuration import ModelConfigurationError
from tests.derender_api.support import CHAT, error, oneshot, parsed_model, post, served

BODY = json.dumps(oneshot()).encode()


@pytest.fixture(autouse=True)
def _model():
    with served():
        yield


def send(method, path, body=b"", **headers):
    client = Client(raise_request_exception=False)
    response = client.generic(method, path, body, **headers)
    return response.status_code, json.loads(response.content) if response.content else None


def test_an_unknown_path():
    assert send("GET", "/v1/nothing") == error("Not Found", type="NotFoundError", code=404)


@pytest.mark.parametrize("method", ["GET", "PUT", "OPTIONS", "DELETE"])
def test_a_wrong_method_names_the_right_ones(method):
    response = Client().generic(method, CHAT)

    assert response.status_code == 405
    assert json.loads(response.content) == error("Method Not Allowed", type="MethodNotAllowedError", code=405)[1]
    assert response["Allow"] == "POST"


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "",
        "application/vnd.api+json",
        "application/json ; charset=utf-8",
        "multipart/form-data; boundary=x",
    ],
)
def test_another_content_type(content_type):
    assert send("POST", CHAT, BODY, content_type=content_type) == error(
        "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed", type="Bad Request"
    )


@pytest.mark.parametrize("content_type", ["application/json", "Application/JSON; charset=x", "application/json;x"])
def test_json_content_types(content_type):
    assert send("POST", CHAT, BODY, content_type=content_type)[0] == 200


def test_invalid_json_wins_over_another_json_type():
    status, answer = send("POST", CHAT, b"{", content_type="application/vnd.api+json")

    assert (status, answer["error"]["param"]) == (400, "body.1")


def test_accepting_event_streams_alone_is_fine():
    assert send("POST", CHAT, BODY, content_type="application/json", HTTP_ACCEPT="text/event-stream")[0] == 200


def test_a_body_above_the_limit(settings):
    settings.DERENDER = {**settings.DERENDER, "MAX_BODY_BYTES": 10}

    status, answer = send("POST", CHAT, BODY, content_type="application/json")

    assert (status, answer["error"]["code"]) == (413, 413)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 200_000,
        b'{"generate_response":{"kv_transfer_params":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b'},"choices":[]}}',
        b'{"chat_request":{"messages":[],"tools":[' + b'{"x":' * 50_000 + b"1" + b"}" * 50_000 + b"]}}",
        b'{"generate_response":{"kv_transfer_params":{"a":' + b"[" * 950 + b"]" * 950 + b'},"choices":[]}}',
        b'{"generate_response":{"choices":[{"index":' + b"9" * 10_000 + b"}]}}",
    ],
    ids=["brackets", "transfer params", "tools", "at the limit", "digits"],
)
def test_recursion_and_digit_bombs_are_bad_requests(body):
    status, answer = send("POST", CHAT, body, content_type="application/json")

    assert status in (200, 400)
    assert status == 200 or set(answer["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    ("raised", "status", "type"),
    [
        (RuntimeError("secret"), 500, "InternalServerError"),
        (ModelConfigurationError("secret"), 503, "ServiceUnavailableError"),
        (PermissionDenied("secret"), 403, "PermissionDeniedError"),
        (RecursionError("secret"), 500, "InternalServerError"),
    ],
)
def test_what_nobody_declared_tells_nothing(monkeypatch, raised, status, type):
    def fail(*args):
        raise raised

    monkeypatch.setattr(catalog, "resolve", fail)

    got, answer = post(CHAT, oneshot())

    assert (got, answer["error"]["type"]) == (status, type)
    assert "secret" not in answer["error"]["message"]


def test_messages_that_are_no_list_are_a_schema_error():
    with parsed_model():
        status, answer = post(CHAT, oneshot(chat_request={"messages": 5}))

    assert (status, answer["error"]["type"]) == (400, "Bad Request")
    assert answer["error"]["param"] == "body.DerenderChatRequest.chat_request.messages"
