"""Notes of what is to be counted, counted in the background.

Counting in shared files costs ten times what a note does. Notes are counted within half a second: a worker that is
killed loses no more than those.
"""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator

logger = logging.getLogger(__name__)

Note = tuple[tuple[str, ...], float]
"""Name and labels of a metric, and the amount to add or observe."""

SECONDS = 0.5


class Notebook:
    """Notes of one process. Thread-safe; a forked process starts with an empty one."""

    def __init__(self, write: Callable[[Iterable[Note]], None]) -> None:
        self._write = write
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._notes: deque[Note] = deque()
        self._lock = threading.Lock()
        self._noted = threading.Event()
        self._is_running = False

    def note(self, key: tuple[str, ...], amount: float) -> None:
        """Count `amount` soon."""
        self._notes.append((key, amount))
        if not self._noted.is_set():
            self._noted.set()
            if not self._is_running:
                self._start()

    def discard(self) -> None:
        """Forget what was noted, before this process forks: a lock that counting holds then would never be free."""
        self._notes.clear()

    def flush(self) -> None:
        """Count all that was noted before this call."""
        with self._lock:
            self._write(list(self._taken()))

    def _taken(self) -> Iterator[Note]:
        for _ in range(len(self._notes)):
            yield self._notes.popleft()

    def _start(self) -> None:
        with self._lock:
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name="metrics", daemon=True).start()

    def _run(self) -> None:
        while self._noted.wait():
            time.sleep(SECONDS)
            self._noted.clear()
            try:
                self.flush()
            except OSError as error:
                logger.warning("metrics are not counted: %s", error)
            except Exception:  # what comes later is to be counted, whatever this was
                logger.exception("Metrics of the last half second are not counted.")
