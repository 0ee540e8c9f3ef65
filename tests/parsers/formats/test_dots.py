"""dots calls: tagged and JSON blocks, typed values, every grouping, one entry or two."""

import json
import time

import pytest

from parsers.engine.assembly import CallDelta
from tests.parsers.formats.call_checks import check_says, check_text
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool

PROPERTIES = {
    "city": {"type": "string"},
    "days": {"type": ["null", "integer"]},
    "score": {"anyOf": [{"type": "null"}, {"type": "number"}]},
    "safe": {"type": "boolean"},
    "tags": {"$ref": "#/$defs/Tags"},
    "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "loop": {"$ref": "#/$defs/Loop"},
}
DEFINITIONS = {"Tags": {"type": "array"}, "Loop": {"$ref": "#/$defs/Loop"}}


def runner(*, run=3, **fields):
    vocabulary = FakeVocabulary(run=run)
    weather = tool("get_weather", **PROPERTIES)
    weather["function"]["parameters"]["$defs"] = DEFINITIONS
    return Runner(vocabulary, plan_of(vocabulary, tools="dots"), context_of(weather, tool("ping"), **fields))


def block(body):
    return f"<dots_function_call>\n{body}\n</dots_function_call>"


def invoke(name, **parameters):
    inner = "".join(f'<parameter name="{key}">{value}</parameter>\n' for key, value in parameters.items())
    return f'<invoke name="{name}">\n{inner}</invoke>'


PARIS_TEXT = invoke("get_weather", city=" Paris ", days="3")
PARIS = ("get_weather", '{"city": "Paris", "days": 3}')
PING_JSON = '{"arguments": {}, "name": "ping"}'
PING = ("ping", "{}")

GOOD = [
    pytest.param("a < b, <dots_", ("a < b, <dots_", ()), id="answer"),
    pytest.param("I look." + block(PARIS_TEXT), ("I look.", (PARIS,)), id="tagged"),
    pytest.param(block(PARIS_TEXT + invoke("ping")), (None, (PARIS, PING)), id="two in a block"),
    pytest.param(block(PING_JSON) + " b " + block(PARIS_TEXT) + " c", (None, (PING, PARIS)), id="two blocks"),
    pytest.param(block("<invoke name='ping'></invoke>"), (None, (PING,)), id="other quotes"),
    pytest.param(block("<invoke name=ping></invoke>"), (None, (PING,)), id="no quotes"),
    pytest.param(block(invoke("nobody") + invoke("ping")), (None, (PING,)), id="unknown beside a known one"),
    pytest.param(block('{"name": "ping"}'), (None, (PING,)), id="no arguments"),
    pytest.param(block('{"name": "ping", "parameters": null}'), (None, (PING,)), id="null"),
    pytest.param(
        block('{"name": "get_weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}'),
        (None, (("get_weather", '{"city": "Oslo"}'),)),
        id="object in a string",
    ),
    pytest.param("<dots_function_call>" + PING_JSON, (None, (PING,)), id="object without an end"),
    pytest.param(block("nothing") + block(PING_JSON), (None, (PING,)), id="bad block before a good one"),
]

TEXT = [
    pytest.param(block(""), id="empty"),
    pytest.param(block("get_weather(city=1)"), id="another format"),
    pytest.param(block(invoke("nobody")), id="unknown function"),
    pytest.param(block('{"name": "nobody", "arguments": {}}'), id="unknown function in JSON"),
    pytest.param(block('{"name": "ping", "arguments": [1]}'), id="list"),
    pytest.param(block('{"name": 5, "arguments": {}}'), id="name is a number"),
    pytest.param(block('{"name": "ping", "arguments": {}'), id="open object"),
    pytest.param("x</dots_function_call> y", id="end marker in prose"),
    pytest.param("a" + block("b") + "c</dots_function_call>d", id="text around"),
    pytest.param('<dots_function_call>\n<invoke name="ping">\n</invoke></dots_', id="cut"),
    pytest.param('<dots_function_call><invoke name="ping"', id="cut name"),
]


@pytest.mark.parametrize(("output", "expected"), GOOD)
def test_every_grouping_says_the_same(output, expected):
    check_says(runner(), output, *expected)


@pytest.mark.parametrize("output", TEXT)
def test_what_is_no_call_is_text(output):
    check_text(runner(), output)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("city", "null", "null"),
        ("note", "NULL", None),
        ("note", "x", "x"),
        ("days", "null", None),
        ("days", "5.0", "5.0"),
        ("score", "1e3", 1000),
        ("score", "1.50", 1.5),
        ("score", "inf", "inf"),
        ("safe", "1", True),
        ("safe", "False", False),
        ("safe", "perhaps", "perhaps"),
        ("tags", '["a", 1]', ["a", 1]),
        ("tags", "[NaN]", "[NaN]"),
        ("loop", "7", "7"),
        ("unknown", "7", "7"),
    ],
)
def test_values_are_typed_by_the_schema(key, text, value):
    ((_, arguments),) = summary(runner().message(block(invoke("get_weather", **{key: text}))))[2]
    assert json.loads(arguments) == {key: value}


def test_an_object_is_sent_before_its_block_ends_in_two_entries():
    run = runner()
    first, last = run.chunked("<dots_function_call>" + PING_JSON, "\n</dots_function_call>")
    assert first.calls == [
        CallDelta(index=0, id=first.calls[0].id, name="ping", arguments=""),
        CallDelta(index=0, arguments="{}"),
    ]
    assert last is None


@pytest.mark.parametrize("body", [PING_JSON, invoke("ping")])
def test_a_closed_block_is_sent_in_one_entry(body):
    (delta,) = runner().chunked(block(body))
    assert delta.calls == [CallDelta(index=0, id=delta.calls[0].id, name="ping", arguments="{}")]


@pytest.mark.parametrize(
    "piece", ["<invoke name=", "<invoke name=ping>", '<parameter name="x">', "</parameter>", '{"name": ', "<dots_"]
)
def test_work_is_linear(piece):
    run = runner(run=1)

    def seconds(count):
        started = time.process_time()
        run.deltas(block("<invoke name=ping>" + piece * count), 50)
        return time.process_time() - started

    seconds(100)
    assert min(seconds(8000) for _ in range(2)) < 20 * max(min(seconds(1000) for _ in range(2)), 0.02)


def test_fold_without_tools_is_text():
    run = runner(tool_choice="none")
    assert fold(run.deltas(block(PING_JSON))) == ("", block(PING_JSON), ())
