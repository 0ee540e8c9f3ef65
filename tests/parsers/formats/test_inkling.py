"""inkling reasoning and calls: whole answers, exact deltas, every grouping."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsers.support import FakeVocabulary, Runner, context_of, entries, fold, plan_of, summary, tool

MODEL, TEXT, THINK = "<|message_model|>", "<|content_text|>", "<|content_thinking|>"
CALL, END, STOP = "<|content_invoke_tool_json|>", "<|end_message|>", "<|content_model_end_sampling|>"
RAW, ERROR = "<|content_invoke_tool_text|>", "<|content_tool_error|>"
MARKERS = (MODEL, TEXT, THINK, CALL, END, RAW, ERROR)
WEATHER = tool("get_weather", city={"type": "string"}, days={"type": "integer"})
PING = tool("ping")


def runner(*, tools="inkling", reasoning="inkling", prompt=MODEL, markers=MARKERS, request=(WEATHER, PING), **fields):
    vocabulary = FakeVocabulary(markers, specials=(STOP, "<other>"))
    plan = plan_of(vocabulary, tools=tools, reasoning=reasoning)
    return Runner(vocabulary, plan, context_of(*request, **fields), vocabulary.encode(prompt))


def call(payload):
    return f"{CALL}{payload if isinstance(payload, str) else json.dumps(payload)}{END}"


def weather(**args):
    return call({"name": "get_weather", "args": args})


NAME_ONLY = '{"name": "ping"}'
PARIS = ("get_weather", '{"city": "Paris", "days": 2}')

WELL_FORMED = [
    pytest.param(f"{TEXT}Hello.{END}{STOP}", (None, "Hello.", ()), id="answer"),
    pytest.param(f"{THINK}t{END}{MODEL}{TEXT}Hi{END}{STOP}", ("t", "Hi", ()), id="thoughts"),
    pytest.param(f"{THINK}a \n{END}{MODEL}{THINK}b \n{END}", ("a \nb", None, ()), id="blank end of thoughts"),
    pytest.param(f"{THINK}t{END}{MODEL}{weather(city='Paris', days=2)}{STOP}", ("t", None, (PARIS,)), id="call"),
    pytest.param(f"{THINK}t{weather(city='Paris', days=2)}{STOP}", ("t", None, (PARIS,)), id="a call ends thoughts"),
    pytest.param(
        f"{TEXT}One. {END}{MODEL}{call(NAME_ONLY)}{MODEL}{TEXT}Two.{END}{STOP}",
        (None, "One. Two.", (("ping", "{}"),)),
        id="text around a call",
    ),
    pytest.param(
        f"{TEXT} \n{END}{MODEL}{call({'name': 'ping', 'args': {}})}", (None, None, (("ping", "{}"),)), id="ws"
    ),
    pytest.param(f"name{TEXT}Hi{END}", (None, "Hi", ()), id="a header is nobody's"),
    pytest.param(f"Hi{STOP}", (None, "Hi", ()), id="a header without a message is an answer"),
    pytest.param(f"{RAW}raw{END}", (None, "raw", ()), id="raw tool text"),
    pytest.param(f"{TEXT}a<other>b < c{END}", (None, "ab < c", ()), id="special tokens are dropped"),
    pytest.param(f"{THINK}a{TEXT}b{END}", (f"a{TEXT}b", None, ()), id="text marker in thoughts"),
    pytest.param(
        call('{"name": "get_weather", "args": {"city": "a ' + THINK + CALL + ' }"}}'),
        (None, None, (("get_weather", '{"city": "a ' + THINK + CALL + ' }"}'),)),
        id="markers in a payload",
    ),
]


@pytest.mark.parametrize(("output", "expected"), WELL_FORMED)
@pytest.mark.parametrize("markers", [MARKERS, ()], ids=["tokens", "text"])
def test_whole_answers_and_every_grouping(output, expected, markers):
    run = runner(markers=markers)
    reasoning, content, calls = expected
    assert summary(run.message(output)) == expected
    assert {(r, c.strip(), found) for r, c, found in run.folds(output).values()} == {
        (reasoning or "", (content or "").strip(), calls)
    }


PAYLOADS = [
    pytest.param('{"args": {"name": "inner", "city": "P"}, "name": "ping"}', "ping", '{"name": "inner", "city": "P"}'),
    pytest.param('{\n "name": "ping",\n "args": {\n "a": 1\n }\n}', "ping", '{\n "a": 1\n }', id="verbatim"),
    pytest.param('{"name": "ping", "args": {}} {"x": 1}', "ping", "{}", id="trailing text"),
    pytest.param('{"name": "ping", "arguments": {"a": 1}}', "ping", "{}", id="another key"),
    pytest.param('{"name":"ping","args":null}', "ping", "null", id="null"),
    pytest.param('{"name":"ping","args":"{\\"a\\":1}"}', "ping", '{"a":1}', id="object in a string"),
    pytest.param('{"name":"ping","args":"text"}', "ping", '"text"', id="string"),
    pytest.param('[{"name": "ping", "args": {"a": 1}}]', "ping", '{"a": 1}', id="list"),
    pytest.param(
        '{"name": "get_weather", "args": {"days": "3", "city": 5, "x": 1}}',
        "get_weather",
        '{"days": 3, "city": "5", "x": 1}',
        id="typed",
    ),
    pytest.param('{"name": "ping", "args": {"a": 1}', "ping", '{"a": 1}', id="unclosed"),
    pytest.param('{"name": "ping", "args": {"a": [1', "ping", '{"a": [1', id="broken"),
]


@pytest.mark.parametrize(("payload", "name", "arguments"), PAYLOADS)
def test_payloads(payload, name, arguments):
    run = runner()
    output = f"{call(payload)}{STOP}"
    assert summary(run.message(output)) == (None, None, ((name, arguments),))
    assert set(run.folds(output).values()) == {("", "", ((name, arguments),))}


def test_a_compact_object_is_dumped_anew_where_a_value_is_typed():
    run = runner()
    output = call('{"name":"get_weather","args":{"days":"3","city":"x"}}')
    assert summary(run.message(output)) == (None, None, (("get_weather", '{"days": 3, "city": "x"}'),))
    assert set(run.folds(output).values()) == {("", "", (("get_weather", '{"days":3,"city":"x"}'),))}


@pytest.mark.parametrize(
    "payload", ['{"args":{"a":1}}', '{"name":"","args":{}}', "ping(1)", '{"name": "pi', '{"name": 5}']
)
def test_a_payload_without_a_name_is_given_back(payload):
    run = runner()
    output = call(payload)
    assert summary(run.message(output)) == (None, output, ())
    assert set(run.folds(output).values()) == {("", output, ())}


def test_deltas_of_a_call():
    run = runner(reasoning=None)
    chunks = [
        CALL,
        '{"name": "get_weather',
        '",',
        ' "args": {"ci',
        'ty":',
        ' "',
        "Pa",
        'ris", "days',
        '": ',
        "2}",
        "}",
        END,
    ]
    assert entries(run.chunked(*chunks)) == [
        [],
        [],
        [(0, "get_weather", None)],
        [],
        [(0, None, '{"city":')],
        [(0, None, ' "')],
        [(0, None, "Pa")],
        [(0, None, "ris")],
        [(0, None, '", "days": ')],
        [],
        [],
        [(0, None, "2}")],
    ]


def test_what_the_end_adds_stands_in_an_entry_of_its_own():
    run = runner(reasoning=None)
    ids = run.ids(CALL + '{"name": "ping", "args": {"a": 2')
    assert entries(run.deltas(ids, [len(ids)])) == [[(0, "ping", '{"a": '), (0, None, "2")]]


@pytest.mark.parametrize(
    ("prompt", "output", "expected"),
    [
        (f"{MODEL}{THINK}", f"a{END}{MODEL}{TEXT}b{END}", ("a", "b", ())),
        (f"{MODEL}{TEXT}", f"a{END}", (None, "a", ())),
        (f"{MODEL}{TEXT}x{END}{STOP}", f"{TEXT}a{END}", (None, "a", ())),
        (f"{TEXT}x{END}{MODEL}", f"{THINK}a{END}", ("a", None, ())),
        ("", f"{THINK}a{END}", ("a", None, ())),
    ],
)
def test_the_prompt_decides_where_the_output_starts(prompt, output, expected):
    run = runner(prompt=prompt)
    assert summary(run.message(output)) == expected
    assert set(run.folds(output).values()) == {(expected[0] or "", expected[1] or "", ())}


def test_the_tool_parser_alone_starts_in_the_answer_and_drops_thoughts():
    run = runner(reasoning=None)
    output = f"name{THINK}t{END}{MODEL}{call({'name': 'ping', 'args': {}})}"
    assert summary(run.message(output)) == (None, "name", (("ping", "{}"),))
    assert set(run.folds(output).values()) == {("", "name", (("ping", "{}"),))}


def test_the_reasoning_parser_alone_leaves_calls_as_they_are():
    run = runner(tools=None, request=())
    output = f"{THINK}t{END}{MODEL}{TEXT}a{END}{MODEL}{call({'name': 'ping'})}{STOP}"
    assert summary(run.message(output)) == ("t", "a" + call({"name": "ping"}), ())
    assert set(run.folds(output).values()) == {("t", "a" + call({"name": "ping"}), ())}


@pytest.mark.parametrize(
    ("fields", "content"), [({"tool_choice": "none"}, "a"), ({"request": ()}, "a" + call({"name": "ping"}))]
)
def test_calls_that_nobody_wants(fields, content):
    run = runner(**fields)
    output = f"{TEXT}a{END}{MODEL}{call({'name': 'ping'})}"
    assert summary(run.message(output)) == (None, content, ())
    assert set(run.folds(output).values()) == {("", content, ())}


def test_a_snapshot_stays_small():
    run = runner()
    parser = run.plan.open(run.context)
    sizes = []
    ids = run.ids(THINK + "t" * 3000 + END + MODEL + CALL + '{"name": "get_weather", "args": {"city": "' + "x" * 3000)
    for token_id in ids:
        parser.feed([token_id], [run.vocabulary.text(token_id)], finished=False)
        sizes.append(len(json.dumps(parser.snapshot())))
    assert max(sizes) < 800


def test_a_long_argument_costs_linear_time():
    def seconds(characters):
        run = runner()
        ids = run.ids(CALL + '{"name": "get_weather", "args": {"city": "' + "x" * characters)
        start = time.process_time()
        run.deltas(ids)
        return time.process_time() - start

    seconds(1_000)
    assert seconds(60_000) < 40 * max(seconds(6_000), 0.005)


PIECES = [
    *MARKERS,
    STOP,
    '{"name": "ping"',
    ', "args": ',
    "{",
    "}",
    '"a": 1',
    '"city": "x"',
    '"',
    "\\",
    "text",
    " ",
    "<",
]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=24), st.sampled_from(["inkling", None]))
def test_random_outputs_never_raise_and_do_not_depend_on_grouping(pieces, reasoning):
    run = runner(reasoning=reasoning)
    output = "".join(pieces)
    message = run.message(output)
    folds = set(run.folds(output).values())
    assert len(folds) == 1
    if not message.calls:
        assert fold(run.deltas(output))[2] == ()
