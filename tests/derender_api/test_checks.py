"""Settings are checked at start, with an ID and a hint."""

from typing import Any

import pytest
from django.core.checks import run_checks

from derender_api.api_keys import KnownKey, key_store
from derender_api.checks import check_deployment, check_settings, check_variables


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
    ("given", "secret", "ids"),
    [
        ({}, None, ["derender_api.W001", "derender_api.W002"]),
        ({"API_KEY": "k"}, None, ["derender_api.W002"]),
        ({"REQUIRE_API_KEYS": True}, "s", []),
    ],
)
def test_deployment(settings: Any, given: dict[str, Any], secret: str | None, ids: list[str]) -> None:
    settings.DERENDER = given
    settings.ENVIRONMENT = settings.ENVIRONMENT.model_copy(update={"secret_key": secret})

    assert [message.id for message in check_deployment(app_configs=None)] == ids


def test_a_key_of_the_table_is_one(settings: Any) -> None:
    settings.DERENDER = {}
    with key_store.override([KnownKey(id=1, name="a", digest="d")]):
        assert [message.id for message in check_deployment(app_configs=None)] == ["derender_api.W002"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("DERENDER_DATABSE_URL", "Did you mean DERENDER_DATABASE_URL"),
        ("DERENDER_XYZZY", "Remove it."),
        ("DERENDER_TEST_X", None),
    ],
)
def test_variables_that_are_no_settings(monkeypatch: pytest.MonkeyPatch, name: str, hint: str | None) -> None:
    monkeypatch.setenv(name, "x")

    messages = check_variables(app_configs=None)

    assert [message.id for message in messages] == ([] if hint is None else ["derender_api.W003"])
    assert all(message.hint.startswith(hint) and name in message.msg for message in messages)
