"""Apertus calls: whole answers, every grouping, what waits, text around lists."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.assembly import CallDelta
from tests.parsers.formats.call_checks import check_anything, check_says, check_text
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool

PREFIX, SUFFIX = "<|tools_prefix|>", "<|tools_suffix|>"


def runner(*, run=3, **fields):
    vocabulary = FakeVocabulary(run=run)
    return Runner(vocabulary, plan_of(vocabulary, tools="apertus"), context_of(tool("ping"), **fields))


def block(body):
    return PREFIX + body + SUFFIX


PARIS_TEXT = '{"get_weather": {"city":"Paris", "score": 1.5e3}}'
PARIS = ("get_weather", '{"city": "Paris", "score": 1500.0}')
PING = ("ping", "{}")

GOOD = [
    pytest.param("a < b, <|tools_", ("a < b, <|tools_", ()), id="answer"),
    pytest.param(f"text{SUFFIX} more", (f"text{SUFFIX} more", ()), id="suffix without a list"),
    pytest.param(block(f"[{PARIS_TEXT}]"), (None, (PARIS,)), id="one call"),
    pytest.param(block(f' [ {PARIS_TEXT} , {{"ping": {{}}}} ] '), (None, (PARIS, PING)), id="two calls"),
    pytest.param(block(PARIS_TEXT), (None, (PARIS,)), id="one object"),
    pytest.param(f"{PREFIX}[{PARIS_TEXT}]", (None, (PARIS,)), id="no suffix"),
    pytest.param(f'{PREFIX}[{PARIS_TEXT}, {{"ping": {{}}', (None, (PARIS, PING)), id="arguments whole, then cut"),
    pytest.param(f"{PREFIX}[{PARIS_TEXT}{SUFFIX}", (None, (PARIS,)), id="no bracket"),
    pytest.param(f"a{block(f'[{PARIS_TEXT}]')} \n b", ("a\nb", (PARIS,)), id="text around"),
    pytest.param(f"{PREFIX}[{PARIS_TEXT}] b{SUFFIX}", ("b", (PARIS,)), id="text before the suffix"),
    pytest.param(block(PARIS_TEXT) + "c" + block('[{"ping": {}}]') + "d", ("c\nd", (PARIS, PING)), id="two lists"),
    pytest.param(block("[]"), (None, ()), id="empty list"),
    pytest.param(block("[{}]"), (None, ()), id="empty object"),
    pytest.param(block('[{"ping": {}, "x": 1}]'), (None, (PING,)), id="further keys"),
    pytest.param(block('[{"ping": null}, {"ping": 5}]'), (None, (("ping", "null"), ("ping", "5"))), id="other values"),
    pytest.param(block('[{"ping": "{\\"a\\": 1}"}]'), (None, (("ping", '{"a": 1}'),)), id="object in a string"),
    pytest.param(block('[{"ping": "hello"}]'), (None, (("ping", '"hello"'),)), id="string"),
    pytest.param(
        block(f'[{{"ping": {{"a": "{PREFIX} {SUFFIX}"}}}}]'),
        (None, (("ping", f'{{"a": "{PREFIX} {SUFFIX}"}}'),)),
        id="markers in a string",
    ),
    pytest.param(block('[{"ping": {"a": "x}}]'), (None, (("ping", '{"a": "x}}]"}'),)), id="quote missing"),
    pytest.param(
        block('[{"ping": {"a": "\\ud83d\\ude00 \\"q\\""}}]'), (None, (("ping", '{"a": "😀 \\"q\\""}'),)), id="escapes"
    ),
]

TEXT = [
    pytest.param(block("[ping(a=1)]"), id="another format"),
    pytest.param(block("[1]"), id="numbers"),
    pytest.param(block("{'ping': {}}"), id="single quotes"),
    pytest.param("a " + block("x") + " b", id="text around"),
]


@pytest.mark.parametrize(("output", "expected"), GOOD)
def test_every_grouping_says_the_same(output, expected):
    check_says(runner(), output, *expected, exactly=False)


@pytest.mark.parametrize("output", TEXT)
def test_what_is_no_list_is_text(output):
    check_text(runner(), output)


@pytest.mark.parametrize("body", ['[{"pi', '[{"ping": ', '[{"ping": {"a": "New Yo', '[{"ping": {"a": 1'])
def test_a_cut_call_is_none(body):
    assert summary(runner().message("a" + PREFIX + body)) == (None, "a", ())


def test_a_stream_leaves_a_cut_call_open():
    assert fold(runner(run=1).deltas(PREFIX + '[{"ping": {"a": "New Yo')) == ("", "", (("ping", '{"a": "New Yo'),))


def test_a_stream_keeps_what_it_sent():
    run = runner(run=1)
    output = block('[{"ping": {}}, {"ping": {"a": 1,}}]')
    assert summary(run.message(output)) == (None, output, ())
    assert fold(run.deltas(output)) == ("", "", (PING, ("ping", '{"a": 1')))


def test_a_broken_list_behind_a_good_one_is_text():
    run = runner()
    output = block(PARIS_TEXT) + block("x")
    assert summary(run.message(output)) == (None, block("x"), (PARIS,))


def test_closing_brackets_wait_for_the_next_call():
    run = runner()
    name, value, closed, end = run.chunked(PREFIX + '[{"ping": {"a": ', '"x"', "}}", "]" + SUFFIX)
    assert name.calls == [
        CallDelta(index=0, id=name.calls[0].id, name="ping", arguments=""),
        CallDelta(index=0, arguments="{"),
    ]
    assert value.calls == [CallDelta(index=0, arguments='"a": "x')]
    assert closed is None
    assert end.calls == [CallDelta(index=0, arguments='"}')]


def test_a_chunk_that_may_begin_a_marker_sends_nothing():
    """families/apertus/code, grouping 1"""
    run = runner()
    _, less, rest = run.chunked(PREFIX + '[{"ping": {"a": "x', "<", "y")
    assert less is None
    assert rest.calls == [CallDelta(index=0, arguments="<y")]


def test_a_list_on_lines_of_its_own_leaves_one_line_break():
    """families/apertus/fenced"""
    run = runner()
    output = f"```\n{block('[]')}\n```"
    assert summary(run.message(output)) == (None, "```\n```", ())
    assert set(run.folds(output).values()) == {("", "```\n```", ())}


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from([PREFIX, SUFFIX, "[", "]", PARIS_TEXT, '{"ping": {}}', ", ", "{", '"', " x", "\\", "1"]),
        max_size=10,
    ),
    st.integers(1, 6),
)
def test_any_text_streams_through_snapshots(pieces, size):
    check_anything(runner(), "".join(pieces), size)


@pytest.mark.parametrize("piece", ["x", "<|tools_", '{"ping": {}},', "[", '\\"', " 1,"])
def test_work_is_linear(piece):
    run = runner(run=1)

    def seconds(count):
        started = time.process_time()
        run.deltas(PREFIX + '[{"a": {"b": "' + piece * count, 50)
        return time.process_time() - started

    seconds(100)
    assert min(seconds(8000) for _ in range(2)) < 20 * max(min(seconds(1000) for _ in range(2)), 0.02)
