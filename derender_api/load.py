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
from multiprocessing import Lock

SLOT = struct.Struct("qq")
SLOTS = 512


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

    def total(self) -> int:
        """Requests in flight in all living workers."""
        slots = SLOT.iter_unpack(self._map[:])
        return sum(count for pid, count in slots if count > 0 and _alive(pid))

    def _add(self, change: int) -> None:
        with self._lock:
            if self._owner != os.getpid():
                self._claim_slot()
            self._count += change
            SLOT.pack_into(self._map, self._offset, self._owner, self._count)

    def _claim_slot(self) -> None:
        with self._claim_lock:
            self._owner, self._count = os.getpid(), 0
            for offset in range(0, SLOTS * SLOT.size, SLOT.size):
                pid, _ = SLOT.unpack_from(self._map, offset)
                if pid == 0 or not _alive(pid):
                    self._offset = offset
                    SLOT.pack_into(self._map, offset, self._owner, 0)
                    return


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid > 0


requests_in_flight = RequestsInFlight()
