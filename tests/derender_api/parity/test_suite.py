"""Reading suites, and posting their cases to an application."""

import pytest

from derender_api.parity import application
from derender_api.parity.observed import Streamed, recorded_oneshot
from derender_api.parity.suite import Exchange, Profile, SuiteError, find_suites, read_case, read_suite
from tests.derender_api.parity.support import CASE, HTTP_CASE, Echo, write_suite


def test_a_suite_is_read_by_profile(tmp_path):
    suite = read_suite(write_suite(tmp_path / "demo"))
    case, http = (read_case(line, suite=suite.name) for line in suite.lines["plain"])
    assert (suite.name, case.suite, case.id, case.finish_reason, case.streams["1"].lens) == (
        "demo",
        "demo",
        "demo/plain",
        "stop",
        (1, 1),
    )
    assert http.exchanges == (Exchange("GET", "/health", {}, b"", 200, ""),)


def test_suites_are_found_at_a_path_and_below_it(tmp_path):
    one, other = write_suite(tmp_path / "one"), write_suite(tmp_path / "other")
    assert find_suites(tmp_path) == [one, other]
    assert find_suites(one) == [one]


def test_what_cannot_be_read_is_named(tmp_path):
    with pytest.raises(SuiteError, match="no suite here"):
        find_suites(tmp_path)
    folder = write_suite(tmp_path / "demo", cases=[{**CASE, "profile": "other"}])
    with pytest.raises(SuiteError, match="the profile 'other'"):
        read_suite(folder)


def test_a_profile_becomes_a_served_model(tmp_path):
    profile = Profile("hermes+qwen3", "tokenizers/chatml", tool_parser="hermes", reasoning_parser="qwen3")
    configuration = profile.configuration(folder=tmp_path)
    assert configuration.name == "model"
    assert configuration.model == str(tmp_path)
    assert configuration.active_tool_parser == "hermes"
    off = Profile("hermes@no-auto", "tokenizers/chatml", tool_parser="hermes", enable_auto_tool_choice=False)
    assert off.configuration(folder=tmp_path).active_tool_parser is None


def test_cases_are_posted_as_they_were_recorded(tmp_path):
    suite = read_suite(write_suite(tmp_path / "demo"))
    case = read_case(suite.lines["plain"][0], suite="demo")
    assert recorded_oneshot(application.post_oneshot(Echo(), case)) == CASE["oneshot"]
    for stream in case.streams.values():
        assert application.post_stream(Echo(), case, stream.lens) == Streamed(200, stream.chunks)


def test_a_text_body_is_posted_without_content_type():
    value = {
        **HTTP_CASE,
        "raw": [],
        "post": [["/x", "{"], ["/x", {"a": 1}]],
        "answers": [{"status": 400, "body": 1}] * 2,
    }
    case = read_case(application.dumps(value), suite="demo")
    assert [(each.headers, each.sent) for each in case.exchanges] == [
        ({}, b"{"),
        ({"content-type": "application/json"}, b'{"a":1}'),
    ]
