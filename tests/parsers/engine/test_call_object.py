"""The reader of call objects: any order of keys, any grouping, arguments in dumped style, strings unwrapped."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.engine.assembly import dump_json
from parsers.engine.call_object import CallObject, CallObjectState, CallStyle
from parsers.engine.state import dump, load


def read(text, size, *, keys=("arguments",)):
    """(name, arguments, ending, rest) with the state through JSON between the pieces."""
    state, arguments, rest = CallObjectState(), "", ""
    for at in range(0, len(text), size):
        state = load(CallObjectState, json.loads(json.dumps(dump(state))))
        call = CallObject(state, CallStyle(keys=keys))
        piece = text[at : at + size]
        rest += piece[call.feed(piece) :]
        arguments += call.take()
    call = CallObject(state, CallStyle(keys=keys))
    ending = "call" if call.complete else "object" if call.done else "bad" if call.bad else "open"
    return state.name, arguments, ending, rest


CASES = [
    pytest.param('{"name": "f", "arguments": {"a":1}}', ("f", '{"a": 1}', "call", ""), id="plain"),
    pytest.param('{"arguments": {"name": "g"}, "name": "f"}x', ("f", '{"name": "g"}', "call", "x"), id="name last"),
    pytest.param('{"n": {"name": 1}, "name": "f", "arguments": 5 }', ("f", "5", "call", ""), id="other keys"),
    pytest.param('{"name": "a\\"b", "arguments": null}', ('a"b', "null", "call", ""), id="quoted name"),
    pytest.param('{"name": "f", "arguments": "{\\"a\\":1}"}', ("f", '{"a": 1}', "call", ""), id="object in a string"),
    pytest.param('{"name": "f", "arguments": " {\\"a\\":1"}', ("f", '" {\\"a\\":1"', "call", ""), id="no object in it"),
    pytest.param('{"name": "f", "arguments": "Paris {"}', ("f", '"Paris {"', "call", ""), id="string"),
    pytest.param('{"name": "f", "arguments": ""}', ("f", '""', "call", ""), id="empty string"),
    pytest.param('{"name": "f", "arguments": 1, "arguments": 2}', ("f", "1", "call", ""), id="the first counts"),
    pytest.param('{"name": "f"}', ("f", "", "object", ""), id="no arguments"),
    pytest.param("{}", (None, "", "object", ""), id="empty"),
    pytest.param('{"name": 5, "arguments": {}}', (None, "", "bad", ', "arguments": {}}'), id="name is no string"),
    pytest.param('{"name": "f", "arguments": {"a": 1,}}', ("f", '{"a": 1,', "bad", "}}"), id="no JSON"),
    pytest.param("[1]", (None, "", "bad", "[1]"), id="no object"),
    pytest.param('{"name": "f", "arguments": {"a"', ("f", '{"a"', "open", ""), id="cut"),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_reads(text, expected, size):
    assert read(text, size) == expected


def test_arguments_may_have_several_names():
    text = '{"name": "f", "parameters": {"a": 1}, "arguments": {"b": 2}}'
    assert read(text, 3, keys=("arguments", "parameters")) == ("f", '{"a": 1}', "call", "")


@pytest.mark.parametrize(
    ("text", "in_string", "in_arguments"),
    [
        ('{"name": "f', True, False),
        ('{"name": "f"', False, False),
        ('{"name": "f", "arguments": ', False, False),
        ('{"name": "f", "arguments": {"a', True, True),
        ('{"name": "f", "arguments": {"a": x', False, True),
        ('{"name": "f", "arguments": {}, "x": "y', True, False),
    ],
)
def test_tells_where_it_stands(text, in_string, in_arguments):
    call = CallObject(CallObjectState())
    call.feed(text)
    assert (call.in_string, call.in_arguments) == (in_string, in_arguments)


def test_closed_arguments():
    call = CallObject(CallObjectState())
    call.feed('{"name": "f", "arguments": {"a": "x')
    assert call.closed(call.take()) == '{"a": "x"}'
    call.feed('"}')
    assert call.closed(call.take()) == '"}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"f": {"a":1.5e3}}', ("f", '{"a": 1500.0}', "call")),
        ('{"name": {}, "name": 1, "g": 2}', ("name", "{}", "call")),
        ('{"f": "{\\"a\\": 1}"}', ("f", '{"a": 1}', "call")),
        ("{}", (None, "", "object")),
        ('{"f"}', ("f", "", "bad")),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_the_only_key_may_be_the_name(text, expected, size):
    state, arguments = CallObjectState(), ""
    for at in range(0, len(text), size):
        call = CallObject(state, CallStyle(keyed=True, whole_numbers=True))
        call.feed(text[at : at + size])
        arguments += call.take()
    ending = "call" if call.complete else "object" if call.done else "bad" if call.bad else "open"
    assert (state.name, arguments, ending) == expected


@given(
    st.dictionaries(st.text(max_size=5), st.text(max_size=20) | st.integers() | st.none(), max_size=4),
    st.booleans(),
    st.integers(1, 6),
)
def test_any_arguments(arguments, name_first, size):
    members = {"name": "f", "arguments": arguments}
    text = json.dumps(members if name_first else dict(reversed(members.items())))
    assert read(text, size) == ("f", dump_json(arguments), "call", "")


@given(st.text('{}[]",:\\ namergutsf1\n', max_size=40), st.integers(1, 5))
def test_never_raises_and_does_not_depend_on_the_grouping(text, size):
    whole, pieces = read(text, 1000), read(text, size)
    assert (whole[0], whole[2]) == (pieces[0], pieces[2])
