"""Kimi K2: whole answers, exact deltas, headers, typed arguments, drafts inside the thoughts, every grouping."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.assembly import CallDelta, Delta
from parsers.engine.raw_arguments import RawArguments
from parsers.formats.kimi_k2 import Header, read_header
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool

BEGIN, END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
CALL, ARGS, CALL_END = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
MARKERS = ("<think>", "</think>", BEGIN, END, CALL, ARGS, CALL_END, "<user>", "<assistant>")
WEATHER = tool("get_weather", city={"type": "string"}, days={"type": "integer"})
EVENT = tool(
    "event",
    title={"type": "string"},
    count={"type": "integer"},
    on={"type": "boolean"},
    note={"type": ["string", "null"]},
    tags={"type": "array", "items": {"type": "string"}},
    deep={"type": "object", "properties": {"n": {"type": "number"}}},
)
PARIS = ("get_weather", '{"city": "Paris", "days": 2}')


def runner(*, tools="kimi_k2", reasoning=None, request=(WEATHER, EVENT), prompt=None, markers=MARKERS, **fields):
    vocabulary = FakeVocabulary(markers)
    plan = plan_of(vocabulary, tools=tools, reasoning=reasoning)
    prompt_ids = vocabulary.encode(prompt) if prompt is not None else None
    return Runner(vocabulary, plan, context_of(*request, **fields), prompt_ids)


def call(arguments, header="functions.get_weather:0"):
    return f"{CALL}{header}{ARGS}{arguments}{CALL_END}"


def section(*calls):
    return BEGIN + "".join(calls) + END


ANSWERS = [
    pytest.param("Hello!<eos>", "Hello!", (), id="text"),
    pytest.param("Look. \n" + section(call(PARIS[1])), "Look. \n", (PARIS,), id="call"),
    pytest.param(section(call(PARIS[1]), call(PARIS[1])), None, (PARIS, PARIS), id="two calls"),
    pytest.param(section(call(PARIS[1])) + "Done.", None, (PARIS,), id="text behind"),
    pytest.param(section(call(PARIS[1])) + section(call(PARIS[1])), None, (PARIS, PARIS), id="two sections"),
    pytest.param(f"A{BEGIN}{END}B", "AB", (), id="empty section"),
    pytest.param(f"{BEGIN} noise {call(PARIS[1])}{END}", None, (PARIS,), id="noise in the section"),
    pytest.param(call(PARIS[1]), call(PARIS[1]), (), id="no section"),
    pytest.param(section(call("")), None, (("get_weather", "{}"),), id="no arguments"),
    pytest.param(section(call(" {}\n")), None, (("get_weather", "{}"),), id="white space around arguments"),
    pytest.param(section(call("city=Paris")), None, (("get_weather", "city=Paris"),), id="no JSON"),
    pytest.param(
        section(call('{"city":"Rome"}}')), None, (("get_weather", '{"city":"Rome"}}'),), id="a brace too many"
    ),
    pytest.param(
        section(call('{"city":"}{\\""}')), None, (("get_weather", '{"city":"}{\\""}'),), id="brace in a string"
    ),
    pytest.param(
        section(call('{"city": 5, "days": "2"}')), None, (("get_weather", '{"city": "5", "days": 2}'),), id="typed"
    ),
    pytest.param(section(call(PARIS[1], "get_weather")), None, (PARIS,), id="header without an index"),
    pytest.param(
        section(call('{"name": "Bob"}', "functions.get_user")),
        None,
        (("get_user", '{"name": "Bob"}'),),
        id="no name out of the arguments",
    ),
    pytest.param(section(call("{}", "two words")), section(call("{}", "two words")), (), id="no header"),
    pytest.param(section(f"{CALL}functions.ping{CALL_END}"), None, (("ping", "{}"),), id="only a header"),
    pytest.param(
        section(f"{CALL}functions.get_weather:0{ARGS}{PARIS[1]}", call(PARIS[1])),
        None,
        (PARIS, PARIS),
        id="call not closed",
    ),
    pytest.param(f"{BEGIN}talk about markers", f"{BEGIN}talk about markers", (), id="a section of text"),
]


@pytest.mark.parametrize(("output", "content", "calls"), ANSWERS)
def test_one_shot(output, content, calls):
    assert summary(runner().message(output)) == (None, content, calls)


@pytest.mark.parametrize(("output", "content", "calls"), ANSWERS)
def test_every_grouping_folds_to_the_one_shot_answer(output, content, calls):
    for grouping, (_, c, found) in runner().folds(output).items():
        assert (c.strip(), found) == ((content or "").strip(), calls), grouping


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("functions.get_weather:0", Header("get_weather", "functions.get_weather:0")),
        ("\nfunctions.ns.f:12\n", Header("ns.f", "functions.ns.f:12")),
        ("functions.mcp:f:3", Header("mcp", "functions.mcp:f:3")),
        ("f:3 extra", Header("f", "f:3")),
        ("functions.web-search", Header("web-search", None)),
        (":0", None),
        ("two words", None),
        ("", None),
    ],
)
def test_headers(header, expected):
    assert read_header(header) == expected


def test_ids_are_the_headers():
    message = runner().message(section(call("{}", "functions.f:7"), call("{}", "f")))
    generated = runner().context.call_id(1)
    assert [each.id for each in message.calls] == ["functions.f:7", generated]


def test_generated_ids_of_kimi_models():
    run = runner()
    run.vocabulary.model_type = "kimi_k2"
    assert [each.id for each in run.message(section(call("{}", "f"))).calls] == ["functions.f:0"]
    [delta] = [delta for delta in run.deltas(section(call("{}", "f"))) if delta and delta.calls and delta.calls[0].id]
    assert delta.calls[0].id == "functions.f:0"


def test_deltas_of_a_call():
    run = runner()
    ids = [*run.ids(BEGIN + CALL), *run.vocabulary.spell("functions.get_", "weather:0"), *run.ids(ARGS)]
    ids += [*run.vocabulary.spell('{"', 'city": "', "Rome", '"}'), *run.ids(CALL_END + END + "<eos>")]
    first = Delta(calls=[CallDelta(index=0, id="functions.get_weather:0", name="get_weather", arguments='{"')])
    rest = [Delta(calls=[CallDelta(index=0, arguments=text)]) for text in ('city": "', "Rome", '"', "}")]
    assert run.deltas(ids) == [*[None] * 5, first, *rest, None, None]


def test_the_end_of_output_releases_a_bracket():
    run = runner()
    ids = [*run.ids(f"{BEGIN}{CALL}f:0{ARGS}"), *run.vocabulary.spell('{"a": {', "}}")]
    assert run.deltas(ids)[-1] == Delta(calls=[CallDelta(index=0, arguments="}"), CallDelta(index=0, arguments="}")])


@pytest.mark.parametrize(
    ("cut", "calls"),
    [
        (f"{CALL}functions.get_wea", ()),
        (f"{CALL}functions.get_weather:0", (("get_weather", "{}"),)),
        (f'{CALL}functions.get_weather:0{ARGS}{{"city": "San F', (("get_weather", '{"city": "San F'),)),
    ],
)
def test_a_cut_call(cut, calls):
    run = runner()
    assert summary(run.message(BEGIN + cut)) == (None, None, calls)
    assert set(run.folds(BEGIN + cut).values()) == {("", "", calls)}


THOUGHTS = [
    pytest.param("T.\n</think>\n\nHi", ("T.", "\n\nHi", ()), id="opened by the prompt"),
    pytest.param("<think>\nT</think>Hi", ("\nT", "Hi", ()), id="opening tag is swallowed"),
    pytest.param("never closed", ("never closed", None, ()), id="all reasoning"),
    pytest.param("t</think>a <think>b</think> c", ("t", "a <think>b c", ()), id="tags in the answer"),
    pytest.param("T " + section(call(PARIS[1])), ("T", None, (PARIS,)), id="a section ends reasoning"),
    pytest.param("<think>T " + section(call(PARIS[1])), ("T", None, (PARIS,)), id="not closed before a section"),
    pytest.param(
        "<think>T " + section(call(PARIS[1])) + "</think>", ("T", None, (PARIS,)), id="closed right behind a section"
    ),
    pytest.param(
        "<think>Maybe " + section(call("{}")) + " here.</think>" + section(call(PARIS[1])),
        (f"Maybe {section(call('{}'))} here.", None, (PARIS,)),
        id="a draft",
    ),
    pytest.param(f"<think>say {BEGIN}</think>ok", (f"say {BEGIN}", "ok", ()), id="the marker is talked about"),
]


@pytest.mark.parametrize(("output", "expected"), THOUGHTS)
def test_reasoning(output, expected):
    run = runner(reasoning="kimi_k2")
    assert summary(run.message(output)) == expected
    for grouping, (r, c, calls) in run.folds(output).items():
        assert (r, c.strip(), calls) == (expected[0] or "", (expected[1] or "").strip(), expected[2]), grouping


@pytest.mark.parametrize(
    ("prompt", "kwargs", "output", "expected"),
    [
        ("<assistant><think>", {}, "A</think>B", ("A", "B")),
        ("<assistant></think>\n\n", {}, "A", (None, "A")),
        ("<assistant></think>", {}, "<think>A</think>B", ("A", "B")),
        (f"<assistant>{BEGIN}{END}<user>hi<assistant>", {}, "<think>A</think>B", ("A", "B")),
        ("<assistant></think>", {"thinking": False}, "A</think>B", (None, "A</think>B")),
        ("<assistant>", {"thinking": None}, "A", ("A", None)),
    ],
)
def test_where_the_output_starts(prompt, kwargs, output, expected):
    run = runner(tools=None, reasoning="kimi_k2", prompt=prompt, template_kwargs=kwargs)
    assert summary(run.message(output)) == (*expected, ())
    assert {f[:2] for f in run.folds(output).values()} == {(expected[0] or "", expected[1] or "")}


def test_without_thinking_the_tags_are_text():
    run = runner(reasoning="kimi_k2", template_kwargs={"thinking": False})
    assert summary(run.message("a</think>" + section(call(PARIS[1])))) == (None, "a</think>", (PARIS,))


def test_without_tokens_the_markers_are_found_in_the_text():
    run = runner(markers=())
    output = "A" + section(call(PARIS[1]))
    assert summary(run.message(output)) == (None, "A", (PARIS,))
    assert set(run.folds(output).values()) == {("", "A", (PARIS,))}


TYPED = [
    ('{"title": 5, "count": "3", "on": "true"}', '{"title": "5", "count": 3, "on": true}'),
    ('{"note": "null", "on": 1}', '{"note": null, "on": true}'),
    ('{"tags": [1, "a", true], "deep": {"n": "2.5"}}', '{"tags": ["1", "a", "true"], "deep": {"n": 2.5}}'),
    ('{"count": "three", "other": "1"}', '{"count": "three", "other": "1"}'),
    ('{"title": null, "tags": []}', '{"title": "null", "tags": []}'),
    ('{"count":3,  "title":"a\\"b"}', '{"count":3,  "title":"a\\"b"}'),
]


@pytest.mark.parametrize(("text", "expected"), TYPED)
def test_arguments_are_typed_by_the_schema(text, expected):
    run = runner()
    output = section(call(text, "functions.event:0"))
    assert run.message(output).calls[0].arguments == expected
    assert {calls for _, _, calls in run.folds(output).values()} == {(("event", expected),)}


@settings(max_examples=200, deadline=None)
@given(st.text('{}[]"\\:, 1tn\n', max_size=25))
def test_arguments_without_a_schema_pass_unchanged(text):
    for pieces in ([text], list(text)):
        writer = RawArguments(None)
        written = "".join(map(writer.feed, pieces)) + writer.finish(cut=False)
        assert written.rstrip() == (text.strip() or "{}")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text('ab"\\é1', max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["title", "count", "deep"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(["title", "count", "on", "note", "tags", "deep", "x"]), JSON, max_size=4))
def test_streamed_types_are_those_of_the_one_shot_answer(value):
    run = runner()
    output = section(call(json.dumps(value, ensure_ascii=False), "functions.event:0"))
    whole = run.message(output).calls[0].arguments
    assert fold(run.deltas(output))[2] == (("event", whole),)


PARTS = [*MARKERS[:7], "f:0", "functions.f", "{}", '{"a": 1', "}", " ", "x"]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=10))
def test_any_output_folds_alike(parts):
    run = runner(reasoning="kimi_k2")
    if not parts:
        return
    assert len({(r.strip(), c.strip(), calls) for r, c, calls in run.folds("".join(parts)).values()}) == 1


def test_a_long_argument_takes_linear_time_and_a_small_snapshot():
    def seconds(length):
        run = runner()
        ids = run.ids(section(call('{"title": "' + "wxyz " * length + '"}', "functions.event:0")))
        texts = [run.vocabulary.text(token_id) for token_id in ids]
        parser = run.plan.open(run.context)
        start = time.process_time()
        for token_id, text in zip(ids, texts, strict=True):
            parser.feed([token_id], [text], finished=False)
        assert len(json.dumps(parser.snapshot())) < 1500
        return time.process_time() - start

    short, long = min(seconds(1000) for _ in range(3)), min(seconds(8000) for _ in range(3))
    assert long < 24 * short
