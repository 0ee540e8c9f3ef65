"""Names of groupings and the lengths they stand for."""

import pytest

from derender_api.parity.groupings import FEW_SPLITS, lengths, self_groupings


@pytest.mark.parametrize(
    ("name", "count", "expected"),
    [
        ("1", 3, (1, 1, 1)),
        ("1f", 2, (1, 1, 0)),
        ("3", 7, (3, 3, 1)),
        ("all", 5, (5,)),
        ("allf", 5, (5, 0)),
        ("2|3", 5, (2, 3)),
        ("1", 0, (0,)),
        ("all", 0, (0,)),
        ("r3", 22, (2, 5, 5, 2, 3, 5)),
    ],
)
def test_lengths(name, count, expected):
    assert lengths(name, count) == expected


@pytest.mark.parametrize("count", [1, 2, 9, 40])
def test_self_groupings_cover_all_tokens(count):
    names = list(self_groupings(count, every_split=True, seed=4))
    assert len(set(names)) == len(names)
    assert all(sum(lengths(name, count)) == count for name in names)
    assert sum("|" in name for name in names) == count - 1


def test_few_splits_are_the_same_for_the_same_seed():
    once = list(self_groupings(100, every_split=False, seed=11))
    assert once == list(self_groupings(100, every_split=False, seed=11))
    assert sum("|" in name for name in once) == FEW_SPLITS
