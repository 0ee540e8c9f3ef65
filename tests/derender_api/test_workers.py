"""The processes that fork, die and are replaced; those of a whole server are in test_serve_command.py."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.servers import REPOSITORY

pytestmark = pytest.mark.live

PROGRAM = """
import signal, sys, time
from pathlib import Path
from derender_api import workers

def obedient():
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(1))
    while not ended:
        time.sleep(0.05)

def stubborn():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    time.sleep(60)

def broken():
    with Path("starts").open("a") as file:
        file.write("x")
    raise RuntimeError("broken")

workers.Workers(2, {"obedient": obedient, "stubborn": stubborn, "broken": broken}[sys.argv[1]]).run()
print("over")
"""


class Parent:
    """A process with two workers."""

    def __init__(self, kind: str, folder: Path) -> None:
        command = [sys.executable, "-c", PROGRAM, kind]
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env={"PYTHONPATH": str(REPOSITORY)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def workers(self) -> list[psutil.Process]:
        """The workers that run."""
        children = psutil.Process(self.process.pid).children()
        return [child for child in children if self._runs(child)]

    @staticmethod
    def _runs(process: psutil.Process) -> bool:
        """Whether it is neither dead nor gone since its parent was asked."""
        try:
            return bool(process.status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False

    def finish(self) -> tuple[str, str]:
        """What it printed until it ended."""
        return self.process.communicate(timeout=20)


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until `condition` holds."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_end_when_they_are_told_to(tmp_path: Path, number: signal.Signals) -> None:
    parent = Parent("obedient", tmp_path)
    eventually(lambda: len(parent.workers()) == 2)
    time.sleep(0.5)
    parent.process.send_signal(number)

    assert parent.finish() == ("over\n", "")
    assert parent.process.returncode == 0


def test_that_died_are_replaced_and_named(tmp_path: Path) -> None:
    parent = Parent("obedient", tmp_path)
    eventually(lambda: len(parent.workers()) == 2)
    victim = parent.workers()[0]
    victim.kill()
    eventually(lambda: len(parent.workers()) == 2 and victim not in parent.workers())
    time.sleep(0.5)
    parent.process.terminate()

    assert f"Worker {victim.pid} has ended (SIGKILL); it is replaced." in parent.finish()[1]


def test_that_do_not_end_are_killed_by_a_second_signal(tmp_path: Path) -> None:
    parent = Parent("stubborn", tmp_path)
    eventually(lambda: len(parent.workers()) == 2)
    time.sleep(0.5)
    parent.process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert len(parent.workers()) == 2
    parent.process.send_signal(signal.SIGINT)

    assert parent.finish()[0] == "over\n"


def test_that_fail_at_once_are_not_replaced_without_pause(tmp_path: Path) -> None:
    parent = Parent("broken", tmp_path)
    eventually((tmp_path / "starts").exists)
    time.sleep(2)
    parent.process.terminate()
    _, errors = parent.finish()

    assert 4 <= len((tmp_path / "starts").read_text()) <= 12
    assert "RuntimeError: broken" in errors
    assert "has ended (exit code 1); it is replaced." in errors
