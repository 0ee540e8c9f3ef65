"""Small suites for the tests of the workbench: recorded cases, some of whose answers were changed."""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).resolve().parents[2] / "data" / "parity"
CHANGED = "content that nobody wrote"


def changed_suite(folder: Path, *, recorded: str = "json_more", cases: int = 12) -> Path:
    """A copy of the first parser cases of a recorded suite in `folder`, in which two answers are changed.

    The one-shot answer of the first case, and the last chunk of a stream of the second one.
    """
    kept = _cases(recorded)[:cases]
    kept[0]["oneshot"]["message"]["content"] = CHANGED
    next(iter(kept[1]["streams"].values()))["chunks"][-1][0]["content"] = CHANGED
    return _written(folder / recorded, kept, recorded)


def unchanged_suite(folder: Path, *, recorded: str, cases: int = 12) -> Path:
    """The same with the answers as they were recorded."""
    return _written(folder / recorded, _cases(recorded)[:cases], recorded)


def _cases(recorded: str) -> list[dict[str, Any]]:
    """Parser cases in which nothing was refused."""
    with gzip.open(RECORDED / recorded / "cases.jsonl.gz", "rt") as file:
        found = [json.loads(line) for line in file]
    return [case for case in found if case.get("oneshot", {}).get("status") == 200 and case["streams"]]


def _written(target: Path, cases: list[dict[str, Any]], recorded: str) -> Path:
    target.mkdir()
    shutil.copy(RECORDED / recorded / "profiles.json", target)
    with gzip.open(target / "cases.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(case) + "\n" for case in cases)
    return target
