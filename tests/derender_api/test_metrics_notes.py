"""Notes are counted in the background, once each."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from derender_api import metrics_notes
from derender_api.metrics_notes import Note, Notebook

KEY = ("metric", "label")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_notes, "SECONDS", 0.01)


def test_notes_of_all_threads_are_counted_without_being_asked() -> None:
    counted: list[Note] = []
    complete = threading.Event()

    def write(notes: list[Note]) -> None:
        counted.extend(notes)
        if len(counted) == 400:
            complete.set()

    notebook = Notebook(write)  # type: ignore[arg-type]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: notebook.note(KEY, 1), range(400)))

    assert complete.wait(10)
    assert counted == [(KEY, 1)] * 400


@pytest.mark.parametrize("error", [FileNotFoundError("gone"), ValueError("negative")])
def test_notes_that_cannot_be_counted_end_nothing(error: Exception) -> None:
    tried, done = [], threading.Event()

    def write(notes: object) -> None:
        tried.append(notes)
        if len(tried) == 1:
            raise error
        done.set()

    notebook = Notebook(write)
    notebook.note(KEY, 1)
    for _ in range(1000):
        if done.wait(0.01):
            break
        notebook.note(KEY, 1)

    assert done.is_set()


def test_a_forked_process_counts_its_own_alone() -> None:
    counted: list[Note] = []
    notebook = Notebook(counted.extend)
    notebook._is_running = True
    notebook.note(KEY, 1)
    pid = os.fork()
    if pid == 0:
        notebook.note(KEY, 2)
        notebook.flush()
        os._exit(0 if counted == [(KEY, 2)] else 1)

    assert os.waitpid(pid, 0)[1] == 0


def test_what_is_discarded_is_not_counted() -> None:
    counted: list[Note] = []
    notebook = Notebook(counted.extend)
    notebook._is_running = True
    notebook.note(KEY, 1)
    notebook.discard()
    notebook.note(KEY, 2)
    notebook.flush()

    assert counted == [(KEY, 2)]
