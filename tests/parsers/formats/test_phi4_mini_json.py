"""Phi-4-mini calls: whole answers, every grouping, calls sent whole."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.assembly import CallDelta
from tests.parsers.formats.call_checks import check_anything, check_says, check_text
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool


def runner(*, run=3, **fields):
    vocabulary = FakeVocabulary(run=run)
    return Runner(vocabulary, plan_of(vocabulary, tools="phi4_mini_json"), context_of(tool("ping"), **fields))


PARIS_TEXT = '{"name": "get_weather", "arguments": {"city":"Paris", "tags": ["a", "]"]}}'
PARIS = ("get_weather", '{"city": "Paris", "tags": ["a", "]"]}')
PING_TEXT = '{"parameters": {}, "name": "ping"}'
PING = ("ping", "{}")

WELL_FORMED = [
    pytest.param("Hello, function [x]!", ("Hello, function [x]!", ()), id="answer"),
    pytest.param("cut func", ("cut func", ()), id="beginning of the word at the end"),
    pytest.param(f"functools[{PARIS_TEXT}]", (None, (PARIS,)), id="one call"),
    pytest.param(
        f"I look.\nfunctools[{PARIS_TEXT}, {PING_TEXT}]\nDone.", ("I look.\n", (PARIS, PING)), id="text around"
    ),
    pytest.param(f"functools[{PING_TEXT}] functools[{PARIS_TEXT}]", (None, (PING,)), id="the first list counts"),
    pytest.param('functools[{"name": "f", "arguments": null}]', (None, (("f", "null"),)), id="null"),
    pytest.param(
        'functools[{"name": "f", "arguments": "{\\"a\\": 1}"}]', (None, (("f", '{"a": 1}'),)), id="object in a string"
    ),
]

NO_CALLS = [
    pytest.param("x functools[]", id="empty"),
    pytest.param("functools[1]", id="number"),
    pytest.param("functools[f(a=1)]", id="another format"),
    pytest.param('functools[{"name": "f"}]', id="no arguments"),
    pytest.param('functools[{"name": 5, "arguments": {}}]', id="name is a number"),
    pytest.param('functools[{"name": "f", "arguments": {"a": 1,}}]', id="no JSON"),
    pytest.param('functools[{"name": "f", "arguments": {"a": "x', id="cut"),
]


@pytest.mark.parametrize(("output", "expected"), WELL_FORMED)
def test_every_grouping_says_the_same(output, expected):
    check_says(runner(), output, *expected)


@pytest.mark.parametrize("output", NO_CALLS)
def test_what_is_no_list_of_calls_is_text(output):
    check_text(runner(), output)


def test_a_stream_keeps_what_it_sent():
    run = runner()
    output = f"functools[{PING_TEXT}, {{bad}}]"
    assert summary(run.message(output)) == (None, output, ())
    assert fold(run.deltas(output)) == ("", "", (PING,))


def test_a_call_is_one_entry():
    run = runner()
    (delta,) = run.deltas(f"functools[{PARIS_TEXT}]", 1000)
    assert delta.calls == [CallDelta(index=0, id=delta.calls[0].id, name=PARIS[0], arguments=PARIS[1])]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(["functools", "[", "]", PARIS_TEXT, PING_TEXT, ", ", "{", '"', " x"]), max_size=10),
    st.integers(1, 6),
)
def test_never_raises_and_loses_no_call(parts, size):
    message, streamed = check_anything(runner(), "".join(parts), size)
    assert len(streamed[2]) >= len(message[2])
