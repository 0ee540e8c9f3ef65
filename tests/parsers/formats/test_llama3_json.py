"""Llama 3 and 4 JSON calls: whole answers, every grouping, one step a chunk, prose around calls, cut calls."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsers.formats.call_checks import check_anything, check_linear, check_says, loose
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool

TAG = "<|python_tag|>"
WEATHER = tool("get_weather", city={"type": "string"})


def runner(*, markers=(TAG, "<|eom|>"), parser="llama3_json", run=3, specials=("<eos>",), **fields):
    vocabulary = FakeVocabulary(markers, specials=specials, run=run)
    return Runner(vocabulary, plan_of(vocabulary, tools=parser), context_of(WEATHER, **fields))


PARIS_TEXT = '{"name": "get_weather", "parameters": {"city": "Paris", "days": 3}}'
PARIS = ("get_weather", '{"city": "Paris", "days": 3}')
PING_TEXT = '{"name": "ping", "parameters": {}}'
PING = ("ping", "{}")

WELL_FORMED = [
    pytest.param("Hello!", ("Hello!", ()), id="answer"),
    pytest.param("Use {x} and [y].\n- {z}", ("Use {x} and [y].\n- {z}", ()), id="braces in prose"),
    pytest.param('Like this:\n{\n  "a": 1\n}\nDone.', ('Like this:\n{\n  "a": 1\n}\nDone.', ()), id="JSON in prose"),
    pytest.param("[see] this", ("[see] this", ()), id="bracket"),
    pytest.param("[", ("[", ()), id="only a bracket"),
    pytest.param(PARIS_TEXT, (None, (PARIS,)), id="one call"),
    pytest.param(TAG + PARIS_TEXT, (None, (PARIS,)), id="tag"),
    pytest.param(f"{TAG} {PARIS_TEXT}<|eom|>", (None, (PARIS,)), id="tag, space, end of message"),
    pytest.param(f"{PARIS_TEXT}; {PING_TEXT}", (None, (PARIS, PING)), id="two calls"),
    pytest.param(f"{PARIS_TEXT};{PING_TEXT}", (None, (PARIS, PING)), id="bugs/llama3-semicolon-no-space"),
    pytest.param(f"{PARIS_TEXT}{PING_TEXT}", (None, (PARIS, PING)), id="no separator"),
    pytest.param(f"{PARIS_TEXT}\n{TAG}{PING_TEXT}", (None, (PARIS, PING)), id="tag between"),
    pytest.param(f"{PARIS_TEXT} and then {PING_TEXT} done.", (None, (PARIS, PING)), id="text between"),
    pytest.param(f"{PARIS_TEXT} That was {{tool}}", (None, (PARIS,)), id="bugs/llama3-trailing-prose-braces"),
    pytest.param(f"[{PARIS_TEXT}, {PING_TEXT}]", (None, (PARIS, PING)), id="list"),
    pytest.param(f"[ {PARIS_TEXT}]", (None, (PARIS,)), id="bugs/required-stream-text-added-twice"),
    pytest.param(f"Look:\n\n{PARIS_TEXT}", ("Look:\n\n", (PARIS,)), id="text before"),
    pytest.param(f"Sure. {TAG}{PARIS_TEXT}", ("Sure. ", (PARIS,)), id="text, then a tag"),
    pytest.param('{"name": "f", "arguments": {"a":1.50}}', (None, (("f", '{"a": 1.5}'),)), id="other key, compact"),
    pytest.param('{"parameters": {"name": "x"}, "name": "f"}', (None, (("f", '{"name": "x"}'),)), id="name last"),
    pytest.param('{"type": "function", "name": "f", "parameters": 7}', (None, (("f", "7"),)), id="number"),
    pytest.param('{"name": "f", "parameters": "{\\"a\\": 1}"}', (None, (("f", '{"a": 1}'),)), id="object in a string"),
    pytest.param(
        f'{{"name": "f", "parameters": {{"t": "{TAG} {{"}}}}',
        (None, (("f", f'{{"t": "{TAG} {{"}}'),)),
        id="tag in a string",
    ),
    pytest.param(
        '{"name": "f", "parameters": {"q": "\\u00e9\\ud83d\\ude00 \\/"}}',
        (None, (("f", '{"q": "é😀 /"}'),)),
        id="escapes",
    ),
]

NO_CALL = [
    pytest.param("{oops}", id="no JSON"),
    pytest.param('{"temperature": 21}', id="JSON answer"),
    pytest.param('{"name": "ping"}', id="no arguments, in one chunk"),
    pytest.param(f"{TAG}print(1)", id="code"),
    pytest.param(f"{{oops}} {PARIS_TEXT}", id="bad, then good"),
    pytest.param(f"a {{}} b {PARIS_TEXT}", id="object in prose, then good"),
    pytest.param('{"name": "f", "parameters": {"a": "x', id="cut"),
    pytest.param('{"name": "get_w', id="cut name"),
    pytest.param(f'{PARIS_TEXT}; {{"name": "f", "parameters": {{"a', id="second one cut"),
    pytest.param(f'{PARIS_TEXT}; {{"na', id="second one cut before its name"),
]


@pytest.mark.parametrize(("output", "expected"), WELL_FORMED)
def test_every_grouping_says_the_same(output, expected):
    check_says(runner(), output, *expected, exactly=False)


@pytest.mark.parametrize("output", NO_CALL)
def test_without_a_call_the_text_is_the_answer(output):
    assert summary(runner().message(output + "<eos>")) == (None, output, ())


@pytest.mark.parametrize("output", ["{oops}", '{"temperature": 21}', f"{TAG}print(1)", '{"name": "get_w'])
def test_what_never_was_a_call_streams_as_text(output):
    assert set(runner().folds(output + "<eos>").values()) == {("", output, ())}


def test_leading_white_space_does_not_hide_a_call():
    run = runner()
    assert summary(run.message(f"\n\n {PARIS_TEXT}")) == (None, None, (PARIS,))
    assert set(map(loose, run.folds(f"\n\n {PARIS_TEXT}").values())) == {("", "", (PARIS,))}


def test_a_call_within_a_line_is_found_only_in_the_whole_answer():
    run = runner()
    output = f"Ok. {PARIS_TEXT}; {PING_TEXT}"
    assert summary(run.message(output)) == (None, None, (PARIS, PING))
    assert fold(run.deltas(output)) == ("", output, ())


def sent(run, *pieces, finished=True):
    """What each piece sends, in short: content, name, or arguments."""
    ids = run.vocabulary.spell(*pieces)
    parser = run.plan.open(run.context)
    found = []
    for position, token_id in enumerate(ids):
        last = finished and position == len(ids) - 1
        delta = parser.feed([token_id], [run.vocabulary.text(token_id)], finished=last)
        entries = [(entry.name, entry.arguments) for entry in delta.calls] if delta else []
        found.append(entries or (delta.content if delta else None))
    return found


def test_one_step_a_chunk():
    pieces = (
        '{"na',
        'me": "f"',
        ', "parameters": {"a',
        '": "x',
        "y",
        '", "n": 1',
        "2",
        "}",
        "}",
        ";",
        ' {"',
        'name": "g"',
    )
    assert sent(runner(), *pieces, finished=False) == [
        None,
        [("f", None)],
        None,
        None,
        [(None, '{"a": "x')],
        [(None, 'y"')],
        [(None, ', "n": 1')],
        None,
        [(None, "2}")],
        [(None, "")],
        [(None, "")],
        [("g", None)],
    ]


def test_the_end_sends_what_is_left():
    assert sent(runner(), PARIS_TEXT) == [[PARIS]]
    assert sent(runner(), '{"name": "ping", "parameters": {}', "}") == [None, [PING]]
    assert sent(runner(), f"{PARIS_TEXT}; {PING_TEXT}; {PARIS_TEXT}") == [
        [(PARIS[0], None), (None, PARIS[1]), (PING[0], None), (None, PING[1]), PARIS]
    ]


def test_a_cut_call_is_not_closed():
    run = runner()
    output = '{"name": "f", "parameters": {"a": "x", "b": "yz'
    assert fold(run.deltas(output)) == ("", "", (("f", '{"a": "x", "b": "yz'),))


def test_prose_passes_chunk_by_chunk():
    assert sent(runner(), "Use", " {", "x", "}", "") == ["Use", " {", "x", "}", ""]


def test_empty_output():
    run = runner()
    assert summary(run.message("<eos>")) == (None, "", ())
    assert [delta.content for delta in run.deltas("<eos>")] == [""]


def test_a_vocabulary_without_the_tag_is_served():
    run = runner(markers=(), parser="llama4_json")
    assert summary(run.message(PARIS_TEXT)) == (None, None, (PARIS,))


def test_python_start_is_a_tag():
    run = runner(markers=("<|python_start|>", "<|python_end|>"), parser="llama4_json")
    output = f"<|python_start|>{PARIS_TEXT}<|python_end|>"
    assert summary(run.message(output)) == (None, None, (PARIS,))
    assert set(run.folds(output).values()) == {("", "", (PARIS,))}


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                TAG,
                PARIS_TEXT,
                PING_TEXT,
                "{",
                "}",
                '"',
                '{"name": "f", ',
                '"parameters": ',
                "\\",
                ", ",
                "\n",
                ";",
                "[",
                " é",
                "1",
            ]
        ),
        max_size=12,
    ),
    st.integers(1, 6),
)
def test_never_raises_and_what_is_called_is_json(parts, size):
    check_anything(runner(), "".join(parts), size)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.dictionaries(st.text('ab"\\ é{}', max_size=4), st.text(max_size=9) | st.integers() | st.none()),
        min_size=1,
        max_size=3,
    ),
    st.integers(1, 7),
)
def test_any_arguments_in_any_grouping(calls, size):
    run = runner(run=2)
    output = "; ".join(json.dumps({"name": "f", "parameters": arguments}) for arguments in calls)
    expected = tuple(("f", json.dumps(arguments, ensure_ascii=False)) for arguments in calls)
    assert summary(run.message(output)) == (None, None, expected)
    assert fold(run.deltas(output, size)) == ("", "", expected)


def test_work_and_state_do_not_grow_with_the_call():
    check_linear(runner, lambda run: run.vocabulary.spell('{"name": "f", "parameters": {"a": "'), keeps=False)
