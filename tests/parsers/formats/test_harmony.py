"""Harmony: messages of gpt-oss, their channels and recipients."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.exceptions import ParserConfigurationError
from parsers.registry import build_plan
from tests.parsers.support import FakeVocabulary, Runner, context_of, plan_of, summary, tool

MARKERS = ("<|start|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|end|>", "<|call|>", "<|return|>")
WEATHER = tool("get_weather", city={"type": "string"})
THINK = "<|channel|>analysis<|message|>Think.<|end|>"
FINAL = "<|start|>assistant<|channel|>final<|message|>Hello!<|return|>"


def call(name="get_weather", arguments='{"city": "Paris"}', kind=" <|constrain|>json"):
    return f"<|start|>assistant<|channel|>commentary to=functions.{name}{kind}<|message|>{arguments}<|call|>"


def runner(*, tools="openai", reasoning="openai_gptoss", request=(WEATHER,), **fields):
    vocabulary = FakeVocabulary(MARKERS, model_type="gpt_oss")
    return Runner(vocabulary, plan_of(vocabulary, tools=tools, reasoning=reasoning), context_of(*request, **fields))


PARIS = ("get_weather", '{"city": "Paris"}')
CASES = [
    pytest.param(THINK + FINAL, ("Think.", "Hello!", ()), id="thoughts and answer"),
    pytest.param(THINK + call(), ("Think.", None, (PARIS,)), id="call"),
    pytest.param(call()[len("<|start|>assistant") :], (None, None, (PARIS,)), id="call first"),
    pytest.param(call(kind=""), (None, None, (PARIS,)), id="no content type"),
    pytest.param(call() + call("f", "{}"), (None, None, (PARIS, ("f", "{}"))), id="two calls"),
    pytest.param(
        call(arguments='{"city":"Zürich"}'), (None, None, (("get_weather", '{"city": "Z\\u00fcrich"}'),)), id="dumped"
    ),
    pytest.param(
        call(arguments="x = 1", kind=" <|constrain|>code"), (None, None, (("get_weather", "x = 1"),)), id="not JSON"
    ),
    pytest.param(
        "<|start|>assistant to=functions.get_weather<|channel|>commentary <|constrain|>json<|message|>{}<|call|>",
        (None, None, (("get_weather", "{}"),)),
        id="recipient before the channel",
    ),
    pytest.param(
        "<|channel|>commentary<|message|>I look.<|end|>" + FINAL,
        (None, "I look.\nHello!", ()),
        id="preamble is content",
    ),
    pytest.param(
        THINK + "<|start|>assistant" + THINK + FINAL, ("Think.\nThink.", "Hello!", ()), id="joined by line breaks"
    ),
    pytest.param(
        THINK + "commentary to=functions.f<|message|>{}<|call|>",
        ("Think.", None, (("f", "{}"),)),
        id="start marker missing",
    ),
    pytest.param("<|channel|>analysis foo bar<|message|>T<|end|>" + FINAL, ("T", "Hello!", ()), id="garbled header"),
    pytest.param("<|channel|>commentary 2?<|message|>T<|end|>" + FINAL, (None, "Hello!", ()), id="garbled commentary"),
    pytest.param(
        "<|channel|>commentary to=python code<|message|>1+1<|call|>" + FINAL, (None, "Hello!", ()), id="built-in tool"
    ),
    pytest.param(
        THINK + "<|start|>functions.get_weather to=assistant<|channel|>commentary<|message|>20<|end|>" + FINAL,
        ("Think.", "Hello!", ()),
        id="a tool's message is nobody's",
    ),
    pytest.param("Plain text.<|return|>", (None, "Plain text.", ()), id="no markup at all"),
    pytest.param("Plain text, cut", (None, "Plain text, cut", ()), id="no markup, cut"),
    pytest.param(
        "Plain<|return|> text<|end|><|call|> goes on<|return|>",
        (None, "Plain<|return|> text<|end|><|call|> goes on", ()),
        id="no markup but stop markers in the text",
    ),
    pytest.param("word " * 150 + "a<|return|>b", (None, "word " * 150 + "a<|return|>b", ()), id="the same, long"),
    pytest.param(
        "Plain text.<|end|>" + THINK + FINAL, ("Think.", "Plain text.\nHello!", ()), id="no markup, then a message"
    ),
    pytest.param(THINK + "<|start|>assistant<|channel|>comm", ("Think.", None, ()), id="cut header"),
    pytest.param(
        call(arguments='{"city": "Par')[: -len("<|call|>")],
        (None, None, (("get_weather", '{"city": "Par'),)),
        id="cut call",
    ),
]


@pytest.mark.parametrize(("output", "expected"), CASES)
def test_one_shot(output, expected):
    assert summary(runner().message(output)) == expected


@pytest.mark.parametrize(("output", "expected"), CASES)
def test_every_grouping_folds_to_the_one_shot_answer(output, expected):
    folded = (expected[0] or "", expected[1] or "", expected[2])
    assert set(runner().folds(output).values()) == {folded}


def test_without_a_tool_parser_calls_are_not_shown():
    assert summary(runner(tools=None).message(THINK + call())) == ("Think.", None, ())


def test_a_gpt_oss_model_is_parsed_without_any_flag():
    plan = build_plan(tool_parser=None, reasoning_parser=None, vocabulary=FakeVocabulary(MARKERS, model_type="gpt_oss"))
    assert plan is not None
    assert plan.unified is not None


@pytest.mark.parametrize(
    ("vocabulary", "flags", "message"),
    [
        (FakeVocabulary(MARKERS, model_type="gpt_oss"), ("qwen3_coder", None), "cannot be combined"),
        (FakeVocabulary(MARKERS), ("openai", "qwen3"), "cannot be combined"),
        (FakeVocabulary(), ("openai", None), "which the tokenizer lacks"),
    ],
)
def test_what_cannot_work_is_an_error_at_start(vocabulary, flags, message):
    with pytest.raises(ParserConfigurationError, match=message):
        build_plan(tool_parser=flags[0], reasoning_parser=flags[1], vocabulary=vocabulary)


def test_a_long_answer_without_markup_is_sent_before_the_end():
    deltas = runner().deltas("word " * 400)
    assert sum(bool(delta and delta.content) for delta in deltas) > 300


PARTS = [*MARKERS, "analysis", "final", "commentary", " to=functions.f", "json", '{"a": ', '"x"', "}", " ", "<eos>"]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=20))
def test_no_mixture_of_markers_raises_or_depends_on_the_grouping(parts):
    run = runner()
    assert len(set(run.folds("".join(parts)).values())) == 1
    run.message("".join(parts))
