"""The admin page of served models: states, checks, the form's widgets, the history."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client

from derender_api.catalog import catalog
from derender_api.model_sources import DEMO, DEMO_FOLDER
from parsers.forms import FIELDSETS, ServedModelForm
from parsers.models import ServedModel
from parsers.widgets import FormatSelect, JsonEditor

LIST = "/admin/parsers/servedmodel/"
FOLDER = str(DEMO_FOLDER)

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(client: Client) -> Client:
    """A client that may do everything."""
    client.force_login(User.objects.create_superuser("admin"))
    return client


def form_of(row: ServedModel, **changes: Any) -> dict[str, Any]:
    """What the browser posts for a row."""
    form = ServedModelForm(instance=row)
    values = {name: form[name].value() for name in form.fields}
    return {name: value for name, value in {**values, **changes}.items() if value is not None and value is not False}


class TestList:
    """The list of models with their states."""

    def test_shows_how_each_model_stands(self, admin: Client) -> None:
        ServedModel.objects.create(name="good", model=FOLDER)
        ServedModel.objects.create(name="bad", model=FOLDER, max_logprobs=-9)
        ServedModel.objects.create(name="off", model=FOLDER, enabled=False)

        page = admin.get(LIST).content.decode()

        assert "max_logprobs must be -1" in page
        assert "disabled" in page
        assert "The first request loads the tokenizer." in page or "being taken over" in page

    def test_shows_what_is_served_from_elsewhere(self, admin: Client) -> None:
        with catalog.override([DEMO]):
            page = admin.get(LIST).content.decode()

        assert "Also served, not from this table" in page
        assert "<strong>demo</strong>" in page


class TestCheck:
    """The action that loads a model as a start would."""

    def test_says_what_was_found(self, admin: Client) -> None:
        row = ServedModel.objects.create(name="good", model=FOLDER, reasoning_parser="qwen3")

        answer = admin.get(f"{LIST}{row.pk}/check_model/", follow=True)

        assert "good can be served: tokenizer with 4,009 tokens" in answer.content.decode()
        assert answer.redirect_chain == [(f"{LIST}{row.pk}/change/", 302)]

    def test_says_what_is_wrong(self, admin: Client) -> None:
        row = ServedModel.objects.create(name="bad", model="/nowhere/at/all")

        page = admin.get(f"{LIST}{row.pk}/check_model/", follow=True).content.decode()

        assert "bad cannot be served: bad: MODEL /nowhere/at/all: there is no such folder." in page

    def test_goes_back_to_the_list_that_asked(self, admin: Client) -> None:
        row = ServedModel.objects.create(name="good", model=FOLDER)

        answer = admin.get(f"{LIST}{row.pk}/check_model/", headers={"referer": f"http://testserver{LIST}?q=good"})

        assert answer["Location"].startswith(LIST)
        assert "change" not in answer["Location"].removeprefix(LIST)

    def test_checks_the_selected_models(self, admin: Client) -> None:
        rows = [ServedModel.objects.create(name=name, model=FOLDER) for name in ("one", "two")]

        form = {"action": "check_models", "_selected_action": [row.pk for row in rows]}
        page = admin.post(LIST, form, follow=True).content.decode()

        assert "one can be served" in page
        assert "two can be served" in page

    def test_of_a_model_that_is_not_there_is_not_found(self, admin: Client) -> None:
        assert admin.get(f"{LIST}7/check_model/").status_code == 404
        assert admin.get(f"{LIST}x/try_model/").status_code == 404

    def test_needs_a_login(self, client: Client) -> None:
        row = ServedModel.objects.create(name="good", model=FOLDER)

        assert client.get(f"{LIST}{row.pk}/check_model/")["Location"].startswith("/admin/login/")

    def test_leads_to_the_playground(self, admin: Client) -> None:
        row = ServedModel.objects.create(name="a b", model=FOLDER)

        assert admin.get(f"{LIST}{row.pk}/try_model/")["Location"] == "/admin/playground/?model=a+b"


class TestForm:
    """Fields in groups, searchable formats, JSON."""

    def test_every_field_is_in_a_group(self) -> None:
        grouped = [name for _, options in FIELDSETS for name in options["fields"]]

        assert sorted(grouped) == sorted(ServedModelForm().fields)

    def test_groups_say_what_they_are_for(self) -> None:
        assert all(options["description"] for _, options in FIELDSETS)

    def test_an_error_stands_beside_its_field(self, admin: Client) -> None:
        row = ServedModel.objects.create(name="n", model=FOLDER)

        answer = admin.post(f"{LIST}{row.pk}/change/", form_of(row, reasoning_parser="openai_gptoss"))

        errors = answer.context["adminform"].form.errors
        assert list(errors) == ["reasoning_parser"]
        assert "needs the tokens" in errors["reasoning_parser"][0]
        assert ServedModel.objects.get().reasoning_parser == ""

    @pytest.mark.parametrize("text", ["", "[]"])
    def test_an_empty_list_of_aliases_may_be_no_text(self, admin: Client, text: str) -> None:
        row = ServedModel.objects.create(name="n", model=FOLDER, aliases=["a"])

        assert admin.post(f"{LIST}{row.pk}/change/", form_of(row, aliases=text)).status_code == 302
        assert ServedModel.objects.get().aliases == []

    def test_formats_are_found_by_name_and_family_and_have_samples(self) -> None:
        html = FormatSelect(role="tool calls").render("tool", "hermes", {"id": "id_tool"})

        assert '<option value="hermes" selected>hermes · Tool calls of Hermes' in html
        assert "\\u003Ctool_call\\u003E" in html
        assert 'data-samples="id_tool-samples"' in html

    def test_the_name_of_a_format_that_is_gone_stays(self) -> None:
        html = FormatSelect(role="reasoning").render("reasoning", "gone", {"id": "id_reasoning"})

        assert '<option value="gone" selected>gone · unknown</option>' in html

    @pytest.mark.parametrize(("value", "shown"), [('{"a":1}', '{\n  "a": 1\n}'), ("{", "{"), (None, None)])
    def test_json_is_indented(self, value: str | None, shown: str | None) -> None:
        assert JsonEditor().format_value(value) == shown


class TestHistory:
    """Django's log, with values."""

    def test_says_what_a_field_was_and_is(self, admin: Client) -> None:
        row = ServedModel.objects.create(name="n", model=FOLDER, max_logprobs=5)
        admin.post(f"{LIST}{row.pk}/change/", form_of(row, max_logprobs=7, reasoning_parser="qwen3"))

        message = LogEntry.objects.get().get_change_message()

        assert message == "Changed reasoning_parser: empty → qwen3; max_logprobs: 5 → 7."
        assert "max_logprobs: 5 → 7" in admin.get(f"{LIST}{row.pk}/history/").content.decode()

    def test_cuts_long_values(self, admin: Client) -> None:
        row = ServedModel.objects.create(name="n", model=FOLDER)
        admin.post(f"{LIST}{row.pk}/change/", form_of(row, chat_template="{{ x }}" * 100))

        assert len(LogEntry.objects.get().get_change_message()) < 300


class TestAccess:
    """Who may do what."""

    def test_who_may_only_look_cannot_save(self, client: Client) -> None:
        clerk = User.objects.create_user("clerk", is_staff=True)
        clerk.user_permissions.add(Permission.objects.get(codename="view_servedmodel"))
        client.force_login(clerk)
        row = ServedModel.objects.create(name="n", model=FOLDER)

        assert client.get(LIST).status_code == 200
        assert client.get(f"{LIST}{row.pk}/change/").status_code == 200
        assert client.post(f"{LIST}{row.pk}/change/", form_of(row, max_logprobs=7)).status_code == 403

    @pytest.mark.parametrize("path", ["/admin/", "/admin/auth/user/", "/admin/auth/group/", "/admin/auth/user/add/"])
    def test_pages_of_accounts_have_the_theme_and_need_a_login(self, admin: Client, path: str) -> None:
        assert "unfold/css/styles.css" in admin.get(path).content.decode()
        assert Client().get(path)["Location"].startswith("/admin/login/")

    def test_nothing_is_loaded_from_elsewhere(self, admin: Client) -> None:
        for path in ("/admin/", LIST, f"{LIST}add/", "/admin/playground/", "/admin/workbench/parityrun/"):
            page = admin.get(path).content.decode()
            loaded = [
                part.split('"')[0] for mark in ('src="', 'rel="stylesheet" href="') for part in page.split(mark)[1:]
            ]
            assert [url for url in loaded if not url.startswith("/")] == [], path
