"""Starts real servers for the live tests: `manage.py serve`, and whatever else listens on a port."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

REPOSITORY = Path(__file__).resolve().parent.parent
MANAGE = [sys.executable, str(REPOSITORY / "manage.py")]
START_SECONDS = 30.0
STOP_SECONDS = 45.0
"""More than a server may take to let its requests finish (derender_api/workers.py)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server: its address, its process and the folder it runs in."""

    url: str
    port: int
    process: subprocess.Popen[bytes]
    folder: Path

    def log(self) -> str:
        """Everything the server has printed."""
        return (self.folder / "server.log").read_text()


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[Server]:
    """`manage.py serve ARGUMENTS` on a free port of the loopback, run in `folder`; stopped with SIGTERM."""
    port = free_port()
    command = [*MANAGE, "serve", *arguments, "--host", "127.0.0.1", "--port", str(port)]
    with running(command, folder=folder, port=port, health="/health", environment=environment) as server:
        yield server


@contextmanager
def running(
    command: Sequence[str], *, folder: Path, port: int, health: str, environment: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """Run `command` in `folder` until the block ends; wait until `health` answers."""
    environ = {**os.environ, "HF_HUB_OFFLINE": "1", **(environment or {})}
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environ, stdout=log, stderr=subprocess.STDOUT)
    server = Server(url=f"http://127.0.0.1:{port}", port=port, process=process, folder=folder)
    try:
        _wait_until_up(server, health)
        yield server
    finally:
        process.terminate()
        process.wait(timeout=STOP_SECONDS)


def migrate(folder: Path) -> None:
    """Create the database that a server run in `folder` uses."""
    subprocess.run([*MANAGE, "migrate", "--verbosity", "0"], cwd=folder, check=True)


def _wait_until_up(server: Server, health: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            raise AssertionError(f"the server stopped at once:\n{server.log()}")
        try:
            httpx.get(server.url + health, timeout=5)
            return
        except httpx.TransportError:
            time.sleep(0.02)
    raise AssertionError(f"the server did not come up:\n{server.log()}")
