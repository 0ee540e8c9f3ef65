"""Errors outside the views are JSON in the OpenAI shape."""

from typing import Any

import pytest
from django.test import Client, RequestFactory

from derender_api.views_errors import permission_denied


@pytest.mark.parametrize("path", ["/", "/nope", "/tokenizer_info"])
def test_unknown_paths(client: Client, path: str) -> None:
    answer = client.get(path)

    assert (answer.status_code, answer["Content-Type"]) == (404, "application/json")
    assert answer.json() == {"error": {"message": "Not Found", "type": "NotFoundError", "param": None, "code": 404}}


@pytest.mark.parametrize("path", ["/health", "/v1/models"])
def test_a_trailing_slash_is_redirected_with_method_and_body(client: Client, path: str) -> None:
    answer = client.post(path + "/?a=b", data="{}", content_type="application/json")

    assert (answer.status_code, answer["Location"]) == (307, f"{path}?a=b")


def test_failures_outside_the_views(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr("derender_api.middleware.ApiKeyMiddleware.__call__", fail)
    client.raise_request_exception = False

    answer = client.get("/health")

    assert answer.status_code == 500
    assert answer.json() == {
        "error": {"message": "Internal server error", "type": "InternalServerError", "param": None, "code": 500}
    }


def test_unknown_hosts(client: Client, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["example.org"]

    answer = client.get("/admin/login/", HTTP_HOST="evil.org")

    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "BadRequestError"


def test_permission_denied() -> None:
    answer = permission_denied(RequestFactory().get("/"), PermissionError())

    assert answer.status_code == 403
