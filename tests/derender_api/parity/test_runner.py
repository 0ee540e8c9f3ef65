"""Runs of a small suite against an application that answers as recorded, and the command around them."""

import json

import pytest
from django.core.management import CommandError, call_command

from derender_api.parity import runner
from derender_api.parity.options import Options
from derender_api.parity.rules import Outcome, Rule
from derender_api.parity.runner import run
from tests.derender_api.parity.support import CASE, HTTP_CASE, PROFILE, Echo, write_suite

URL = "http://127.0.0.1:1"


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(runner.application, "Remote", lambda url: Echo())


def outcomes(result, rule):
    return dict(result.profiles[0].tally(rule).cases)


@pytest.mark.usefixtures("server")
def test_all_rules_hold_where_the_answers_are_the_recorded_ones(tmp_path):
    finished = []

    def total(count):
        assert count == 2
        return finished.append

    result = run([write_suite(tmp_path / "demo")], options=Options(url=URL, processes=1), total=total)
    assert sum(finished) == 2
    assert {rule: outcomes(result, rule) for rule in Rule} == {
        Rule.MESSAGE: {Outcome.HOLDS: 1},
        Rule.DELTAS: {Outcome.HOLDS: 1},
        Rule.CONTRADICTORY: {},
        Rule.SELF: {Outcome.HOLDS: 1},
        Rule.HTTP: {Outcome.HOLDS: 1},
        Rule.RIGHT: {},
    }
    assert not result.broken


@pytest.mark.usefixtures("server")
def test_cases_are_selected_by_profile_and_text(tmp_path):
    other = {**PROFILE, "name": "other"}
    cases = [CASE, HTTP_CASE, {**CASE, "profile": "other"}]
    folder = write_suite(tmp_path / "demo", cases=cases, profiles=[PROFILE, other])
    chosen = run([folder], options=Options(url=URL, profile="plain", only="demo/plain/demo/pl", processes=1))
    assert [(each.label, [result.id for result in each.results]) for each in chosen.profiles] == [
        ("demo/plain", ["demo/plain"])
    ]


@pytest.mark.usefixtures("server")
def test_a_divergence_that_no_case_needs_is_stale(tmp_path):
    folder = write_suite(tmp_path / "demo")
    entry = {
        "case": "demo/plain",
        "rule": "message",
        "why": "none",
        "answer": {"content": "x", "finish_reason": "stop"},
    }
    (tmp_path / "divergences.json").write_text(json.dumps([entry, {**entry, "case": "elsewhere"}]))
    result = run([folder], options=Options(url=URL, processes=1))
    assert (result.failing, result.stale, result.broken) == (0, ["demo/plain (message)"], True)


def test_profiles_without_tokenizer_or_parser_are_counted_apart(tmp_path):
    (tmp_path / "tokenizers" / "empty").mkdir(parents=True)
    (tmp_path / "tokenizers" / "empty" / "tokenizer.json").write_text("{}")
    unknown = {"name": "unknown", "tokenizer": "tokenizers/empty", "tool_parser": "no_such_format"}
    cases = [CASE, {**CASE, "profile": "unknown"}]
    folder = write_suite(tmp_path / "demo", cases=cases, profiles=[PROFILE, unknown])
    plain, unbuilt = run([folder], options=Options(processes=1)).profiles
    assert plain.problem.startswith("no tokenizer: no folder tokenizers/none below")
    assert (unbuilt.problem, unbuilt.cases, unbuilt.results) == ("not built: tool parser no_such_format", 1, [])


def test_a_suite_without_divergences_uses_the_projects_own(tmp_path, settings):
    settings.BASE_DIR = tmp_path
    own = tmp_path / "tests" / "data" / "parity" / "divergences.json"
    own.parent.mkdir(parents=True)
    own.write_text("[]")
    suite = write_suite(tmp_path / "elsewhere" / "demo")
    assert runner._divergences_file(suite) == own
    (tmp_path / "elsewhere" / "divergences.json").write_text("[]")
    assert runner._divergences_file(suite) == tmp_path / "elsewhere" / "divergences.json"


def test_a_model_that_cannot_start_is_no_failure_where_vllm_refuses_everything(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "run_work", lambda work: "cannot start: no such token")
    (tmp_path / "tokenizers" / "none").mkdir(parents=True)
    (tmp_path / "tokenizers" / "none" / "tokenizer.json").write_text("{}")
    refused = {**CASE, "oneshot": {"status": 501, "body": {}}}
    answered = run([write_suite(tmp_path / "answered", cases=[CASE])], options=Options(processes=1))
    refusing = run([write_suite(tmp_path / "refusing", cases=[refused])], options=Options(processes=1))
    assert (answered.broken, refusing.broken) == (True, False)
    assert refusing.profiles[0].problem.startswith("refused at start")


@pytest.mark.usefixtures("server")
def test_the_command_prints_one_json_object_and_fails_on_request(tmp_path, capsys):
    changed = {**CASE, "oneshot": {**CASE["oneshot"], "finish_reason": "length"}}
    folder = write_suite(tmp_path / "demo", cases=[changed])
    options = {"url": URL, "profile": "plain", "processes": 1, "format": "json"}
    call_command("run_parity", str(folder), **options)
    value = json.loads(capsys.readouterr().out)
    assert (value["cases"], value["failing"], list(value["profiles"][0]["failing"])) == (1, 1, ["demo/plain"])
    with pytest.raises(CommandError, match="The rules do not hold"):
        call_command("run_parity", str(folder), fail_on_diff=True, **options)


@pytest.mark.usefixtures("server")
def test_the_command_shows_the_first_difference_side_by_side(tmp_path, capsys):
    changed = {**CASE, "oneshot": {**CASE["oneshot"], "finish_reason": "length"}}
    folder = write_suite(tmp_path / "demo", cases=[changed])
    call_command("run_parity", str(folder), "-v", url=URL, profile="plain", processes=1)
    printed = capsys.readouterr().out
    assert "demo/plain: message" in printed
    assert "finish_re" in printed


def test_the_command_says_what_it_cannot_read(tmp_path):
    with pytest.raises(CommandError, match="no suite here"):
        call_command("run_parity", str(tmp_path))
    with pytest.raises(CommandError, match="--url needs --profile"):
        call_command("run_parity", str(tmp_path), url=URL)
