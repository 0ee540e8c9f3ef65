"""Settings are checked at start, with an ID and a hint."""

from typing import Any

import pytest
from django.core.checks import run_checks

from derender_api.checks import check_deployment, check_settings


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        ({}, []),
        ({"MODELS": [{"model": "m"}], "MAX_BODY_BYTES": 1}, []),
        ({"MODEL": []}, ["derender_api.E001"]),
        ({"MAX_BODY_BYTES": 0}, ["derender_api.E002"]),
        ({"MAX_N_SEQUENCES": "many"}, ["derender_api.E002"]),
        ({"MODELS": [{"model": "m", "parser": "x"}]}, ["derender_api.E003"]),
        ({"MODELS": [{"model": "m"}, {"model": "m"}]}, ["derender_api.E003"]),
    ],
)
def test_settings(settings: Any, given: dict[str, Any], ids: list[str]) -> None:
    settings.DERENDER = given

    messages = check_settings(app_configs=None)

    assert [message.id for message in messages] == ids
    assert all(message.hint for message in messages)


def test_the_project_passes_all_checks() -> None:
    assert run_checks() == []


@pytest.mark.parametrize(
    ("api_key", "secret", "ids"),
    [(None, "", ["derender_api.W001", "derender_api.W002"]), ("k", "", ["derender_api.W002"]), ("k", "s", [])],
)
def test_deployment(
    settings: Any, monkeypatch: pytest.MonkeyPatch, api_key: str | None, secret: str, ids: list[str]
) -> None:
    settings.DERENDER = {"API_KEY": api_key}
    monkeypatch.setenv("DERENDER_SECRET_KEY", secret)

    assert [message.id for message in check_deployment(app_configs=None)] == ids
