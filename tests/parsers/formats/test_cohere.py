"""Command 3 and 4: modes, citations and actions."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.events import Citation
from parsers.formats.cohere import MARKERS_4
from tests.parsers.support import FakeVocabulary, Runner, context_of, plan_of, summary, tool

WEATHER = tool("get_weather", city={"type": "string"})
THINK = "<|START_THINKING|>Plan.<|END_THINKING|>"


def action(*elements):
    return f"<|START_ACTION|>[\n    {', '.join(elements)}\n]<|END_ACTION|>"


def element(call_id='"tool_call_id": "0", ', parameters='"parameters": {"city": "Paris"}'):
    return f'{{{call_id}"tool_name": "get_weather", {parameters}}}'


def runner(name="cohere_command3", *, request=(WEATHER,), **fields):
    vocabulary = FakeVocabulary(tuple(MARKERS_4), specials=("<eos>",))
    return Runner(vocabulary, plan_of(vocabulary, tools=name, reasoning=name), context_of(*request, **fields))


PARIS = ("get_weather", '{"city": "Paris"}')
CASES = [
    pytest.param(f"{THINK}<|START_RESPONSE|>Hello!<|END_RESPONSE|><eos>", ("Plan.", "Hello!", ()), id="answer"),
    pytest.param(THINK + action(element()), ("Plan.", None, (PARIS,)), id="action"),
    pytest.param(THINK + action(element(), element()), ("Plan.", None, (PARIS, PARIS)), id="two actions"),
    pytest.param(action(element(call_id="")), (None, None, (PARIS,)), id="no ID"),
    pytest.param(
        action('{"parameters": {"city": "Paris"}, "tool_name": "get_weather", "tool_call_id": "0"}'),
        (None, None, (PARIS,)),
        id="parameters first",
    ),
    pytest.param(
        action(element(parameters='"parameters": {}')), (None, None, (("get_weather", "{}"),)), id="no parameters"
    ),
    pytest.param(action(element(parameters='"parameters": null')), (None, None, (("get_weather", "{}"),)), id="null"),
    pytest.param(
        action(element(parameters='"parameters": {\n            "city": "Paris"\n        }')),
        (None, None, (("get_weather", '{\n    "city": "Paris"\n}'),)),
        id="layout is not part of the arguments",
    ),
    pytest.param(
        f"{THINK}<|START_RESPONSE|>It is <co>warm</co: 0:[0]> here.<|END_RESPONSE|>",
        ("Plan.", "It is warm here.", ()),
        id="citation",
    ),
    pytest.param("a <co b < c", (None, "a <co b < c", ()), id="no citation"),
    pytest.param("A <co>open", (None, "A open", ()), id="citation never closed"),
    pytest.param("<|START_THINKING|>\n Plan. \n<|END_THINKING|>\nA ", ("Plan.", "\nA", ()), id="white space"),
    pytest.param(
        action(element(parameters='"parameters": {"city": "a <|START_ACTION|>b"}')),
        (None, None, (("get_weather", '{"city": "a b"}'),)),
        id="action marker in arguments",
    ),
    pytest.param("Text<|END_RESPONSE|>ignored", (None, "Text", ()), id="text behind the answer"),
    pytest.param(
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Pa',
        (None, None, (("get_weather", '{"city": "Pa'),)),
        id="cut arguments",
    ),
    pytest.param('<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "get_', (None, None, ()), id="cut name"),
]


@pytest.mark.parametrize(("output", "expected"), CASES)
def test_one_shot(output, expected):
    assert summary(runner().message(output)) == expected


@pytest.mark.parametrize(("output", "expected"), CASES)
def test_every_grouping_folds_to_the_one_shot_answer(output, expected):
    assert set(runner().folds(output).values()) == {(expected[0] or "", expected[1] or "", expected[2])}


def test_command_4_begins_in_its_thoughts():
    run = runner("cohere_command4")
    assert summary(run.message("Plan.<|END_THINKING|><|START_TEXT|>Hi<|END_TEXT|>")) == ("Plan.", "Hi", ())


def test_calls_keep_the_models_ids():
    [call] = runner().message(action(element())).calls
    assert call.id == "0"


def test_citations_are_streamed():
    deltas = runner().deltas("It is <co>warm</co: 0:[0]> here.")
    found = [citation for delta in deltas if delta for citation in delta.citations]
    assert found == [Citation(start=6, end=10, text="warm", type="TEXT_CONTENT")]


def test_calls_are_dropped_when_none_are_wanted():
    run = runner(tool_choice="none")
    assert summary(run.message(THINK + action(element()))) == ("Plan.", None, ())


PARTS = [
    *MARKERS_4,
    "<co>",
    "</co: ",
    ">",
    "[",
    "{",
    "}",
    '"tool_name": ',
    '"f"',
    ", ",
    '"parameters": ',
    '"a": 1',
    "\\",
    "x",
    " ",
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=20))
def test_no_mixture_of_markers_raises(parts):
    run = runner()
    run.folds("".join(parts))
    run.message("".join(parts))


def test_command_4_keeps_white_space_in_front_of_the_first_text():
    run = runner("cohere_command4")
    assert summary(run.message("  Plan.")) == ("  Plan.", None, ())
    assert summary(run.message("<|START_ACTION|>[]<|END_THINKING|>  A")) == (None, "  A", ())
