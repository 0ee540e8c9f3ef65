"""`manage.py bench`: what this server costs, alone or side by side with another derender server."""

import contextlib
import socket
import subprocess
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from derender_api.parity.benchmark import Row, as_table, measure
from derender_api.parity.benchmark_plot import draw
from derender_api.parity.benchmark_streams import BenchmarkError
from derender_api.parity.benchmark_work import Plan
from derender_api.parity.suite import MODEL_NAME

DEMO_MODEL = Path(__file__).resolve().parents[2] / "demo_model"
START_SECONDS = 60.0
FORMS = ("replay", "compact")


class Command(BaseCommand):
    """Starts a server (or takes the one at --url) and measures it, in turns with those of --against."""

    help = __doc__ or ""
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The servers, and how much to measure."""
        parser.add_argument(
            "model", nargs="?", default=str(DEMO_MODEL), help="model to serve (default: the demo model)"
        )
        parser.add_argument("--url", help="measure the server at this URL instead of starting one")
        parser.add_argument("--against", action="append", default=[], metavar="[NAME=]URL", help="another server")
        parser.add_argument("--workers", type=int, default=2, help="workers of the server that is started")
        parser.add_argument("--plain", action="store_true", help="no parsers: detokenization alone")
        parser.add_argument("--oneshot-tokens", type=_lengths, default=(64, 1024), metavar="N,N")
        parser.add_argument("--stream-tokens", type=_lengths, default=(256, 512, 1024), metavar="N,N")
        parser.add_argument("--prompt-tokens", type=_lengths, default=(200,), metavar="N,N")
        parser.add_argument(
            "--forms",
            type=_forms,
            default=FORMS,
            metavar="FORM,FORM",
            help="forms of the stream state (both)",
        )
        parser.add_argument(
            "--others-limit", type=int, default=2048, help="longest stream, in tokens, that other servers are sent"
        )
        parser.add_argument("--plot", type=Path, help="file for a plot (SVG) of cost against length; needs pygal")
        parser.add_argument("--rounds", type=int, default=3)
        parser.add_argument("--requests", type=int, default=400, help="requests of one throughput measurement")
        parser.add_argument("--clients", type=int, default=4)

    def handle(self, *args: Any, **options: Any) -> None:
        """Measure and print the table."""
        from derender_api.tokenization import load_tokenizer

        plan = Plan(
            oneshot_lengths=options["oneshot_tokens"],
            stream_lengths=options["stream_tokens"],
            prompt_lengths=options["prompt_tokens"],
            forms=options["forms"],
            others_limit=options["others_limit"],
            rounds=options["rounds"],
            requests=options["requests"],
            clients=options["clients"],
            with_parsers=not options["plain"],
        )
        with self._own_server(options) as url:
            servers = {"derender": url}
            for number, each in enumerate(options["against"], start=1):
                name, _, other = each.rpartition("=")
                servers[name or f"other {number}"] = other
            try:
                rows = measure(servers, encoder=load_tokenizer(options["model"]), plan=plan)
            except BenchmarkError as error:
                raise CommandError(str(error)) from error
        self.stdout.write(f"Medians over {plan.rounds} rounds; xN is relative to the first column.")
        self.stdout.write(as_table(list(servers), rows))
        if options["plot"]:
            _draw(options["plot"], list(servers), rows)

    @contextmanager
    def _own_server(self, options: dict[str, Any]) -> Iterator[str]:
        """The URL of the server to measure; one that was started here is stopped again."""
        if options["url"]:
            yield options["url"]
            return
        port = _free_port()
        parsers = ["--tool-call-parser=hermes", "--reasoning-parser=qwen3", "--enable-auto-tool-choice"]
        command = [sys.executable, str(Path(settings.BASE_DIR) / "manage.py"), "serve", options["model"]]
        command += ["--host=127.0.0.1", f"--port={port}", f"--workers={options['workers']}"]
        command += [f"--served-model-name={MODEL_NAME}", *([] if options["plain"] else parsers)]
        started = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait_until_healthy(port, process)
            self.stdout.write(f"Started in {time.monotonic() - started:.2f} s, {_memory(process.pid)}.")
            yield f"http://127.0.0.1:{port}"
            self.stdout.write(f"After the measurements: {_memory(process.pid)}.")
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=30)


def _lengths(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


def _forms(text: str) -> tuple[str, ...]:
    forms = tuple(part for part in text.split(",") if part)
    if not set(forms) <= set(FORMS):
        raise ArgumentTypeError(f"forms are {' and '.join(FORMS)}")
    return forms


def _draw(path: Path, servers: Sequence[str], rows: Sequence[Row]) -> None:
    try:
        draw(path, servers=servers, rows=rows)
    except ImportError as error:
        raise CommandError("--plot needs pygal: pip install pygal") from error


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_until_healthy(port: int, process: subprocess.Popen[bytes]) -> None:
    """Raises CommandError where the server ends, or does not answer in time."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        connection = HTTPConnection("127.0.0.1", port, timeout=5)
        with contextlib.suppress(OSError):
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        connection.close()
        time.sleep(0.02)
    raise CommandError("The server did not start; run `manage.py serve` with the same model to see why.")


def _memory(pid: int) -> str:
    """Resident memory of the server's processes, largest first; shared pages count in each of them."""
    try:
        import psutil
    except ImportError:
        return "memory unknown (psutil is not installed)"
    main = psutil.Process(pid)
    sizes = sorted((each.memory_info().rss / 2**20 for each in (main, *main.children(recursive=True))), reverse=True)
    return "resident MB: " + ", ".join(f"{size:.0f}" for size in sizes)
