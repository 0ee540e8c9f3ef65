"""The OpenAPI document and the interactive page, with assets from this server alone."""

import re

import pytest
from django.core.management import call_command
from django.test import Client


def test_the_document_is_complete_and_without_warnings(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", f"{tmp_path}/openapi.yaml")

    assert capsys.readouterr().err == ""


def test_the_document_names_every_route(client: Client) -> None:
    document = client.get("/openapi.json").json()

    assert document["info"]["title"] == "derender"
    assert set(document["paths"]) == {
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/chat/completions/derender",
        "/v1/completions/derender",
        "/v1/chat/completions/render",
        "/v1/completions/render",
        "/v1/models",
        "/tokenize",
        "/detokenize",
        "/health",
        "/ping",
        "/version",
        "/load",
        "/ready",
        "/metrics",
        "/kv_event_sources",
    }


def test_the_page_loads_nothing_from_elsewhere(client: Client) -> None:
    page = client.get("/docs")
    assets = re.findall(r'(?:src|href)="([^"]+)"', page.content.decode())

    assert page["Content-Type"].startswith("text/html")
    assert len(assets) >= 3
    for asset in assets:
        assert asset.startswith("/static/")
        assert client.get(asset).status_code == 200
