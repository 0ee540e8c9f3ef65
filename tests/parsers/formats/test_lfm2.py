"""LFM2: Python lists in markers, the slips these models make, text around and repeated lists."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.exceptions import ParserConfigurationError
from tests.parsers.python_reference import damaged_lists
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool

WEATHER = tool("get_weather", city={"type": "string"})
START, END = "<|tool_call_start|>", "<|tool_call_end|>"
PARIS_TEXT, PARIS = "[get_weather(city='Paris')]", ("get_weather", '{"city": "Paris"}')
NOOP = ("noop", "{}")


def runner(*, run=3, **fields):
    vocabulary = FakeVocabulary((START, END), run=run)
    return Runner(vocabulary, plan_of(vocabulary, tools="lfm2"), context_of(WEATHER, **fields))


def call(text):
    return f"{START}{text}{END}"


def one(arguments):
    return (None, (("f", arguments),))


WELL_FORMED = [
    pytest.param("Hello [1] <b>", ("Hello [1] <b>", ()), id="answer"),
    pytest.param(call(PARIS_TEXT), (None, (PARIS,)), id="one call"),
    pytest.param(call(" [noop(), get_weather(city='Paris')]\n"), (None, (NOOP, PARIS)), id="two calls, white space"),
    pytest.param(START + PARIS_TEXT, (None, (PARIS,)), id="end marker missing"),
    pytest.param(f"Hm. {call(PARIS_TEXT)}", ("Hm.", (PARIS,)), id="text before"),
    pytest.param(f"{call(PARIS_TEXT)}\nDone.", ("Done.", (PARIS,)), id="text behind"),
    pytest.param(call("[f('a', 1)]"), one("{}"), id="positional arguments are ignored, as vLLM ignores them"),
    pytest.param(call("[f(x='a\n\tb\0')]"), one('{"x": "a\\n\\tb\\u0000"}'), id="control characters in a string"),
    pytest.param(call("[f(x=07, y=[00, 007, 1.07])]"), one('{"x": 7, "y": [0, 7, 1.07]}'), id="leading zeros"),
    pytest.param(call("[f(from='a', in=3)]"), one('{"from": "a", "in": 3}'), id="arguments called like keywords"),
    pytest.param(call("[f(x='Martha's', y=1)]"), one('{"x": "Martha\'s", "y": 1}'), id="apostrophe"),
    pytest.param(call("[f(x='p(\"a\", 'b')')]"), one('{"x": "p(\\"a\\", \'b\')"}'), id="quotes within quotes"),
    pytest.param(call("[f(x='ab' 'cd')]"), one('{"x": "abcd"}'), id="strings side by side"),
    pytest.param(call(f"[f(x='a{END}b')]"), one(f'{{"x": "a{END}b"}}'), id="a marker in a string is data"),
    pytest.param(f"{call('[noop()]')}[noop()]{END}Done.", ("Done.", (NOOP,)), id="the list once more"),
    pytest.param(f"{call('[noop()]')}[noop()]", ("[noop()]", (NOOP,)), id="once more, but without end marker"),
    pytest.param(f"{call('[noop()]')}<b>bold</b>", ("<b>bold</b>", (NOOP,)), id="markup behind"),
    pytest.param(f"{call('[noop()]')}\n [1] source", ("[1] source", (NOOP,)), id="bracket behind"),
    pytest.param(f"{call('[noop()]')} and {call(PARIS_TEXT)}", ("and", (NOOP, PARIS)), id="two blocks, text between"),
    pytest.param(f"a{END} b", (f"a{END} b", ()), id="end marker alone"),
]

MALFORMED = [
    pytest.param(call("[]"), id="empty list"),
    pytest.param(call('{"name": "f"}'), id="JSON"),
    pytest.param(call("[f(x='a')\nnoop()]"), id="comma missing"),
    pytest.param(call("[f(x='a'), g(y=b'x')]"), id="bytes"),
    pytest.param(call("[f(x='it's', y='b')]"), id="more than one reading"),
    pytest.param(call("[f(from='it's')]"), id="two slips in one argument"),
    pytest.param(START + call("[noop()]"), id="start marker twice"),
    pytest.param(START, id="start marker alone"),
    pytest.param(f"Hm {START}[f(x='cut", id="cut in a string"),
    pytest.param(f"{call('[1]')} then {call(PARIS_TEXT)}", id="a list behind a malformed one"),
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


@pytest.mark.parametrize("output", MALFORMED)
def test_a_malformed_list_is_text_unless_some_of_it_was_sent(output):
    run = runner()
    assert summary(run.message(output + "<eos>")) == (None, output, ())
    for name, (_, content, calls) in run.folds(output + "<eos>").items():
        assert bool(calls) != (content == output), name


def test_text_before_and_behind_stands_on_lines_of_its_own():
    assert summary(runner().message(f"Hm. {call(PARIS_TEXT)} Done.")) == (None, "Hm.\nDone.", (PARIS,))


def test_the_end_of_a_string_waits_for_the_next_character():
    """lfm2/apostrophe, grouping 1."""
    run = runner()
    pieces = ["[f", "(x=", "'", "Martha", "'", "s", "', ", "y=1", ")]"]
    ids = run.ids(START) + run.vocabulary.spell(*pieces) + run.ids(END + "<eos>")
    assert [each and (each.content, [(c.name, c.arguments) for c in each.calls]) for each in run.deltas(ids)] == [
        None,
        None,
        None,
        (None, [("f", '{"x": "')]),
        (None, [(None, "Martha")]),
        None,
        None,
        None,
        None,
        None,
        (None, [(None, '\'s", "y": 1}')]),
        ("", []),
    ]


def test_the_stop_token_behind_a_call_is_not_shown():
    """lfm2/noargs, grouping 1f: the host sends it ahead of the finish reason."""
    run = runner()
    parser = run.plan.open(run.context)
    ids = run.ids(call("[noop()]") + "<eos>")
    deltas = [parser.feed([token_id], [run.vocabulary.text(token_id)], finished=False) for token_id in ids]
    deltas.append(parser.feed([], [], finished=True))
    assert fold(deltas) == ("", "", (NOOP,))


def test_a_tokenizer_without_the_markers_is_refused():
    with pytest.raises(ParserConfigurationError, match="tool_call_start"):
        plan_of(FakeVocabulary((END,)), tools="lfm2")


@settings(max_examples=150, deadline=None)
@given(damaged_lists(), st.sampled_from(["", "Hm ", "\n"]), st.sampled_from(["", " Done", "[x]"]))
def test_damage_never_raises_and_loses_no_text(text, before, behind):
    run = runner()
    output = before + call(text) + behind
    message = summary(run.message(output))
    assert message[2] or message[1] == output
    for lens in (1, 3):
        folded = fold(run.deltas(output, lens, snapshots=True))
        assert folded[2] or folded[1] == output


@pytest.mark.parametrize(
    ("opening", "piece"),
    [
        pytest.param("[f(x='", "abc", id="string"),
        pytest.param("[f(x='it's", " it's', ", id="a string that ends in its midst"),
        pytest.param("[f()]", " ", id="white space"),
        pytest.param("[f(x=[", "07, ", id="numbers"),
    ],
)
def test_work_is_linear(opening, piece):
    def seconds(count):
        run = runner()
        ids = run.ids(START) + run.vocabulary.spell(opening) + run.vocabulary.spell(piece) * count + run.ids(END)
        start = time.process_time()
        run.deltas(ids)
        return time.process_time() - start

    seconds(100)
    assert seconds(8_000) < 25 * seconds(800) + 0.3
