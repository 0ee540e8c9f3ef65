"""The history of runs as a plot: a line a rule, the share of its cases that hold, run by run; coordinates of SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

from derender_api.parity.rules import Rule
from derender_api.workbench.models import ParityRun
from derender_api.workbench.parity.heat_map import Cell, cells_of

SHOWN = 40
"""Runs that the plot shows, the newest."""
WIDTH, HEIGHT = 720, 220
LEFT, RIGHT, TOP, BOTTOM = 52, 112, 14, 30
LABEL_HEIGHT = 13


@dataclass(frozen=True, slots=True)
class Point:
    """One run on a line; `text` says what it stands for."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """One rule; `label_y` is where its name stands, apart from the others."""

    rule: str
    points: tuple[Point, ...]
    label_y: float

    @property
    def path(self) -> str:
        """The `points` of an SVG polyline."""
        return " ".join(f"{point.x:.1f},{point.y:.1f}" for point in self.points)


@dataclass(frozen=True, slots=True)
class Plot:
    """All lines, with the marks of the axes: (position, text)."""

    lines: tuple[Line, ...]
    ticks: tuple[tuple[float, str], ...]
    runs: tuple[tuple[float, str], ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


def plot_of(runs: Sequence[ParityRun]) -> Plot | None:
    """The plot of `runs`, oldest first; None where there are none."""
    if not runs:
        return None
    cells = [{cell.rule: cell for cell in cells_of(run.rules)} for run in runs]
    shares = [cell.share for each in cells for cell in each.values() if cell.share is not None]
    lowest = min(0.99, floor(min(shares, default=0.99) * 100) / 100)
    xs = [_x(index, len(runs)) for index in range(len(runs))]
    lines = []
    for rule in Rule:
        found = [(x, run, each[rule.value]) for x, run, each in zip(xs, runs, cells, strict=True)]
        points = tuple(_point(x, run, cell, lowest) for x, run, cell in found if cell.share is not None)
        if points:
            lines.append((rule.value, points))
    ticks = tuple((_y(share, lowest), f"{share:.1%}") for share in (1.0, (1 + lowest) / 2, lowest))
    return Plot(_labelled(lines), ticks, tuple((x, f"#{run.pk}") for x, run in zip(xs, runs, strict=True)))


def _point(x: float, run: ParityRun, cell: Cell, lowest: float) -> Point:
    text = f"{run}: {cell.rule} {cell.held} of {cell.cases} ({cell.percent})"
    return Point(x, _y(cell.share or 0.0, lowest), text)


def _x(index: int, count: int) -> float:
    inner = WIDTH - LEFT - RIGHT
    return LEFT + (inner / 2 if count == 1 else inner * index / (count - 1))


def _y(share: float, lowest: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - (share - lowest) / (1 - lowest))


def _labelled(lines: Sequence[tuple[str, tuple[Point, ...]]]) -> tuple[Line, ...]:
    """The lines with their names at their ends, moved down where they would overlap."""
    placed: dict[str, float] = {}
    free = 0.0
    for name, points in sorted(lines, key=lambda line: line[1][-1].y):
        free = placed[name] = max(points[-1].y + 4, free)
        free += LABEL_HEIGHT
    return tuple(Line(name, points, placed[name]) for name, points in lines)
