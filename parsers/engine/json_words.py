"""Numbers and words of JSON as a dump writes them."""

from __future__ import annotations

import json
import re

WORDS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
MAX_NUMBER = 4300
"""Longer numbers count as no JSON, as they do in Python's reader."""
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z")


def dumped_number(text: str) -> str | None:
    """None for what is no number. One that is too large for a float stays as it is."""
    if not _NUMBER.match(text):
        return None
    dumped = json.dumps(json.loads(text))
    return text if "n" in dumped else dumped


def dumped_word(text: str) -> str | None:
    """None for what is no word of JSON, as Python reads it."""
    return text if text in WORDS else None
