"""What is counted, for one process and for several."""

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from derender_api import metrics, metrics_files
from derender_api.load import requests_in_flight
from derender_api.parser_cache import parser_cache
from tests.derender_api.support import (
    CHAT,
    COMPLETION,
    HELLO,
    MESSAGES,
    TOOLS,
    WORLD,
    chunk,
    completions,
    encode,
    oneshot,
    parsed_model,
    post,
    served,
)
from tests.servers import REPOSITORY, Server, serving

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]

DASHBOARD = REPOSITORY / "deploy" / "grafana-dashboard.json"
REQUEST = {"messages": MESSAGES, "tools": TOOLS}
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {}}\n</tool_call>'


def samples(text: str) -> Samples:
    """Every sample of an exposition by name and labels."""
    families = text_string_to_metric_families(text)
    return {
        (each.name, tuple(sorted(each.labels.items()))): each.value for family in families for each in family.samples
    }


@pytest.fixture
def counted(client: Client) -> Callable[..., float]:
    """How much a sample has grown since the test began."""
    before = samples(client.get("/metrics").content.decode())

    def growth(name: str, **labels: str) -> float:
        key = (name, tuple(sorted(labels.items())))
        return samples(client.get("/metrics").content.decode()).get(key, 0.0) - before.get(key, 0.0)

    return growth


class TestRequests:
    """Requests, errors and times."""

    def test_by_path_and_status(self, client: Client, counted: Callable[..., float]) -> None:
        with served():
            client.get("/v1/models")
            client.get("/v1/models")
            client.get("/v1/made/up/by/a/client")
            client.get("/admin/some/page")
            client.get("/admin")
            client.get("/admin/")
            client.get("/health/")

        assert counted("derender_requests_total", path="/v1/models", status="200") == 2
        assert counted("derender_requests_total", path="other", status="404") == 1
        assert counted("derender_requests_total", path="other", status="307") == 1
        assert counted("derender_requests_total", path="/admin", status="302") == 3
        assert counted("derender_request_seconds_count", path="/v1/models") == 2
        assert counted("derender_request_seconds_bucket", path="/v1/models", le="+Inf") == 2
        assert counted("derender_request_seconds_sum", path="/v1/models") > 0

    def test_refused_requests_count_under_their_path(
        self, client: Client, settings: Any, counted: Callable[..., float]
    ) -> None:
        settings.DERENDER = {**settings.DERENDER, "API_KEY": "k"}
        client.get("/v1/models")

        assert counted("derender_requests_total", path="/v1/models", status="401") == 1
        assert counted("derender_errors_total", type="AuthenticationError", code="401") == 1

    def test_errors_by_code(self, counted: Callable[..., float]) -> None:
        with parsed_model():
            post(CHAT, b"{")
            post(CHAT, oneshot([HELLO]))
            post(
                CHAT,
                chunk(
                    [HELLO],
                    chat_request=REQUEST,
                    prompt_token_ids=[1],
                    stream_state={"format": "compact", "state": "x"},
                ),
            )
            post(CHAT, oneshot([HELLO], model="nobody"))

        assert counted("derender_errors_total", type="Bad Request", code="400") == 1
        assert counted("derender_errors_total", type="BadRequestError", code="400") == 1
        assert counted("derender_errors_total", type="BadRequestError", code="stream_state_tampered") == 1
        assert counted("derender_errors_total", type="NotFoundError", code="404") == 1

    def test_requests_in_flight(self, client: Client) -> None:
        with requests_in_flight.counted():
            text = client.get("/metrics").content.decode()

        assert samples(text)["derender_requests_in_flight", ()] == 1

    def test_the_text_format(self, client: Client) -> None:
        answer = client.get("/metrics", HTTP_ACCEPT="application/openmetrics-text")

        assert answer["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert b"# HELP derender_requests_total Requests answered." in answer.content


class TestTokens:
    """Tokens by model, calls and chunks of streams."""

    def test_of_whole_answers(self, counted: Callable[..., float]) -> None:
        with served():
            post(CHAT, oneshot([HELLO, WORLD], prompt_tokens=7))
            post(COMPLETION, completions([HELLO], prompt_tokens=[5]))

        assert counted("derender_prompt_tokens_total", model="model") == 12
        assert counted("derender_generated_tokens_total", model="model") == 3

    @pytest.mark.parametrize("nonsense", [-5, 10**20, 10**400])
    def test_a_prompt_no_engine_has_read_is_not_counted(self, nonsense: int, counted: Callable[..., float]) -> None:
        with served():
            for prompt_tokens in (nonsense, 7):
                post(CHAT, oneshot([HELLO], prompt_tokens=prompt_tokens))
                post(COMPLETION, completions([HELLO], prompt_tokens=[prompt_tokens]))
                post(CHAT, chunk([HELLO], prompt_tokens=prompt_tokens))

        assert counted("derender_prompt_tokens_total", model="model") == 21
        assert counted("derender_generated_tokens_total", model="model") == 6

    def test_of_streams(self, counted: Callable[..., float]) -> None:
        with served():
            for path in (CHAT, COMPLETION):
                _, first = post(path, chunk([HELLO], prompt_tokens=7))
                post(path, chunk([WORLD], prompt_tokens=7, stream_state=first["stream_state"]))

        assert counted("derender_prompt_tokens_total", model="model") == 14
        assert counted("derender_generated_tokens_total", model="model") == 4
        assert counted("derender_stream_calls_total", kind="chat") == 2
        assert counted("derender_stream_chunks_total", kind="completion") == 2


class TestParsers:
    """What became of markup."""

    @pytest.fixture(autouse=True)
    def _model(self) -> Iterator[None]:
        parser_cache.clear()
        with parsed_model() as self.model:
            yield

    @pytest.mark.parametrize(
        ("text", "reason", "outcome"),
        [
            (CALL, "stop", "parsed"),
            ("Hello", "stop", "parsed"),
            (CALL[:30], "length", "truncated"),
            ("<tool_call>\nnot a call\n</tool_call>", "stop", "given_back"),
        ],
    )
    def test_of_whole_answers(self, counted: Callable[..., float], text: str, reason: str, outcome: str) -> None:
        choice = {"finish_reason": reason}
        body = oneshot(encode(self.model, text), choice=choice, chat_request=REQUEST)

        assert post(CHAT, body)[0] == 200
        assert self.outcomes(counted) == {outcome: 1}

    @pytest.mark.parametrize(
        ("text", "outcome"), [(CALL, "parsed"), ("<tool_call>\nnot a call\n</tool_call>", "given_back")]
    )
    def test_of_one_chunk(self, counted: Callable[..., float], text: str, outcome: str) -> None:
        fields = {"chat_request": REQUEST, "prompt_token_ids": [1], "choice": {"finish_reason": "stop"}}

        assert post(CHAT, chunk(encode(self.model, text), **fields))[0] == 200
        assert self.outcomes(counted) == {outcome: 1}

    def test_of_streams(self, counted: Callable[..., float]) -> None:
        fields = {"chat_request": REQUEST, "prompt_token_ids": [1]}
        _, first = post(CHAT, chunk(encode(self.model, CALL[:20]), **fields))
        assert self.outcomes(counted) == {}

        rest = encode(self.model, CALL[20:])
        state = first["stream_state"]
        for reason in ("stop", "length"):
            post(CHAT, chunk(rest, choice={"finish_reason": reason}, stream_state=state, **fields))

        assert self.outcomes(counted) == {"parsed": 1, "truncated": 1}

    def test_a_parser_that_fails(self, counted: Callable[..., float], monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*args: Any, **kwargs: Any) -> None:
            raise KeyError

        monkeypatch.setattr("derender_api.parsing.open_parser", fail)
        post(CHAT, oneshot([HELLO], chat_request=REQUEST))
        post(CHAT, chunk([HELLO], chat_request=REQUEST, prompt_token_ids=[1]))

        assert self.outcomes(counted) == {"failed": 2}

    def test_lookups_of_replayed_streams(self, counted: Callable[..., float]) -> None:
        fields = {"chat_request": REQUEST, "prompt_token_ids": [1]}
        _, first = post(CHAT, chunk([HELLO], **fields))
        post(CHAT, chunk([WORLD], stream_state=first["stream_state"], **fields))
        parser_cache.clear()
        _, second = post(CHAT, chunk([WORLD], stream_state=first["stream_state"], **fields))
        state = second["stream_state"]
        state["output_token_ids"] += [HELLO]
        state["output_chunk_lens"] += [1]
        post(CHAT, chunk([WORLD], stream_state=state, **fields))

        assert counted("derender_parser_cache_lookups_total", result="hit") == 1
        assert counted("derender_parser_cache_lookups_total", result="near") == 1
        assert counted("derender_parser_cache_lookups_total", result="miss") == 1

    @staticmethod
    def outcomes(counted: Callable[..., float]) -> dict[str, float]:
        """Outcomes of the served pair of formats."""
        names = ("parsed", "truncated", "malformed", "given_back", "failed")
        found = {name: counted("derender_parser_outcomes_total", format="hermes+qwen3", outcome=name) for name in names}
        return {name: count for name, count in found.items() if count}


class TestFolder:
    """Processes that share a folder."""

    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        """A folder that the operator has set, with metrics that are made anew."""
        monkeypatch.setenv(metrics_files.FOLDER_VARIABLE, str(tmp_path))
        metrics._notebook.flush()
        caches = (metrics._metrics, metrics._child)
        for each in caches:
            each.cache_clear()
        yield tmp_path
        metrics._notebook.flush()
        monkeypatch.undo()
        for each in caches:
            each.cache_clear()

    def test_processes_are_added_up_and_dead_ones_folded(self, folder: Path) -> None:
        with metrics_files.shared_folder():
            for _ in range(3):
                self.in_a_child(lambda: metrics.count_request("/x", 200, 0.002))
            metrics.count_request("/x", 200, 0.3)
            first, second = (samples(metrics.exposition().decode()) for _ in range(2))

        assert first == second
        assert first["derender_requests_total", (("path", "/x"), ("status", "200"))] == 4
        assert first["derender_request_seconds_count", (("path", "/x"),)] == 4
        assert first["derender_request_seconds_bucket", (("le", "0.0025"), ("path", "/x"))] == 3
        assert {path.name for path in folder.glob("*.db")} == {
            f"{kind}_{pid}.db" for kind in ("counter", "histogram") for pid in (0, os.getpid())
        }

    def test_what_is_left_of_an_earlier_server_is_dropped(self, folder: Path) -> None:
        (folder / "counter_1.db").write_bytes(b"old")
        with metrics_files.shared_folder():
            assert list(folder.glob("*.db")) == []
        assert folder.exists()

    def test_a_file_that_was_just_opened_does_no_harm(self, folder: Path) -> None:
        (folder / f"counter_{os.getpid()}.db").touch()

        assert "derender_requests_in_flight 0.0" in metrics.exposition().decode()

    def test_a_folder_of_its_own_is_removed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv(metrics_files.FOLDER_VARIABLE, raising=False)
        with metrics_files.shared_folder():
            made = Path(os.environ[metrics_files.FOLDER_VARIABLE])
            assert made.is_dir()

        assert not made.exists()
        assert metrics_files.FOLDER_VARIABLE not in os.environ

    @staticmethod
    def in_a_child(work: Callable[[], None]) -> None:
        """Do `work` in a forked process."""
        pid = os.fork()
        if pid == 0:
            work()
            metrics._notebook.flush()
            os._exit(0)
        os.waitpid(pid, 0)


@pytest.mark.live
class TestWorkers:
    """The workers of a real server."""

    @pytest.fixture
    def server(self, tmp_path: Path) -> Iterator[Server]:
        with serving(tmp_path, "--workers", "2") as server:
            yield server

    def test_are_added_up_and_a_dead_one_stays_counted(self, server: Server) -> None:
        self.ask(server, 20)
        before = psutil.Process(server.process.pid).children()
        self.await_count(server, 20)

        os.kill(before[0].pid, signal.SIGKILL)
        deadline = time.monotonic() + 20
        while before[0].pid in self.workers(server) or len(self.workers(server)) < 2:
            assert time.monotonic() < deadline, server.log()
            time.sleep(0.1)
        self.ask(server, 20)
        self.await_count(server, 40)

    @staticmethod
    def workers(server: Server) -> list[int]:
        """PIDs of the workers that run."""
        return [child.pid for child in psutil.Process(server.process.pid).children() if child.status() != "zombie"]

    @staticmethod
    def ask(server: Server, times: int) -> None:
        """Ask over a connection each, so that all workers answer."""
        for _ in range(times):
            for _ in range(50):
                try:
                    assert httpx.get(server.url + "/v1/models").status_code == 200
                    break
                except httpx.TransportError:
                    time.sleep(0.1)

    def await_count(self, server: Server, count: int) -> None:
        """Wait until exactly so many requests are counted: workers note first."""
        deadline = time.monotonic() + 10
        while (asked := self.asked(server)) < count:
            assert time.monotonic() < deadline, asked
            time.sleep(0.1)
        assert asked == count

    @staticmethod
    def asked(server: Server) -> float:
        """The counted requests for the list of models."""
        text = httpx.get(server.url + "/metrics").text
        return samples(text).get(("derender_requests_total", (("path", "/v1/models"), ("status", "200"))), 0.0)


class TestDashboard:
    """deploy/grafana-dashboard.json."""

    def test_shows_every_metric_and_no_other(self) -> None:
        dashboard = json.loads(DASHBOARD.read_text())
        queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
        named = {name for query in queries for name in re.findall(r"\bderender_\w+", query)}
        exported = {f"{name}_total" for name in metrics.COUNTERS} | {metrics.IN_FLIGHT}

        assert named == exported | {f"{metrics.REQUEST_SECONDS}_{part}" for part in ("bucket", "count", "sum")}

    def test_uses_labels_that_exist(self) -> None:
        dashboard = json.loads(DASHBOARD.read_text())
        queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
        used = {
            name.strip()
            for query in queries
            for group in re.findall(r"by \(([^)]*)\)", query)
            for name in group.split(",")
        }
        known = {label for labels, _ in metrics.COUNTERS.values() for label in labels}

        assert used <= known | {"le", "path", "instance"}

    def test_is_one_that_grafana_imports(self) -> None:
        dashboard = json.loads(DASHBOARD.read_text())

        assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
        assert all(panel["title"] and panel["gridPos"] for panel in dashboard["panels"])
        assert dashboard["schemaVersion"] >= 36
