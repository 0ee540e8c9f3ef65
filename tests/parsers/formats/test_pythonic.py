"""Python lists of calls, with Llama 4's markers or without: whole answers, exact deltas, groupings, malformed lists."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.assembly import CallDelta
from parsers.engine.context import NamedToolChoice
from tests.parsers.python_reference import call_lists, calls_of, damaged_lists
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool

WEATHER = tool("get_weather", city={"type": "string"})
START, END = "<|python_start|>", "<|python_end|>"
PARIS_TEXT, PARIS = "[get_weather(city='Paris')]", ("get_weather", '{"city": "Paris"}')
NOOP = ("noop", "{}")


def runner(parser="pythonic", *, run=3, **fields):
    vocabulary = FakeVocabulary((START, END) if parser == "llama4_pythonic" else (), run=run)
    return Runner(vocabulary, plan_of(vocabulary, tools=parser), context_of(WEATHER, **fields))


WELL_FORMED = [
    pytest.param("Hello!", ("Hello!", ()), id="answer"),
    pytest.param("see [1] and [x](y)", ("see [1] and [x](y)", ()), id="brackets in prose"),
    pytest.param(PARIS_TEXT, (None, (PARIS,)), id="one call"),
    pytest.param("[noop(), get_weather(city='Paris')]\n", (None, (NOOP, PARIS)), id="two calls, white space behind"),
    pytest.param(
        "[f(s=\"it's\", n=-0.5, b=True, z=null, t=('a', 1), d={'k': [1]})]",
        (None, (("f", '{"s": "it\'s", "n": -0.5, "b": true, "z": null, "t": ["a", 1], "d": {"k": [1]}}'),)),
        id="values",
    ),
    pytest.param("[f(x='g()', n=31.25, m=0x1F)]", (None, (("f", '{"x": "g()", "n": 31.25, "m": 31}'),)), id="numbers"),
    pytest.param("[docs](https://x.y/z?a=b) explains it.", ("[docs](https://x.y/z?a=b) explains it.", ()), id="link"),
    pytest.param("[1, 2, 3] are numbers", ("[1, 2, 3] are numbers", ()), id="list of numbers"),
    pytest.param("[]", ("[]", ()), id="empty list"),
    pytest.param("[ ] todo\n[x] done", ("[ ] todo\n[x] done", ()), id="checkboxes"),
    pytest.param('[{"name": "f", "arguments": {}}]', ('[{"name": "f", "arguments": {}}]', ()), id="JSON"),
    pytest.param("[\n get_weather(city='Paris')]", ("[\n get_weather(city='Paris')]", ()), id="not vLLM's narrow form"),
    pytest.param("[f('Paris')]", ("[f('Paris')]", ()), id="positional argument first"),
    pytest.param("Sure. " + PARIS_TEXT, ("Sure. " + PARIS_TEXT, ()), id="list within a line"),
    pytest.param("\n" + PARIS_TEXT, ("\n" + PARIS_TEXT, ()), id="list behind nothing but a line break"),
    pytest.param("I look.\n" + PARIS_TEXT, ("I look.\n", (PARIS,)), id="list on the last line: vllm#22917"),
    pytest.param(f"Like\n{PARIS_TEXT}\nthis.", (f"Like\n{PARIS_TEXT}\nthis.", ()), id="list between prose"),
    pytest.param(
        f"[x] y\n[z]\n{PARIS_TEXT}\n", ("[x] y\n[z]\n", (PARIS,)), id="list on the last line, behind brackets"
    ),
]

MALFORMED = [
    pytest.param("[get_weather(city='Martha's Vineyard')]", id="apostrophe"),
    pytest.param("[get_weather(city='Paris'), search(query=b'x')]", id="bytes"),
    pytest.param("[get_weather(city='Paris')\nnoop()]", id="comma missing"),
    pytest.param("[get_weather(city='Paris'),]", id="comma too many"),
    pytest.param(PARIS_TEXT + "[0]", id="more expression"),
    pytest.param(PARIS_TEXT + "\nDone!", id="prose behind"),
    pytest.param("[get_weather(city='Par", id="cut in a string"),
    pytest.param("[get_weather(city='Paris'), se", id="cut in a name"),
    pytest.param("[get_weather(city=", id="cut in a call"),
    pytest.param("[", id="cut at once"),
]

LLAMA4 = [
    pytest.param(f"{START}{PARIS_TEXT}{END}", (None, (PARIS,)), id="markers"),
    pytest.param(f"{START}{PARIS_TEXT}", (None, (PARIS,)), id="end marker missing"),
    pytest.param(f"{PARIS_TEXT}{END}", (None, (PARIS,)), id="start marker missing"),
    pytest.param(
        f"{START}[f(x='a{END}b')]{END}", (None, (("f", '{"x": "ab"}'),)), id="end markers anywhere are removed"
    ),
    pytest.param(f"{START}print('hi'){END}", (f"{START}print('hi'){END}", ()), id="code"),
    pytest.param(f"{START}\n{PARIS_TEXT}{END}", (f"{START}\n{PARIS_TEXT}{END}", ()), id="line break behind the marker"),
    pytest.param(f"Hm.{START}{PARIS_TEXT}{END}", (f"Hm.{START}{PARIS_TEXT}{END}", ()), id="text before the marker"),
    pytest.param("I look.\n" + PARIS_TEXT, ("I look.\n", (PARIS,)), id="list on the last line"),
    pytest.param(START, (START, ()), id="marker alone"),
    pytest.param("<|python", ("<|python", ()), id="half a marker"),
]


def _loose(message):
    return ((message[1] or "").strip(), message[2])


@pytest.mark.parametrize(("output", "expected"), WELL_FORMED)
def test_answers_alike_in_every_grouping(output, expected):
    run = runner()
    message = summary(run.message(output + "<eos>"))
    assert message == (None, *expected)
    for name, folded in run.folds(output + "<eos>").items():
        assert _loose(folded) == _loose(message), name


@pytest.mark.parametrize(("output", "expected"), LLAMA4)
def test_llama4_answers_alike_in_every_grouping(output, expected):
    run = runner("llama4_pythonic")
    message = summary(run.message(output + "<eos>"))
    assert message == (None, *expected)
    for name, folded in run.folds(output + "<eos>").items():
        assert _loose(folded) == _loose(message), name


@pytest.mark.parametrize("output", MALFORMED)
def test_a_malformed_list_is_text_unless_some_of_it_was_sent(output):
    run = runner()
    assert summary(run.message(output + "<eos>")) == (None, output, ())
    for name, (reasoning, content, calls) in run.folds(output + "<eos>").items():
        assert reasoning == ""
        assert bool(calls) != (content == output), name


def test_calls_are_sent_as_vllm_sends_them():
    """pythonic/noargs-first, grouping 1: a call once it is closed, strings as they come, "" behind the list."""
    run = runner()
    pieces = ["[", "noop", "(),", " get_weather", "(", "city", "='", "Par", "is", " ", "', n=", "3", ")", "]", ""]
    ids = run.vocabulary.spell(*pieces)
    deltas = run.deltas(ids)
    assert [each and (each.content, [(c.index, c.name, c.arguments) for c in each.calls]) for each in deltas] == [
        None,
        None,
        (None, [(0, "noop", "{}")]),
        None,
        None,
        None,
        (None, [(1, "get_weather", '{"city": "')]),
        (None, [(1, None, "Par")]),
        (None, [(1, None, "is")]),
        None,
        None,
        None,
        (None, [(1, None, ' ", "n": 3}')]),
        ("", []),
        ("", []),
    ]


def test_nothing_is_sent_for_text_behind_the_end_marker():
    """families/llama4_pythonic/text-after"""
    run = runner("llama4_pythonic")
    first, end, text = run.chunked(START + PARIS_TEXT, END, "\nOne")
    assert [(entry.name, entry.arguments) for entry in first.calls] == [PARIS]
    assert (end.content, text) == ("", None)


def test_numbers_are_never_corrupted():
    """pythonic/float-second-call: vLLM's stream says 31.05."""
    run = runner()
    ids = run.vocabulary.spell("[", "f(q='a=b=c')", ", g(", "r", "=", "3", "1", ".", "2", "5", ")]")
    deltas = [each.calls for each in run.deltas(ids) if each and each.calls]
    assert deltas == [
        [CallDelta(index=0, id=deltas[0][0].id, name="f", arguments='{"q": "a=b=c"}')],
        [CallDelta(index=1, id=deltas[1][0].id, name="g", arguments="{")],
        [CallDelta(index=1, arguments='"r": 3')],
        [CallDelta(index=1, arguments="1")],
        [CallDelta(index=1, arguments=".2")],
        [CallDelta(index=1, arguments="5")],
        [CallDelta(index=1, arguments="}")],
    ]


def test_the_stop_token_is_no_part_of_text_that_was_held_back():
    """pythonic/empty-list, grouping 1f: the host sends the stop token ahead of the finish reason."""
    run = runner()
    parser = run.plan.open(run.context)
    ids = run.ids("[]<eos>")
    deltas = [parser.feed([token_id], [run.vocabulary.text(token_id)], finished=False) for token_id in ids]
    deltas.append(parser.feed([], [], finished=True))
    assert fold(deltas) == ("", "[]", ())


def test_forced_choices_expect_json():
    assert summary(runner(tool_choice="required").message('[{"name": "noop", "parameters": {}}]'))[2] == (NOOP,)
    named = runner(tool_choice=NamedToolChoice("get_weather")).message('{"city": "Paris"}')
    assert summary(named) == (None, "", (("get_weather", '{"city": "Paris"}'),))


def test_without_tools_everything_is_text():
    run = runner(tool_choice="none")
    assert summary(run.message(PARIS_TEXT)) == (None, PARIS_TEXT, ())


def test_only_the_first_call_where_calls_are_not_parallel():
    run = runner(parallel_tool_calls=False)
    output = "[noop(), get_weather(city='Paris')]"
    assert summary(run.message(output))[2] == (NOOP,)
    assert set(run.folds(output).values()) == {("", "", (NOOP,))}


@settings(max_examples=150, deadline=None)
@given(call_lists.filter(lambda text: "(été=" not in text), st.integers(1, 9))
def test_any_list_is_read_as_python_reads_it(output, run):
    """In one go; a stream may have sent the first of two equal keys."""
    expected = calls_of(output)
    assert summary(runner(run=run).message(output))[1:] == ((None, expected) if expected else (output, ()))


@settings(max_examples=150, deadline=None)
@given(damaged_lists(), st.integers(1, 4), st.sampled_from(["pythonic", "llama4_pythonic"]))
def test_damage_never_raises_and_loses_no_text(output, run, parser):
    run = runner(parser, run=run)
    message = summary(run.message(output))
    assert message[2] or message[1] == (output or None)
    for folded in (fold(run.deltas(output, 1)), fold(run.deltas(output, 3, snapshots=True))):
        assert folded[2] or folded[1].strip() == output.strip()


@pytest.mark.parametrize(
    ("opening", "piece", "closing"),
    [
        pytest.param("[f(x='", "abc", "')]", id="string"),
        pytest.param("[f(x=[", "1, ", "1])]", id="list"),
        pytest.param("[f(x='", "   ", "')]", id="white space"),
        pytest.param("[f()]", " ab", "", id="text behind"),
        pytest.param("Hm.", "\n[f", "", id="lines that begin like lists"),
    ],
)
def test_work_and_state_are_bounded(opening, piece, closing):
    def seconds(count):
        run = runner()
        ids = run.vocabulary.spell(opening) + run.vocabulary.spell(piece) * count + run.vocabulary.spell(closing)
        start = time.process_time()
        run.deltas(ids)
        return time.process_time() - start

    seconds(100)
    assert seconds(10_000) < 25 * seconds(1_000) + 0.3


def test_the_snapshot_of_a_long_string_is_small():
    run = runner()
    parser = run.plan.open(run.context)
    for piece in ["[f(x='", *["abc"] * 1000]:
        parser.feed([5], [piece], finished=False)
    assert len(json.dumps(parser.snapshot())) < 1000
