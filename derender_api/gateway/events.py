"""Server-sent events: the data of an engine's stream, and the answer's own."""

from collections.abc import Iterator
from typing import Any

import orjson

from derender_api.answers import encoded
from derender_api.exceptions import ApiError, error_content

DONE = b"data: [DONE]\n\n"
"""The event that ends a stream."""


class EventReader:
    """Data of events, from bytes cut anywhere. Comments and fields other than `data` are left out."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._data: list[bytes] = []

    def feed(self, part: bytes) -> Iterator[bytes]:
        """The data of each event that `part` completes."""
        self._rest.append(part)
        if b"\n" not in part:
            return
        *lines, rest = b"".join(self._rest).split(b"\n")
        self._rest = [rest]
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                yield b"\n".join(self._data)
                self._data.clear()


def event(answer: dict[str, Any]) -> bytes:
    """An event with a chunk."""
    return b"data: " + encoded(answer) + b"\n\n"


def error_events(error: ApiError) -> bytes:
    """The end of a stream that fails after it began: the error, and the end itself."""
    return b"data: " + orjson.dumps(error_content(error)) + b"\n\n" + DONE
