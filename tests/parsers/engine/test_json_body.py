"""Arguments written as one JSON value: sent as they come, typed by the schema."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.engine.json_body import FirstJsonBody, JsonBody, whole_arguments

SCHEMA = {
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "flag": {"type": "boolean"},
        "nested": {"type": "object", "properties": {"n": {"type": "number"}}},
        "items": {"type": "array", "items": {"type": "integer"}},
    }
}


def pieces(raw, step, cls=JsonBody, *, schema=SCHEMA, cut=False):
    """What goes out for each piece; the state goes through JSON in between."""
    writer, out = cls(schema), []
    for start in range(0, len(raw), step):
        out.append(writer.feed(raw[start : start + step]))
        snapshot = json.loads(json.dumps(writer.snapshot()))
        writer = cls(schema)
        writer.restore(snapshot)
    return [*out, writer.finish(cut=cut)]


CASES = [
    ('{"city": "Paris", "days": 3}', '{"city": "Paris", "days": 3}'),
    ('{"city": 5, "days": "3", "flag": "true"}', '{"city": "5", "days": 3, "flag": true}'),
    ('{"nested": {"n": "1.5", "x": 2}, "items": ["1", 2]}', '{"nested": {"n": 1.5, "x": 2}, "items": [1, 2]}'),
    ('{"nested": "{\\"n\\": 1}"}', '{"nested": {"n": 1}}'),
    ('{"city": null}', '{"city": "null"}'),
    ('{"other": "1"}', '{"other": "1"}'),
    ('  {"city":"a\\"}"}  ', '{"city":"a\\"}"}'),
    ("", "{}"),
    ("[1]", "[1]"),
    ("plain", "plain"),
]


@pytest.mark.parametrize(("raw", "arguments"), CASES)
@pytest.mark.parametrize("step", [1, 2, 3, 7, 100])
def test_pieces_sum_up_to_the_one_shot_arguments(raw, arguments, step):
    assert "".join(pieces(raw, step)) == arguments
    assert whole_arguments(raw, SCHEMA, first_only=False) == arguments


def test_closing_brackets_wait_for_what_follows():
    assert pieces('{"a": {"b": 1}}', 1, schema=None)[-3:] == ["}", "", "}"]


def test_text_goes_out_at_once_and_a_wrong_type_waits():
    sent = pieces('{"city": "ab", "days": "3", "x": 1}', 5, schema=SCHEMA)
    assert sent == ['{"cit', 'y": "', 'ab", ', '"days', '": ', '3, "x', '": 1', "}"]


def test_only_the_first_value_counts_where_the_format_says_so():
    raw = '{"city": "a"} and more'
    assert "".join(pieces(raw, 4, FirstJsonBody)) == '{"city": "a"}'
    assert whole_arguments(raw, SCHEMA, first_only=True) == '{"city": "a"}'


def test_a_cut_value_is_not_typed():
    assert "".join(pieces('{"days": "3', 3, cut=True)) == '{"days": "3'


@given(st.text(alphabet='{}[]":, \\ab1tn', max_size=40), st.integers(1, 5))
def test_any_text_passes_without_error_in_any_pieces(raw, step):
    assert "".join(pieces(raw, step)) == "".join(pieces(raw, 100))
