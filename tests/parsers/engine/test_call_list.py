"""The reader of lists of call objects: stops at elements, in any grouping."""

import json

import pytest

from parsers.engine.call_list import CallList, CallListState
from parsers.engine.state import dump, load


def read(text, size):
    """(name and arguments of each complete call, ending, rest)."""
    state, found, rest = CallListState(), [], ""
    for at in range(0, len(text), size):
        state = load(CallListState, json.loads(json.dumps(dump(state))))
        calls = CallList(state)
        piece, position = text[at : at + size], 0
        while position < len(piece) and not (calls.closed or calls.bad):
            open_before = calls.in_element
            position = calls.feed(piece, position)
            if open_before and not calls.in_element and not calls.bad:
                found.append((calls.call.state.name, calls.call.take()))
        rest += piece[position:]
    calls = CallList(state)
    return found, "closed" if calls.closed else "bad" if calls.bad else "open", rest


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[{"name": "f", "arguments": {}}]x', ([("f", "{}")], "closed", "x")),
        (' [ {"name": "f", "arguments": []} , {"name": "g"} ] ', ([("f", "[]"), ("g", "")], "closed", " ")),
        ("[]", ([], "closed", "")),
        ("[1]", ([], "bad", "1]")),
        ("x", ([], "bad", "x")),
        ("{}", ([], "bad", "{}")),
        ('[{"a": 1},]', ([(None, "")], "bad", "]")),
        ('[{"a": 1} {}]', ([(None, "")], "bad", "{}]")),
        ('[{"name": "f", "arguments": {"a"', ([], "open", "")),
        ('[{"name": 1}]', ([], "bad", "}]")),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_reads(text, expected, size):
    assert read(text, size) == expected
