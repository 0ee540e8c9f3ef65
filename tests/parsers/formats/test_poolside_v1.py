"""Poolside's Laguna: tagged pairs of key and value, thoughts on request."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.exceptions import ParserConfigurationError
from parsers.formats.poolside_v1 import typed
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool

START, END = "<tool_call>", "</tool_call>"
TAGS = (START, END, "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
OTHERS = ("<assistant>", "</assistant>", "<think>", "</think>")
WEATHER = tool("get_weather", city={"type": "string"}, days={"type": "integer"})
NOOP_TEXT, NOOP = f"{START}noop\n{END}", ("noop", "{}")


def runner(*, run=3, tags=TAGS, reasoning=None, tools="poolside_v1", **fields):
    vocabulary = FakeVocabulary((*tags, *OTHERS), run=run)
    plan = plan_of(vocabulary, tools=tools, reasoning=reasoning)
    return Runner(vocabulary, plan, context_of(*([WEATHER] if tools else []), **fields))


def call(name, *pairs, line="\n"):
    inside = "".join(f"<arg_key>{key}</arg_key>{line}<arg_value>{value}</arg_value>{line}" for key, value in pairs)
    return f"{START}{name}{line}{inside}{END}"


PARIS_TEXT = call("get_weather", ("city", "Paris"), ("days", 3))
PARIS = ("get_weather", '{"city": "Paris", "days": 3}')

CASES = [
    pytest.param("Hello, a < b <tool_", ("Hello, a < b <tool_", ()), id="answer"),
    pytest.param(PARIS_TEXT, (None, (PARIS,)), id="one call"),
    pytest.param(PARIS_TEXT.replace("\n", ""), (None, (PARIS,)), id="on one line"),
    pytest.param(f"A\n{NOOP_TEXT}\nB{PARIS_TEXT} C", ("A\n\nB C", (NOOP, PARIS)), id="text around"),
    pytest.param(
        call("get_weather", ("city", f'a "b" {END} <arg_key>')),
        (None, (("get_weather", f'{{"city": "a \\"b\\" {END} <arg_key>"}}'),)),
        id="tags in a value are data",
    ),
    pytest.param(
        call("f", ("a", "[1, 2]"), ("b", "(1, None)"), ("c", "x"), ("d", "b'x'")),
        (None, (("f", '{"a": [1, 2], "b": [1, null], "c": "x", "d": "b\'x\'"}'),)),
        id="values by what they look like",
    ),
    pytest.param(
        call("get_weather", ("city", "A"), ("city", "B")),
        (None, (("get_weather", '{"city": "A"}'),)),
        id="the first of equal keys",
    ),
    pytest.param(call("get_weather", ("", "P")), (None, (("get_weather", '{"": "P"}'),)), id="empty key"),
    pytest.param(f"{START}\n get weather {END}", (None, (("get weather", "{}"),)), id="white space around the name"),
    pytest.param(f"{START}{NOOP_TEXT}", (None, (NOOP,)), id="tag twice"),
    pytest.param(f"{START} {END}ok", (f"{START} {END}ok", ()), id="no name"),
    pytest.param(f"{START}a<b\n{END}", (f"{START}a<b\n{END}", ()), id="a name that is none"),
    pytest.param(f"{START}f\n<arg_key>a</arg_key>\n{END}", (None, (("f", "{}"),)), id="value missing"),
    pytest.param(f"{START}get_wea", (f"{START}get_wea", ()), id="cut in the name"),
]

CUT = [
    pytest.param(PARIS_TEXT.partition("ris")[0], id="in a value"),
    pytest.param(PARIS_TEXT.partition("days")[0], id="in a key"),
    pytest.param(PARIS_TEXT.removesuffix(END), id="before the end"),
    pytest.param(
        f"{START}get_weather\njunk <arg_key>city</arg_key><arg_value>P</arg_value>{END}", id="not cut, but junk"
    ),
]


def _loose(message):
    return ((message[0] or "").strip(), (message[1] or "").strip(), message[2])


@pytest.mark.parametrize("tags", [TAGS, ()], ids=["tokens", "text"])
@pytest.mark.parametrize(("output", "expected"), CASES)
def test_answers_alike_in_every_grouping(output, expected, tags):
    run = runner(tags=tags)
    message = summary(run.message(output + "<eos>"))
    assert message == (None, *expected)
    for name, folded in run.folds(output + "<eos>").items():
        assert _loose(folded) == _loose(message), name


def test_white_space_between_calls_is_no_content():
    """families/poolside_v1-tool/text-then-two"""
    run = runner()
    assert summary(run.message(f"A\n\n{NOOP_TEXT}\n{PARIS_TEXT}")) == (None, "A\n\n", (NOOP, PARIS))


@pytest.mark.parametrize("output", CUT)
def test_a_malformed_call_is_text_unless_its_name_was_sent(output):
    run = runner()
    assert summary(run.message(output + "<eos>")) == (None, output, ())
    for name, (_, content, calls) in run.folds(output + "<eos>").items():
        assert bool(calls) != (content == output), name


def test_strings_are_sent_as_they_come():
    """poolside_v1-tool/one, grouping 1."""
    run = runner()
    ids = run.ids(START) + run.vocabulary.spell("get_weather", "\n") + run.ids("<arg_key>city</arg_key>\n<arg_value>Pa")
    ids += run.ids('r"</arg_value>\n</tool_call><eos>')
    shown = [each and [(part.name, part.arguments) for part in each.calls] for each in run.deltas(ids)]
    assert [each for each in shown if each] == [
        [("get_weather", "")],
        [(None, '{"city": "')],
        [(None, "Pa")],
        [(None, 'r\\"')],
        [(None, '"')],
        [(None, "}")],
    ]


@pytest.mark.parametrize(
    ("text", "dumped"),
    [
        (" 7 ", "7"),
        ("null", "null"),
        ("{'a': True}", '{"a": true}'),
        ("{1}", '"{1}"'),
        ("1j", '"1j"'),
        (" x", '" x"'),
        ("NaN", '"NaN"'),
        ("{1: 1e999}", '"{1: 1e999}"'),
    ],
)
def test_values_are_json_or_python_or_text(text, dumped):
    assert typed(text) == dumped


THINKING = {"enable_thinking": True}


@pytest.mark.parametrize(
    ("kwargs", "expected"),
    [
        pytest.param(THINKING, ("Hm.", "\n", (NOOP,)), id="on"),
        pytest.param({"thinking": "false"}, ("Hm.", "\n", (NOOP,)), id="any text is on"),
        pytest.param({"enable_thinking": False}, (None, "<think>Hm.</think>\n", (NOOP,)), id="off"),
        pytest.param({}, (None, "<think>Hm.</think>\n", (NOOP,)), id="off unless asked for"),
    ],
)
def test_thinks_on_request(kwargs, expected):
    run = runner(reasoning="poolside_v1", template_kwargs=kwargs)
    output = f"<think>Hm.</think>\n{NOOP_TEXT}<eos>"
    assert _loose(summary(run.message(output))) == _loose(expected)
    for name, folded in run.folds(output).items():
        assert _loose(folded) == _loose(expected), name


def test_a_prompt_that_closed_the_thoughts_begins_with_the_answer():
    run = runner(reasoning="poolside_v1", tools=None, template_kwargs=THINKING)
    run.prompt = run.vocabulary.encode("<assistant></think>")
    assert summary(run.message("Hello")) == (None, "Hello", ())


def test_the_tokenizer_must_know_the_assistants_turn():
    with pytest.raises(ParserConfigurationError, match="<assistant>"):
        plan_of(FakeVocabulary(), reasoning="poolside_v1")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*TAGS, "get_weather", "city", "x", "\n", " ", "<", "3"]), max_size=14))
def test_anything_is_read_alike_in_any_grouping(pieces):
    run = runner()
    output = "".join(pieces)
    message = summary(run.message(output))
    for lens in (1, 2):
        folded = fold(run.deltas(output, lens, snapshots=True))
        if len(folded[2]) == len(message[2]):
            assert _loose(folded) == _loose(message)


@pytest.mark.parametrize("piece", ["abc", "</arg_value><arg_key>a</arg_key><arg_value>", "<", "</arg_val", NOOP_TEXT])
def test_work_is_linear(piece):
    def seconds(count):
        run = runner()
        ids = run.ids(f"{START}get_weather\n<arg_key>city</arg_key><arg_value>") + run.ids(piece) * count
        start = time.process_time()
        run.deltas(ids)
        return time.process_time() - start

    seconds(50)
    assert seconds(4_000) < 25 * seconds(400) + 0.3
