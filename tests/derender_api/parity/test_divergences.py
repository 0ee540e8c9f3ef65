"""Reading divergences.json."""

import json

import pytest

from derender_api.parity.answers import Answer
from derender_api.parity.divergences import DivergenceError, divergences_of, read_divergences

ENTRY = {
    "case": "hermes/x",
    "rule": "message",
    "why": "vLLM loses the text after the call",
    "answer": {"content": "x", "finish_reason": "stop"},
}


def write(folder, *entries):
    path = folder / "divergences.json"
    path.write_text(json.dumps(entries))
    return path


def test_entries_are_read(tmp_path):
    http = {**ENTRY, "rule": "http", "suite": "protocol", "answer": [None, {"status": 400, "body": {}}]}
    one, other = read_divergences(write(tmp_path, ENTRY, http))
    assert one.answer == Answer(None, "x", (), "stop")
    assert other.exchanges == (None, {"status": 400, "body": {}})
    assert (one.label, other.label) == ("hermes/x (message)", "hermes/x in protocol (http)")


def test_an_answer_may_be_a_refusal(tmp_path):
    refusal = {"status": 400, "body": {"error": {}}}
    (entry,) = read_divergences(write(tmp_path, {**ENTRY, "answer": refusal}))
    assert (entry.answer, entry.refusal) == (None, refusal)


def test_no_file_means_no_divergences(tmp_path):
    assert read_divergences(tmp_path / "divergences.json") == []


def test_an_entry_may_be_narrowed_to_suite_profile_and_streams(tmp_path):
    narrow = {**ENTRY, "rule": "deltas", "suite": "json", "profile": "hermes", "streams": ["1", "all"]}
    entries = read_divergences(write(tmp_path, narrow))
    assert divergences_of(entries, suite="json", profile="hermes", case="hermes/x") == tuple(entries)
    assert divergences_of(entries, suite="json", profile="other", case="hermes/x") == ()
    assert divergences_of(entries, suite="xml", profile="hermes", case="hermes/x") == ()
    assert (entries[0].covers("1"), entries[0].covers("r1")) == (True, False)


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({**ENTRY, "rule": "all"}, "is none of"),
        ({**ENTRY, "why": " "}, "needs its reason"),
        ({"case": "x", "rule": "message", "why": "y"}, "answer"),
    ],
)
def test_an_entry_that_cannot_be_read_is_an_error(tmp_path, entry, text):
    with pytest.raises(DivergenceError, match=text):
        read_divergences(write(tmp_path, entry))
