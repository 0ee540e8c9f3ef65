"""Arguments sent member by member in the model's own spelling."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.json_members import Members, MembersState
from parsers.engine.state import dump, load

SCHEMA = {
    "properties": {"s": {"type": "string"}, "i": {"type": "integer"}, "o": {"type": "object"}, "l": {"type": "array"}}
}


def pieces(text, schema=SCHEMA, size=1):
    """What goes out after each piece, and at the end."""
    state = MembersState()
    out = []
    for start in range(0, len(text), size):
        state = load(MembersState, json.loads(json.dumps(dump(state))))
        out.append(Members(state, schema).feed(text[start : start + size]))
    return out, Members(state, schema).finish(), state


@pytest.mark.parametrize(
    ("text", "expected", "changed"),
    [
        ("{}", "{}", False),
        ('{ "s" : "x" }', '{ "s" : "x" }', False),
        ('{"s": "a\\"}b", "i": "3"}', '{"s": "a\\"}b", "i": 3}', True),
        ('{"s": 5, "i": 4.0}', '{"s": "5", "i": 4.0}', True),
        ('{"o": {"i": "3", "x": [1, "}"]}, "l": [1, 2]}', '{"o": {"i": "3", "x": [1, "}"]}, "l": [1, 2]}', False),
        ('{"other": "1", "i": "2" \n}', '{"other": "1", "i": 2 \n}', True),
        ('{"i": "3"} behind', '{"i": 3}', True),
        ('{"i": tru', '{"i": tru', False),
        ('{"s": "cut', '{"s": "cut', False),
        ('{"s"', '{"s"', False),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_typed_text(text, expected, changed, size):
    out, rest, state = pieces(text, size=size)
    assert "".join(out) + rest == expected
    assert state.changed is changed


def test_what_is_certain_goes_out_at_once():
    out, rest, _ = pieces('{"s": "ab", "i": 3}')
    assert [piece for piece in out if piece] == ['{"s":', " ", '"', "a", "b", '", "i":', " "]
    assert rest == "3}"


def test_every_text_goes_out_at_once_for_an_unknown_function():
    out, rest, _ = pieces('{"a": "xy"}', schema=None)
    assert [piece for piece in out if piece] == ['{"a":', " ", '"', "x", "y"]
    assert rest == '"}'


SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=5), st.recursive(SCALARS, st.lists, max_leaves=6), max_size=4))
def test_objects_without_a_schema_pass_unchanged(value):
    text = json.dumps(value)
    out, rest, _ = pieces(text, schema=None)
    assert "".join(out) + rest == text


@settings(deadline=None)
@given(st.text(alphabet='{}[]",:\\ abi1', max_size=30), st.integers(1, 4))
def test_any_text_is_read_the_same_in_any_pieces(text, size):
    def whole(pieces):
        return "".join(pieces[0]) + pieces[1]

    assert whole(pieces(text, size=size)) == whole(pieces(text, size=100))
