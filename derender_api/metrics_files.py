"""The folder in which the worker processes of a server count together (prometheus-client's multiprocess mode).

Each process writes files of its own; a scrape adds them up. Those of dead workers are folded into one, so that totals
never go back and the folder does not grow with every worker that is replaced.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from prometheus_client.metrics_core import Metric
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from derender_api.load import is_alive

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
GONE = 0
"""PID in the names of the files that hold what dead workers counted."""


@contextmanager
def shared_folder() -> Iterator[None]:
    """Count together with the processes that are forked within the block.

    The folder is new and is removed in the end; one that the operator has set is emptied, used and kept.
    """
    given = os.environ.get(FOLDER_VARIABLE)
    folder = Path(given or tempfile.mkdtemp(prefix="derender-metrics-"))
    folder.mkdir(parents=True, exist_ok=True)
    _empty(folder)
    os.environ[FOLDER_VARIABLE] = str(folder)
    try:
        yield
    finally:
        if not given:
            del os.environ[FOLDER_VARIABLE]
            shutil.rmtree(folder, ignore_errors=True)


class FilesCollector(Collector):
    """Adds up the files of a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def collect(self) -> Iterable[Metric]:
        """The metrics of living and dead workers."""
        with (self._folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for path in self._files():
                kind, pid = _named(path)
                if pid != GONE and not is_alive(pid):
                    _fold(path, self._folder / f"{kind}_{GONE}.db")
            metrics: Iterable[Metric] = MultiProcessCollector.merge([str(path) for path in self._files()])
            return metrics

    def _files(self) -> list[Path]:
        """A file that a worker has just opened is empty."""
        return [path for path in self._folder.glob("*.db") if path.stat().st_size]


def _named(path: Path) -> tuple[str, int]:
    kind, _, pid = path.stem.rpartition("_")
    return kind, int(pid)


def _fold(path: Path, into: Path) -> None:
    """Add the values of one file to another one's, and remove it."""
    total = MmapedDict(str(into))
    try:
        for key, value, timestamp, _ in MmapedDict.read_all_values_from_file(str(path)):
            before, _ = total.read_value(key)
            total.write_value(key, before + value, timestamp)
    finally:
        total.close()
    path.unlink()


def _empty(folder: Path) -> None:
    for path in folder.glob("*.db"):
        path.unlink()
