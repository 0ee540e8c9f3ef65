"""The table of served models: rows as configurations, validation as at a server's start, the admin page."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.test import Client

from derender_api.model_sources import DEMO_FOLDER
from parsers.configuration import KEYS, ModelConfiguration, ModelConfigurationError
from parsers.models import ServedModel
from parsers.validation import validate_configuration

FOLDER = str(DEMO_FOLDER)
AUTO = {"enable_auto_tool_choice": True}

pytestmark = pytest.mark.django_db


def test_fields_are_the_keys_of_a_configuration() -> None:
    fields = {field.name for field in ServedModel._meta.get_fields()}

    assert fields == set(KEYS) | {"id", "enabled", "position"}


def test_an_empty_field_means_the_default() -> None:
    assert ServedModel(name="n", model="m").configuration() == ModelConfiguration(name="n", model="m")


def test_a_row_is_a_configuration() -> None:
    row = ServedModel(
        name="n",
        model="m",
        aliases=["a"],
        tokenizer="t",
        tokenizer_mode="slow",
        tool_call_parser="hermes",
        enable_auto_tool_choice=True,
        default_chat_template_kwargs={"k": 1},
        max_model_len=7,
        max_logprobs=-1,
    )

    assert row.configuration() == ModelConfiguration(
        name="n",
        model="m",
        aliases=("a",),
        tokenizer="t",
        tokenizer_mode="slow",
        tool_call_parser="hermes",
        enable_auto_tool_choice=True,
        default_chat_template_kwargs={"k": 1},
        max_model_len=7,
        max_logprobs=-1,
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "/nowhere/at/all"}, "there is no such folder"),
        ({"tool_call_parser": "nope"}, "--tool-call-parser nope is unknown"),
        ({"max_logprobs": -7}, "max_logprobs must be -1"),
        ({"aliases": {"a": 1}}, "Aliases are a JSON list of names"),
        ({"aliases": ["taken"]}, "The name 'taken' is already taken by 'other'."),
    ],
)
def test_saving_validates_as_a_start_does(changes: dict[str, object], message: str) -> None:
    ServedModel.objects.create(name="other", model=FOLDER, aliases=["taken"])
    row = ServedModel(**{"name": "n", "model": FOLDER, **changes})

    with pytest.raises(ValidationError, match=message):
        row.full_clean()


def test_a_name_may_not_be_anothers_alias() -> None:
    ServedModel.objects.create(name="other", model=FOLDER, aliases=["n"])

    with pytest.raises(ValidationError, match="already taken by 'other'"):
        ServedModel(name="n", model=FOLDER).full_clean()


def test_a_disabled_row_may_be_unfinished() -> None:
    ServedModel(name="n", model="/nowhere/at/all", enabled=False).full_clean()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"model": "/nowhere/at/all"}, "model"),
        ({"tokenizer": "/nowhere/at/all"}, "tokenizer"),
        ({"tool_call_parser": "nope"}, "tool_call_parser"),
        ({"reasoning_parser": "nope"}, "reasoning_parser"),
        ({"reasoning_parser": "openai_gptoss"}, "reasoning_parser"),
        ({"tool_call_parser": "jamba", "reasoning_parser": "qwen3", **AUTO}, "tool_call_parser"),
        ({"enable_auto_tool_choice": True}, "tool_call_parser"),
        ({"chat_template": "/nowhere.jinja"}, "chat_template"),
        ({"aliases": ["n"]}, "aliases"),
        ({"aliases": "a", "enabled": False}, "aliases"),
        ({"default_chat_template_kwargs": [], "enabled": False}, "default_chat_template_kwargs"),
        ({"max_logprobs": -7}, "max_logprobs"),
        ({"name": "taken"}, "name"),
    ],
)
def test_an_error_is_attached_to_the_field_that_is_to_be_changed(changes: dict[str, object], field: str) -> None:
    ServedModel.objects.create(name="other", model=FOLDER, aliases=["taken"])

    with pytest.raises(ValidationError) as caught:
        ServedModel(**{"name": "n", "model": FOLDER, **changes}).full_clean()

    assert list(caught.value.message_dict) == [field]


def test_validators_come_from_the_settings(settings: Any) -> None:
    settings.DERENDER = {"MODEL_VALIDATORS": [f"{__name__}.refuse"]}

    with pytest.raises(ModelConfigurationError, match="refused n"):
        validate_configuration(ModelConfiguration(name="n", model="m"))


def refuse(configuration: ModelConfiguration) -> None:
    """A validator that lets nothing pass."""
    raise ModelConfigurationError(f"refused {configuration.name}")


class TestAdmin:
    """The page lists, adds and refuses."""

    FORM = {
        "name": "n",
        "aliases": "[]",
        "model": FOLDER,
        "tokenizer_mode": "auto",
        "stream_state_format": "replay",
        "chat_template_content_format": "auto",
        "generation_config": "auto",
        "override_generation_config": "{}",
        "default_chat_template_kwargs": "{}",
        "max_logprobs": "20",
        "position": "0",
        "enabled": "on",
    }

    @pytest.fixture
    def admin(self, client: Client) -> Client:
        """A client that is logged in."""
        client.force_login(User.objects.create_superuser("admin"))
        return client

    def test_adds_a_model(self, admin: Client) -> None:
        answer = admin.post("/admin/parsers/servedmodel/add/", self.FORM)

        assert answer.status_code == 302, answer.content.decode()
        assert admin.get("/admin/parsers/servedmodel/").status_code == 200
        assert ServedModel.objects.get().configuration() == ModelConfiguration(name="n", model=FOLDER)

    def test_refuses_what_cannot_be_served(self, admin: Client) -> None:
        answer = admin.post("/admin/parsers/servedmodel/add/", {**self.FORM, "reasoning_parser": "nope"})

        assert answer.status_code == 200
        assert "--reasoning-parser nope is unknown" in answer.content.decode()
        assert not ServedModel.objects.exists()

    def test_needs_a_login_and_a_token(self, admin: Client, client: Client) -> None:
        strict = Client(enforce_csrf_checks=True)
        strict.cookies = admin.cookies

        assert strict.post("/admin/parsers/servedmodel/add/", self.FORM).status_code == 403
        assert Client().get("/admin/parsers/servedmodel/").status_code == 302

    def test_is_found_without_the_slash(self, client: Client) -> None:
        answer = client.get("/admin")

        assert (answer.status_code, answer["Location"]) == (302, "/admin/")

    def test_serves_its_own_assets(self, client: Client) -> None:
        assert client.get("/static/admin/css/base.css").status_code == 200
