"""The typing table of arguments that a model wrote as text."""

import pytest

from parsers.engine.coercion import coerce_arguments, coerce_text, coerce_value, is_string, types_of


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"type": "integer"}, {"integer"}),
        ({"type": ["integer", "null"]}, {"integer", "null"}),
        ({"type": "int"}, {"integer"}),
        ({"type": "FLOAT"}, {"number"}),
        (
            {"enum": [1, "a", None, True, 1.5, [], {}]},
            {"integer", "string", "null", "boolean", "number", "array", "object"},
        ),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"string", "null"}),
        ({"oneOf": [{}, {"type": "integer"}]}, {"string", "integer"}),
        ({"allOf": [{"anyOf": [{"type": "bool"}]}]}, {"boolean"}),
        ({}, {"string"}),
        (None, {"string"}),
        ({"type": "date"}, {"date"}),
    ],
)
def test_types_a_schema_allows(schema, types):
    assert types_of(schema) == types


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, True),
        ({"type": "string", "enum": ["a", "b"]}, True),
        ({}, True),
        ({"type": "str"}, False),
        ({"enum": [1, 2]}, False),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, False),
    ],
)
def test_only_certain_strings_may_be_sent_early(schema, expected):
    assert is_string(schema) is expected


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("42", {"type": "integer"}, 42),
        (" +1_000 ", {"type": "integer"}, 1000),
        ("007", {"type": "integer"}, 7),
        ("4.5", {"type": "integer"}, 4.5),
        ("abc", {"type": "integer"}, "abc"),
        ("10.0", {"type": "number"}, 10),
        ("1e3", {"type": "number"}, 1000),
        ("2.50", {"type": "number"}, 2.5),
        ("inf", {"type": "number"}, "inf"),
        ("True", {"type": "boolean"}, True),
        (" 0 ", {"type": "boolean"}, False),
        ("maybe", {"type": "boolean"}, "maybe"),
        ("NULL", {"type": "null"}, None),
        ("null", {"type": "integer"}, None),
        ("null", {"type": ["string", "null"]}, None),
        ("null", {"type": "string"}, "null"),
        ('{"a": [1]}', {"type": "object"}, {"a": [1]}),
        ("[1]", {"type": "object"}, [1]),
        ("None", {"type": "object"}, None),
        ("None", {"type": "string"}, "None"),
        ("{broken", {"type": "object"}, "{broken"),
        ("[NaN]", {"type": "array"}, "[NaN]"),
        ("2024", {"type": "date"}, 2024),
        ("2", {"enum": [1, 2, 3]}, 2),
        ("5", {"oneOf": [{"type": "integer"}, {"type": "string"}]}, 5),
        ("x", {"oneOf": [{"type": "integer"}, {"type": "string"}]}, "x"),
        ("5", {}, "5"),
    ],
)
def test_text_values(text, schema, value):
    coerced = coerce_text(text, schema)
    assert (type(coerced), coerced) == (type(value), value)


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        (5, {"type": "string"}, "5"),
        (True, {"type": "string"}, "true"),
        (None, {"type": "string"}, "null"),
        (1, {"type": "boolean"}, True),
        (3.0, {"type": "number"}, 3),
        (7, {"type": "integer"}, 7),
        ({"n": "1", "other": "2"}, {"properties": {"n": {"type": "integer"}}}, {"n": 1, "other": "2"}),
        (["1", "x"], {"items": {"type": "integer"}}, [1, "x"]),
        (["1"], {}, ["1"]),
        ({"a": {"b": "1"}}, {"properties": {"a": {"properties": {"b": {"type": "integer"}}}}}, {"a": {"b": 1}}),
    ],
)
def test_json_values(value, schema, expected):
    coerced = coerce_value(value, schema)
    assert (type(coerced), coerced) == (type(expected), expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"n":"1"}', '{"n": 1}'),
        ('{ "n":1 }', '{ "n":1 }'),
        ('{"n": "é1"}', '{"n": "é1"}'),
        ("[1]", "[1]"),
        ("{broken", "{broken"),
    ],
)
def test_argument_text_changes_only_where_a_value_does(text, expected):
    assert coerce_arguments(text, {"properties": {"n": {"type": "integer"}}}) == expected


def test_arguments_of_unknown_functions_stay():
    assert coerce_arguments('{"n":"1"}', None) == '{"n":"1"}'
