"""A private Redis server for tests: on the loopback, its data in memory, gone afterwards."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.servers import free_port

REQUIRED = "DERENDER_TEST_REDIS"
"""Set where Redis must be tested (in continuous integration): a machine without it is an error then."""
PROGRAM = "redis-server"


@dataclass(slots=True)
class Redis:
    """A server that can be stopped and started again."""

    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """What DERENDER_CACHE_URL is set to."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it and wait until it accepts connections."""
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen([PROGRAM, *options], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                assert time.monotonic() < deadline, "Redis does not start"
                time.sleep(0.05)

    def stop(self) -> None:
        """Stop it at once; what it held is lost."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def is_tested() -> bool:
    """Whether the tests that need Redis run: where it is installed, or has to be."""
    return shutil.which(PROGRAM) is not None or bool(os.environ.get(REQUIRED))


@contextmanager
def redis() -> Iterator[Redis]:
    """A running server."""
    assert shutil.which(PROGRAM), f"{REQUIRED} is set and Redis is not installed: apt-get install redis-server"
    made = Redis(free_port())
    made.start()
    try:
        yield made
    finally:
        made.stop()
