"""K2 Horizon: groups of calls in three notations, thoughts whose tags follow the effort."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.exceptions import ParserConfigurationError, UnsupportedRequestError
from parsers.registry import build_plan
from tests.parsers.support import FakeVocabulary, Runner, context_of, plan_of, summary, tool

MARKERS = ("<ifm|think>", "</ifm|think>", "<ifm|tool_calls>")
WEATHER = tool("get_weather", city={"type": "string"}, days={"type": "integer"}, mixed={"type": ["integer", "string"]})


def runner(*, tools="k2_horizon", reasoning=None, request=(WEATHER,), prompt=None, **fields):
    vocabulary = FakeVocabulary(MARKERS)
    plan = plan_of(vocabulary, tools=tools, reasoning=reasoning)
    return Runner(vocabulary, plan, context_of(*request, **fields), vocabulary.encode(prompt) if prompt else None)


def group(*bodies):
    calls = "\n".join(f"<ifm|tool_call>{body}</ifm|tool_call>" for body in bodies)
    return f"<ifm|tool_calls>\n{calls}\n</ifm|tool_calls>"


def tagged(name, **parameters):
    tags = (
        f"<ifm|arg_key>{key}</ifm|arg_key>\n<ifm|arg_value>{value}</ifm|arg_value>" for key, value in parameters.items()
    )
    return "\n".join([name, *tags])


def typed(name, key, kind, value):
    parts = (("arg_key", key), ("arg_type", kind), ("arg_value", value))
    return name + "".join(f"<ifm|{tag}>{text}</ifm|{tag}>" for tag, text in parts)


PARIS = ("get_weather", '{"city": "Paris", "days": 3}')
CASES = [
    pytest.param(group(tagged("get_weather", city="Paris", days=3)), "xml", (None, (PARIS,)), id="tags"),
    pytest.param(f"A{group(tagged('get_weather', city='Paris', days=3))}B", "xml", ("AB", (PARIS,)), id="text around"),
    pytest.param(
        group(tagged("get_weather"), tagged("get_weather")), "xml", (None, (("get_weather", "{}"),) * 2), id="two"
    ),
    pytest.param(
        group('{"name": "get_weather", "arguments": {"city": "Paris", "days": "3"}}'),
        "json",
        (None, (PARIS,)),
        id="JSON",
    ),
    pytest.param(
        group(typed("get_weather", "mixed", "integer", "5")),
        "xml_typed",
        (None, (("get_weather", '{"mixed": 5}'),)),
        id="typed",
    ),
]
NO_CALLS = [
    pytest.param(group(tagged("unknown")), "xml", id="unknown function"),
    pytest.param(group("get_weather") + group(), "json", id="other notation"),
    pytest.param(group(typed("get_weather", "city", "string", "x")), "xml", id="type not wanted"),
    pytest.param(group(tagged("get_weather", city=1)), "xml_typed", id="type missing"),
    pytest.param(group(tagged("get_weather", days=1) + tagged("", days=2)), "xml", id="repeated key"),
    pytest.param("<ifm|tool_calls>junk</ifm|tool_calls>", "xml", id="no call inside"),
    pytest.param("<ifm|tool_calls><ifm|tool_call>get", "xml", id="cut"),
    pytest.param("text <ifm|tool_", "xml", id="cut marker"),
]


@pytest.mark.parametrize(("output", "form", "expected"), CASES)
def test_calls(output, form, expected):
    run = runner(own_template_kwargs={"tool_call_format": form})
    assert summary(run.message(output))[1:] == expected
    assert set(run.folds(output).values()) == {("", expected[0] or "", expected[1])}


@pytest.mark.parametrize(("output", "form"), NO_CALLS)
def test_a_group_that_is_not_all_calls_is_text(output, form):
    run = runner(own_template_kwargs={"tool_call_format": form})
    assert summary(run.message(output)) == (None, output, ())
    assert set(run.folds(output).values()) == {("", output, ())}


@pytest.mark.parametrize(
    ("output", "prompt", "expected"),
    [
        ("<ifm|think>T</ifm|think>A", None, ("T", "A", ())),
        ("</ifm|think>A", None, ("", "A", ())),
        (f"T{group(tagged('get_weather', city='Paris', days=3))}", None, ("T", None, (PARIS,))),
        ("A", "<ifm|think></ifm|think>", (None, "A", ())),
        ("T </ifm|thi", None, ("T </ifm|thi", None, ())),
    ],
)
def test_reasoning(output, prompt, expected):
    run = runner(reasoning="k2_horizon", prompt=prompt)
    assert summary(run.message(output)) == expected
    assert set(run.folds(output).values()) == {(expected[0] or "", expected[1] or "", expected[2])}


def test_the_effort_chooses_the_tags():
    run = runner(reasoning="k2_horizon", template_kwargs={"reasoning_effort": "low"})
    assert summary(run.message("T</ifm|think>x</ifm|think_faster>A")) == ("T</ifm|think>x", "A", ())


@pytest.mark.parametrize(
    "fields", [{"template_kwargs": {"reasoning_effort": "max"}}, {"own_template_kwargs": {"tool_call_format": "yaml"}}]
)
def test_an_unknown_choice_is_the_callers_fault(fields):
    with pytest.raises(UnsupportedRequestError, match="Supported values"):
        runner(reasoning="k2_horizon", **fields).message("x")


def test_reasoning_needs_its_tokens():
    with pytest.raises(ParserConfigurationError, match="lacks"):
        build_plan(tool_parser=None, reasoning_parser="k2_horizon", vocabulary=FakeVocabulary())


PARTS = [*MARKERS, "</ifm|tool_calls>", "<ifm|tool_call>", "</ifm|tool_call>", "get_weather", "<ifm|arg_key>", "x", " "]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=20))
def test_no_mixture_of_markers_raises_or_depends_on_the_grouping(parts):
    run = runner(reasoning="k2_horizon")
    assert len(set(run.folds("".join(parts)).values())) == 1
    run.message("".join(parts))
