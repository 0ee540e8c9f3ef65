"""FunctionGemma: values between escape tokens, whole answers, every grouping, damage, linear time."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool

START, END, E = "<start_function_call>", "<end_function_call>", "<escape>"
RESPONSE = "<start_function_response>"
PARIS_TEXT, PARIS = f"{START}call:get_weather{{city:{E}Paris{E}}}{END}", ("get_weather", '{"city": "Paris"}')
NOOP_TEXT, NOOP = f"{START}call:noop{{}}{END}", ("noop", "{}")


def runner(*, run=3, markers=(START, END, E, RESPONSE)):
    vocabulary = FakeVocabulary(markers, run=run)
    return Runner(vocabulary, plan_of(vocabulary, tools="functiongemma"), context_of(tool("get_weather")))


CASES = [
    pytest.param("Hello, a < b and <start", ("Hello, a < b and <start", ()), id="answer"),
    pytest.param(f"a{END}b", (f"a{END}b", ()), id="end marker alone"),
    pytest.param(PARIS_TEXT, (None, (PARIS,)), id="one call"),
    pytest.param(f"Sure. {NOOP_TEXT} and {PARIS_TEXT}", ("Sure.  and", (NOOP, PARIS)), id="text around calls"),
    pytest.param(
        f'{START}call:f{{a:{E}42{E},b:{E}true{E},c:{E}007{E},d:{E}{{"k": [1]}}{E},e:{E}{E}}}{END}',
        (None, (("f", '{"a": 42, "b": true, "c": "007", "d": {"k": [1]}, "e": ""}'),)),
        id="values that are JSON",
    ),
    pytest.param(
        f"{START}call:f{{a:{E}NaN{E},b:{E}[1e999]{E},c:{E}{2**70}{E}}}{END}",
        (None, (("f", f'{{"a": "NaN", "b": ["1e999"], "c": {2**70}}}'),)),
        id="numbers that JSON cannot say, a large one",
    ),
    pytest.param(
        f"{START}call:f{{a:1,b:{E}x{E},c: {E}y{E}}}{END}", (None, (("f", '{"b": "x"}'),)), id="no escape, no value"
    ),
    pytest.param(
        f"{START}call:f{{a:{E}1{E},a:{E}2{E}}}{END}", (None, (("f", '{"a": 2}'),)), id="the last of equal keys"
    ),
    pytest.param(f"{START}call:f{{a:{E}x}}{END} y", ("y", (("f", "{}"),)), id="closing escape missing"),
    pytest.param(
        f"{START}call:f{{a:{E}x{END}y{E}}}{END}", (None, (("f", f'{{"a": "x{END}y"}}'),)), id="marker in a value"
    ),
    pytest.param(f"{START}call:f{{a:{E}x{E},b:{E}cut", (None, (("f", '{"a": "x"}'),)), id="cut in a value"),
    pytest.param(f"{START}call:get_we", (f"{START}call:get_we", ()), id="cut in the name"),
    pytest.param(START, (START, ()), id="marker alone"),
    pytest.param(f"{START}call:a-b{{}}{END}", (f"{START}call:a-b{{}}{END}", ()), id="no name"),
    pytest.param(f"{START}f{{}}{END} {NOOP_TEXT}", (f"{START}f{{}}{END}", (NOOP,)), id="no call, then one"),
]


@pytest.mark.parametrize("markers", [(START, END, E, RESPONSE), ()], ids=["tokens", "text"])
@pytest.mark.parametrize(("output", "expected"), CASES)
def test_answers_alike_in_every_grouping(output, expected, markers):
    run = runner(markers=markers)
    message = summary(run.message(output + "<eos>"))
    assert message == (None, *expected)
    for name, (reasoning, content, calls) in run.folds(output + "<eos>").items():
        assert (reasoning, content.strip(), calls) == ("", message[1] or "", message[2]), name


def test_the_name_is_sent_at_once_the_arguments_when_they_are_known():
    run = runner()
    deltas = run.deltas(
        run.ids(START) + run.vocabulary.spell("call:", "f", "{", "a:") + run.ids(f"{E}x{E}}}{END}<eos>")
    )
    assert [each and [(call.name, call.arguments) for call in each.calls] for each in deltas] == [
        *[None] * 3,
        [("f", None)],
        *[None] * 5,
        [(None, '{"a": "x"}')],
        None,
    ]


def test_a_name_waits_where_it_comes_with_the_marker():
    """families/functiongemma/empty-value, grouping 7"""
    run = runner()
    first, name, rest = run.chunked(f"{START}call:f{{", f"a:{E}x", f"{E}}}{END}")
    assert first is None
    assert [(call.name, call.arguments) for call in name.calls] == [("f", None)]
    assert [(call.name, call.arguments) for call in rest.calls] == [(None, '{"a": "x"}')]


def test_the_token_that_asks_for_the_answer_is_not_shown():
    run = runner()
    parser = run.plan.open(run.context)
    ids = run.ids(NOOP_TEXT + RESPONSE)
    deltas = [parser.feed([token_id], [run.vocabulary.text(token_id)], finished=False) for token_id in ids]
    assert fold([*deltas, parser.feed([], [], finished=True)]) == ("", "", (NOOP,))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from([START, END, E, "call:", "f", "{", "}", "a:", ",", "x", " ", '"', "<", "1"]), max_size=14)
)
def test_anything_is_read_alike_in_any_grouping(pieces):
    run = runner()
    output = "".join(pieces)
    message = summary(run.message(output))
    for lens in (1, 2):
        _, content, calls = fold(run.deltas(output, lens, snapshots=True))
        assert (content.strip(), calls) == ((message[1] or "").strip(), message[2])


@pytest.mark.parametrize("piece", ["abc", f"{E},a:{E}", "<", "  "])
def test_work_is_linear(piece):
    def seconds(count):
        run = runner()
        ids = run.ids(f"{START}call:f{{a:{E}") + run.ids(piece) * count
        start = time.process_time()
        run.deltas(ids)
        return time.process_time() - start

    seconds(100)
    assert seconds(8_000) < 25 * seconds(800) + 0.3
