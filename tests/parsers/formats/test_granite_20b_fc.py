"""Granite 20B function calls: whole answers, every grouping, one step a chunk, what is no call."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsers.formats.call_checks import check_anything, check_linear, check_says
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool

MARKER = "<function_call>"


def runner(*, run=3, **fields):
    vocabulary = FakeVocabulary(run=run)
    return Runner(vocabulary, plan_of(vocabulary, tools="granite-20b-fc"), context_of(tool("ping"), **fields))


PARIS_TEXT = MARKER + ' {"name": "get_weather", "arguments": {"city": "Paris", "days":3}}'
PARIS = ("get_weather", '{"city": "Paris", "days": 3}')
PING_TEXT = MARKER + '\n{"arguments": {}, "name": "ping"}'
PING = ("ping", "{}")

WELL_FORMED = [
    pytest.param("Hello, a < b, <func!", ("Hello, a < b, <func!", ()), id="answer"),
    pytest.param("cut <function", ("cut <function", ()), id="beginning of a marker at the end"),
    pytest.param(PARIS_TEXT, (None, (PARIS,)), id="one call"),
    pytest.param(f"I look.{PARIS_TEXT}\n{PING_TEXT} Done.", ("I look.", (PARIS, PING)), id="text around"),
    pytest.param(PING_TEXT + PING_TEXT + PARIS_TEXT, (None, (PING, PING, PARIS)), id="three"),
    pytest.param(f"{PARIS_TEXT} {{x}}", (None, (PARIS,)), id="braces behind"),
    pytest.param(f'{MARKER}{{"name": "f", "arguments": "{{}}"}}', (None, (("f", "{}"),)), id="in a string"),
    pytest.param(
        f'{MARKER}{{"name": "f", "arguments": {{"a": "{MARKER}"}}}}',
        (None, (("f", f'{{"a": "{MARKER}"}}'),)),
        id="a marker in a string is data",
    ),
]

NO_CALLS = [
    pytest.param(f"x{MARKER} f(a=1)", id="another format"),
    pytest.param(f'{MARKER} {{"name": "f"}}', id="no arguments"),
    pytest.param(f'{MARKER} {{"name": 5, "arguments": {{}}}}', id="name is a number"),
    pytest.param(f"{MARKER} {{bad}} {PING_TEXT}", id="bad, then good"),
    pytest.param(f'{MARKER} {{"name": "f", "arguments": {{"a": "x', id="cut"),
    pytest.param(f"x{MARKER}", id="only a marker"),
    pytest.param(f"{PING_TEXT}{MARKER} bad", id="good, then bad"),
]


@pytest.mark.parametrize(("output", "expected"), WELL_FORMED)
def test_every_grouping_says_the_same(output, expected):
    check_says(runner(), output, *expected)


@pytest.mark.parametrize("output", NO_CALLS)
def test_what_is_no_call_is_text(output):
    run = runner()
    assert summary(run.message(output + "<eos>")) == (None, output, ())


def test_what_was_never_announced_streams_as_text():
    run = runner()
    output = f"x{MARKER} {{bad}} {PING_TEXT}"
    assert set(run.folds(output + "<eos>").values()) == {("", output, ())}


def test_a_chunk_with_a_call_and_junk_streams_as_text():
    output = f"x{PING_TEXT} {MARKER} "
    assert fold(runner().deltas(output, 1000)) == ("", output, ())


def test_one_step_a_chunk():
    run = runner()
    pieces = (
        MARKER,
        '{"na',
        'me": "f"',
        ', "arguments": {"a',
        '": "x',
        "y",
        '", "n": 1',
        "}",
        "}",
        "<func",
        "tion_call>",
        "{",
    )
    parser = run.plan.open(run.context)
    found = []
    for token_id in run.vocabulary.spell(*pieces):
        delta = parser.feed([token_id], [run.vocabulary.text(token_id)], finished=False)
        found.append(delta and [(entry.name, entry.arguments) for entry in delta.calls])
    assert found == [
        None,
        None,
        [("f", None)],
        None,
        None,
        [(None, '{"a": "x')],
        [(None, 'y"')],
        None,
        [(None, ', "n": 1}')],
        [(None, "")],
        [(None, "")],
        [(None, "")],
    ]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from([MARKER, PARIS_TEXT, PING_TEXT, "{", "}", '"', "\\", ", ", "<", " x"]), max_size=10),
    st.integers(1, 6),
)
def test_never_raises_and_what_is_called_is_json(parts, size):
    check_anything(runner(), "".join(parts), size)


def test_work_is_linear_in_the_call():
    check_linear(runner, lambda run: run.vocabulary.spell(MARKER, '{"name": "f", "arguments": {"a": "'), keeps=False)
