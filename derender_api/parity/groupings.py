"""How the tokens of one output are grouped into chunks: the lengths that a grouping's name stands for.

Names: "k" = k tokens a chunk, "all" = one chunk, "rN" = random lengths from 1 to 6 with seed N, "a|b" = the two-way
split after a tokens; a trailing "f" sends the finish reason in a last chunk without tokens (length 0).
"""

import random
from collections.abc import Iterator, Sequence

FEW_SPLITS = 8
"""Two-way splits tried per case where not all of them are."""


def lengths(name: str, count: int) -> tuple[int, ...]:
    """Tokens in each chunk when `count` tokens are grouped as `name` says. No tokens: one empty chunk."""
    base = name.removesuffix("f")
    last = (0,) if name.endswith("f") or not count else ()
    if base == "all":
        return (count,) * bool(count) + last
    if base.startswith("r"):
        return (*_random_lengths(int(base[1:]), count), *last)
    if "|" in base:
        first, second = map(int, base.split("|"))
        return (first, second, *last)
    size = int(base)
    return (*(min(size, count - start) for start in range(0, count, size)), *last)


def self_groupings(count: int, *, every_split: bool, seed: int) -> Iterator[str]:
    """Names of the groupings under which an output of `count` tokens must give one answer.

    Groups of 1, 2, 3, 5 and 7, one random grouping, everything at once, and two-way splits: every one, or a few
    chosen by `seed`.
    """
    yield from (str(size) for size in (1, 2, 3, 5, 7) if size == 1 or size < count)
    yield f"r{seed % 1000}"
    yield "all"
    splits: Sequence[int] = range(1, count)
    if not every_split and len(splits) > FEW_SPLITS:
        splits = sorted(random.Random(seed).sample(splits, FEW_SPLITS))
    yield from (f"{first}|{count - first}" for first in splits)


def _random_lengths(seed: int, count: int) -> Iterator[int]:
    """The lengths that the recordings' random groupings have (Python's generator, seeded)."""
    source = random.Random(seed)
    while count > 0:
        size = min(count, source.randint(1, 6))
        yield size
        count -= size
