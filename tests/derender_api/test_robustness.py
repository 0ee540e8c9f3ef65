"""A real server under load: workers that are killed, slow clients, more requests than it may take on."""

import os
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil
import pytest

from derender_api.model_sources import DEMO_FOLDER
from tests.servers import MANAGE, Server, migrate, serving

pytestmark = pytest.mark.live

FOLDER = str(DEMO_FOLDER)
CHAT = "/v1/chat/completions/derender"
MESSAGES = [{"role": "user", "content": "hi"}]
BODY = {
    "generate_response": {"request_id": "r", "choices": [{"index": 0, "token_ids": [2541, 3048]}]},
    "chat_request": {"messages": MESSAGES},
}
HEADERS = {"Authorization": "Bearer sesame"}
CLIENTS = 8
KILLS = 3


def workers(server: Server) -> set[int]:
    """PIDs of the workers that run."""
    children = psutil.Process(server.process.pid).children()
    return {child.pid for child in children if child.status() != psutil.STATUS_ZOMBIE}


@dataclass
class Load:
    """Clients that ask one request after the other, each over a kept connection, until they are told to stop."""

    url: str
    stop: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    answers: Counter[tuple[int, int]] = field(default_factory=Counter)
    losses: int = 0

    def ask(self) -> None:
        """One client. A request without an answer is noted with its time and not repeated."""
        client = httpx.Client(base_url=self.url, headers=HEADERS, timeout=60)
        while not self.stop.is_set():
            try:
                answer = client.post(CHAT, json=BODY)
                with self.lock:
                    self.answers[answer.status_code, answer.json().get("usage", {}).get("completion_tokens", 0)] += 1
            except httpx.TransportError:
                with self.lock:
                    self.losses += 1
                client.close()
                client = httpx.Client(base_url=self.url, headers=HEADERS, timeout=60)
        client.close()


class TestKilledWorkers:
    """`kill -9` loses what the worker was answering, and nothing else."""

    def test_lose_the_requests_in_flight_and_no_configuration(self, tmp_path: Path) -> None:
        migrate(tmp_path)
        row = f"from parsers.models import ServedModel as S; S.objects.create(name='row', model={FOLDER!r})"
        subprocess.run([*MANAGE, "shell", "-v", "0", "-c", row], cwd=tmp_path, check=True)
        flags = [FOLDER, "--served-model-name", "flag", "--workers", "2", "--api-key", "sesame"]
        with serving(tmp_path, *flags) as server, ThreadPoolExecutor(CLIENTS) as pool:
            load = Load(server.url)
            try:
                for _ in range(CLIENTS):
                    pool.submit(load.ask)
                for _ in range(KILLS):
                    self.await_answers(load, 50)
                    victim = min(workers(server))
                    os.kill(victim, signal.SIGKILL)
                    self.await_workers(server, 2, without=victim)
                self.await_answers(load, 50)
            finally:
                load.stop.set()
            pool.shutdown()
            names = {
                tuple(card["id"] for card in httpx.get(server.url + "/v1/models", headers=HEADERS).json()["data"])
                for _ in range(20)
            }
            strangers = {httpx.get(server.url + "/v1/models").status_code for _ in range(20)}

        assert set(load.answers) == {(200, 2)}
        # A client has one request in flight: it loses one per kill at most.
        assert load.losses <= CLIENTS * KILLS
        assert names == {("flag", "row")}
        assert strangers == {401}

    @staticmethod
    def await_answers(load: Load, more: int) -> None:
        """Wait until so many more requests are answered."""
        wanted, deadline = load.answers.total() + more, time.monotonic() + 60
        while load.answers.total() < wanted:
            assert time.monotonic() < deadline, load
            time.sleep(0.02)

    @staticmethod
    def await_workers(server: Server, count: int, *, without: int) -> None:
        """Wait until so many workers run again."""
        deadline = time.monotonic() + 60
        while without in (running := workers(server)) or len(running) < count:
            assert time.monotonic() < deadline, server.log()
            time.sleep(0.02)


class TestSlowClients:
    """Clients that send a byte and wait hold up nobody."""

    @pytest.mark.parametrize("beginning", [b"", b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"])
    def test_others_are_answered(self, tmp_path: Path, beginning: bytes) -> None:
        with serving(tmp_path, "--workers", "1", "--threads", "2") as server:
            slow = self.connections(server, 200, beginning)
            try:
                answers = [httpx.post(server.url + CHAT, json=BODY, timeout=30) for _ in range(5)]
            finally:
                for connection in slow:
                    connection.close()

        assert [answer.status_code for answer in answers] == [200] * 5

    def test_they_are_sent_away(self, tmp_path: Path) -> None:
        with serving(tmp_path, "--workers", "1", environment={"DERENDER_MAX_BODY_SECONDS": "1"}) as server:
            (slow,) = self.connections(server, 1, b"Content-Length: 1000\r\n\r\n{")
            slow.settimeout(30)
            answer = slow.recv(65536)
            slow.close()

        assert answer.startswith(b"HTTP/1.1 408")

    def test_their_memory_is_bounded(self, tmp_path: Path) -> None:
        limit = {"DERENDER_MAX_BODY_BYTES": "1000000"}
        with serving(tmp_path, "--workers", "1", environment=limit) as server:
            head = b"Content-Length: 1000000\r\n\r\n" + b" " * 900_000
            slow = self.connections(server, 4, head)
            time.sleep(1)
            refused = httpx.post(server.url + "/ping", content=b" " * 900_000, timeout=30)
            small = httpx.post(server.url + "/ping", content=b" " * 1000, timeout=30)
            for connection in slow:
                connection.close()
            time.sleep(1)
            allowed = httpx.post(server.url + "/ping", content=b" " * 900_000, timeout=30)

        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert (small.status_code, allowed.status_code) == (200, 200)

    @staticmethod
    def connections(server: Server, count: int, rest: bytes) -> list[socket.socket]:
        """Connections that have sent the beginning of a request."""
        opened = []
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", server.port))
            connection.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: x\r\n".encode() + rest)
            opened.append(connection)
        return opened


class TestOverload:
    """More requests than the server may take on get 503 with Retry-After; those who watch it are answered."""

    def test_some_are_refused_and_the_others_answered(self, tmp_path: Path) -> None:
        flags = ["--workers", "1", "--threads", "1", "--max-concurrent-requests", "2"]
        large = {
            **BODY,
            "generate_response": {"request_id": "r", "choices": [{"index": 0, "token_ids": [2541] * 120_000}]},
        }
        with serving(tmp_path, FOLDER, "--served-model-name", "demo", *flags) as server:
            with ThreadPoolExecutor(12) as pool:
                waiting = [pool.submit(httpx.post, server.url + CHAT, json=large, timeout=60) for _ in range(12)]
                watched = httpx.get(server.url + "/metrics", timeout=60)
                answers = [each.result() for each in waiting]
            after = httpx.post(server.url + CHAT, json=BODY, timeout=60)

        refused = [answer for answer in answers if answer.status_code == 503]
        assert {answer.status_code for answer in answers} == {200, 503}
        assert {answer.headers["retry-after"] for answer in refused} == {"1"}
        assert (watched.status_code, after.status_code) == (200, 200)
