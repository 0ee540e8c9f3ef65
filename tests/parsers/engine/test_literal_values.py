"""Bare text typed by a parameter's schema, Python literals included."""

import pytest

from parsers.engine.literal_values import literal_types, literal_value


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        (None, {"string"}),
        ({}, {"string"}),
        ({"enum": [1, 2]}, {"string"}),
        ({"type": "INT32"}, {"integer"}),
        ({"type": "unsigned long"}, {"integer"}),
        ({"type": "float64"}, {"number"}),
        ({"type": "bool"}, {"boolean"}),
        ({"type": "dict"}, {"object"}),
        ({"type": ["integer", "null"]}, {"integer"}),
        ({"type": "null"}, set()),
        ({"anyOf": [{"type": "integer"}, {}, "odd"]}, {"integer", "string"}),
        ({"oneOf": [{"type": ["array", "object"]}]}, {"array", "object"}),
    ],
)
def test_types(schema, types):
    assert literal_types(schema) == types


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("TRUE", "boolean", True),
        ("yes", "boolean", "yes"),
        (" 1_000 ", "integer", 1000),
        ("3.0", "integer", 3.0),
        ("abc", "integer", "abc"),
        ("1e3", "number", 1000.0),
        ("7", "number", 7),
        ("1e400", "number", "1e400"),
        ("NaN", "number", "NaN"),
        ("9" * 400, "number", int("9" * 400)),
        ("9" * 5000, "integer", "9" * 5000),
        ('{"a": NaN}', "object", {"a": "NaN"}),
        ("{'a': True}", "object", {"a": True}),
        ("(1, 2)", "array", (1, 2)),
        ("b'x'", "array", "b'x'"),
        ("{1, 2}", "array", "{1, 2}"),
        ("[" * 5000, "array", "[" * 5000),
        ("(" * 5000, "array", "(" * 5000),
        ("null", "null", None),
        ("null", "string", "null"),
        ("", "integer", ""),
    ],
)
def test_values(text, type_, value):
    found = literal_value(text, {"type": type_})
    assert found == value
    assert type(found) is type(value)
