"""Python number literals as JSON text, whole or as far as they can be trusted while they grow."""

from __future__ import annotations

import ast
import json
import re

NUMBER_LIMIT = 5000

_DIGITS = re.compile(r"[1-9](?:_?[0-9])*\Z")
_DECIMAL = re.compile(r"[0-9](?:_?[0-9])*\.[0-9](?:_?[0-9])*\Z")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z")
_EXACT_DIGITS = 15


def as_json(signs: str, text: str, early: str) -> str | None:
    """JSON text of the literal `text` behind the unary `signs`; None if it is no integer or float of Python.

    An infinity is no JSON: it stays text. `early` is what was sent of the literal already. It is kept: where dumping
    would not begin with it, the number is written as the model wrote it.
    """
    try:
        value = ast.literal_eval(text)
        if type(value) not in (int, float):
            return None
        dumped = json.dumps(-value if signs.count("-") % 2 else value)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    written = _minus(signs) + text.replace("_", "")
    if dumped.endswith("Infinity"):
        dumped = json.dumps(written)
    if dumped.startswith(early):
        return dumped
    return written if written.startswith(early) and _JSON_NUMBER.match(written) else None


def early_part(signs: str, text: str) -> str | None:
    """JSON text that a number beginning with `text` will begin with; None where that is not certain.

    A zero may still become `0x1F`, a point may be followed by anything, and long fractions are rounded.
    """
    if _DIGITS.match(text):
        return _minus(signs) + text.replace("_", "")
    if _DECIMAL.match(text):
        plain = text.replace("_", "")
        if len(plain.replace(".", "").lstrip("0")) <= _EXACT_DIGITS:
            dumped = json.dumps(float(plain))
            return _minus(signs) + dumped if plain.startswith(dumped) else None
    return None


def _minus(signs: str) -> str:
    return "-" if signs.count("-") % 2 else ""
