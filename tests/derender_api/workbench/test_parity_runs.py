"""Runs of the parity suites in the tables, and their pages."""

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import DjangoDbBlocker

from derender_api.parity import runner
from derender_api.parity.options import Options
from derender_api.parity.results import RunResult
from derender_api.parity.rules import Rule
from derender_api.workbench.models import Difference, ParityRun
from derender_api.workbench.parity.heat_map import Cell, cells_of
from derender_api.workbench.parity.history import plot_of
from derender_api.workbench.parity.side_by_side import Half, Row, rows_of
from derender_api.workbench.parity.store import save_run, storable
from tests.derender_api.workbench.suites import CHANGED, RECORDED, changed_suite

RUNS = "/admin/workbench/parityrun/"


@pytest.fixture
def admin(client: Client, db: None) -> Client:
    """A client that may do everything."""
    client.force_login(User.objects.create_superuser("admin"))
    return client


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite with two changed answers."""
    return changed_suite(tmp_path_factory.mktemp("suites"))


@pytest.fixture(scope="module")
def result(suite: Path, django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> RunResult:
    """What a run of it finds, outside of any transaction: requests in this process close the database's connection."""
    with django_db_blocker.unblock():
        return runner.run([suite], options=Options(root=RECORDED.parent, fast=True, processes=1))


@pytest.fixture
def run(db: None, suite: Path, result: RunResult) -> ParityRun:
    """The run, saved."""
    return save_run(result, [suite], label="a reason")


def made(pk: int, **rules: tuple[int, int]) -> ParityRun:
    """A run with (cases, fails) by rule, not stored."""
    counts = {rule: {"cases": cases, "fails": fails, "diverges": 0} for rule, (cases, fails) in rules.items()}
    return ParityRun(pk=pk, label="", version="1", seconds=1, cases=1, failing=0, rules=counts, paths="")


class TestStore:
    """`run_parity --save`."""

    @pytest.mark.django_db
    def test_keeps_figures_and_differences(self, run: ParityRun) -> None:
        assert (run.label, run.cases, run.failing) == ("a reason", 12, 2)
        assert run.rules["message"]["fails"] == 1
        profile = run.profiles.get(failing__gt=0)
        assert (profile.suite, profile.failing) == ("json_more", 2)
        difference = profile.differences.filter(rule="message").get()
        assert difference.expected["message"]["content"] == CHANGED
        assert difference.got["message"]["content"] != CHANGED

    @pytest.mark.django_db
    def test_a_difference_can_be_tried(self, run: ParityRun, admin: Client) -> None:
        difference = Difference.objects.filter(rule="message").get()

        page = admin.get(f"/admin/playground/?difference={difference.pk}").content.decode()

        assert difference.source["tokenizer"] in page

    @pytest.mark.django_db(transaction=True)
    def test_the_command_saves_what_it_reports(self, suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
        options = {"root": RECORDED.parent, "save": True, "label": "by command", "fast": True, "processes": 1}
        call_command("run_parity", suite, **options)

        saved = ParityRun.objects.get()
        assert (saved.label, saved.failing) == ("by command", 2)
        printed = capsys.readouterr()
        assert "2 cases fail." in printed.out
        assert f"Saved as run {saved.pk}." in printed.err

    def test_a_label_needs_a_run_that_is_kept(self) -> None:
        with pytest.raises(CommandError, match="add --save"):
            call_command("run_parity", RECORDED / "json_more", label="x")

    @pytest.mark.parametrize(
        ("value", "stored"),
        [
            ("a\0b", "a\\x00b"),
            (["\ud800"], ["\\ud800"]),
            ({"\0": (1, None)}, {"\\x00": [1, None]}),
            (1.5, 1.5),
        ],
    )
    def test_holds_what_databases_refuse(self, value: object, stored: object) -> None:
        assert storable(value) == stored


class TestHeatMap:
    """Figures by rule."""

    @pytest.mark.parametrize(
        ("cases", "fails", "percent", "level"),
        [
            (0, 0, "", "none"),
            (10, 0, "100 %", "all"),
            (2000, 1, "99.9 %", "most"),
            (100000, 1, "99.9 %", "most"),
            (100, 3, "97.0 %", "many"),
            (10, 1, "90.0 %", "some"),
            (10, 9, "10.0 %", "few"),
        ],
    )
    def test_cells(self, cases: int, fails: int, percent: str, level: str) -> None:
        cell = Cell("self", cases, fails, 0)

        assert (cell.percent, cell.level) == (percent, level)

    def test_has_a_cell_for_each_rule(self) -> None:
        assert [cell.rule for cell in cells_of({})] == [rule.value for rule in Rule]


class TestHistory:
    """The plot's coordinates."""

    def test_nothing_is_plotted_of_nothing(self) -> None:
        assert plot_of([]) is None

    def test_a_rule_is_a_line_from_left_to_right(self) -> None:
        plot = plot_of([made(1, message=(100, 10)), made(2, message=(100, 0), self=(5, 0))])

        assert plot is not None
        lines = {line.rule: line for line in plot.lines}
        first, last = lines["message"].points
        assert (first.x, last.x) == (plot.left, plot.right)
        assert (first.y, last.y) == (plot.bottom, plot.top)
        assert len(lines["self"].points) == 1
        assert lines["message"].label_y != lines["self"].label_y

    def test_one_run_stands_in_the_middle(self) -> None:
        plot = plot_of([made(1, message=(1, 0))])

        assert plot is not None
        assert plot.lines[0].points[0].x == (plot.left + plot.right) / 2


class TestSideBySide:
    """Rows of two answers."""

    def test_streams_are_compared_chunk_by_chunk(self) -> None:
        rows = rows_of([[{"content": "a"}, None], [{"content": "b"}, None]], [[{"content": "a"}, None]])

        assert [(row.label, row.differs, row.first) for row in rows] == [("0", False, False), ("1", True, True)]
        assert rows[1].got == Half("", "(nothing)")

    def test_texts_are_cut_where_they_begin_to_differ(self) -> None:
        assert rows_of({"a": "same", "b": "left"}, {"a": "same", "b": "leap"})[1] == Row(
            "b", Half('"le', "ft", '"'), Half('"le', "ap", '"'), differs=True, first=True
        )

    def test_other_values_are_one_row(self) -> None:
        assert [row.differs for row in rows_of(None, {"a": 1})] == [True]


@pytest.mark.django_db
class TestPages:
    """Pages of runs."""

    @pytest.mark.parametrize("path", [RUNS, "/admin/parity/1/", "/admin/parity/differences/1/"])
    def test_need_a_login(self, client: Client, db: None, path: str) -> None:
        answer = client.get(path)

        assert (answer.status_code, answer["Location"]) == (302, f"/admin/login/?next={path}")

    @pytest.mark.parametrize("path", ["/admin/parity/1/", "/admin/parity/differences/1/"])
    def test_need_the_permission(self, client: Client, db: None, path: str) -> None:
        client.force_login(User.objects.create_user("clerk", is_staff=True))

        assert client.get(path).status_code == 403

    def test_without_a_run_the_list_says_how_to_make_one(self, admin: Client) -> None:
        assert "run_parity --save" in admin.get(RUNS).content.decode()

    def test_the_list_has_the_history(self, run: ParityRun, admin: Client) -> None:
        page = admin.get(RUNS).content.decode()

        assert "<polyline" in page
        assert "a reason" in page

    def test_a_run_of_the_list_has_its_own_page(self, run: ParityRun, admin: Client) -> None:
        assert admin.get(f"{RUNS}{run.pk}/change/")["Location"] == f"/admin/parity/{run.pk}/"
        assert admin.get(f"{RUNS}x/change/")["Location"] == "/admin/"

    def test_a_run_shows_its_heat_map_and_differences(self, run: ParityRun, admin: Client) -> None:
        page = admin.get(f"/admin/parity/{run.pk}/").content.decode()

        assert "2 differ" in page
        assert 'class="heat all"' in page
        assert page.count("/admin/parity/differences/") == Difference.objects.count()

    def test_differences_are_filtered(self, run: ParityRun, admin: Client) -> None:
        profile = run.profiles.get(failing__gt=0)
        page = admin.get(f"/admin/parity/{run.pk}/?rule=message&profile={profile.pk}").content.decode()

        assert page.count("/admin/parity/differences/") == 1
        assert "None." in admin.get(f"/admin/parity/{run.pk}/?rule=nothing&profile=x&page=y").content.decode()

    def test_a_difference_is_shown_side_by_side(self, run: ParityRun, admin: Client) -> None:
        difference = Difference.objects.filter(rule="message").get()
        page = admin.get(f"/admin/parity/differences/{difference.pk}/").content.decode()

        assert 'id="first-difference"' in page
        assert "<mark>" in page
        assert CHANGED in page

    def test_what_is_not_there_is_not_found(self, admin: Client) -> None:
        assert admin.get("/admin/parity/7/").status_code == 404
        assert admin.get("/admin/parity/differences/7/").status_code == 404
