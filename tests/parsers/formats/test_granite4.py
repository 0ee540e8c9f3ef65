"""Granite 4 calls: blocks sent whole, text around them, everything or nothing in a whole answer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.assembly import CallDelta
from tests.parsers.formats.call_checks import (
    check_anything,
    check_late_stop,
    check_linear,
    check_says,
    check_text,
    loose,
)
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool

OPEN, CLOSE = "<tool_call>", "</tool_call>"


def runner(*, markers=(), run=3, **fields):
    vocabulary = FakeVocabulary(markers, run=run)
    return Runner(vocabulary, plan_of(vocabulary, tools="granite4"), context_of(tool("ping"), **fields))


def call(text):
    return f"{OPEN}\n{text}\n{CLOSE}"


PARIS_TEXT = '{"name": "get_weather", "arguments": {"city":"Paris"}}'
PARIS = ("get_weather", '{"city": "Paris"}')
PING_TEXT = '{"arguments": {}, "name": "ping"}'
PING = ("ping", "{}")

WELL_FORMED = [
    pytest.param("Hello <tool!", ("Hello <tool!", ()), id="answer"),
    pytest.param("cut <tool_", ("cut <tool_", ()), id="beginning of a tag at the end"),
    pytest.param(call(PARIS_TEXT), (None, (PARIS,)), id="one call"),
    pytest.param(f"a{call(PARIS_TEXT)} b {call(PING_TEXT)} c", ("a b  c", (PARIS, PING)), id="text everywhere"),
    pytest.param(
        call('{"name": "f", "arguments": "{\\"a\\":1}"}'), (None, (("f", '{"a":1}'),)), id="a string is used as it is"
    ),
    pytest.param(call('{"name": "f", "arguments": [1]}'), (None, (("f", "[1]"),)), id="list"),
]

MALFORMED = [
    pytest.param(f"Hm. {call('{bad}')} x", id="no JSON"),
    pytest.param(call(""), id="empty"),
    pytest.param(call("[1]"), id="list"),
    pytest.param(call('{"name": "f"}'), id="no arguments"),
    pytest.param(call('{"name": "f", "arguments": null}'), id="null"),
    pytest.param(call('{"name": 5, "arguments": {}}'), id="name is a number"),
    pytest.param(f"{call('{bad}')} x {call(PING_TEXT)} y", id="bad, then good"),
    pytest.param(f"x {CLOSE} {call(PING_TEXT)}", id="closing tag alone"),
    pytest.param(f"x {OPEN}{PING_TEXT}", id="closing tag missing"),
    pytest.param(f'{OPEN}{{"name": "f", "arguments": {{"a": "x', id="cut"),
    pytest.param(call('{"name": "f", "arguments": {"a": "</tool_call>"}}'), id="closing tag in a string"),
]


@pytest.mark.parametrize(("output", "expected"), WELL_FORMED)
@pytest.mark.parametrize("markers", [(), (OPEN, CLOSE)], ids=["spelled", "tokens"])
def test_every_grouping_says_the_same(output, expected, markers):
    check_says(runner(markers=markers), output, *expected)


@pytest.mark.parametrize("output", MALFORMED)
@pytest.mark.parametrize("markers", [(), (OPEN, CLOSE)], ids=["spelled", "tokens"])
def test_what_is_no_call_is_text(output, markers):
    check_text(runner(markers=markers), output)


def test_white_space_between_calls_is_sent_but_in_one_chunk():
    """granite4/two"""
    run = runner()
    output = f"{call(PARIS_TEXT)}\n{call(PING_TEXT)}"
    assert summary(run.message(output)) == (None, None, (PARIS, PING))
    assert set(map(loose, run.folds(output).values())) == {("", "", (PARIS, PING))}
    assert fold(run.deltas(output)) == ("", "\n", (PARIS, PING))
    assert fold(run.deltas(output, 1000)) == ("", "", (PARIS, PING))


@pytest.mark.parametrize("bad", [call("{bad}"), f"{OPEN}{{"])
def test_a_stream_keeps_what_it_sent(bad):
    """granite4/good-then-bad"""
    run = runner()
    output = f"{call(PARIS_TEXT)}\n{bad}"
    assert summary(run.message(output)) == (None, output, ())
    assert fold(run.deltas(output)) == ("", "\n", (PARIS,))


def test_a_call_is_one_entry():
    run = runner()
    (delta,) = run.deltas(f"x{call(PARIS_TEXT)}y", 1000)
    assert delta.content == "xy"
    assert delta.calls == [CallDelta(index=0, id=delta.calls[0].id, name=PARIS[0], arguments=PARIS[1])]


def test_a_late_stop_token_is_no_part_of_a_malformed_block():
    check_late_stop(runner(), call("{bad}"))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from([OPEN, CLOSE, PARIS_TEXT, PING_TEXT, "{", "}", "<", "tool", " é", "\n", "</"]), max_size=12
    ),
    st.integers(1, 6),
)
def test_never_raises_and_loses_no_call(parts, size):
    message, streamed = check_anything(runner(), "".join(parts), size)
    if len(streamed[2]) == len(message[2]):
        assert loose(streamed) == loose(message)
    assert len(streamed[2]) >= len(message[2])


def test_work_is_linear_in_the_call():
    check_linear(runner, lambda run: run.vocabulary.spell(OPEN, '{"name": "f", "arguments": {"a": "'))
