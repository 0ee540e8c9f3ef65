"""InternLM calls: whole answers, every grouping, one step a chunk, what is no call."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsers.formats.call_checks import check_anything, check_linear, check_says, check_text
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool

START, PLUGIN, END = "<|action_start|>", "<|plugin|>", "<|action_end|>"
MARKERS = (START, PLUGIN, END, "<|interpreter|>")


def runner(*, markers=MARKERS, run=3, **fields):
    vocabulary = FakeVocabulary(markers, run=run)
    return Runner(vocabulary, plan_of(vocabulary, tools="internlm"), context_of(tool("ping"), **fields))


def call(text):
    return f"{START}{PLUGIN}\n{text}{END}"


PARIS_TEXT = '{"name": "get_weather", "parameters": {"city": "Paris", "days": 3}}'
PARIS = ("get_weather", '{"city": "Paris", "days": 3}')
PING_TEXT = '{"name": "ping"}'
PING = ("ping", "{}")

WELL_FORMED = [
    pytest.param("Hello <|!", ("Hello <|!", ()), id="answer"),
    pytest.param(call(PARIS_TEXT), (None, (PARIS,)), id="one call"),
    pytest.param(f"{START}{PLUGIN}{PARIS_TEXT}", (None, (PARIS,)), id="end marker missing"),
    pytest.param(f"I look.\n{call(PARIS_TEXT)}\nDone.", ("I look.\n", (PARIS,)), id="text around"),
    pytest.param(call('{"name": "ping"}'), (None, (PING,)), id="no arguments"),
    pytest.param(call('{"name": "ping", "parameters": {}}'), (None, (PING,)), id="empty arguments"),
    pytest.param(call('{"arguments": {"a":1}, "name": "f"}'), (None, (("f", '{"a": 1}'),)), id="name last"),
    pytest.param(call('{"name": "f", "arguments": "{\\"a\\": 1}"}'), (None, (("f", '{"a": 1}'),)), id="in a string"),
    pytest.param(call(PARIS_TEXT) + " and " + call(PING_TEXT), (None, (PARIS, PING)), id="two calls"),
    pytest.param(f"a{call(PARIS_TEXT)}{START}<|interpreter|>\nx{END}", ("a", (PARIS,)), id="code behind a call"),
    pytest.param(f"{call(PARIS_TEXT)}{START}", (None, (PARIS,)), id="half a marker behind a call"),
    pytest.param(
        call(f'{{"name": "f", "parameters": {{"a": "x {START}{PLUGIN} y {END} z"}}}}'),
        (None, (("f", f'{{"a": "x {START}{PLUGIN} y {END} z"}}'),)),
        id="markers in a string are data",
    ),
]

NO_CALL = [
    pytest.param(f"x{START}<|interpreter|>\nprint(1)\n{END}", id="code"),
    pytest.param(f"x {START} y", id="half a marker"),
    pytest.param(call("f(a=1)"), id="no JSON"),
    pytest.param(call(""), id="empty"),
    pytest.param(call('{"parameters": {}}'), id="no name"),
    pytest.param(call('{"name": 5, "parameters": {}}'), id="name is a number"),
    pytest.param(f'{START}{PLUGIN}{{"name": "get_w', id="cut name"),
    pytest.param(f"{START}{PLUGIN}", id="nothing behind"),
    pytest.param(START, id="only the start"),
]


@pytest.mark.parametrize(("output", "expected"), WELL_FORMED)
@pytest.mark.parametrize("markers", [MARKERS, ()], ids=["tokens", "spelled"])
def test_every_grouping_says_the_same(output, expected, markers):
    check_says(runner(markers=markers), output, *expected)


@pytest.mark.parametrize("output", NO_CALL)
@pytest.mark.parametrize("markers", [MARKERS, ()], ids=["tokens", "spelled"])
def test_what_is_no_call_is_text(output, markers):
    check_text(runner(markers=markers), output)


def test_a_cut_call_is_text_or_stays_open():
    run = runner()
    output = f'{START}{PLUGIN}{{"name": "f", "parameters": {{"a": "x'
    assert summary(run.message(output)) == (None, output, ())
    assert fold(run.deltas(output)) == ("", "", (("f", '{"a": "x'),))


def sent(run, *pieces):
    found = []
    ids = [run.vocabulary.token_id(piece) or run.vocabulary.text_id(piece) for piece in pieces]
    for delta in run.deltas(ids):
        entries = [(entry.name, entry.arguments) for entry in delta.calls] if delta else []
        found.append(entries or (delta.content if delta else None))
    return found


def test_one_step_a_chunk():
    assert sent(
        runner(),
        "Hi",
        START,
        PLUGIN,
        '{"name": "f"',
        ', "parameters": ',
        '{"a": "',
        "x",
        "y",
        '", "n"',
        ": 1}",
        "}",
        END,
    ) == [
        "Hi",
        None,
        None,
        [("f", None)],
        None,
        [(None, '{"a": "')],
        [(None, "")],
        [(None, "x")],
        [(None, "")],
        [(None, 'y"')],
        [(None, ', "n": 1}')],
        [(None, "")],
    ]


def test_the_call_waits_a_chunk_behind_text_in_its_own():
    run = runner()
    ids = run.vocabulary.encode(f"Hi{call(PARIS_TEXT)}")
    first, second = run.deltas(ids, [len(ids) - 1, 1])
    assert (first.content, first.calls) == ("Hi", [])
    assert [(entry.name, entry.arguments) for entry in second.calls] == [PARIS]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [*MARKERS, PARIS_TEXT, '{"name": "f", ', '"parameters": ', "{", "}", '"', "\\", " é", "1", ","]
        ),
        max_size=12,
    ),
    st.integers(1, 6),
)
def test_never_raises_and_what_is_called_is_json(parts, size):
    check_anything(runner(), "".join(parts), size)


@pytest.mark.parametrize("opening", ['{"a": "', '{"a":"'], ids=["dumped", "compact"])
def test_work_is_linear_in_the_call(opening):
    begin = '{"name": "f", "parameters": ' + opening
    check_linear(runner, lambda run: [*run.ids(START + PLUGIN), *run.vocabulary.spell(begin)], keeps=False)
