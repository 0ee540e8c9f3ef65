"""Granite 3: a JSON array of calls behind a marker, thoughts between two sentences."""

import pytest

from tests.parsers.formats.xml_checks import check, check_groupings, check_linear, mutated, timed
from tests.parsers.support import FakeVocabulary, Runner, context_of, entries, fold, plan_of, summary, tool

MARKERS = ("<|tool_call|>",)
WEATHER = tool(
    "get_weather",
    city={"type": "string"},
    days={"type": "integer"},
    at={"type": "object", "properties": {"zip": {"type": "integer"}}},
)
NOTE = tool("note", text={"type": "string"})


def runner(*, tools="granite", reasoning=None, request=(WEATHER, NOTE), **fields):
    vocabulary = FakeVocabulary(MARKERS)
    return Runner(vocabulary, plan_of(vocabulary, tools=tools, reasoning=reasoning), context_of(*request, **fields))


def array(*elements):
    return f"<|tool_call|>[{', '.join(elements)}]"


def element(name, arguments):
    return f'{{"name": "{name}", "arguments": {arguments}}}'


PARIS = '{"city": "Paris", "days": 3}'

ANSWERS = [
    pytest.param(f"A {array(element('get_weather', PARIS))}<eos>", ("A", (("get_weather", PARIS),)), id="one call"),
    pytest.param(
        array(element("note", "{}"), element("get_weather", PARIS)),
        (None, (("note", "{}"), ("get_weather", PARIS))),
        id="two calls",
    ),
    pytest.param(f"<tool_call> [{element('note', '{}')}] B", (None, (("note", "{}"),)), id="spelled marker"),
    pytest.param(
        array('{"name" : "note",\n "arguments" : { "text" : "a" } }'),
        (None, (("note", '{ "text" : "a" }'),)),
        id="white space stays",
    ),
    pytest.param(
        array('{"arguments": {"text": "a"}, "name": "note"}'),
        (None, (("note", '{"text": "a"}'),)),
        id="arguments first",
    ),
    pytest.param(
        array('{"arguments": {"name": "inner"}, "name": "note"}'),
        (None, (("note", '{"name": "inner"}'),)),
        id="an argument called name",
    ),
    pytest.param(array('{"id": 5, "name": "note", "x": {"y": [1]}}'), (None, (("note", "{}"),)), id="other members"),
    pytest.param(array(element("note", '"{\\"text\\": \\"a\\"}"')), (None, (("note", '{"text": "a"}'),)), id="string"),
    pytest.param(array(element("note", '["a"]')), (None, (("note", '["a"]'),)), id="list"),
    pytest.param(
        array(element("get_weather", '{"days": "3", "city": 5}')),
        (None, (("get_weather", '{"days": 3, "city": "5"}'),)),
        id="typed",
    ),
    pytest.param(
        array(element("get_weather", '{"at": {"zip": "12"}}')),
        (None, (("get_weather", '{"at": {"zip": 12}}'),)),
        id="typed inside",
    ),
    pytest.param(
        array(element("note", '{"text": "} ] \\" <tool_call> \\u00fc"}')),
        (None, (("note", '{"text": "} ] \\" <tool_call> \\u00fc"}'),)),
        id="brackets in a string",
    ),
    pytest.param(array(element("note", "{'text': 'a'}")), (None, (("note", "{'text': 'a'}"),)), id="no JSON"),
    pytest.param('<|tool_call|>[{"arguments": {"a": 1}}]after', ("after", ()), id="no name"),
    pytest.param(array(element("", '{"a": 1}')), (None, ()), id="empty name"),
    pytest.param("<|tool_call|> hello", ("hello", ()), id="token without an array"),
    pytest.param("Use <tool_call> tags", ("Use <tool_call> tags", ()), id="spelled marker without an array"),
    pytest.param("<tool_call>[1, 2]", ("<tool_call>[1, 2]", ()), id="another array"),
    pytest.param("A <|tool_call|>[", ("A ", ()), id="cut marker"),
]


@pytest.mark.parametrize(("output", "expected"), ANSWERS)
def test_answers_in_every_grouping(output, expected):
    check(runner(), output, (None, *expected))


CUT = [
    ('[{"name": "note", "arguments": {"text": "ab', '{"text": "ab'),
    ('[{"name": "get_weather", "arguments": {"days": 1', '{"days": 1'),
    ('[{"name": "note"', "{}"),
    ('[{"name": "note", "arguments": {"text": "a"}', '{"text": "a"}'),
]


@pytest.mark.parametrize(("body", "arguments"), CUT)
def test_a_cut_call_keeps_what_was_written(body, arguments):
    run = runner()
    name = "get_weather" if "weather" in body else "note"
    check(run, f"<|tool_call|>{body}", (None, None, ((name, arguments),)))


def test_deltas_of_a_call():
    run = runner()
    chunks = [
        "<|tool_call|>",
        "[{",
        '"name": "get_weather",',
        ' "arguments": {"',
        "city",
        '":',
        ' "',
        "Pa",
        "ris",
        '",',
        ' "days":',
        " 3",
        "}}",
        "]",
    ]
    ids = [i for chunk in chunks for i in (run.ids(chunk) if "tool_call" in chunk else run.vocabulary.spell(chunk))]
    assert [chunk for chunk in entries(run.deltas(ids)) if chunk] == [
        [(0, "get_weather", None)],
        [(0, None, '{"city":')],
        [(0, None, ' "')],
        [(0, None, "Pa")],
        [(0, None, "ris")],
        [(0, None, '", "days":')],
        [(0, None, " ")],
        [(0, None, "3}")],
    ]


def test_a_forced_choice_is_json():
    run = runner(tool_choice="required")
    check(run, '[{"name": "note", "parameters": {"text": "a"}}]', (None, "", (("note", '{"text": "a"}'),)))


THOUGHTS = [
    ("Here is my thought process: T. Here is my response: A", (" T. ", " A", ())),
    ("Here's my thought process:THere's my response:A", ("T", "A", ())),
    (" Here is my thought process:T Here is my response:A", ("T ", "A", ())),
    ("Here is my thought process:Here is my response:A", ("", "A", ())),
    ("Here is my thought process: Here is a: b Here is my response:A", (" Here is a: b ", "A", ())),
    ("Here is my thought process: T", (" T", None, ())),
    (
        "Here is my thought process: T.\nHere is my response: A.\n"
        "Here's my thought process: U.\nHere's my response: B\n",
        (" T. U.\n", " A. B\n", ()),
    ),
    (
        "Here is my thought process:THere is my response:A Here is my thought process:B",
        ("T", "A Here is my thought process:B", ()),
    ),
    ("Here is my thou", (None, "Here is my thou", ())),
    ("Here is my response: A", (None, "Here is my response: A", ())),
    ("A only", (None, "A only", ())),
]


@pytest.mark.parametrize(("output", "expected"), THOUGHTS)
def test_thoughts(output, expected):
    check(runner(tools=None, reasoning="granite", request=()), output, expected)


def test_thoughts_and_a_call():
    run = runner(reasoning="granite")
    call = array(element("note", "{}"))
    check(run, f"Here is my thought process:THere is my response:A {call}", ("T", "A", (("note", "{}"),)))
    check(run, f"Here is my thought process:T {call}", ("T ", None, (("note", "{}"),)))


@pytest.mark.parametrize("seed", range(60))
def test_damaged_output_means_the_same_in_every_grouping(seed):
    calls = array(element("get_weather", '{"city": "Pa}", "days": "3"}'), element("note", '{"text": [1, {"a": "]"}]}'))
    sample = f"Here is my thought process: T Here is my response: A {calls} B"
    check_groupings(runner(reasoning="granite"), mutated(sample, seed))


def test_a_long_argument_costs_linear_time():
    check_linear(lambda n: timed(runner(), '<|tool_call|>[{"name": "note", "arguments": {"text": "' + "x" * n))


def test_an_empty_output_is_an_empty_answer():
    run = runner(tools=None, reasoning="granite", request=())
    assert summary(run.message("<eos>")) == (None, "", ())
    assert fold(run.deltas("<eos>")) == ("", "", ())
