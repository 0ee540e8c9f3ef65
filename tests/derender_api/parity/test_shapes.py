"""Comparison by shape where values are random, by value and type elsewhere."""

import pytest

from derender_api.parity.shapes import difference, id_shape


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ("chatcmpl-tool-0123456789abcdef", "chatcmpl-tool-<16 hex>"),
        ("call_0123456789abcdef", "call_<16 hex>"),
        ("call_1_0123456789abcdef", "call_1_<16 hex>"),
        ("chatcmpl-0123456789abcdef", "chatcmpl-<16 hex>"),
        ("cmpl-0123456789abcdef-0", "cmpl-<16 hex>-0"),
        ("7K5uyrU8f", "<9 alphanumeric>"),
        ("functions.get_weather:0", "functions.get_weather:0"),
        ("0", "0"),
        ("rec", "rec"),
    ],
)
def test_shape_of_ids(value, shape):
    assert id_shape(value) == shape


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        ({"id": "chatcmpl-tool-0123456789abcdef"}, {"id": "chatcmpl-tool-fedcba9876543210"}),
        ({"created": 1}, {"created": 2}),
        ({"root": "tokenizers/chatml"}, {"root": "/srv/models/tokenizers/chatml"}),
        ({"last_tool_call_ids": ["7K5uyrU8f"]}, {"last_tool_call_ids": ["uOANdVGku"]}),
        (
            {"error": {"message": "1 validation error", "type": "Bad Request", "param": "body.a", "code": 400}},
            {"error": {"message": "another text", "type": "Bad Request", "param": "body.b", "code": 400}},
        ),
    ],
)
def test_equal_by_shape(expected, got):
    assert difference(expected, got) is None


@pytest.mark.parametrize(
    ("expected", "got", "text"),
    [
        ({"id": "call_0_0123456789abcdef"}, {"id": "call_1_0123456789abcdef"}, "id: expected"),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, "a.b[1]: expected 2, got 3"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "body: expected the keys ['a', 'b'], got ['b', 'a']"),
        ([1], [1, 2], "body: expected 1 entries, got 2"),
        (1, 1.0, "body: expected 1, got 1.0"),
        (0.0, -0.0, "body: expected 0.0, got -0.0"),
        (True, 1, "body: expected True, got 1"),
        (None, "", "body: expected None, got ''"),
        ({"created": 1}, {"created": None}, "created: expected"),
        (
            {"error": {"message": "no", "type": "BadRequestError", "param": None, "code": 400}},
            {"error": {"message": "yes", "type": "BadRequestError", "param": None, "code": 400}},
            "error.message: expected 'no', got 'yes'",
        ),
        (
            {"error": {"message": "no", "type": "Bad Request", "param": "body.a", "code": 400}},
            {"error": {"message": "no", "type": "Bad Request", "param": None, "code": 400}},
            "error.param: expected '<path>', got None",
        ),
    ],
)
def test_first_difference_is_named(expected, got, text):
    assert difference(expected, got).startswith(text)
