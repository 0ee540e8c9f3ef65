"""Measuring a server: here a small one that answers as the recordings' application does."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from derender_api.parity.benchmark import Row, as_table, measure
from derender_api.parity.benchmark_plot import draw
from derender_api.parity.benchmark_streams import BenchmarkError
from derender_api.parity.benchmark_work import Plan, Work
from tests.derender_api.parity.support import Echo

SMALL = Plan(
    oneshot_lengths=(8,), stream_lengths=(6,), prompt_lengths=(4,), forms=("replay",), rounds=2, requests=4, clients=2
)


class Ones:
    """Encodes every character as token 1."""

    def encode(self, text):
        return [1] * len(text)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    status = 200

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        content = json.dumps(Echo().send("POST", self.path, {}, body).body).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_every_measurement_has_a_value_per_server(server):
    rows = measure({"one": server, "two": server}, encoder=Ones(), plan=SMALL)
    assert [row.name for row in rows] == [
        "one-shot, 8 tokens: latency, ms",
        "one-shot, 8 tokens: requests/s, 2 clients",
        "replay stream, 6 tokens, prompt 4: total, s",
        "replay stream, 6 tokens, prompt 4: tenth call, ms",
        "replay stream, 6 tokens, prompt 4: last call, ms",
        "replay stream, 6 tokens, prompt 4: last call, kB",
        "replay stream, 6 tokens, prompt 4: all calls, MB",
    ]
    assert all(len(row.values) == 2 and all(value > 0 for value in row.values) for row in rows)


def test_a_server_that_refuses_is_an_error(server, monkeypatch):
    monkeypatch.setattr(Handler, "status", 400)
    with pytest.raises(BenchmarkError, match="answered 400"):
        measure({"one": server}, encoder=Ones(), plan=SMALL)
    with pytest.raises(BenchmarkError, match="does not answer"):
        measure({"one": "http://127.0.0.1:1"}, encoder=Ones(), plan=SMALL)


def test_outputs_are_about_as_long_as_asked_for():
    assert len(Work(Ones(), Plan(with_parsers=False)).output(300)) == pytest.approx(300, rel=0.1)
    mixed = Work(Ones(), Plan()).output(900)
    assert 900 < len(mixed) < 1100


def test_the_table_relates_every_server_to_the_first():
    table = as_table(
        ["ours", "theirs"], [Row("latency", (2.0, 5.0)), Row("idle", (0.0, 1.0)), Row("long", (1.0, None))]
    ).splitlines()
    assert [line.split() for line in table] == [
        ["ours", "theirs"],
        ["latency", "2.00", "5.00", "(x2.50)"],
        ["idle", "0.00", "1.00"],
        ["long", "1.00", "-"],
    ]


def test_long_streams_are_sent_to_the_first_server_alone(server):
    plan = Plan(
        oneshot_lengths=(), stream_lengths=(6,), prompt_lengths=(4,), forms=("compact",), rounds=1, others_limit=5
    )
    rows = measure({"one": server, "two": server}, encoder=Ones(), plan=plan)
    assert all(row.values[0] is not None and row.values[1] is None for row in rows)


def test_a_compact_state_stands_for_prompt_and_request():
    work = Work(Ones(), Plan())
    first = json.loads(work.chunk([1], prompt=[1, 2], state=None, form="compact", last=False))
    later = json.loads(
        work.chunk([1], prompt=[1, 2], state={"format": "compact", "state": "x"}, form="compact", last=True)
    )
    assert set(first) - set(later) == {"prompt_token_ids", "prompt_tokens", "chat_request"}


def test_the_plot_has_a_line_for_each_server_form_and_prompt(tmp_path):
    rows = [
        Row(f"{form} stream, {length} tokens, prompt 200: last call, ms", (1.0, 2.0 if length < 128 else None))
        for form in ("replay", "compact")
        for length in (64, 128)
    ]
    draw(tmp_path / "cost.svg", servers=["ours", "theirs"], rows=rows)
    svg = (tmp_path / "cost.svg").read_text()
    for server in ("ours", "theirs"):
        for form in ("replay", "compact"):
            assert f"{server}, {form}, prompt 200" in svg
