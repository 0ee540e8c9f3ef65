"""Draws what a call of a stream costs against the stream's length."""

import re
from collections.abc import Sequence
from pathlib import Path

from derender_api.parity.benchmark import Row

NAME = re.compile(r"(?P<form>\w+) stream, (?P<length>\d+) tokens, prompt (?P<prompt>\d+): last call, ms")


def draw(path: Path, *, servers: Sequence[str], rows: Sequence[Row]) -> None:
    """Writes an SVG to `path`: a line for each server, form and prompt length. Raises ImportError without pygal."""
    import pygal

    lines: dict[str, dict[int, float | None]] = {}
    for row in rows:
        if match := NAME.fullmatch(row.name):
            for server, value in zip(servers, row.values, strict=True):
                title = f"{server}, {match['form']}, prompt {match['prompt']}"
                lines.setdefault(title, {})[int(match["length"])] = value
    lengths = sorted({length for line in lines.values() for length in line})
    chart = pygal.Line(
        title="The last call of a stream",
        x_title="tokens of the stream",
        y_title="milliseconds",
        logarithmic=True,
        truncate_legend=-1,
        legend_at_bottom=True,
        legend_at_bottom_columns=2,
        js=[],
    )
    chart.x_labels = [str(length) for length in lengths]
    for title, line in lines.items():
        chart.add(title, [line.get(length) for length in lengths])
    chart.render_to_file(str(path))
