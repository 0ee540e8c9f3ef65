"""Jamba calls: whole answers, every grouping, one step a chunk, cut lists, lists that are none."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.context import finish_reason
from parsers.engine.exceptions import ParserConfigurationError
from tests.parsers.formats.call_checks import check_anything, check_linear, check_says
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool

OPEN, CLOSE = "<tool_calls>", "</tool_calls>"


def runner(*, run=3, **fields):
    vocabulary = FakeVocabulary((OPEN, CLOSE), run=run)
    return Runner(vocabulary, plan_of(vocabulary, tools="jamba"), context_of(tool("ping"), **fields))


def calls(*texts):
    return f"{OPEN}[\n    " + ",\n    ".join(texts) + f"\n]{CLOSE}"


PARIS_TEXT = '{"name": "get_weather", "arguments": {"city": "Paris", "days":3}}'
PARIS = ("get_weather", '{"city": "Paris", "days": 3}')
PING_TEXT = '{"arguments": {}, "name": "ping"}'
PING = ("ping", "{}")

WELL_FORMED = [
    pytest.param("Hello [1] < 2!", ("Hello [1] < 2!", ()), id="answer"),
    pytest.param(calls(PARIS_TEXT), (None, (PARIS,)), id="one call"),
    pytest.param(
        f"I look. {calls(PING_TEXT, PARIS_TEXT, PING_TEXT)} Done.", ("I look. ", (PING, PARIS, PING)), id="three"
    ),
    pytest.param(calls(PING_TEXT) + calls(PARIS_TEXT), (None, (PING,)), id="the first list counts"),
    pytest.param(f" {OPEN}[]{CLOSE}", (None, ()), id="empty list"),
    pytest.param(calls('{"name": "f", "arguments": "{\\"a\\": 1}"}'), (None, (("f", '{"a": 1}'),)), id="in a string"),
    pytest.param(f"x{OPEN}[{PARIS_TEXT}, {PING_TEXT}]", ("x", (PARIS, PING)), id="end token missing"),
    pytest.param(f"x{OPEN}[{PARIS_TEXT}, ", ("x", (PARIS,)), id="cut behind a call"),
    pytest.param(f'x{OPEN}[{{"na', ("x", ()), id="cut before the name"),
    pytest.param(
        calls(f'{{"name": "f", "arguments": {{"a": "x {OPEN} y {CLOSE} z"}}}}'),
        (None, (("f", f'{{"a": "x {OPEN} y {CLOSE} z"}}'),)),
        id="tokens in a string are data",
    ),
    pytest.param(f"x<eos> {calls(PING_TEXT)}", ("x<eos> ", (PING,)), id="white space between tokens"),
]

NO_CALLS = [
    pytest.param(calls("f(a=1)"), id="another format"),
    pytest.param(calls('{"name": "f"}'), id="no arguments"),
    pytest.param(calls('{"name": 5, "arguments": {}}'), id="name is a number"),
    pytest.param(f"x{OPEN}[1]{CLOSE}y", id="number"),
    pytest.param(f"{OPEN}{OPEN}[]{CLOSE}", id="two start tokens"),
    pytest.param(calls('{"name": "f", "arguments": {"a": "x}}'), id="closing quote missing"),
]


@pytest.mark.parametrize(("output", "expected"), WELL_FORMED)
def test_every_grouping_says_the_same(output, expected):
    check_says(runner(), output, *expected, exactly=False)


@pytest.mark.parametrize("output", NO_CALLS)
def test_what_is_no_list_of_calls_is_text(output):
    run = runner()
    assert summary(run.message(output + "<eos>")) == (None, output, ())
    assert fold(run.deltas(output + "<eos>", 1000)) == ("", output, ())


def test_a_cut_call_is_none():
    """bugs/jamba-truncated-body"""
    run = runner()
    output = f'{OPEN}[{{"name": "get_weather", "arguments": {{"loc": "Par'
    assert summary(run.message(output)) == (None, None, ())
    parser = run.plan.open(run.context)
    ids = run.ids(output)
    deltas = [
        parser.feed([token_id], [run.vocabulary.text(token_id)], finished=place == len(ids) - 1)
        for place, token_id in enumerate(ids)
    ]
    assert fold(deltas) == ("", "", (("get_weather", '{"loc": "Par'),))
    assert finish_reason(run.context, "stop", parser.calls_streamed) == "stop"


def test_a_chunk_with_a_list_and_junk_streams_as_text():
    output = f"x \n{OPEN}[{PING_TEXT}] y{CLOSE}"
    assert fold(runner().deltas(output, 1000)) == ("", output, ())


def test_one_step_a_chunk():
    run = runner()
    ids = [
        run.vocabulary.token_id(OPEN),
        *run.vocabulary.spell('[{"name": ', '"f"', ', "arguments": ', '{"a": "x', 'y"', ', "n": 1', "}", "}]"),
        run.vocabulary.token_id(CLOSE),
    ]
    found = [delta and [(entry.name, entry.arguments) for entry in delta.calls] for delta in run.deltas(ids)]
    assert found == [
        None,
        None,
        [("f", None)],
        None,
        [(None, '{"a": "x')],
        [(None, "y")],
        [(None, '", "n": 1')],
        [(None, "")],
        [(None, "")],
        [(None, "}")],
    ]


def test_start_needs_the_tokens():
    with pytest.raises(ParserConfigurationError):
        plan_of(FakeVocabulary((OPEN,)), tools="jamba")


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from([OPEN, CLOSE, "[", "]", PARIS_TEXT, PING_TEXT, ", ", '{"name": "f", ', "{", '"', "\\", " x"]),
        max_size=12,
    ),
    st.integers(1, 6),
)
def test_never_raises_and_what_is_called_is_json(parts, size):
    check_anything(runner(), "".join(parts), size)


@pytest.mark.parametrize("opening", ['{"a": "', '{"a":"'], ids=["dumped", "compact"])
def test_work_is_linear_in_the_call(opening):
    begin = '[{"name": "f", "arguments": ' + opening
    check_linear(runner, lambda run: [run.vocabulary.token_id(OPEN), *run.vocabulary.spell(begin)], keeps=False)
