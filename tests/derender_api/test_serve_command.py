"""`manage.py serve`: flags, start-up errors, and a live server from start to stop."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from django.core.management import CommandError, call_command
from django.core.management.base import CommandParser

from derender_api.catalog import Catalog
from derender_api.management.commands.serve import Command, command_line_models
from derender_api.model_sources import DEMO_FOLDER
from derender_api.server import ServerOptions
from parsers.configuration import ModelConfiguration, ModelConfigurationError
from tests.servers import MANAGE, REPOSITORY, Server, free_port, migrate, running, serving

FOLDER = str(DEMO_FOLDER)


def parsed(*arguments: str) -> dict[str, Any]:
    """The options of a command line."""
    parser = CommandParser()
    Command().add_arguments(parser)
    return vars(parser.parse_args(arguments))


class TestFlags:
    """Flags are vLLM's and become a configuration."""

    def test_all_flags(self) -> None:
        options = parsed(
            *("org/m", "--served-model-name", "a", "b", "c", "--tokenizer", "t", "--revision", "r"),
            *("--tokenizer-mode", "slow", "--tool-call-parser", "hermes", "--reasoning-parser", "qwen3"),
            *("--enable-auto-tool-choice", "--chat-template", "x.jinja"),
            *("--default-chat-template-kwargs", '{"enable_thinking": false}'),
            *("--max-model-len", "32K", "--max-logprobs", "-1"),
        )

        assert command_line_models(options) == [
            ModelConfiguration(
                name="a",
                aliases=("b", "c"),
                model="org/m",
                tokenizer="t",
                revision="r",
                tokenizer_mode="slow",
                tool_call_parser="hermes",
                reasoning_parser="qwen3",
                enable_auto_tool_choice=True,
                chat_template="x.jinja",
                default_chat_template_kwargs={"enable_thinking": False},
                max_model_len=32768,
                max_logprobs=-1,
            )
        ]

    def test_defaults(self) -> None:
        assert command_line_models(parsed("org/m")) == [ModelConfiguration(model="org/m")]
        assert command_line_models(parsed()) == []

    @pytest.mark.parametrize(
        ("text", "tokens"), [("32768", 32768), ("32k", 32000), ("32K", 32768), ("1.5k", 1500), ("1m", 10**6)]
    )
    def test_lengths(self, text: str, tokens: int) -> None:
        assert parsed("m", "--max-model-len", text)["max_model_len"] == tokens

    def test_a_config_file(self, tmp_path: Path) -> None:
        path = tmp_path / "c.json"
        path.write_text('{"models": [{"model": "m"}]}')

        assert command_line_models(parsed("--config", str(path))) == [ModelConfiguration(model="m")]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["m", "--config", "c.json"], "MODEL and --config exclude each other"),
            (["--tool-call-parser", "hermes"], "--tool-call-parser describes MODEL, which is missing"),
            (["--config", "c.json", "--max-model-len", "5"], "--max-model-len describes MODEL, .* into the file"),
            (["m", "--enable-auto-tool-choice"], "enable_auto_tool_choice needs a tool parser; .*--tool-call-parser"),
            (["m", "--max-logprobs", "-2"], "max_logprobs must be -1"),
        ],
    )
    def test_combinations_that_make_no_sense(self, arguments: list[str], message: str) -> None:
        with pytest.raises(ModelConfigurationError, match=message):
            command_line_models(parsed(*arguments))

    @pytest.mark.parametrize(
        ("flag", "value", "message"),
        [
            ("--default-chat-template-kwargs", "{", "not JSON"),
            ("--default-chat-template-kwargs", "[]", "expected a JSON object"),
            ("--max-model-len", "long", "'long' is not a number of tokens"),
            ("--port", "99999", "'99999' is not a port"),
            ("--port", "0", "'0' is not a port"),
            ("--tokenizer-mode", "quick", "invalid choice: 'quick'"),
        ],
    )
    def test_values_that_cannot_be_read(self, flag: str, value: str, message: str) -> None:
        with pytest.raises(CommandError, match=f"argument {flag}: {message}"):
            parsed("m", flag, value)


@pytest.mark.django_db
class TestStart:
    """What happens before the server listens."""

    @pytest.fixture
    def started(self, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Callable[..., ServerOptions]:
        """Run the command with the server replaced by a recorder."""
        calls: list[ServerOptions] = []
        # What the command changes for its own process is undone after the test.
        settings.DERENDER = dict(settings.DERENDER)
        monkeypatch.setattr("derender_api.management.commands.serve.catalog", Catalog())
        monkeypatch.setattr("derender_api.management.commands.serve.run_server", calls.append)

        def start(*arguments: str) -> ServerOptions:
            call_command("serve", *arguments)
            return calls.pop()

        return start

    def test_server_options(self, started: Callable[..., ServerOptions]) -> None:
        options = started(FOLDER, "--host", "::1", "--port", "1", "--workers", "3", "--threads", "2")

        assert options == ServerOptions(host="::1", port=1, workers=3, threads=2)

    def test_the_key_reaches_the_settings(self, started: Callable[..., ServerOptions], settings: Any) -> None:
        started(FOLDER, "--api-key", "k", "l")

        assert settings.DERENDER["API_KEY"] == ["k", "l"]

    def test_the_limit_of_requests_reaches_the_settings(
        self, started: Callable[..., ServerOptions], settings: Any
    ) -> None:
        settings.DERENDER["MAX_CONCURRENT_REQUESTS"] = 7
        started(FOLDER)
        assert settings.DERENDER["MAX_CONCURRENT_REQUESTS"] == 7

        started(FOLDER, "--max-concurrent-requests", "100")

        assert settings.DERENDER["MAX_CONCURRENT_REQUESTS"] == 100

    @pytest.mark.parametrize(
        ("arguments", "warns"),
        [
            (["--host", "0.0.0.0"], True),
            (["--host", "::"], True),
            (["--host", "derender.example"], True),
            (["--host", "0.0.0.0", "--api-key", "k"], False),
            (["--host", "127.0.0.1"], False),
            (["--host", "::1"], False),
            (["--host", "localhost"], False),
        ],
    )
    def test_strangers_are_warned_of(
        self, started: Callable[..., ServerOptions], caplog: pytest.LogCaptureFixture, arguments: list[str], warns: bool
    ) -> None:
        started(FOLDER, *arguments)

        assert ("No API key is set" in caplog.text) is warns

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["/nowhere/at/all"], "/nowhere/at/all: MODEL /nowhere/at/all: there is no such folder"),
            (
                [FOLDER, "--reasoning-parser", "nope"],
                "--reasoning-parser nope is unknown; known: .*qwen3",
            ),
            (
                [FOLDER, "--tool-call-parser", "nope"],
                "--tool-call-parser nope is unknown; known: .*hermes",
            ),
            ([FOLDER, "--workers", "0"], "--workers and --threads must be at least 1"),
            ([FOLDER, "--max-concurrent-requests", "-1"], "--max-concurrent-requests must be at least 1, or 0"),
            (["--config", "/nowhere/c.json"], "--config /nowhere/c.json: cannot be read"),
        ],
    )
    def test_errors_name_the_flag_and_the_cure(
        self, started: Callable[..., ServerOptions], arguments: list[str], message: str
    ) -> None:
        with pytest.raises(CommandError, match=message):
            started(*arguments)


@pytest.mark.live
class TestLive:
    """A real server."""

    def test_starts_quickly_in_little_memory_and_stops_on_sigterm(self, tmp_path: Path) -> None:
        with serving(tmp_path, FOLDER, "--workers", "2") as server:
            seconds = processor_seconds(server)
            assert httpx.get(server.url + "/v1/models").status_code == 200
            workers = psutil.Process(server.process.pid).children(recursive=True)
            megabytes = max(worker.memory_info().rss for worker in workers) / 2**20
            assert len(workers) == 2
        assert server.process.returncode == 0
        assert seconds < 3
        assert megabytes < 250

    def test_requests_in_flight_are_answered_after_sigterm(self, tmp_path: Path) -> None:
        with serving(tmp_path, FOLDER, "--workers", "1") as server:
            with socket.create_connection(("127.0.0.1", server.port)) as connection:
                connection.sendall(b"POST /v1/nope HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab")
                time.sleep(0.3)
                server.process.send_signal(signal.SIGTERM)
                time.sleep(0.3)
                connection.sendall(b"cd")
                assert connection.recv(65536).startswith(b"HTTP/1.1 404")
            server.process.wait(timeout=10)

    def test_a_worker_that_dies_is_replaced(self, tmp_path: Path) -> None:
        with serving(tmp_path, FOLDER, "--workers", "1") as server:
            (worker,) = psutil.Process(server.process.pid).children()
            os.kill(worker.pid, signal.SIGKILL)
            psutil.wait_procs([worker], timeout=5)
            for _ in range(100):
                try:
                    assert httpx.get(server.url + "/health").status_code == 200
                    break
                except httpx.TransportError:
                    time.sleep(0.1)
            else:
                pytest.fail(server.log())

    def test_workers_do_not_outlive_their_parent(self, tmp_path: Path) -> None:
        with serving(tmp_path, FOLDER, "--workers", "2") as server:
            workers = psutil.Process(server.process.pid).children()
            server.process.kill()
            _, alive = psutil.wait_procs(workers, timeout=20)

        assert not alive

    def test_a_port_in_use_is_an_error(self, tmp_path: Path) -> None:
        with serving(tmp_path, FOLDER) as server:
            second = subprocess.run(
                [*MANAGE, "serve", FOLDER, "--host", "127.0.0.1", "--port", str(server.port)],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=30,
            )
        assert second.returncode == 1
        assert f"--port {server.port}: cannot listen there: Address already in use. Choose another." in second.stderr

    def test_the_key_is_demanded_by_every_worker(self, tmp_path: Path) -> None:
        with serving(tmp_path, FOLDER, "--api-key", "sesame") as server:
            for _ in range(8):
                assert httpx.get(server.url + "/v1/models").status_code == 401
                right = httpx.get(server.url + "/v1/models", headers={"Authorization": "Bearer sesame"})
                assert right.status_code == 200

    def test_several_hundred_models_start_in_seconds(self, tmp_path: Path) -> None:
        models = []
        for number in range(400):
            folder = tmp_path / f"model-{number}"
            folder.mkdir()
            for file in DEMO_FOLDER.iterdir():
                (folder / file.name).symlink_to(file)
            models.append({"name": f"m{number}", "model": str(folder), "reasoning_parser": "qwen3"})
        (tmp_path / "models.json").write_text(json.dumps({"models": models}))
        with serving(tmp_path, "--config", "models.json") as server:
            seconds = processor_seconds(server)
            listed = httpx.get(server.url + "/v1/models", timeout=30).json()["data"]
        assert [card["id"] for card in listed] == [model["name"] for model in models]
        assert seconds < 6

    def test_bodies_above_the_limit_are_413_and_chunked_ones_are_read(self, tmp_path: Path) -> None:
        chunks = [b"x" * 100_000] * 50
        limit = {"DERENDER_MAX_BODY_BYTES": "6000000"}
        with (
            serving(tmp_path, FOLDER, environment=limit) as server,
            httpx.Client(base_url=server.url, timeout=60) as client,
        ):
            assert client.post("/ping", content=b"x" * 5_000_000).status_code == 200
            assert client.post("/ping", content=iter(chunks)).status_code == 200
            assert client.post("/ping", content=b"x" * 7_000_000).status_code == 413
            assert client.post("/ping", content=iter(chunks * 2)).status_code == 413

    def test_a_change_in_the_table_reaches_every_worker(self, tmp_path: Path) -> None:
        migrate(tmp_path)
        row = f"from parsers.models import ServedModel as S; S.objects.create(name='new', model={FOLDER!r})"
        with serving(tmp_path, FOLDER, "--served-model-name", "old", "--workers", "2") as server:
            assert listings(server.url) == {("old",)}
            subprocess.run([*MANAGE, "shell", "-c", row], cwd=tmp_path, check=True)
            deadline = time.monotonic() + 5
            while listings(server.url) != {("old", "new")}:
                assert time.monotonic() < deadline, listings(server.url)

    def test_another_wsgi_server_may_be_used(self, tmp_path: Path) -> None:
        (tmp_path / "models.json").write_text(json.dumps({"models": [{"name": "m", "model": FOLDER}]}))
        code = (
            "from wsgiref.simple_server import make_server; from derender_project.wsgi import application; import sys;"
            "make_server('127.0.0.1', int(sys.argv[1]), application).serve_forever()"
        )
        environment = {"PYTHONPATH": str(REPOSITORY), "DERENDER_CONFIG": str(tmp_path / "models.json")}
        port = free_port()
        command = [MANAGE[0], "-c", code, str(port)]
        with running(command, folder=tmp_path, port=port, health="/health", environment=environment) as server:
            assert listings(server.url) == {("m",)}


def processor_seconds(server: Server) -> float:
    """Processor time a server and its workers have taken, which other work on the machine does not lengthen."""
    main = psutil.Process(server.process.pid)
    return sum(process.cpu_times().user + process.cpu_times().system for process in (main, *main.children()))


def listings(url: str) -> set[tuple[str, ...]]:
    """The names that /v1/models gives, asked over many connections, so that every worker answers."""
    answers = [httpx.get(url + "/v1/models").json() for _ in range(20)]
    return {tuple(card["id"] for card in answer["data"]) for answer in answers}
