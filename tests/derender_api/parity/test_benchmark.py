"""Measuring a server: here a small one that answers as the recordings' application does."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from derender_api.parity.benchmark import BenchmarkError, Plan, Row, Work, as_table, measure
from tests.derender_api.parity.support import Echo

SMALL = Plan(oneshot_lengths=(8,), stream_lengths=(6,), prompt_length=4, rounds=2, requests=4, clients=2)


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
        "stream, 6 tokens one by one: total, s",
        "stream, 6 tokens one by one: last chunk, ms",
        "stream, 6 tokens one by one: both ways, MB",
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
    table = as_table(["ours", "theirs"], [Row("latency", (2.0, 5.0)), Row("idle", (0.0, 1.0))]).splitlines()
    assert [line.split() for line in table] == [
        ["ours", "theirs"],
        ["latency", "2.00", "5.00", "(x2.50)"],
        ["idle", "0.00", "1.00"],
    ]
