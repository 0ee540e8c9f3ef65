"""GLM-4.5 to 5.3 and Ling 3: whole answers, exact deltas, values that hold markup, every grouping."""

import pytest

from tests.parsers.formats.xml_checks import check, check_groupings, check_linear, loose, mutated, timed
from tests.parsers.support import FakeVocabulary, Runner, context_of, entries, fold, plan_of, summary, tool

MARKERS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<|user|>", "<|assistant|>")
WEATHER = tool("get_weather", city={"type": "string"}, days={"type": "integer"})
NOTE = tool("note", text={"type": "string"})
GLM53_TEMPLATE = "[gMASK]<sop> Reasoning Effort: <tool_call><arg_key><arg_value>"


def runner(*, tools="glm47", reasoning="glm47", request=(WEATHER, NOTE), prompt=None, template="", **fields):
    vocabulary = FakeVocabulary(MARKERS, chat_template=template)
    plan = plan_of(vocabulary, tools=tools, reasoning=reasoning)
    prompt_ids = vocabulary.encode(prompt) if prompt is not None else None
    return Runner(vocabulary, plan, context_of(*request, **fields), prompt_ids)


def call(name, *pairs, gap=""):
    body = "".join(f"{gap}<arg_key>{key}</arg_key>{gap}<arg_value>{value}</arg_value>" for key, value in pairs)
    return f"<tool_call>{name}{body}{gap}</tool_call>"


PARIS = ("get_weather", '{"city": "Paris", "days": 3}')
PARIS_CALL = call("get_weather", ("city", "Paris"), ("days", 3))


def note(text):
    return call("note", ("text", text))


WELL_FORMED = [
    pytest.param(f"T \n</think>A{PARIS_CALL}<eos>", ("T", "A", (PARIS,)), id="thoughts, answer, call"),
    pytest.param(f"T{PARIS_CALL}", ("T", None, (PARIS,)), id="a call ends the thoughts"),
    pytest.param(
        "</think>" + call("get_weather", ("city", "Paris"), ("days", 3), gap="\n"), (None, None, (PARIS,)), id="lines"
    ),
    pytest.param(f"</think>{PARIS_CALL}\n{note('x')}", (None, None, (PARIS, ("note", '{"text": "x"}'))), id="two"),
    pytest.param("</think>" + call("note"), (None, None, (("note", "{}"),)), id="no arguments"),
    pytest.param("</think>" + call(" note \n"), (None, None, (("note", "{}"),)), id="padded name"),
    pytest.param("</think>" + call("note", (" text ", " x ")), (None, None, (("note", '{"text": " x "}'),)), id="key"),
    pytest.param("a</think>b<think>c</think>d", ("ac", "bd", ()), id="thoughts opened again"),
    pytest.param(
        f"</think>{note('a <b> </c> <arg_key> d')}",
        (None, None, (("note", '{"text": "a <b> </c> <arg_key> d"}'),)),
        id="tags in a value",
    ),
]


@pytest.mark.parametrize(("output", "expected"), WELL_FORMED)
def test_answers_in_every_grouping(output, expected):
    check(runner(), output, expected)


LITERAL = [
    pytest.param(note('E = "</tool_call>"\n'), 'E = \\"</tool_call>\\"\\n', id="end of call"),
    pytest.param(note('V = "</arg_value>"\n'), 'V = \\"</arg_value>\\"\\n', id="end of value"),
    pytest.param(note("a</tool_call>b</arg_value>c"), "a</tool_call>b</arg_value>c", id="both"),
    pytest.param(
        "<tool_call>note<arg_key>text</arg_key></arg_key><arg_value>x</arg_value></tool_call>",
        "x",
        id="key closed twice",
    ),
]


@pytest.mark.parametrize(("output", "text"), LITERAL)
def test_closing_tags_inside_a_value_are_text(output, text):
    check(runner(reasoning=None), output, (None, None, (("note", f'{{"text": "{text}"}}'),)))


def test_a_value_without_its_closing_tag_ends_with_the_call():
    run = runner(reasoning=None)
    output = f"<tool_call>note<arg_key>text</arg_key><arg_value>x</tool_call>{PARIS_CALL}"
    check(run, output, (None, None, (("note", '{"text": "x"}'), PARIS)))


REJECTED = [
    pytest.param("A <tool_call>zzz</tool_call> B", id="unknown function"),
    pytest.param("A " + call("zzz", ("a", 1), ("b", "2")) + " B", id="unknown function with arguments"),
    pytest.param('A <tool_call>{"name": "note"}</tool_call> B', id="another format"),
    pytest.param("A <tool_call>note<tool_call>note</tool_call> B", id="name never closed"),
    pytest.param("A call begins with <tool_call> and ends.", id="the marker is talked about"),
]


@pytest.mark.parametrize("output", REJECTED)
def test_what_is_no_call_of_a_function_on_offer_is_text(output):
    check(runner(reasoning=None), output, (None, output, ()))


def test_calls_are_numbered_without_gaps():
    run = runner(reasoning=None)
    found = [
        entry for chunk in entries(run.deltas(f"<tool_call></tool_call>{note('x')}{note('y')}")) for entry in chunk
    ]
    assert {index for index, name, _ in found if name} == {0, 1}


def test_a_rejected_call_in_front_of_a_call():
    output = f"<tool_call>zzz</tool_call>{note('x')} B"
    check(runner(reasoning=None), output, (None, "<tool_call>zzz</tool_call>", (("note", '{"text": "x"}'),)))


CUT = ["<tool_call>no", "<tool_call>note<arg", "<tool_call>"]


@pytest.mark.parametrize("output", CUT)
def test_a_cut_name_is_nothing(output):
    check(runner(reasoning=None), output, (None, None, ()))


def test_a_cut_value():
    run = runner(reasoning=None)
    output = "<tool_call>note<arg_key>text</arg_key><arg_value>abc</arg"
    assert summary(run.message(output)) == (None, None, (("note", "{}"),))
    assert set(run.folds(output).values()) == {("", "", (("note", '{"text": "abc</arg'),))}


def test_deltas_of_a_call():
    run = runner(reasoning=None)
    chunks = ["<tool_call>", "get_", "weather", "<arg_key>", "city", "</arg_key>", "<arg_value>", "Pa", "ris"]
    chunks += ["</arg_value>", "<arg_key>", "days", "</arg_key>", "<arg_value>", "3", "</arg_value>", "</tool_call>"]
    ids = [i for chunk in chunks for i in (run.ids(chunk) if "tool_call" in chunk else run.vocabulary.spell(chunk))]
    assert [chunk for chunk in entries(run.deltas(ids)) if chunk] == [
        [(0, "get_weather", None)],
        [(0, None, '{"city": "')],
        [(0, None, "Pa")],
        [(0, None, "ris")],
        [(0, None, '", "days": ')],
        [(0, None, "3}")],
    ]


@pytest.mark.parametrize(
    ("kwargs", "expected"),
    [
        ({}, ("T", "A", ())),
        ({"thinking": False}, (None, "T</think>A", ())),
        ({"enable_thinking": False}, (None, "T</think>A", ())),
        ({"enable_thinking": False, "thinking": True}, ("T", "A", ())),
        ({"enable_thinking": None}, ("T", "A", ())),
    ],
)
@pytest.mark.parametrize("name", ["glm45", "glm47", "ling3"])
def test_switches(name, kwargs, expected):
    run = runner(tools=name, reasoning=name, template_kwargs=kwargs)
    check(run, "T</think>A", expected)


def test_glm53_cannot_be_told_not_to_think():
    off = {"enable_thinking": False}
    assert summary(runner(template=GLM53_TEMPLATE, template_kwargs=off).message("T</think>A")) == ("T", "A", ())
    run = runner(tools="ling3", reasoning="ling3", template=GLM53_TEMPLATE, template_kwargs=off)
    assert summary(run.message("T</think>A")) == (None, "T</think>A", ())


def test_thinking_tags_are_text_without_a_reasoning_parser():
    check(runner(reasoning=None), "a <think>b</think> c", (None, "a <think>b</think> c", ()))


def test_choice_none_swallows_the_call_and_keeps_the_text_around_it():
    run = runner(tool_choice="none")
    check(run, f"T</think>A {PARIS_CALL} B", ("T", "A  B", ()))


def test_the_prompt_decides_where_the_output_starts():
    assert summary(runner(prompt="<|assistant|><think></think>").message("A")) == (None, "A", ())
    assert summary(runner(prompt="</think><|user|>x<|assistant|>").message("T")) == ("T", None, ())


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("name", ["glm47", "ling3"])
def test_damaged_output_means_the_same_in_every_grouping(name, seed):
    sample = f"T \n T</think>\n\nA {PARIS_CALL}\n{note('a </b> <c')}{call('zzz', ('a', 1))} B"
    check_groupings(runner(tools=name, reasoning=name), mutated(sample, seed))


def test_a_long_value_costs_linear_time():
    run = runner(reasoning=None)
    check_linear(lambda characters: timed(run, note("x" * characters)))


def test_one_shot_and_stream_agree_on_repeated_keys_as_json():
    run = runner(reasoning=None)
    output = call("note", ("text", "a"), ("text", "b"))
    assert summary(run.message(output))[2] == (("note", '{"text": "b"}'),)
    assert loose(fold(run.deltas(output)))[2] == (("note", '{"text": "a", "text": "b"}'),)
