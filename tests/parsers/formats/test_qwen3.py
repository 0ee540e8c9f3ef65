"""qwen3 reasoning and qwen3_coder calls: whole answers, exact deltas, every grouping."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.assembly import CallDelta, Delta
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool

MARKERS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_start|>")
WEATHER = tool("get_weather", city={"type": "string"}, days={"type": "integer"}, extra={"type": "object"})
NOTE = tool("note", text={"type": "string"})


def runner(*, tools="qwen3_coder", reasoning="qwen3", request=(WEATHER, NOTE), prompt=None, **fields):
    vocabulary = FakeVocabulary(MARKERS)
    plan = plan_of(vocabulary, tools=tools, reasoning=reasoning)
    context = context_of(*request, **fields)
    return Runner(vocabulary, plan, context, vocabulary.encode(prompt) if prompt is not None else None)


def call(name, **parameters):
    body = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in parameters.items())
    return f"<tool_call>\n<function={name}>\n{body}</function>\n</tool_call>"


PARIS = ("get_weather", '{"city": "Paris", "days": 3}')

WELL_FORMED = [
    pytest.param("Think.\n</think>\n\nHello!<eos>", ("Think.\n", "\n\nHello!", ()), id="answer"),
    pytest.param("<think>\nT</think>A", ("\nT", "A", ()), id="opening tag is swallowed"),
    pytest.param("never closed", ("never closed", None, ()), id="all reasoning"),
    pytest.param(
        f"T</think>\n\n{call('get_weather', city='Paris', days=3)}<eos>", ("T", None, (PARIS,)), id="one call"
    ),
    pytest.param(
        f"T</think>Let me look.{call('get_weather', city='Paris', days=3)}", ("T", "Let me look.", (PARIS,)), id="text"
    ),
    pytest.param(
        f"T</think>{call('get_weather', city='Paris', days=3)}\n{call('note', text='a')}",
        ("T", None, (PARIS, ("note", '{"text": "a"}'))),
        id="two calls",
    ),
    pytest.param(
        f"T{call('get_weather', city='Paris', days=3)}", ("T", None, (PARIS,)), id="a call ends reasoning, too"
    ),
    pytest.param(
        "</think><function=note>\n<parameter=text>\nx\n</parameter>\n</function>",
        (None, None, (("note", '{"text": "x"}'),)),
        id="call without wrapper",
    ),
    pytest.param(f"</think>{call('note')}", (None, None, (("note", "{}"),)), id="no arguments"),
    pytest.param(
        f"</think>{call('note', text='a < b </p> <param> é')}",
        (None, None, (("note", '{"text": "a < b </p> <param> é"}'),)),
        id="angle brackets in a value",
    ),
    pytest.param(
        f"</think>{call('note', text=chr(10) + 'x' + chr(10))}",
        (None, None, (("note", '{"text": "\\nx\\n"}'),)),
        id="one line break at each end belongs to the tags",
    ),
    pytest.param(
        f"""</think>{call("get_weather", extra='{"a": [1, 2]}', days="x")}""",
        (None, None, (("get_weather", '{"extra": {"a": [1, 2]}, "days": "x"}'),)),
        id="typed by the schema",
    ),
    pytest.param(
        f"</think>{call('unknown', n=1)}", (None, None, (("unknown", '{"n": "1"}'),)), id="unknown function: strings"
    ),
]


@pytest.mark.parametrize(("output", "expected"), WELL_FORMED)
def test_one_shot(output, expected):
    assert summary(runner().message(output)) == expected


@pytest.mark.parametrize(("output", "expected"), WELL_FORMED)
def test_every_grouping_folds_to_the_one_shot_answer(output, expected):
    reasoning, content, calls = expected
    for grouping, (r, c, found) in runner().folds(output).items():
        assert (r, c.strip(), found) == (reasoning or "", (content or "").strip(), calls), grouping


def test_deltas_of_a_call():
    run = runner(reasoning=None)
    chunks = [
        "<tool_call>",
        "\n<function=",
        "get_weather",
        ">",
        "\n",
        "<parameter=city>",
        "\nPa",
        "ris\n",
        "</parameter>",
    ]
    chunks += ["\n<parameter=days>", "\n3\n", "</parameter>\n</function>", "\n</tool_call>"]
    ids = [
        token_id
        for chunk in chunks
        for token_id in (run.ids(chunk) if "tool_call" in chunk else run.vocabulary.spell(chunk))
    ]
    lens = [2 if chunk == "\n</tool_call>" else 1 for chunk in chunks]
    deltas = run.deltas(ids, lens)
    entries = [[(c.index, c.name, c.arguments) for c in delta.calls] if delta else [] for delta in deltas]
    assert entries == [
        [],
        [],
        [],
        [],
        [(0, "get_weather", None)],
        [(0, None, '{"city": "')],
        [(0, None, "Pa")],
        [(0, None, "ris")],
        [],
        [(0, None, '", "days": ')],
        [],
        [(0, None, "3}")],
        [],
    ]


def test_a_whole_call_in_one_chunk_is_one_entry():
    run = runner(reasoning=None)
    ids = run.ids(call("note", text="x"))
    [delta] = run.deltas(ids, [len(ids)])
    expected = CallDelta(index=0, id=run.context.call_id(0), name="note", arguments='{"text": "x"}')
    assert delta == Delta(calls=[expected])


MALFORMED = [
    pytest.param("Use <tool_call> tags.", "Use <tool_call> tags.", (), id="the marker is talked about"),
    pytest.param(
        'See <tool_call>{"name": "x"}</tool_call>!', 'See <tool_call>{"name": "x"}</tool_call>!', (), id="other format"
    ),
    pytest.param("A <tool_call>\n<func", "A ", (), id="cut marker"),
    pytest.param("A <tool_call>\n</tool_call>B", "A B", (), id="empty block"),
]


@pytest.mark.parametrize(("output", "content", "calls"), MALFORMED)
def test_a_block_without_a_call_is_given_back(output, content, calls):
    run = runner(reasoning=None)
    assert summary(run.message(output)) == (None, content, calls)
    assert set(run.folds(output).values()) == {("", content, calls)}


def test_a_long_block_without_a_call_is_released_before_the_end():
    run = runner(reasoning=None)
    text = "word " * 1000
    deltas = run.deltas(f"<tool_call>{text}")
    assert sum(bool(delta and delta.content) for delta in deltas) > 500
    assert fold(deltas) == ("", f"<tool_call>{text}", ())


CUT = [
    pytest.param("<parameter=city>\nPar", '{"city": "Par', "{}", id="in a string"),
    pytest.param("<parameter=days>\n3", '{"days": ', "{}", id="in a typed value"),
    pytest.param("<parameter=city>\nP\n</parameter>\n", '{"city": "P"}', '{"city": "P"}', id="behind a parameter"),
]


@pytest.mark.parametrize(("body", "streamed", "whole"), CUT)
def test_a_cut_call(body, streamed, whole):
    run = runner(reasoning=None)
    output = f"<tool_call>\n<function=get_weather>\n{body}"
    assert run.message(output).calls[0].arguments == whole
    assert {calls for _, _, calls in run.folds(output).values()} == {(("get_weather", streamed),)}


def test_a_repeated_parameter_stays_valid_json():
    run = runner(reasoning=None)
    output = "<function=note><parameter=text>a</parameter><parameter=text>b</parameter></function>"
    assert run.message(output).calls[0].arguments == '{"text": "b"}'
    [(_, streamed)] = fold(run.deltas(output))[2]
    assert json.loads(streamed) == {"text": "b"}


def test_spelled_markers_are_text():
    run = runner()
    ids = [
        *run.vocabulary.spell("split at ", "</think>", " here"),
        *run.ids("</think>"),
        *run.vocabulary.spell("as ", "<tool_call>"),
    ]
    assert summary(run.message(ids)) == ("split at </think> here", "as <tool_call>", ())
    assert set(run.folds(ids).values()) == {("split at </think> here", "as <tool_call>", ())}


def test_without_tokens_the_markers_are_found_in_the_text():
    vocabulary = FakeVocabulary(())
    run = Runner(vocabulary, plan_of(vocabulary, tools="qwen3_coder", reasoning="qwen3"), context_of(NOTE))
    output = f"T</think>A{call('note', text='x')}"
    assert summary(run.message(output)) == ("T", "A", (("note", '{"text": "x"}'),))
    assert set(run.folds(output).values()) == {("T", "A", (("note", '{"text": "x"}'),))}


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("<|im_start|>assistant<think>", ("A", None, ())),
        ("<|im_start|>assistant<think></think>", (None, "A", ())),
        ("</think><|im_start|>assistant", ("A", None, ())),
    ],
)
def test_the_prompt_decides_where_the_output_starts(prompt, expected):
    run = runner(prompt=prompt)
    assert summary(run.message("A")) == expected
    assert fold(run.deltas("A")) == (expected[0] or "", expected[1] or "", ())


@pytest.mark.parametrize(
    ("fields", "output", "expected"),
    [
        ({"template_kwargs": {"enable_thinking": False}}, "A</think>B", (None, "AB", ())),
        ({"template_kwargs": {"enable_thinking": None}}, "A</think>B", ("A", "B", ())),
        ({"include_reasoning": False}, "A</think>B", (None, "B", ())),
        ({"tool_choice": "none"}, f"A</think>B {call('note', text='x')}C", ("A", "B C", ())),
        ({"tool_choice": None}, f"A</think>{call('note', text='x')}", ("A", None, (("note", '{"text": "x"}'),))),
        (
            {"parallel_tool_calls": False},
            f"A</think>{call('note', text='x')}{call('note', text='y')}",
            ("A", None, (("note", '{"text": "x"}'),)),
        ),
        ({"tool_choice": "required"}, f"A</think>{call('note', text='x')}", ("A", "", (("note", '{"text": "x"}'),))),
    ],
)
def test_request_fields(fields, output, expected):
    run = runner(**fields)
    assert summary(run.message(output)) == expected
    streamed = fold(run.deltas(output))
    assert streamed == (expected[0] or "", expected[1] or "", expected[2])


def test_without_tools_a_call_is_text():
    run = runner(request=())
    output = f"A</think>{call('note', text='x')}"
    assert summary(run.message(output)) == ("A", call("note", text="x"), ())


def test_a_snapshot_does_not_grow_with_the_output():
    run = runner()
    parser = run.plan.open(run.context)
    sizes = []
    ids = run.ids("T" * 3000 + "</think>" + "A" * 3000 + "<tool_call><function=note><parameter=text>" + "x" * 3000)
    for token_id in ids:
        parser.feed([token_id], [run.vocabulary.text(token_id)], finished=False)
        sizes.append(len(json.dumps(parser.snapshot())))
    assert max(sizes) < 600


def test_a_long_argument_costs_linear_time():
    def seconds(characters):
        run = runner(reasoning=None)
        ids = run.ids("<function=note><parameter=text>" + "x" * characters)
        texts = [run.vocabulary.text(token_id) for token_id in ids]
        parser = run.plan.open(run.context)
        began = time.process_time()
        for token_id, text in zip(ids, texts, strict=True):
            parser.feed([token_id], [text], finished=False)
        return time.process_time() - began

    short = min(seconds(10_000) for _ in range(3))
    assert seconds(100_000) < 30 * short


PARTS = [
    *MARKERS,
    "<function=note>",
    "</function>",
    "<parameter=text>",
    "</parameter>",
    "<",
    ">",
    "\n",
    "x",
    " ",
    "<eos>",
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=25))
def test_no_mixture_of_markers_raises_or_depends_on_the_grouping(parts):
    run = runner()
    folds = run.folds("".join(parts))
    assert len(set(folds.values())) == 1
    run.message("".join(parts))


def test_white_space_behind_a_swallowed_end_tag_is_sent_at_once():
    run = runner(template_kwargs={"enable_thinking": False})
    deltas = run.chunked("x", "</think>", "\n", "A")
    assert [delta and delta.content for delta in deltas] == ["x", None, "\n", "A"]
