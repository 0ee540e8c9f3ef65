"""The admin's first page."""

from dataclasses import replace

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from derender_api.catalog import catalog
from derender_api.model_sources import DEMO, DEMO_FOLDER
from derender_api.workbench.models import ParityRun
from parsers.models import ServedModel

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(client: Client) -> Client:
    """A client that may do everything."""
    client.force_login(User.objects.create_superuser("admin"))
    return client


def test_shows_how_models_stand_and_how_the_last_run_went(admin: Client) -> None:
    ServedModel.objects.create(name="off", model=str(DEMO_FOLDER), enabled=False)
    ServedModel.objects.create(name="broken", model=str(DEMO_FOLDER), max_logprobs=-9)
    rules = {"message": {"cases": 4, "fails": 1, "diverges": 0}}
    ParityRun.objects.create(version="1", seconds=1, cases=4, failing=1, rules=rules, paths="", label="a label")

    with catalog.override([DEMO]):
        page = admin.get("/admin/").content.decode()

    assert "the bundled demo model" in page
    assert '<span class="wb-state disabled">disabled</span>' in page
    assert "max_logprobs must be -1" in page
    assert "a label" in page
    assert "message 75.0 %" in page


def test_cuts_long_lists(admin: Client) -> None:
    with catalog.override([replace(DEMO, name=f"model-{number}") for number in range(23)]):
        for page in ("/admin/", "/admin/parsers/servedmodel/"):
            text = admin.get(page).content.decode()
            assert "model-19" in text
            assert "model-20" not in text
            assert "and 3 more" in text


def test_shows_each_part_to_those_who_may_see_it(client: Client) -> None:
    clerk = User.objects.create_user("clerk", is_staff=True)
    client.force_login(clerk)

    page = client.get("/admin/").content.decode()
    assert "overview-models" not in page
    assert "overview-parity" not in page

    clerk.user_permissions.add(Permission.objects.get(codename="view_servedmodel"))
    page = client.get("/admin/").content.decode()
    assert "overview-models" in page
    assert "Add a model" not in page


def test_without_a_run_it_says_how_to_make_one(admin: Client) -> None:
    assert "run_parity --save" in admin.get("/admin/").content.decode()


def test_lists_the_last_changes(admin: Client) -> None:
    row = ServedModel.objects.create(name="gone", model=str(DEMO_FOLDER))
    admin.post(f"/admin/parsers/servedmodel/{row.pk}/delete/", {"post": "yes"})

    assert "gone: Deleted." in admin.get("/admin/").content.decode()
