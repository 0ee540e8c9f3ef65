"""Small suites for the tests of the workbench: recorded cases, some of whose answers were changed."""

import gzip
import json
import shutil
from pathlib import Path

RECORDED = Path(__file__).resolve().parents[2] / "data" / "parity"
CHANGED = "content that nobody wrote"


def changed_suite(folder: Path, *, recorded: str = "json_more", cases: int = 12) -> Path:
    """A copy of the first parser cases of a recorded suite in `folder`, in which two answers are changed.

    The one-shot answer of the first case, and the last chunk of a stream of the second one.
    """
    target = folder / recorded
    target.mkdir()
    shutil.copy(RECORDED / recorded / "profiles.json", target)
    with gzip.open(RECORDED / recorded / "cases.jsonl.gz", "rt") as file:
        found = [json.loads(line) for line in file]
    kept = [case for case in found if case.get("oneshot", {}).get("status") == 200 and case["streams"]][:cases]
    kept[0]["oneshot"]["message"]["content"] = CHANGED
    next(iter(kept[1]["streams"].values()))["chunks"][-1][0]["content"] = CHANGED
    with gzip.open(target / "cases.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(case) + "\n" for case in kept)
    return target
