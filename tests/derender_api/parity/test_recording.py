"""Recording a live server gives what a suite holds."""

import gzip
import json

import pytest
from django.core.management import call_command

from derender_api.management.commands import record_parity
from derender_api.parity.observed import HttpAnswer
from derender_api.parity.recording import RecordingError, ServerEncoder, record
from tests.derender_api.parity.support import CASE, HTTP_CASE, Echo


@pytest.fixture
def server():
    return Echo()


def test_a_case_with_text_is_encoded_rendered_and_answered(server):
    case = {
        "id": "demo/plain",
        "profile": "plain",
        "request": {"messages": []},
        "output": "ab",
        "chunkings": ["1", "all"],
    }
    recorded = record(server, case, encoder=ServerEncoder(server))
    expected = {**CASE, "output": "ab", "request": {"messages": [], "model": "model"}}
    assert recorded == expected


def test_exchanges_are_posted_as_they_are(server):
    case = {name: value for name, value in HTTP_CASE.items() if name != "answers"}
    assert record(server, case, encoder=ServerEncoder(server)) == HTTP_CASE


def test_a_server_that_does_not_tokenize_is_an_error(server):
    class Refusing(Echo):
        def send(self, method, path, headers, body):
            return HttpAnswer(404, {"error": {}})

    with pytest.raises(RecordingError, match="--tokenizer"):
        ServerEncoder(Refusing()).encode("ab")


def test_the_command_writes_a_line_per_case(server, monkeypatch, tmp_path):
    monkeypatch.setattr(record_parity, "Remote", lambda url, headers: server)
    monkeypatch.setattr(Echo, "close", lambda self: None, raising=False)
    cases = tmp_path / "cases.jsonl"
    lines = [{**CASE, "id": name, "chunkings": ["all"]} for name in ("demo/one", "demo/two")]
    cases.write_text("".join(json.dumps(each) + "\n" for each in lines))
    out = tmp_path / "out.jsonl.gz"
    call_command("record_parity", str(cases), url="http://x", out=out, only="two")
    recorded = [json.loads(line) for line in gzip.decompress(out.read_bytes()).decode().splitlines()]
    assert [(each["id"], list(each["streams"])) for each in recorded] == [("demo/two", ["all"])]
