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
"""Pause before a worker is replaced that died younger than this; others are replaced at once."""
STOPPING = (signal.SIGTERM, signal.SIGINT)


class Workers:
    """So many processes that do the same `work`, which returns when it is sent SIGTERM."""

    def __init__(self, count: int, work: Callable[[], None]) -> None:
        self._count = count
        self._work = work
        self._living: dict[int, float] = {}  # PID, and when it was started
        self._missing: list[float] = []  # when each is to be started
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
            self._wait(min(self._missing) - time.monotonic() if self._missing else None)
            self._reap()
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
        due = [each for each in self._missing if each <= now]
        self._missing = [each for each in self._missing if each > now]
        for _ in due:
            try:
                self._living[self._start()] = now
            except OSError as error:
                logger.error("A worker cannot be started: %s", error)
                self._missing.append(now + RESPAWN_SECONDS)

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

    def _reap(self) -> None:
        """Look which workers have ended, and when they are to be replaced."""
        now = time.monotonic()
        for pid, since in list(self._living.items()):
            done, status = os.waitpid(pid, os.WNOHANG)
            if not done:
                continue
            del self._living[pid]
            self._missing.append(now if now - since > RESPAWN_SECONDS else now + RESPAWN_SECONDS)
            if not self._stops:
                code = os.waitstatus_to_exitcode(status)
                logger.error("Worker %d has ended (%s); it is replaced.", pid, _named(code))

    def _end(self) -> None:
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + KILL_SECONDS
        while self._living:
            if self._stops > 1 or time.monotonic() > deadline:
                self._signal(signal.SIGKILL)
            self._wait(1.0)
            self._reap()

    def _signal(self, number: signal.Signals) -> None:
        for pid in self._living:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def _named(code: int) -> str:
    """An exit code in words."""
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"
