"""ERNIE 4.5: calls as JSON in tags, an answer in tags of its own, thoughts."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool

START, END, ANSWER, ANSWER_END = "<tool_call>", "</tool_call>", "<response>", "</response>"
TAGS = (START, END, ANSWER, ANSWER_END, "<think>", "</think>")
PARIS_TEXT = f'{START}\n{{"name": "get_weather", "arguments": {{"city":"Paris"}}}}\n{END}'
PARIS = ("get_weather", '{"city": "Paris"}')
NOOP_TEXT, NOOP = f'{START}{{"name": "noop"}}{END}', ("noop", "{}")


def runner(*, run=3, markers=TAGS, reasoning=None, tools="ernie45"):
    vocabulary = FakeVocabulary(markers, run=run)
    context = context_of(tool("get_weather")) if tools else context_of()
    return Runner(vocabulary, plan_of(vocabulary, tools=tools, reasoning=reasoning), context)


CALLS = [
    pytest.param("Hello\n\nthere\n", ("Hello\n\nthere\n", ()), id="answer"),
    pytest.param("\n\nHello", ("\n\nHello", ()), id="line breaks first"),
    pytest.param(f"{PARIS_TEXT}\n", (None, (PARIS,)), id="one call"),
    pytest.param(f"\n\n{NOOP_TEXT}\n{PARIS_TEXT}\n", (None, (NOOP, PARIS)), id="two calls, white space around"),
    pytest.param(f"Hm.{NOOP_TEXT} and {PARIS_TEXT}bye", ("Hm. and bye", (NOOP, PARIS)), id="text around"),
    pytest.param(f'{START}{{"arguments": null}}{END}', (None, (("", "null"),)), id="no name, null arguments"),
    pytest.param(
        f'{START}{{"name": "f", "arguments": {{"a": NaN}}}}{END}',
        (None, (("f", '{"a": "NaN"}'),)),
        id="what is no JSON",
    ),
    pytest.param(
        f'{START}{{"name": "f", "arguments": {{"a": "x {END} \\" {START}"}}}}{END}',
        (None, (("f", f'{{"a": "x {END} \\" {START}"}}'),)),
        id="tags in a string are data",
    ),
    pytest.param(f"{START}{NOOP_TEXT}", (None, (NOOP,)), id="tag twice"),
    pytest.param(NOOP_TEXT.removesuffix(END), (None, (NOOP,)), id="closing tag missing"),
    pytest.param(f"Hi\n{START}", ("Hi", ()), id="cut behind the tag"),
    pytest.param(f'{START}{{"name": "no', (None, ()), id="cut in the call"),
    pytest.param(f"{START}{{bad}}{END}\n{NOOP_TEXT}", (f"{START}{{bad}}{END}", (NOOP,)), id="malformed, then a call"),
    pytest.param(f'{START}{{"name": 5}}{END} x', (f'{START}{{"name": 5}}{END} x', ()), id="name is no string"),
    pytest.param(f"{START}prose{END}", (f"{START}prose{END}", ()), id="prose in the tags"),
]


def _loose(message):
    return ((message[0] or "").strip(), (message[1] or "").strip(), message[2])


@pytest.mark.parametrize("markers", [TAGS, ()], ids=["tokens", "text"])
@pytest.mark.parametrize(("output", "expected"), CALLS)
def test_answers_alike_in_every_grouping(output, expected, markers):
    run = runner(markers=markers)
    message = summary(run.message(output + "<eos>"))
    assert message == (None, *expected)
    for name, folded in run.folds(output + "<eos>").items():
        assert _loose(folded) == _loose(message), name


@pytest.mark.parametrize("pieces", [("It is ", START, " there"), (f"{START}x{END}",)], ids=["in prose", "in one token"])
def test_a_tag_that_has_a_token_is_that_token(pieces):
    """families/ernie45-tool/marker-spelled"""
    run = runner()
    ids = run.vocabulary.spell(*pieces)
    assert summary(run.message(ids)) == (None, "".join(pieces), ())
    assert {folded[1:] for folded in run.folds(ids).values()} == {("".join(pieces), ())}


def test_a_spelled_tag_in_a_call_is_data():
    run = runner()
    ids = [*run.ids(START + '{"name": "noop", '), *run.vocabulary.spell(END), *run.ids(f'"arguments": {{}}}}{END}')]
    content, calls = summary(run.message(ids))[1:]
    assert (content, calls) == (START + '{"name": "noop", ' + END + '"arguments": {}}' + END, ())


def test_a_call_is_sent_whole_and_one_a_chunk():
    run = runner()
    ids = run.ids(PARIS_TEXT + NOOP_TEXT + "<eos>")
    deltas = run.deltas(ids, [len(ids) - 2, 1, 1])
    assert [each and [(call.name, call.arguments) for call in each.calls] for each in deltas] == [[PARIS], [NOOP], None]


ANSWERS = [
    pytest.param("Hm.\n</think>\nHello", ("Hm.\n", "\nHello"), id="no tags"),
    pytest.param(f"<think>Hm.</think>\n\n{ANSWER}\nHi\n{ANSWER_END}\n", ("Hm.", "\nHi\n"), id="answer in tags"),
    pytest.param(
        f"</think>{ANSWER}a{ANSWER_END} and {ANSWER}b", ("", "a and b"), id="tags are dropped wherever they stand"
    ),
    pytest.param(f"Hm</think>\n{ANSWER_END} x", ("Hm", f"\n{ANSWER_END} x"), id="closing tag alone"),
    pytest.param(f"a {ANSWER}b{ANSWER_END}</think>c", (f"a {ANSWER}b{ANSWER_END}", "c"), id="tags in thoughts"),
    pytest.param("Hm", ("Hm", None), id="never closed"),
]


@pytest.mark.parametrize("tools", [None, "ernie45"])
@pytest.mark.parametrize(("output", "expected"), ANSWERS)
def test_thoughts_and_answers_are_told_alike_in_every_grouping(output, expected, tools):
    run = runner(reasoning="ernie45", tools=tools)
    message = summary(run.message(output + "<eos>"))
    assert message == (*expected, ())
    for name, folded in run.folds(output + "<eos>").items():
        assert _loose(folded) == _loose(message), name


def test_the_answers_tags_are_dropped_without_thoughts_too():
    run = runner()
    output = f"{ANSWER}\nHello\n{ANSWER_END}\n<eos>"
    assert summary(run.message(output)) == (None, "\nHello\n", ())
    assert {folded[1].strip() for folded in run.folds(output).values()} == {"Hello"}


def test_calls_follow_the_thoughts():
    run = runner(reasoning="ernie45")
    output = f"Hm.\n</think>\n\n{PARIS_TEXT}\n<eos>"
    assert summary(run.message(output)) == ("Hm.\n", None, (PARIS,))
    assert {_loose(folded) for folded in run.folds(output).values()} == {("Hm.", "", (PARIS,))}


def test_the_stop_token_behind_a_call_is_not_shown():
    """ernie45-tool/one, grouping 1f: the host sends it ahead of the finish reason."""
    run = runner()
    parser = run.plan.open(run.context)
    ids = run.ids(NOOP_TEXT + "\n<eos>")
    deltas = [parser.feed([token_id], [run.vocabulary.text(token_id)], finished=False) for token_id in ids]
    assert fold([*deltas, parser.feed([], [], finished=True)]) == ("", "", (NOOP,))


@pytest.mark.parametrize(
    ("output", "content"),
    [
        (f"{START}{END}{START}{ANSWER_END}", f"{START}{END}"),
        (f"{START}{END}x{START}{ANSWER_END}", f"{START}{END}x"),
        (f"{START}{END}{START}<eos>", f"{START}{END}"),
    ],
)
def test_what_stands_in_a_cut_call_is_dropped_with_it(output, content):
    run = runner()
    assert summary(run.message(output)) == (None, content, ())
    for lens in (1, 2, 3):
        assert fold(run.deltas(output, lens, snapshots=True)) == ("", content, ())


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from([*TAGS, '{"name": "f"}', "{", "}", '"', "\\", "x", " ", "\n", "<"]), max_size=12))
def test_anything_is_read_alike_in_any_grouping(pieces):
    run = runner()
    output = "".join(pieces)
    _, content, calls = summary(run.message(output))
    for lens in (1, 2):
        folded = fold(run.deltas(output, lens, snapshots=True))
        assert ("".join(folded[1].split()), folded[2]) == ("".join((content or "").split()), calls)


@pytest.mark.parametrize("piece", ["abc", '"', "{", "\\", "<", NOOP_TEXT])
def test_work_is_linear(piece):
    def seconds(count):
        run = runner()
        ids = run.ids(f'{START}{{"a": "') + run.ids(piece) * count
        start = time.process_time()
        run.deltas(ids)
        return time.process_time() - start

    seconds(50)
    assert seconds(4_000) < 25 * seconds(400) + 0.3
