"""What the server says about itself (protocol 10.3)."""

import re

import pytest
from django.test import Client

from derender_api.catalog import catalog
from derender_api.model_sources import DEMO_FOLDER
from parsers.configuration import ModelConfiguration


def test_models_lists_every_name_with_the_shape_of_vllm(client: Client) -> None:
    configuration = ModelConfiguration(name="a", aliases=("b",), model=str(DEMO_FOLDER), max_model_len=32)

    with catalog.override([configuration]):
        answer = client.get("/v1/models")

    body = answer.json()
    assert answer["Content-Type"] == "application/json"
    assert list(body) == ["object", "data"]
    assert [card["id"] for card in body["data"]] == ["a", "b"]
    card = body["data"][0]
    created = card.pop("created")
    permission = card.pop("permission")[0]
    assert created == permission["created"]
    assert re.fullmatch("modelperm-[0-9a-f]{16}", permission.pop("id"))
    assert card == {
        "id": "a",
        "object": "model",
        "owned_by": "vllm",
        "root": str(DEMO_FOLDER),
        "parent": None,
        "max_model_len": 32,
    }
    assert permission == {
        "object": "model_permission",
        "created": created,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }


@pytest.mark.parametrize(("method", "path"), [("get", "/health"), ("get", "/ping"), ("post", "/ping")])
def test_health_is_empty_and_has_no_content_type(client: Client, method: str, path: str) -> None:
    answer = getattr(client, method)(path)

    assert (answer.status_code, answer.content) == (200, b"")
    assert "Content-Type" not in answer.headers


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/version", b'{"version":"0.33.0"}'),
        ("/load", b'{"server_load":0}'),
        ("/kv_event_sources", b"{}"),
    ],
)
def test_small_answers(client: Client, path: str, body: bytes) -> None:
    assert client.get(path).content == body


@pytest.mark.parametrize("method", ["head", "options", "delete", "put", "patch", "post"])
def test_other_methods_are_405(client: Client, method: str) -> None:
    answer = getattr(client, method)("/health")

    assert answer.status_code == 405
    assert answer["Allow"] == "GET"


@pytest.mark.parametrize("accept", ["text/event-stream", "text/html", "image/png;q=0", "nonsense"])
def test_accept_is_ignored(client: Client, accept: str) -> None:
    assert client.get("/version", HTTP_ACCEPT=accept).content == b'{"version":"0.33.0"}'
