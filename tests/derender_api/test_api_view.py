"""What the base of the views adds to the framework's."""

import gc
from typing import Any

import orjson
import pytest
from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request
from rest_framework.views import APIView

from derender_api.django_bridge import DjangoBridge
from tests.derender_api.support import CHAT, COMPLETION, HELLO, MESSAGES, chunk, completions, oneshot, parsed_model

KEPT = (HttpRequest, Request, APIView, HttpResponse)
REQUEST = {"messages": MESSAGES}


def ask(method: str, path: str, body: Any) -> int:
    """Status of the answer."""
    scope = {
        "method": method,
        "path": path,
        "query_string": b"",
        "http_version": "1.1",
        "scheme": "http",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
    }
    return DjangoBridge().answer_small(scope, b"" if method == "GET" else orjson.dumps(body)).status


def kept() -> int:
    """How many objects of a request and its answer are there."""
    return sum(isinstance(each, KEPT) for each in gc.get_objects())


@pytest.mark.parametrize(
    ("status", "method", "path", "body"),
    [
        (200, "POST", CHAT, oneshot(chat_request=REQUEST)),
        (200, "POST", CHAT, chunk([HELLO], chat_request=REQUEST, prompt_token_ids=[1])),
        (200, "POST", CHAT, chunk([HELLO], chat_request=REQUEST, prompt_token_ids=[1], stream_state_format="compact")),
        (200, "POST", COMPLETION, completions()),
        (200, "POST", "/v1/chat/completions/render", REQUEST),
        (200, "POST", "/tokenize", {"prompt": "hi"}),
        (200, "GET", "/health", None),
        (200, "GET", "/v1/models", None),
        (200, "GET", "/metrics", None),
        (400, "POST", CHAT, {}),
        (404, "POST", CHAT, oneshot(model="nobody", chat_request=REQUEST)),
        (404, "GET", "/nope", None),
        (405, "GET", CHAT, None),
    ],
)
def test_nothing_of_a_request_waits_for_the_garbage_collector(status: int, method: str, path: str, body: Any) -> None:
    with parsed_model():
        ask(method, path, body)
        gc.collect()
        gc.disable()
        try:
            before = kept()
            answered = ask(method, path, body)
            after = kept()
        finally:
            gc.enable()

    assert (answered, after) == (status, before)
