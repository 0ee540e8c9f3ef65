"""Gemma 4: the thoughts' channel and the notation of calls."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsers.support import FakeVocabulary, Runner, context_of, plan_of, summary, tool

MARKERS = ("<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", '<|"|>', "<|turn>")
QUOTE = '<|"|>'
OBJECT = {"type": "object", "properties": {"units": {"type": "array", "items": {"type": "integer"}}}}
WEATHER = tool("get_weather", city={"type": "string"}, days={"type": "integer"}, opts=OBJECT)


def runner(*, tools="gemma4", reasoning="gemma4", request=(WEATHER,), prompt=None, **fields):
    vocabulary = FakeVocabulary(MARKERS)
    plan = plan_of(vocabulary, tools=tools, reasoning=reasoning)
    return Runner(vocabulary, plan, context_of(*request, **fields), vocabulary.encode(prompt) if prompt else None)


def quoted(text):
    return f"{QUOTE}{text}{QUOTE}"


def call(arguments, name="call:get_weather"):
    return f"<|tool_call>{name}{{{arguments}}}<tool_call|>"


CASES = [
    pytest.param("<|channel>thought\nT<channel|>Hello!<eos>", ("T", "Hello!", ()), id="thoughts and answer"),
    pytest.param("thought\nT<channel|>Hello!", ("T", "Hello!", ()), id="channel marker missing"),
    pytest.param("thoughtful", (None, "thoughtful", ()), id="no channel after all"),
    pytest.param("<|channel>thought<channel|>A", (None, "A", ()), id="no thoughts"),
    pytest.param(call(f"city:{quoted('Paris')},days:3"), (None, None, ('{"city": "Paris", "days": 3}',)), id="call"),
    pytest.param(call(""), (None, None, ("{}",)), id="no arguments"),
    pytest.param(
        call(f"city:{quoted('a, b: {c}')},days:x"),
        (None, None, ('{"city": "a, b: {c}", "days": "x"}',)),
        id="data is data",
    ),
    pytest.param(
        call(f"opts:{{units:[1,2],mode:{quoted('}')}}},days:1"),
        (None, None, ('{"opts": {"units": [1, 2], "mode": "}"}, "days": 1}',)),
        id="containers",
    ),
    pytest.param(call('"city": "Paris", "days": 3'), (None, None, ('{"city": "Paris", "days": 3}',)), id="JSON"),
    pytest.param(
        call(f"city:rain in Oslo{QUOTE}"), (None, None, ('{"city": "rain in Oslo"}',)), id="delimiter missing"
    ),
    pytest.param(call("days:3", name=":get_weather"), (None, None, ('{"days": 3}',)), id="prefix cut short"),
    pytest.param(call("x:1", name="get_weather"), (None, "<|tool_call>get_weather{x:1}", ()), id="no call"),
    pytest.param(f"<|tool_call>call:get_weather{{city:{QUOTE}Par", (None, None, ('{"city": "Par"}',)), id="cut"),
]


@pytest.mark.parametrize(("output", "expected"), CASES)
def test_one_shot(output, expected):
    reasoning, content, calls = summary(runner().message(output))
    assert (reasoning, content, tuple(arguments for _, arguments in calls)) == expected


@pytest.mark.parametrize(("output", "expected"), CASES)
def test_every_grouping_folds_to_the_one_shot_answer(output, expected):
    folds = {(r, c, tuple(arguments for _, arguments in calls)) for r, c, calls in runner().folds(output).values()}
    assert folds == {(expected[0] or "", expected[1] or "", expected[2])}


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [("<|turn>", (None, "A", ())), ("<|turn><|channel>", ("A", None, ())), ("<|channel>x<channel|>", (None, "A", ()))],
)
def test_the_prompt_decides_where_the_output_starts(prompt, expected):
    assert summary(runner(prompt=prompt).message("A")) == expected


def test_a_repeated_key_has_its_last_value():
    run = runner(reasoning=None)
    output = call("days:1,days:2")
    assert run.message(output).calls[0].arguments == '{"days": 2}'


@pytest.mark.parametrize("value", [quoted("x" * 30000), "[" + "1," * 15000 + "1]", '"' + "x" * 30000 + '"'])
def test_long_values_cost_linear_time(value):
    def seconds(text):
        run = runner(reasoning=None)
        ids = run.ids(text)
        began = time.process_time()
        run.deltas(ids)
        return time.process_time() - began

    seconds(call("days:1"))
    short = call(f"opts:{value[: len(value) // 10]}{value[-8:]}")
    assert seconds(call(f"opts:{value}")) < 60 * max(seconds(short), 0.001)


PARTS = [*MARKERS, "call:", "f", "{", "}", "[", "]", ":", ",", "a", '"', "thought", "\n", " ", "<eos>"]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=25))
def test_no_mixture_of_markers_raises_or_depends_on_the_grouping(parts):
    run = runner()
    assert len(set(run.folds("".join(parts)).values())) == 1
    run.message("".join(parts))


def test_the_beginning_of_a_delimiter_waits_behind_white_space_too():
    deltas = runner().chunked("<|tool_call>", "call:", "get_weather{", f"city:{QUOTE}", "a", " < ", "b", QUOTE, "}")
    sent = "".join(entry.arguments or "" for delta in deltas[:6] if delta for entry in delta.calls)
    assert sent == '{"city": "a '
