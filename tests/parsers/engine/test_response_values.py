"""Body parsers, transforms and typing of response templates."""

import json

import pytest

from parsers.engine.response_values import value_reader

SCHEMAS = {"f": {"properties": {"i": {"type": "integer"}, "a": {"type": ["null", "array"]}, "m": {"type": "integer"}}}}


def read(text, *, captures=None, **field):
    """(name, arguments as a value) of each call, None where the text makes none."""
    field.setdefault("transform", {"function": {"name": "f", "arguments": {"v": "{content}"}}})
    calls = value_reader(field).calls(text, captures or {}, SCHEMAS)
    return None if calls is None else [(call.name, json.loads(call.arguments)) for call in calls]


@pytest.mark.parametrize(
    ("parser", "args", "text", "value"),
    [
        ("text", {}, " a ", "a"),
        ("text", {"strip": False}, " a ", " a "),
        ("int", {}, " 7 ", 7),
        ("float", {}, "1.5", 1.5),
        ("bool", {}, "TRUE", True),
        ("bool", {}, "no", False),
        ("json", {}, '{"a": [1, null]}', {"a": [1, None]}),
        ("json", {"allow_non_json": True}, "a b", "a b"),
        ("json", {"unquoted_keys": True}, '{a:1,b:{c:"x,y:z"}}', {"a": 1, "b": {"c": "x,y:z"}}),
        ("json", {"string_delims": [["<<", ">>"]]}, '{"a": <<say "hi"\n>>}', {"a": 'say "hi"\n'}),
        ("kv-lines", {}, "a: 1\nno pair\nb:2", {"a": "1", "b": "2"}),
        ("xml-inline", {"tag_pattern": "<(?P<key>\\w)>(?P<value>.*?)</>"}, "<a>1</>-<a>2</>", {"a": "2"}),
        (
            "xml-inline",
            {"tag_pattern": "<(?P<key>\\w)>(?P<value>.*?)</>", "merge_duplicates": True, "value_parser": "int"},
            "<a>1</><b>2</><a>3</><a>4</>",
            {"a": [1, 3, 4], "b": 2},
        ),
    ],
)
def test_parsers(parser, args, text, value):
    assert read(text, content=parser, content_args=args) == [("f", {"v": value})]


@pytest.mark.parametrize(
    ("parser", "text"), [("int", "x"), ("float", "1e400"), ("float", "nan"), ("json", "{"), ("json", "[" * 100_000)]
)
def test_text_that_cannot_be_read_makes_no_call(parser, text):
    assert read(text, content=parser) is None


def test_paths_lead_into_captures_and_content():
    transform = {
        "function": {"name": "{content.call.name}", "arguments": {"x": "{id}", "y": "{content.call}", "z": "{}x"}}
    }
    found = read('{"call": {"name": "f"}}', content="json", transform=transform, captures={"id": "7"})
    assert found == [("f", {"x": "7", "y": {"name": "f"}, "z": "{}x"})]
    assert read("{}", content="json", transform=transform) is None


def test_without_a_transform_the_value_is_the_calls():
    field = value_reader({"content": "json"})
    text = '[{"function": {"name": "f", "arguments": {"i": "3"}}}, {"function": {"name": "g", "arguments": "raw"}}]'
    assert [(call.name, call.arguments) for call in field.calls(text, {}, SCHEMAS)] == [("f", '{"i": 3}'), ("g", "raw")]
    assert field.calls('[{"function": {"name": "f", "arguments": {}}}, {}]', {}, SCHEMAS) is None


def test_members_of_a_merged_list_are_typed_unless_an_array_is_allowed():
    field = value_reader({"content": "json"})
    [call] = field.calls('{"function": {"name": "f", "arguments": {"m": ["1", "x"], "a": ["1"]}}}', {}, SCHEMAS)
    assert call.arguments == '{"m": [1, "x"], "a": ["1"]}'


@pytest.mark.parametrize(
    "field",
    [
        {"content": "yaml"},
        {"content": "json", "content_args": {"odd": 1}},
        {"content": "xml-inline", "content_args": {"tag_pattern": "<(?P<key>x)>"}},
        {"content": "json", "transform_each": True},
    ],
)
def test_fields_that_make_no_sense(field):
    with pytest.raises((ValueError, TypeError, KeyError)):
        value_reader(field)
