import ast
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.engine.python_numbers import as_json, early_part


@pytest.mark.parametrize(
    ("signs", "text", "dumped"),
    [
        ("", "12", "12"),
        ("-", "0.5", "-0.5"),
        ("--", "3", "3"),
        ("-+-", "3", "3"),
        ("", "1_000", "1000"),
        ("", "0x1F", "31"),
        ("", "1e5", "100000.0"),
        ("", "1e16", "1e+16"),
        ("-", "1e999", '"-1e999"'),
        ("-", "0", "0"),
        ("", "00", "0"),
    ],
)
def test_is_dumped_as_python_dumps_it(signs, text, dumped):
    assert as_json(signs, text, "") == dumped


@pytest.mark.parametrize("text", ["07", "1__0", "1j", "1x", "1.2.3", "0x", "1e", "9" * 4999])
def test_what_is_no_real_number_is_none(text):
    assert as_json("", text, "") is None


def test_goes_on_as_the_model_wrote_it_where_dumping_would_take_digits_back():
    assert as_json("-", "1.5e3", "-1.5") == "-1.5e3"
    assert as_json("", "5e-1", "5") == "5e-1"
    assert as_json("", "15e3", "15") == "15000.0"


def test_does_not_trust_what_may_become_something_else():
    assert [early_part("", text) for text in ("0", "1.", "1e", "0x1", "1_", "0.00001", "0.1234567890123456")] == [
        None
    ] * 7
    assert early_part("-", "31.250") == "-31.25"


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(), st.data())
def test_early_parts_are_never_taken_back(number, data):
    text = repr(abs(number))
    early = early_part("", text[: data.draw(st.integers(0, len(text)))]) or ""
    dumped = as_json("", text, early)
    assert dumped is not None
    assert dumped.startswith(early)
    assert json.loads(dumped) == ast.literal_eval(text)
