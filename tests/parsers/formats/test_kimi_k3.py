"""Kimi K3: whole answers, exact deltas, channels that are missing or cut, every grouping."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.assembly import CallDelta, Delta
from parsers.engine.exceptions import ParserConfigurationError
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool

OPEN, CLOSE, SEP = "<|open|>", "<|close|>", "<|sep|>"
WEATHER = tool("get_weather", city={"type": "string"}, days={"type": "integer"})
PARIS = ("get_weather", '{"city": "Paris", "days": 2}')


def runner(
    *, tools="kimi_k3", reasoning="kimi_k3", request=(WEATHER,), prompt=None, markers=(OPEN, CLOSE, SEP), **fields
):
    vocabulary = FakeVocabulary((*markers, "<|end_of_msg|>"))
    plan = plan_of(vocabulary, tools=tools, reasoning=reasoning)
    prompt_ids = vocabulary.encode(prompt) if prompt is not None else None
    return Runner(vocabulary, plan, context_of(*request, **fields), prompt_ids)


def channel(name, text):
    return f"{OPEN}{name}{SEP}{text}{CLOSE}{name}{SEP}"


def argument(key, value, kind="string"):
    return (
        f'{OPEN}argument key="{key}"{f" type={chr(34)}{kind}{chr(34)}" if kind else ""}{SEP}{value}{CLOSE}argument{SEP}'
    )


def call(name, *arguments):
    return f'{OPEN}call tool="{name}" index="1"{SEP}{"".join(arguments)}{CLOSE}call{SEP}'


DONE = f"{CLOSE}message{SEP}<eos>"
THOUGHT = f"T{CLOSE}think{SEP}"
CALL = call("get_weather", argument("city", "Paris"), argument("days", "2", "number"))
TOOLS = channel("tools", CALL)

ANSWERS = [
    pytest.param(THOUGHT + channel("response", "Hi < 3") + DONE, ("T", "Hi < 3", ()), id="answer"),
    pytest.param(THOUGHT + channel("response", "Hi") + TOOLS + DONE, ("T", "Hi", (PARIS,)), id="call"),
    pytest.param(THOUGHT + channel("response", "") + TOOLS + DONE, ("T", None, (PARIS,)), id="empty answer"),
    pytest.param(THOUGHT + channel("response", " \n") + TOOLS + DONE, ("T", None, (PARIS,)), id="blank answer"),
    pytest.param(THOUGHT + channel("tools", CALL + CALL), ("T", None, (PARIS, PARIS)), id="two calls"),
    pytest.param(THOUGHT + TOOLS + channel("response", "Hi"), ("T", "Hi", (PARIS,)), id="calls before the answer"),
    pytest.param(channel("think", "T") + "\n" + channel("response", "Hi"), ("T", "Hi", ()), id="opening tag"),
    pytest.param(f"{CLOSE}think{SEP}{channel('response', 'Hi')}", (None, "Hi", ()), id="no thoughts"),
    pytest.param(channel("response", "Hi") + TOOLS, (None, "Hi", (PARIS,)), id="thoughts not closed, none had"),
    pytest.param("never closed", ("never closed", None, ()), id="all reasoning"),
    pytest.param("T " + channel("response", "Hi"), ("T ", "Hi", ()), id="the answer ends thoughts"),
    pytest.param(f"T {TOOLS}", (f"T {TOOLS}", None, ()), id="calls inside thoughts are thoughts"),
    pytest.param(THOUGHT + "bare" + DONE, ("T", "bare", ()), id="no response channel"),
    pytest.param(THOUGHT + f"bare{CLOSE}response{SEP}{DONE}", ("T", "bare", ()), id="only closed"),
    pytest.param(f"{OPEN}think{SEP}a{CLOSE} think {SEP}b", ("a", "b", ()), id="spaces in a tag"),
    pytest.param(
        THOUGHT + channel("response", f"say {OPEN}foo{SEP} or {SEP}"),
        ("T", f"say {OPEN}foo{SEP} or {SEP}", ()),
        id="tags as text",
    ),
    pytest.param(
        THOUGHT + channel("tools", call("f", argument("a &quot;&amp;amp;", "x", None), argument("n", "x", "number"))),
        ("T", None, (("f", '{"a \\"&amp;": "x", "n": "x"}'),)),
        id="attributes and types",
    ),
    pytest.param(
        THOUGHT + channel("tools", call("f", argument("a", "1"), argument("b", "[1]", "array"), argument("a", "2"))),
        ("T", None, (("f", '{"a": "2", "b": [1]}'),)),
        id="repeated argument",
    ),
    pytest.param(THOUGHT + channel("tools", call("f")), ("T", None, (("f", "{}"),)), id="no arguments"),
    pytest.param(THOUGHT + channel("tools", f"{OPEN}call index=1{SEP}{CLOSE}call{SEP}"), ("T", None, ()), id="no name"),
    pytest.param(
        THOUGHT + f'{OPEN}tools{SEP}{OPEN}call tool="f"{SEP}{argument("a", "1")}{CLOSE}tools{SEP}',
        ("T", None, (("f", '{"a": "1"}'),)),
        id="call not closed",
    ),
    pytest.param(THOUGHT + f"{OPEN}response{SEP}1 <", ("T", "1 <", ()), id="cut behind a bracket"),
    pytest.param(THOUGHT + f"{OPEN}response{SEP}Hi{CLOSE}resp", ("T", f"Hi{CLOSE}resp", ()), id="cut in a tag"),
    pytest.param(
        THOUGHT + f'{OPEN}tools{SEP}{OPEN}call tool="f"{SEP}{OPEN}argument key="a"{SEP}x',
        ("T", None, ()),
        id="cut in a call",
    ),
]


@pytest.mark.parametrize(("output", "expected"), ANSWERS)
def test_one_shot(output, expected):
    assert summary(runner().message(output)) == expected


@pytest.mark.parametrize(("output", "expected"), ANSWERS)
def test_every_grouping_folds_to_the_one_shot_answer(output, expected):
    for grouping, (r, c, calls) in runner().folds(output).items():
        assert (r, c.strip(), calls) == (expected[0] or "", (expected[1] or "").strip(), expected[2]), grouping


def test_deltas():
    run = runner()
    ids = [
        *run.vocabulary.spell("T", " <"),
        *run.ids(f"{CLOSE}think{SEP}{OPEN}response{SEP}"),
        *run.vocabulary.spell("H", "i"),
    ]
    ids += [*run.ids(f"{CLOSE}response{SEP}"), *run.ids(TOOLS)]
    deltas = [delta for delta in run.deltas(ids) if delta]
    expected = CallDelta(index=0, id=run.context.call_id(0), name=PARIS[0], arguments=PARIS[1])
    assert deltas == [
        Delta("T"),
        Delta(" "),
        Delta("<"),
        Delta(content="H"),
        Delta(content="i"),
        Delta(calls=[expected]),
    ]


@pytest.mark.parametrize(
    ("prompt", "kwargs", "output", "expected"),
    [
        (f"{OPEN}message{SEP}{OPEN}think{SEP}", {}, THOUGHT + "Hi", ("T", "Hi")),
        (f"{OPEN}message{SEP}{channel('think', '')}", {}, channel("response", "Hi"), (None, "Hi")),
        (f"{OPEN}message{SEP}{channel('think', '')}{OPEN}response{SEP}", {}, f"Hi{CLOSE}response{SEP}", (None, "Hi")),
        (f"{channel('think', 'old')}x<|end_of_msg|>{OPEN}message{SEP}", {}, THOUGHT + "Hi", ("T", "Hi")),
        (f"{OPEN}message{SEP}", {"thinking": False}, "Hi", (None, "Hi")),
        (f"{OPEN}message{SEP}", {"thinking": False}, channel("think", "T") + channel("response", "Hi"), (None, "Hi")),
        (f"{OPEN}message{SEP}", {"thinking": None, "enable_thinking": False}, "Hi", (None, "Hi")),
        (f"{OPEN}message{SEP}", {"thinking": True, "enable_thinking": False}, "T", ("T", None)),
    ],
)
def test_where_the_output_starts(prompt, kwargs, output, expected):
    run = runner(prompt=prompt, template_kwargs=kwargs)
    assert summary(run.message(output)) == (*expected, ())
    assert {fold_[:2] for fold_ in run.folds(output).values()} == {(expected[0] or "", expected[1] or "")}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"tool_choice": "none"}, ("T", "Hi", ())),
        ({"request": ()}, ("T", "Hi", ())),
        ({"tool_choice": "required"}, ("T", "Hi", (PARIS,))),
        ({"include_reasoning": False}, (None, "Hi", (PARIS,))),
        ({"reasoning": None}, (None, "THi", (PARIS,))),
        ({"tools": None}, ("T", "Hi", ())),
    ],
)
def test_configuration_and_request(fields, expected):
    assert summary(runner(**fields).message(THOUGHT + channel("response", "Hi") + TOOLS)) == expected


def test_without_a_tool_parser_calls_are_text():
    assert summary(runner(tools=None).message(THOUGHT + TOOLS)) == ("T", TOOLS, ())


def test_a_tokenizer_without_the_tokens_is_refused_at_start():
    with pytest.raises(ParserConfigurationError, match="no <"):
        runner(markers=(OPEN, SEP))


def test_a_long_answer_takes_linear_time_and_a_small_snapshot():
    def seconds(length):
        run = runner()
        ids = run.ids(THOUGHT + channel("response", "wxyz " * length))
        texts = [run.vocabulary.text(token_id) for token_id in ids]
        parser = run.plan.open(run.context)
        start = time.process_time()
        for token_id, text in zip(ids, texts, strict=True):
            parser.feed([token_id], [text], finished=False)
        assert len(str(parser.snapshot())) < 1000
        return time.process_time() - start

    short, long = min(seconds(1000) for _ in range(3)), min(seconds(8000) for _ in range(3))
    assert long < 24 * short


PARTS = [
    OPEN,
    CLOSE,
    SEP,
    "think",
    "response",
    "tools",
    "message",
    "argument",
    'call tool="f"',
    ' key="a"',
    "x",
    " ",
    "<|op",
    "<",
]


@settings(max_examples=250, deadline=None)
@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=12))
def test_any_output_folds_alike(parts):
    run = runner()
    folds = {(r.strip(), c.strip(), calls) for r, c, calls in run.folds("".join(parts)).values()}
    assert len(folds) == 1
    message = run.message("".join(parts))
    assert folds == {
        ((message.reasoning or "").strip(), (message.content or "").strip(), fold(run.deltas("".join(parts)))[2])
    }
    assert summary(message)[2] == fold(run.deltas("".join(parts)))[2]
