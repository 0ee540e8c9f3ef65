"""Checks that the tests of all formats with JSON calls share."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence

from tests.parsers.support import Runner, fold, summary

Calls = tuple[tuple[str, str], ...]
Folded = tuple[str, str, Calls]


def loose(folded: Folded) -> Folded:
    """Without white space at the ends of the content."""
    return folded[0], folded[1].strip(), folded[2]


def check_says(run: Runner, output: str, content: str | None, calls: Calls, *, exactly: bool = True) -> None:
    """The message has this content and these calls, and every grouping adds up to it. White space at the ends of what
    a stream sends counts only `exactly`.
    """
    assert summary(run.message(output + "<eos>")) == (None, content, calls)
    expected: Folded = ("", content or "", calls)
    found = set(run.folds(output + "<eos>").values())
    if exactly:
        assert found == {expected}
    else:
        assert set(map(loose, found)) == {loose(expected)}


def check_text(run: Runner, output: str) -> None:
    """Nothing is called, all is content, in every grouping."""
    check_says(run, output, output, ())


def check_anything(run: Runner, output: str, size: int) -> tuple[Folded, Folded]:
    """Whatever the output, arguments of a whole answer are JSON, and snapshots change no delta.

    Returns the message and the sum of the deltas.
    """
    reasoning, content, calls = summary(run.message(output))
    for _, arguments in calls:
        json.loads(arguments)
    deltas = run.deltas(output, size, snapshots=True)
    assert deltas == run.deltas(output, size)
    return (reasoning or "", content or "", calls), fold(deltas)


def check_late_stop(run: Runner, output: str) -> None:
    """A stop token whose finish reason comes in a later chunk of its own is no text, even if `output` is."""
    ids = run.ids(output + "<eos>")
    parser = run.plan.open(run.context)
    deltas = [parser.feed([token_id], [run.vocabulary.text(token_id)], finished=False) for token_id in ids]
    deltas.append(parser.feed([], [], finished=True))
    assert fold(deltas) == ("", output, ())


def check_linear(runner: Callable[[], Runner], begin: Callable[[Runner], Sequence[int]], *, keeps: bool = True) -> None:
    """An argument of 100,000 characters, a token a chunk, takes in proportion to its length.

    `begin` gives the tokens in front of the argument's text. `keeps`: the call is kept until it is whole, so that the
    snapshot grows with it.
    """
    short, long = _timed(runner(), begin, 3_400), _timed(runner(), begin, 34_000)
    assert long[0] < 20 * max(short[0], 0.001) + 0.5
    if not keeps:
        assert long[1] <= short[1] + 1


def _timed(run: Runner, begin: Callable[[Runner], Sequence[int]], length: int) -> tuple[float, int]:
    """Seconds for `length` tokens of an argument, and the size of the snapshot then."""
    ids = [*begin(run), *run.vocabulary.spell("abc") * length]
    parser = run.plan.open(run.context)
    started = time.process_time()
    for token_id in ids:
        parser.feed([token_id], [run.vocabulary.text(token_id)], finished=False)
    return time.process_time() - started, len(json.dumps(parser.snapshot()))
