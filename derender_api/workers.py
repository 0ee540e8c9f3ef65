"""Worker processes that fork from this one: started, replaced when they die, ended together."""

import logging
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 30
"""How long requests in flight may take to finish after SIGTERM."""
KILL_SECONDS = DRAIN_SECONDS + 5.0
"""After SIGTERM, a worker that has not ended by then is killed."""
RESPAWN_SECONDS = 0.5
"""Pause before a worker that died is replaced."""
STOPPING = (signal.SIGTERM, signal.SIGINT)


class Workers:
    """So many processes that do the same `work`, which returns when it is sent SIGTERM."""

    def __init__(self, count: int, work: Callable[[], None]) -> None:
        self._count = count
        self._work = work
        self._living: set[int] = set()
        self._missing: list[float] = []
        self._stops = 0
        self._woken, self._wake = os.pipe()

    def run(self) -> None:
        """Keep them running until SIGTERM or SIGINT, then let them end; a second signal kills them."""
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for number in STOPPING:
            signal.signal(number, self._stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._missing = [time.monotonic()] * self._count
        while not self._stops:
            self._start_missing()
            self._wait(self._missing[0] - time.monotonic() if self._missing else None)
            self._replace(self._reaped())
        self._end()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stops += 1

    def _wait(self, seconds: float | None) -> None:
        """Until a signal arrives, at most so long."""
        select.select([self._woken], [], [], None if seconds is None else max(0.0, seconds))
        with suppress(BlockingIOError):
            os.read(self._woken, 4096)

    def _start_missing(self) -> None:
        now = time.monotonic()
        while self._missing and self._missing[0] <= now:
            try:
                self._living.add(self._start())
            except OSError as error:
                logger.error("A worker cannot be started: %s", error)
                self._missing[0] = now + RESPAWN_SECONDS
                self._missing.sort()
            else:
                del self._missing[0]

    def _start(self) -> int:
        """PID of a new worker; the worker itself does not return."""
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            return pid
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in (*STOPPING, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            os.close(self._woken)
            os.close(self._wake)
            self._work()
            status = 0
        except Exception:
            logger.exception("A worker has failed.")
        finally:
            # What this process has inherited is its parent's to clean up.
            logging.shutdown()
            os._exit(status)

    def _reaped(self) -> dict[int, int]:
        """Workers that have ended, with their exit codes."""
        ended = {}
        for pid in list(self._living):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                self._living.discard(pid)
                ended[pid] = os.waitstatus_to_exitcode(status)
        return ended

    def _replace(self, ended: dict[int, int]) -> None:
        for pid, code in ended.items():
            logger.error("Worker %d has ended (%s); it is replaced.", pid, _named(code))
            self._missing.append(time.monotonic() + RESPAWN_SECONDS)

    def _end(self) -> None:
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + KILL_SECONDS
        while self._living:
            if self._stops > 1 or time.monotonic() > deadline:
                self._signal(signal.SIGKILL)
            self._wait(1.0)
            self._reaped()

    def _signal(self, number: signal.Signals) -> None:
        for pid in self._living:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def _named(code: int) -> str:
    """An exit code in words."""
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"
