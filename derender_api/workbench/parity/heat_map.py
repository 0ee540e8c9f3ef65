"""The figures of a run as a heat map: a row a profile, a column a rule, the share of cases that hold as the heat."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from derender_api.parity.rules import Rule
from derender_api.workbench.models import ProfileFigures

LEVELS = ((1.0, "all"), (0.99, "most"), (0.95, "many"), (0.8, "some"))
"""Smallest share of each level; below the last it is "few"."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One rule of one profile. `held` includes argued divergences and what cannot be taken back."""

    rule: str
    cases: int
    fails: int
    diverges: int

    @property
    def held(self) -> int:
        """Cases that hold, or are argued."""
        return self.cases - self.fails

    @property
    def share(self) -> float | None:
        """Share of the cases that hold; None where the rule applies to none."""
        return self.held / self.cases if self.cases else None

    @property
    def percent(self) -> str:
        """The share for people; never 100 % where a case fails."""
        share = self.share
        if share is None:
            return ""
        return "100 %" if share == 1 else f"{min(share * 100, 99.9):.1f} %"

    @property
    def level(self) -> str:
        """Heat of the cell: a class of the style sheet."""
        share = self.share
        if share is None:
            return "none"
        return next((name for least, name in LEVELS if share >= least), "few")


@dataclass(frozen=True, slots=True)
class Row:
    """One profile."""

    figures: ProfileFigures
    cells: tuple[Cell, ...]


def cells_of(rules: Mapping[str, Mapping[str, Any]]) -> tuple[Cell, ...]:
    """A cell for each rule, from the counts of parity.results.Tally."""
    none = {"cases": 0, "fails": 0, "diverges": 0}
    return tuple(
        Cell(rule.value, counts["cases"], counts["fails"], counts["diverges"])
        for rule in Rule
        for counts in (rules.get(rule.value, none),)
    )


def rows_of(figures: Iterable[ProfileFigures]) -> list[Row]:
    """The rows of a run."""
    return [Row(each, cells_of(each.rules)) for each in figures]
