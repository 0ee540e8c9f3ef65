"""Requests in flight, over all workers of a server.

The counts live in an anonymous shared memory map: workers forked after this module was imported see each other's. Each
process owns one slot (its PID and its count), so that a crashed worker leaves no count behind.
"""

import mmap
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from multiprocessing import Lock
from operator import itemgetter

SLOT = struct.Struct("qq")
SLOTS = 512
CLAIM_SECONDS = 1.0


class RequestsInFlight:
    """Counter shared by a process and those it forks."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, SLOTS * SLOT.size)
        self._claim_lock = Lock()
        self._lock = threading.Lock()
        self._owner = 0
        self._offset = 0
        self._count = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count one request while the block runs."""
        self._add(1)
        try:
            yield
        finally:
            self._add(-1)

    def enter(self, *, limit: int) -> bool:
        """Count one request until `leave`, unless `limit` are counted already in all living workers; 0: no limit."""
        self._add(1)
        if not limit or self._quick_total() <= limit or self.total() <= limit:
            return True
        self._add(-1)
        return False

    def leave(self) -> None:
        """One request less."""
        self._add(-1)

    def total(self) -> int:
        """Requests in flight in all living workers."""
        return sum(count for pid, count in self._slots() if count > 0 and is_alive(pid))

    def _quick_total(self) -> int:
        """The same without asking which workers live; a dead one counts until its slot is claimed."""
        return sum(count for _, count in self._slots())

    def _slots(self) -> Iterator[tuple[int, int]]:
        """PID and count of each slot in use; slots are claimed in order."""
        return takewhile(itemgetter(0), SLOT.iter_unpack(self._map))

    def _add(self, change: int) -> None:
        with self._lock:
            if self._owner != os.getpid():
                self._claim_slot()
            self._count += change
            SLOT.pack_into(self._map, self._offset, self._owner, self._count)

    def _claim_slot(self) -> None:
        # A worker that is killed with the lock in its hands never gives it back; the others do not wait for it.
        locked = self._claim_lock.acquire(timeout=CLAIM_SECONDS)
        self._owner, self._count = os.getpid(), 0
        for offset in range(0, SLOTS * SLOT.size, SLOT.size):
            pid, _ = SLOT.unpack_from(self._map, offset)
            if pid == 0 or not is_alive(pid):
                self._offset = offset
                SLOT.pack_into(self._map, offset, self._owner, 0)
                break
        if locked:
            self._claim_lock.release()


def is_alive(pid: int) -> bool:
    """Whether a process with this ID runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid > 0


requests_in_flight = RequestsInFlight()
