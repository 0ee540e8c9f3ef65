"""Server-sent events: read however the bytes are cut, and written."""

import pytest

from derender_api.exceptions import BadRequest
from derender_api.gateway.events import DONE, EventReader, error_events, event

STREAM = (
    b": a comment\n\n"
    b'data: {"a":1}\n\n'
    b'data:{"b":2}\r\n\r\n'
    b"event: message\nid: 7\nretry: 10\ndata: first\ndata: second\n\n"
    b"id: only\n\n"
    b"data:  \xc3\xa9\n\n\n\n"
    b"data: [DONE]\n\n"
)
DATA = [b'{"a":1}', b'{"b":2}', b"first\nsecond", b" \xc3\xa9", b"[DONE]"]
ENDS = [b'{"a":1}\n\n', b'{"b":2}\r\n\r\n', b"second\n\n", b"\xc3\xa9\n\n", b"[DONE]\n\n"]
"""What each of them ends with."""


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64, len(STREAM)])
def test_bytes_may_be_cut_anywhere(size: int) -> None:
    reader = EventReader()
    parts = [STREAM[start : start + size] for start in range(0, len(STREAM), size)]

    assert [data for part in parts for data in reader.feed(part)] == DATA


@pytest.mark.parametrize("cut", range(len(STREAM)))
def test_no_event_is_given_twice_or_late(cut: int) -> None:
    reader = EventReader()
    first = list(reader.feed(STREAM[:cut]))

    assert first == [data for number, data in enumerate(DATA) if STREAM.find(ENDS[number]) + len(ENDS[number]) <= cut]
    assert first + list(reader.feed(STREAM[cut:])) == DATA


def test_an_event_that_is_not_ended_is_none() -> None:
    assert list(EventReader().feed(b"data: {}\n")) == []


def test_a_long_event_in_many_parts_is_read_in_linear_time() -> None:
    reader = EventReader()
    for _ in range(20_000):
        assert list(reader.feed(b"x" * 100 if reader._rest else b"data: ")) == []

    (data,) = reader.feed(b"\n\n")
    assert len(data) == 100 * 19_999


def test_chunks_and_errors_are_written_as_events() -> None:
    assert event({"text": "é"}) == 'data: {"text":"é"}\n\n'.encode()
    assert error_events(BadRequest("no", param="n")) == (
        b'data: {"error":{"message":"no","type":"BadRequestError","param":"n","code":400}}\n\n' + DONE
    )
