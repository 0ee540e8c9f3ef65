"""DSML calls in their three dialects and the reasoning of V4: whole answers, exact deltas, every grouping."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.assembly import CallDelta, Delta
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool

D = "｜DSML｜"
MARKERS = ("<think>", "</think>", "<user>", "<assistant>", D)
WEATHER = tool("get_weather", city={"type": "string"}, days={"type": "integer"})
EVENT = tool("event", title={"type": "string"}, tags={"type": "array"}, any={})
BLOCKS = {
    "deepseek_v32": ("", "function_calls"),
    "deepseek_v4": ("", "tool_calls"),
    "deepseek_v41": (" ", "calls"),
}


def runner(tools="deepseek_v4", *, reasoning=None, request=(WEATHER, EVENT), prompt=None, **fields):
    vocabulary = FakeVocabulary(MARKERS)
    plan = plan_of(vocabulary, tools=tools, reasoning=reasoning)
    prompt_ids = vocabulary.encode(prompt) if prompt is not None else None
    return Runner(vocabulary, plan, context_of(*request, **fields), prompt_ids)


def parameter(key, value, string="true", *, gap=""):
    flag = f' string="{string}"' if string is not None else ""
    return f'<{D}{gap}parameter name="{key}"{flag}>{value}</{D}{gap}parameter>\n'


def invoke(name, *parameters, gap=""):
    return f'<{D}{gap}invoke name="{name}">\n{"".join(parameters)}</{D}{gap}invoke>\n'


def block(*invokes, dialect="deepseek_v4"):
    gap, name = BLOCKS[dialect]
    return f"<{D}{gap}{name}>\n{''.join(invokes)}</{D}{gap}{name}>"


PARIS = ("get_weather", '{"city": "Paris", "days": 2}')
CALL = invoke("get_weather", parameter("city", "Paris"), parameter("days", "2", "false"))


def arguments(*parameters, name="get_weather"):
    return block(invoke(name, *parameters))


ANSWERS = [
    pytest.param("Hello!<eos>", "Hello!", (), id="text"),
    pytest.param(block(CALL), None, (PARIS,), id="call"),
    pytest.param("Let me.\n\n" + block(CALL, CALL), "Let me.\n\n", (PARIS, PARIS), id="two calls"),
    pytest.param(CALL, None, (PARIS,), id="no block"),
    pytest.param(block(CALL) + "Done.", None, (PARIS,), id="text behind"),
    pytest.param(f"A<{D}tool_calls>\n</{D}tool_calls> B", "A B", (), id="empty block"),
    pytest.param(f"<{D}toolcalls>\n{CALL}</{D}tool_calls>", None, (PARIS,), id="misspelled block"),
    pytest.param(block(CALL).replace(f"</{D}invoke>\n", ""), None, (PARIS,), id="call not closed"),
    pytest.param(
        block(CALL.replace(f"</{D}invoke>\n", ""), CALL), None, (PARIS, PARIS), id="the next call ends a call"
    ),
    pytest.param(arguments(), None, (("get_weather", "{}"),), id="no arguments"),
    pytest.param(
        arguments(parameter("title", 'a > "b"\n</b> é'), name="event"),
        None,
        (("event", '{"title": "a > \\"b\\"\\n</b> é"}'),),
        id="angle brackets in a value",
    ),
    pytest.param(
        arguments(parameter("title", "5", "false"), parameter("tags", '["a"]'), name="event"),
        None,
        (("event", '{"title": "5", "tags": ["a"]}'),),
        id="typed by the schema",
    ),
    pytest.param(
        arguments(parameter("x", "[1]", None), parameter("y", "z", "false"), name="unknown"),
        None,
        (("unknown", '{"x": [1], "y": "z"}'),),
        id="unknown function",
    ),
    pytest.param(
        arguments(parameter("x", "NaN", "false"), name="unknown"), None, (("unknown", '{"x": "NaN"}'),), id="no number"
    ),
    pytest.param(
        arguments(parameter("arguments", '{"city": "Paris", "days": 2}', "false")), None, (PARIS,), id="wrapper"
    ),
    pytest.param(arguments(parameter("input", '{"city": "Paris", "days": 2}')), None, (PARIS,), id="wrapper in text"),
    pytest.param(
        arguments(parameter("input", '{"town": 1}', "false")),
        None,
        (("get_weather", '{"input": {"town": 1}}'),),
        id="no wrapper",
    ),
    pytest.param(
        arguments(f'<{D}parameter name="city" string="true">Paris\n', parameter("days", "2", "false")),
        None,
        (("get_weather", '{"city": "Paris\\n", "days": 2}'),),
        id="parameter not closed",
    ),
    pytest.param(
        arguments(parameter("days", "2", "false"), f'<{D}parameter name="city" string="true">Paris'),
        None,
        (("get_weather", '{"days": 2, "city": "Paris"}'),),
        id="last parameter not closed",
    ),
    pytest.param(
        arguments(parameter("title", f"a </{D}invoke> b"), name="event"),
        None,
        (("event", f'{{"title": "a </{D}invoke> b"}}'),),
        id="end tag in a value",
    ),
    pytest.param(
        arguments(f"<{D}parameter city>x", parameter("days", "2", "false")),
        None,
        (("get_weather", '{"days": 2}'),),
        id="malformed tag",
    ),
]


@pytest.mark.parametrize(("output", "content", "calls"), ANSWERS)
def test_one_shot(output, content, calls):
    assert summary(runner().message(output)) == (None, content, calls)


@pytest.mark.parametrize(("output", "content", "calls"), ANSWERS)
def test_every_grouping_folds_to_the_one_shot_answer(output, content, calls):
    for grouping, (_, c, found) in runner().folds(output).items():
        assert (c.strip(), found) == ((content or "").strip(), calls), grouping


@pytest.mark.parametrize("dialect", BLOCKS)
def test_dialects(dialect):
    gap = BLOCKS[dialect][0]
    call = invoke("get_weather", parameter("city", "Paris", gap=gap), parameter("days", "2", "false", gap=gap), gap=gap)
    output = "A" + block(call, dialect=dialect)
    for tools in BLOCKS:
        expected = (None, "A", (PARIS,)) if tools == dialect else None
        found = summary(runner(tools).message(output))
        assert found == expected if expected else found != (None, "A", (PARIS,)), tools


def test_deltas_of_a_call():
    run = runner()
    chunks = [f"<{D}tool_calls>\n", f'<{D}invoke name="get_weather', '">', "\n", f'<{D}parameter name="city" string="t']
    chunks += ['rue">', "Pa", "ris", "</", f"{D}para", "meter>", f'\n<{D}parameter name="days" string="false">', "2"]
    chunks += [f"</{D}parameter>\n", f"</{D}invoke>", f"\n</{D}tool_calls>"]
    ids = run.vocabulary.spell(*chunks)
    entries = [[(c.index, c.name, c.arguments) for c in delta.calls] if delta else [] for delta in run.deltas(ids)]
    assert entries == [
        [],
        [],
        [],
        [(0, "get_weather", None)],
        [],
        [(0, None, '{"city": "')],
        [],
        [],
        [],
        [],
        [(0, None, "Paris")],
        [],
        [],
        [(0, None, '", "days": ')],
        [(0, None, "2}")],
        [],
    ]


def test_a_whole_call_in_one_chunk_is_one_entry():
    run = runner()
    ids = run.ids(block(CALL))
    entry = CallDelta(index=0, id=run.context.call_id(0), name=PARIS[0], arguments=PARIS[1])
    assert run.deltas(ids, [len(ids)]) == [Delta(calls=[entry])]


@pytest.mark.parametrize(
    ("body", "streamed", "whole"),
    [
        (f'<{D}parameter name="city" string="true">San Fr', '{"city": "San Fr', "{}"),
        (f'<{D}parameter name="city" string="true">Rome</{D}param', '{"city": "Rome', "{}"),
        (parameter("city", "Rome"), '{"city": "Rome"}', '{"city": "Rome"}'),
        (f'<{D}parameter name="city"', "{}", "{}"),
        (parameter("city", "R") + f'<{D}parameter name="days" string="false">2', '{"city": "R"}', '{"city": "R"}'),
        (
            parameter("days", "2", "false") + f'<{D}parameter name="city" string="true">R',
            '{"days": 2, "city": "R',
            None,
        ),
    ],
)
def test_a_cut_call(body, streamed, whole):
    run = runner()
    output = f'<{D}tool_calls>\n<{D}invoke name="get_weather">\n{body}'
    assert run.message(output).calls[0].arguments == (whole or '{"days": 2}')
    assert {calls for _, _, calls in run.folds(output).values()} == {(("get_weather", streamed),)}


def test_a_repeated_parameter_stays_valid_json():
    run = runner()
    output = arguments(parameter("city", "A"), parameter("days", "1", "false"), parameter("city", "B"))
    assert run.message(output).calls[0].arguments == '{"city": "B", "days": 1}'
    [(_, streamed)] = fold(run.deltas(output))[2]
    assert json.loads(streamed) == {"city": "B", "days": 1}


THOUGHTS = [
    pytest.param("T.\n</think>\n\nHi", ("T.", "\n\nHi", ()), id="opened by the prompt"),
    pytest.param("<think>\nT</think>Hi", ("\nT", "Hi", ()), id="opening tag is swallowed"),
    pytest.param("never closed", ("never closed", None, ()), id="all reasoning"),
    pytest.param("a</think>b<think>c</think>d", ("ac", "bd", ()), id="thoughts again"),
    pytest.param("T </think>\n\n" + block(CALL), ("T", None, (PARIS,)), id="call"),
    pytest.param("T " + block(CALL), ("T", None, (PARIS,)), id="a call ends reasoning"),
    pytest.param(block(CALL) + "<think>late</think>text", ("late", None, (PARIS,)), id="thoughts behind a call"),
]


@pytest.mark.parametrize(("output", "expected"), THOUGHTS)
def test_reasoning(output, expected):
    run = runner(reasoning="deepseek_v4")
    assert summary(run.message(output)) == expected
    for grouping, (r, c, calls) in run.folds(output).items():
        assert (r, c.strip(), calls) == (expected[0] or "", (expected[1] or "").strip(), expected[2]), grouping


@pytest.mark.parametrize(
    ("prompt", "kwargs", "output", "expected"),
    [
        ("<assistant><think>", {}, "A</think>B", ("A", "B")),
        ("<assistant></think>\n\n", {}, "A", (None, "A")),
        ("<assistant>t</think>b<user>hi<assistant>", {}, "A</think>B", ("A", "B")),
        ("<assistant></think>", {"thinking": False}, "A</think>B", (None, "AB")),
        ("<assistant></think>", {"thinking": False}, "<think>A</think>B", ("A", "B")),
        ("<assistant><think>", {"thinking": False}, "A</think>B", (None, "AB")),
        ("<assistant>", {"thinking": False, "enable_thinking": True}, "A</think>B", ("A", "B")),
        ("<assistant>", {"thinking": None}, "A", (None, "A")),
        ("<assistant>", {"reasoning_effort": "none", "enable_thinking": True}, "A", (None, "A")),
    ],
)
def test_where_the_output_starts(prompt, kwargs, output, expected):
    run = runner(None, reasoning="deepseek_v4", prompt=prompt, template_kwargs=kwargs)
    assert summary(run.message(output)) == (*expected, ())
    assert {f[:2] for f in run.folds(output).values()} == {(expected[0] or "", expected[1] or "")}


def test_v32_takes_its_thoughts_from_deepseek_v3():
    run = runner("deepseek_v32", reasoning="deepseek_v3", prompt="<think>", template_kwargs={"thinking": True})
    output = "T</think>A" + block(CALL, dialect="deepseek_v32")
    assert summary(run.message(output)) == ("T", "A", (PARIS,))
    assert {(r, c, calls) for r, c, calls in run.folds(output).values()} == {("T", "A", (PARIS,))}


def test_a_long_argument_takes_linear_time_and_a_small_snapshot():
    def seconds(length):
        run = runner()
        ids = run.ids(arguments(parameter("title", "wxyz " * length), name="event"))
        texts = [run.vocabulary.text(token_id) for token_id in ids]
        parser = run.plan.open(run.context)
        start, largest = time.process_time(), 0
        for position, (token_id, text) in enumerate(zip(ids, texts, strict=True)):
            parser.feed([token_id], [text], finished=False)
            if position % 500 == 0:
                largest = max(largest, len(json.dumps(parser.snapshot())))
        assert largest < 4000
        return time.process_time() - start

    short, long = min(seconds(1000) for _ in range(3)), min(seconds(8000) for _ in range(3))
    assert long < 24 * short


PARTS = [
    f"<{D}parameter",
    ' name="city"',
    ' string="true"',
    ">",
    f"</{D}parameter>",
    f"</{D}invoke>",
    f"</{D}tool_calls>",
    "<",
    '"',
    "x",
    "\n",
]


@settings(max_examples=120, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=9))
def test_any_arguments_fold_alike(parts):
    run = runner()
    output = f'<{D}tool_calls><{D}invoke name="get_weather">{"".join(parts)}</{D}invoke>'
    folds = {(r, c.strip(), calls) for r, c, calls in run.folds(output).values()}
    assert len(folds) == 1
    streamed = json.loads(next(iter(folds))[2][0][1])
    assert streamed == json.loads(run.message(output).calls[0].arguments)
