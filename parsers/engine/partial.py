"""Beginnings of marks at the end of a chunk."""

from __future__ import annotations


def held_back(text: str, *marks: str) -> int:
    """How many code points at the end of `text` may be the beginning of a mark."""
    sizes = range(min(max(map(len, marks)) - 1, len(text)), 0, -1)
    return next((size for size in sizes if any(mark[:-1].startswith(text[-size:]) for mark in marks)), 0)
