"""Reports of a run, in all three formats."""

from xml.etree import ElementTree

import pytest

from derender_api.parity.report import as_json, as_junit, as_text
from derender_api.parity.results import CaseResult, ProfileResult, RunResult
from derender_api.parity.rules import Outcome, Rule, Verdict
from derender_api.parity.side_by_side import side_by_side

LEFT = [[{"role": "assistant"}, None], [{"content": "ab"}, None], [{}, "stop"]]
RIGHT = [[{"role": "assistant"}, None], [{"content": "a"}, None], [{"content": "b"}, "stop"]]


@pytest.fixture
def run_result():
    held = CaseResult("s/held", (Verdict(Rule.MESSAGE, Outcome.HOLDS), Verdict(Rule.DELTAS, Outcome.HOLDS, "1")))
    diverging = CaseResult(
        "s/apart", (Verdict(Rule.MESSAGE, Outcome.DIVERGES), Verdict(Rule.SELF, Outcome.EXCUSED, "1"))
    )
    failing = CaseResult(
        "s/failing",
        (
            Verdict(Rule.MESSAGE, Outcome.HOLDS),
            Verdict(Rule.DELTAS, Outcome.FAILS, "1", "chunk 1[0].content: no", LEFT, RIGHT),
            Verdict(Rule.DELTAS, Outcome.HOLDS, "all"),
        ),
    )
    profiles = [
        ProfileResult("s", "hermes", 3, [held, diverging, failing]),
        ProfileResult("s", "other", 7, problem="not built: tool parser other"),
    ]
    return RunResult(profiles, ["s/x (message)"], "Everything over HTTP.", 1.5)


def test_text_counts_cases_by_rule(run_result):
    text = as_text(run_result, verbose=False).splitlines()
    assert text[1].split() == ["s/hermes", "3", "2/2", "1/2", "-", "-", "-", "-", "1", "1"]
    assert text[2].split(maxsplit=2) == ["s/other", "7", "not built: tool parser other"]
    assert "  s/failing: deltas 1" in text
    assert "s/x (message): this divergence was not needed" in text
    assert text[-1] == "1 cases fail. 1 profiles (7 cases) could not be run."


def test_verbose_text_shows_the_first_difference(run_result):
    text = as_text(run_result, verbose=True)
    assert "deltas [1]: chunk 1[0].content: no" in text
    assert '[{"content": "ab"}, null]' in text


def test_json_has_the_same_counts_and_the_failing_ids(run_result):
    value = as_json(run_result)
    assert value["holds"] is False
    assert (value["cases"], value["failing"]) == (3, 1)
    assert value["rules"]["deltas"] == {
        "cases": 2,
        "holds": 1,
        "diverges": 0,
        "excused": 0,
        "fails": 1,
        "verdicts": 3,
        "verdicts_failing": 1,
    }
    hermes, other = value["profiles"]
    assert hermes["failing"] == {"s/failing": [{"rule": "deltas", "stream": "1", "detail": "chunk 1[0].content: no"}]}
    assert (hermes["diverging"], hermes["excused"]) == (1, 1)
    assert other["problem"] == "not built: tool parser other"


def test_junit_has_a_test_per_case(run_result):
    root = ElementTree.fromstring(as_junit(run_result))
    hermes, other = root.findall("testsuite")
    assert (hermes.get("tests"), hermes.get("failures"), other.get("skipped")) == ("3", "1", "1")
    assert hermes.find("testcase/failure").get("message") == "deltas [1]: chunk 1[0].content: no"


def test_side_by_side_shows_the_chunks_around_the_first_difference():
    lines = side_by_side(LEFT, RIGHT, width=100).splitlines()
    assert [line[:10].strip() for line in lines] == ["", "0", "1 !", "2 !"]


def test_side_by_side_shows_the_keys_that_differ():
    lines = side_by_side({"content": "a", "calls": []}, {"content": "b", "calls": []}, width=100).splitlines()
    assert [line.split() for line in lines[1:]] == [["content", '"a"', '"b"']]
