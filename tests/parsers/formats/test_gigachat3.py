"""GigaChat 3 calls: both markers, every grouping, what a chunk sends."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.assembly import CallDelta
from tests.parsers.formats.call_checks import check_anything, check_says, check_text
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool

SEPARATOR, ROLE, FUNCTION = "<|message_sep|>", "function call<|role_sep|>", "<|function_call|>"


def runner(*, run=3, **fields):
    vocabulary = FakeVocabulary(run=run)
    return Runner(vocabulary, plan_of(vocabulary, tools="gigachat3"), context_of(tool("ping"), **fields))


PARIS_TEXT = '{"name": "get_weather", "arguments": {"city":"Paris"}}'
PARIS = ("get_weather", '{"city": "Paris"}')
PING_TEXT = '{"arguments": {}, "name": "ping"}'
PING = ("ping", "{}")

GOOD = [
    pytest.param("a < b, a function call", ("a < b, a function call", ()), id="answer"),
    pytest.param(f"{FUNCTION}{PARIS_TEXT}", (None, (PARIS,)), id="new"),
    pytest.param(f"I look.{FUNCTION} {PING_TEXT}", ("I look.", (PING,)), id="new behind text"),
    pytest.param(f"{ROLE}\n{PARIS_TEXT}", (None, (PARIS,)), id="old"),
    pytest.param(f"I look.{SEPARATOR}\n\n{ROLE}\n{PARIS_TEXT}", ("I look.", (PARIS,)), id="old behind text"),
    pytest.param(f"I look.{SEPARATOR}{FUNCTION}{PARIS_TEXT}", ("I look.", (PARIS,)), id="new behind a separator"),
    pytest.param(f"{FUNCTION}{PARIS_TEXT}{SEPARATOR}", (None, (PARIS,)), id="separator behind"),
    pytest.param(f"{FUNCTION}{PARIS_TEXT} I wait.", (None, (PARIS,)), id="text behind"),
    pytest.param(f"{FUNCTION}{PARIS_TEXT}{FUNCTION}{PING_TEXT}", (None, (PARIS, PING)), id="two"),
    pytest.param(f"{FUNCTION}{PARIS_TEXT}{FUNCTION}nothing", (None, (PARIS,)), id="junk behind a call"),
    pytest.param(f"I look.{SEPARATOR}\n\n", ("I look.", ()), id="separator at the end"),
    pytest.param(f"a{SEPARATOR} b", (f"a{SEPARATOR} b", ()), id="separator in prose"),
    pytest.param(f"a{SEPARATOR} func", (f"a{SEPARATOR} func", ()), id="cut behind a separator"),
    pytest.param(
        f'{FUNCTION}{{"name": "f", "arguments": {{"a": "{SEPARATOR}{FUNCTION}"}}}}',
        (None, (("f", f'{{"a": "{SEPARATOR}{FUNCTION}"}}'),)),
        id="markers in a string",
    ),
    pytest.param(
        f'{FUNCTION}{{"name": "f", "arguments": "{{\\"a\\": 1}}"}}', (None, (("f", '{"a": 1}'),)), id="string"
    ),
    pytest.param(
        f'{FUNCTION}{{"name": "f", "arguments": {{"a": "x\n\ty"}}}}',
        (None, (("f", '{"a": "x\\n\\ty"}'),)),
        id="control characters in a string: families/gigachat3/raw-newline-in-string",
    ),
]

TEXT = [
    pytest.param(f"{FUNCTION}nothing", id="another format"),
    pytest.param(f"{FUNCTION}{{'name': 'f'}}", id="single quotes"),
    pytest.param(f'{FUNCTION}{{"name": 5, "arguments": {{}}}}', id="name is a number"),
    pytest.param(f'a{SEPARATOR}{ROLE}{{"arguments": {{}}}}', id="no name"),
    pytest.param(f'{FUNCTION}{{"arguments": []', id="list"),
]


@pytest.mark.parametrize(("output", "expected"), GOOD)
def test_every_grouping_says_the_same(output, expected):
    check_says(runner(), output, *expected)


@pytest.mark.parametrize("output", TEXT)
def test_what_is_no_call_is_text(output):
    check_text(runner(), output)


@pytest.mark.parametrize(
    "body", ['{"name": "ping", "arguments": {"a": 1', '{"name": "ping", "arguments": {"a": 1,}}', '{"name": "ping"}']
)
def test_a_stream_keeps_what_it_announced(body):
    run = runner(run=1)
    output = FUNCTION + body
    assert summary(run.message(output)) == (None, output, ())
    assert fold(run.deltas(output))[:2] == ("", "")
    assert fold(run.deltas(output))[2][0][0] == "ping"


def test_a_chunk_sends_content_or_the_name_or_arguments():
    run = runner()
    text, name, most, rest = run.chunked(f'Hi{FUNCTION}{{"name": "ping", "arguments": {{"a"', ': "b', '"', "}}")
    assert (text.content, text.calls) == ("Hi", [])
    assert name.calls == [CallDelta(index=0, id=name.calls[0].id, name="ping")]
    assert most.calls == [CallDelta(index=0, arguments='{"a": "b"')]
    assert rest.calls == [CallDelta(index=0, arguments="}")]


def test_white_space_at_the_end_of_a_chunk_waits():
    """families/gigachat3/nested-unicode, grouping 1"""
    run = runner()
    *_, blank, rest = run.chunked(f'{FUNCTION}{{"name": "ping"', ', "arguments": {"a": "b', " ", "c")
    assert blank is None
    assert rest.calls == [CallDelta(index=0, arguments=" c")]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from([SEPARATOR, ROLE, FUNCTION, "func", PARIS_TEXT, PING_TEXT, "{", '"', " x", "\n"]), max_size=10
    ),
    st.integers(1, 6),
)
def test_any_text_streams_through_snapshots(pieces, size):
    check_anything(runner(), "".join(pieces), size)


@pytest.mark.parametrize("piece", ["x", "function ", "<|", PARIS_TEXT + FUNCTION, SEPARATOR])
def test_work_is_linear(piece):
    run = runner(run=1)

    def seconds(count):
        started = time.process_time()
        run.deltas(FUNCTION + piece * count, 50)
        run.deltas(piece * count, 50)
        return time.process_time() - started

    seconds(100)
    assert min(seconds(4000) for _ in range(2)) < 16 * max(min(seconds(500) for _ in range(2)), 0.02)
