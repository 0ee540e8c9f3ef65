"""Answers in which no format's calls are looked for: plain text, and the JSON of forced tool choices (json 0.6)."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.context import NamedToolChoice
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool

WEATHER = tool("get_weather", city={"type": "string"})
NAMED = NamedToolChoice("get_weather")


def runner(choice, *, run=3):
    vocabulary = FakeVocabulary(run=run)
    return Runner(vocabulary, plan_of(vocabulary, tools="pythonic"), context_of(WEATHER, tool_choice=choice))


PARIS_TEXT = '{"name": "get_weather", "parameters": {"city": "Paris"}}'
PARIS = ("get_weather", '{"city": "Paris"}')
PING_TEXT = '{"parameters":{} , "name": "ping"}'
PING = ("ping", "{}")

REQUIRED = [
    pytest.param(f"[{PARIS_TEXT}]", (PARIS,), id="one"),
    pytest.param(f" [ {PARIS_TEXT},\n{PING_TEXT} ] ", (PARIS, PING), id="two, name last"),
    pytest.param('[{"name": "f"}, {"name": "g", "parameters": null}]', (("f", "null"), ("g", "null")), id="null"),
    pytest.param('[{"name": "f", "parameters": {"a": "]}\\""}, "x": [1]}]', (("f", '{"a": "]}\\""}'),), id="brackets"),
    pytest.param("[]", (), id="none"),
    pytest.param(" \n", (), id="blank"),
]

NOT_REQUIRED = [
    pytest.param(f"[{PARIS_TEXT}] bye", id="text behind"),
    pytest.param(f"[{PARIS_TEXT}", id="cut"),
    pytest.param(f"[{PARIS_TEXT},]", id="comma"),
    pytest.param('[{"name": "f", "parameters": 5}]', id="number"),
    pytest.param('[{"parameters": {}}]', id="no name"),
    pytest.param("[get_weather(city='Paris')]", id="another format"),
    pytest.param(PARIS_TEXT, id="no array"),
    pytest.param("<tool>", id="markup"),
]


@pytest.mark.parametrize(("output", "calls"), REQUIRED)
def test_required(output, calls):
    run = runner("required")
    assert summary(run.message(output + "<eos>")) == (None, "", calls)
    assert set(run.folds(output + "<eos>").values()) == {("", "", calls)}


@pytest.mark.parametrize("output", NOT_REQUIRED)
def test_one_error_rejects_the_whole_array(output):
    run = runner("required")
    assert summary(run.message(output)) == (None, "", ())
    assert {content for _, content, _ in run.folds(output).values()} == {""}


def test_prose_is_not_lost():
    """bugs/finish-required-without-call@json-forced"""
    run = runner("required")
    assert summary(run.message("Hello! [1]<eos>")) == (None, "Hello! [1]", ())
    assert set(run.folds("Hello! [1]<eos>").values()) == {("", "Hello! [1]", ())}


def test_parameters_are_sent_as_they_come():
    """pythonic/tc-required-json"""
    run = runner("required")
    ids = run.vocabulary.spell('[{"name": "f"', ', "parameters":', ' {"', "a", '": "x\\', 'n"', "}", "}", "]")
    found = [delta and [(entry.name, entry.arguments) for entry in delta.calls] for delta in run.deltas(ids)]
    assert found == [
        None,
        None,
        [("f", '{"')],
        [(None, "a")],
        [(None, '": "x\\')],
        [(None, 'n"')],
        [(None, "}")],
        None,
        None,
    ]


def test_named_takes_everything_as_arguments():
    """pythonic/tc-named-json, pythonic/tc-named-native"""
    run = runner(NAMED)
    for output in ('{"city": "Paris"}', " [get_weather()] "):
        assert summary(run.message(output + "<eos>")) == (None, "", (("get_weather", output),))
        assert set(run.folds(output + "<eos>").values()) == {("", "", (("get_weather", output),))}


def test_named_sends_an_entry_with_every_chunk():
    run = runner(NAMED, run=9)
    found = [[(entry.name, entry.arguments) for entry in delta.calls] for delta in run.deltas('{"city": "Paris"}<eos>')]
    assert found == [[("get_weather", '{"city": ')], [(None, '"Paris"}')], [(None, "")]]


def test_named_and_blank_is_no_call():
    assert summary(runner(NAMED).message(" \n<eos>")) == (None, "", ())


def test_none_passes_everything():
    run = runner("none")
    assert summary(run.message("[f(a=1)]<eos>")) == (None, "[f(a=1)]", ())
    assert [delta and delta.content for delta in run.deltas("[f(a=1)]<eos>")] == ["[f(", "a=1", ")]", None]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"name": st.text(max_size=5), "parameters": st.none() | st.dictionaries(st.text(max_size=3), st.integers())}
        ),
        max_size=4,
    ),
    st.integers(1, 6),
)
def test_any_array_in_any_grouping(calls, size):
    run = runner("required")
    output = json.dumps(calls, ensure_ascii=False)
    expected = tuple((call["name"], json.dumps(call["parameters"], ensure_ascii=False)) for call in calls)
    assert summary(run.message(output)) == (None, "", expected)
    assert fold(run.deltas(output, size, snapshots=True)) == ("", "", expected)


@settings(max_examples=150, deadline=None)
@given(st.text('[]{}",: nameprtsx\\1', max_size=40), st.integers(1, 6))
def test_never_raises(output, size):
    run = runner("required")
    calls = summary(run.message(output))[2]
    assert fold(run.deltas(output, size))[2][: len(calls)] == calls
