"""JSON of values that a client may have sent: fast, and complete where orjson is not.

orjson refuses integers beyond 64 bits and half surrogate pairs, and reads such integers as floats; JSON holds both.
"""

import json
from typing import Any

import orjson

MARK = b" "
"""Begins what Python's own module wrote and has to read."""


def dumps(value: Any) -> bytes:
    """JSON that `loads` reads as it was. What is no JSON value becomes its representation."""
    try:
        return orjson.dumps(value, default=repr)
    except TypeError:
        return MARK + json.dumps(value, separators=(",", ":"), default=repr).encode()


def loads(text: bytes) -> Any:
    """The value; raises ValueError."""
    return json.loads(text) if text.startswith(MARK) else orjson.loads(text)
