"""Checks that the tests of all XML-like formats share."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from tests.parsers.support import Runner, fold, summary

Expected = tuple[str | None, str | None, tuple[tuple[str, str], ...]]


def loose(folded: Expected) -> Expected:
    """Without white space at the ends of reasoning and content."""
    return (folded[0] or "").strip(), (folded[1] or "").strip(), folded[2]


def check(run: Runner, output: str | Sequence[int], expected: Expected) -> None:
    """The message is `expected`, and every grouping folds to it."""
    assert summary(run.message(output)) == expected
    for grouping, folded in run.folds(output).items():
        assert loose(folded) == loose(expected), grouping


def check_groupings(run: Runner, output: str | Sequence[int]) -> None:
    """Whatever the output, groupings agree, and snapshots change nothing."""
    run.message(output)
    count = len(run.ids(output))
    whole = fold(run.deltas(output, [count]))
    for lens in (1, 2, 3, 7):
        assert fold(run.deltas(output, lens)) == whole, lens
    assert run.deltas(output, 2, snapshots=True) == run.deltas(output, 2)


def mutated(text: str, seed: int) -> str:
    """`text` with parts cut out, doubled, moved or replaced."""
    rng = random.Random(seed)
    for _ in range(rng.randint(1, 4)):
        start, end = sorted(rng.randint(0, len(text)) for _ in range(2))
        end = min(end, start + 40)
        piece = text[start:end]
        at = rng.randint(0, len(text))
        match rng.randint(0, 3):
            case 0:
                text = text[:start] + text[end:]
            case 1:
                text = text[:at] + piece + text[at:]
            case 2:
                text = text[:start] + text[end:]
                text = text[:at] + piece + text[at:]
            case _:
                text = (
                    text[:at]
                    + rng.choice(["<", ">", '"', "'", "{", "}", "]", "\\", "\n", "é", "</", "]<]"])
                    + text[at:]
                )
    return text


def check_linear(seconds: Callable[[int], float]) -> None:
    """Eight times the work takes far less than sixty-four times as long."""
    seconds(1000)
    assert seconds(32_000) < 30 * max(seconds(4000), 0.001)


def timed(run: Runner, output: str) -> float:
    """Seconds for the stream of `output`, one token a chunk."""
    ids = run.ids(output)
    start = time.process_time()
    run.deltas(ids)
    return time.process_time() - start
