"""Hermes and LongCat calls: whole answers, exact deltas, every grouping, malformed calls, linear time."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.assembly import CallDelta
from tests.parsers.formats.call_checks import (
    check_anything,
    check_late_stop,
    check_linear,
    check_says,
    check_text,
    loose,
)
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool

WEATHER = tool("get_weather", city={"type": "string"})
OPEN, CLOSE = "<tool_call>", "</tool_call>"


def runner(*, markers=(), parser="hermes", run=3, **fields):
    vocabulary = FakeVocabulary(markers, run=run)
    return Runner(vocabulary, plan_of(vocabulary, tools=parser), context_of(WEATHER, **fields))


def call(text):
    return f"{OPEN}\n{text}\n{CLOSE}"


PARIS_TEXT = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
PARIS = ("get_weather", '{"city": "Paris"}')
PING_TEXT = '{"name": "ping", "arguments": {}}'
PING = ("ping", "{}")

WELL_FORMED = [
    pytest.param("Hello!", ("Hello!", ()), id="answer"),
    pytest.param("a < b, <tool b, </tool_call>", ("a < b, <tool b, </tool_call>", ()), id="no opening tag"),
    pytest.param("cut <tool_", ("cut <tool_", ()), id="beginning of a tag at the end"),
    pytest.param(call(PARIS_TEXT), (None, (PARIS,)), id="one call"),
    pytest.param(f"{OPEN}{PARIS_TEXT}", (None, (PARIS,)), id="closing tag missing"),
    pytest.param(f"I look.{call(PARIS_TEXT)} Done.", ("I look.", (PARIS,)), id="text behind is dropped"),
    pytest.param(f"{call(PARIS_TEXT)}\n{call(PING_TEXT)}", (None, (PARIS, PING)), id="two calls"),
    pytest.param(
        call('{"arguments": {"name": "x", "n": 1}, "name": "sum"}'),
        (None, (("sum", '{"name": "x", "n": 1}'),)),
        id="name last: bugs/hermes-arguments-before-name",
    ),
    pytest.param(
        call('{"id": {"name": "x"}, "name": "f", "arguments": {"a":1 , "b":[ ]}, "type": "function"}'),
        (None, (("f", '{"a": 1, "b": []}'),)),
        id="other keys, other spacing",
    ),
    pytest.param(
        call('{"name": "f", "arguments": "{\\"city\\": \\"Paris\\"}"}'),
        (None, (("f", '{"city": "Paris"}'),)),
        id="arguments in a string: bugs/granite4-args-as-string@hermes",
    ),
    pytest.param(call('{"name": "f", "arguments": "x"}'), (None, (("f", '"x"'),)), id="a string stays one"),
    pytest.param(call('{"name": "f", "arguments": null}'), (None, (("f", "null"),)), id="null"),
    pytest.param(call('{"name": "", "arguments": {}}'), (None, (("", "{}"),)), id="empty name"),
    pytest.param(
        call('{"name": "f", "arguments": {"t": "use <tool_call> <t {"}}'),
        (None, (("f", '{"t": "use <tool_call> <t {"}'),)),
        id="an opening tag in a string is data",
    ),
    pytest.param(
        f"{OPEN}\nNow the tool.\n{call(PARIS_TEXT)}", (None, (PARIS,)), id="stray tag: bugs/hermes-stray-open-marker"
    ),
    pytest.param(f"{OPEN}\n{call(PARIS_TEXT)}", (None, (PARIS,)), id="tag twice"),
    pytest.param(f"{OPEN}{PARIS_TEXT}\n{call(PING_TEXT)}", (None, (PARIS, PING)), id="next call without closing tag"),
    pytest.param(f"{OPEN}{PARIS_TEXT}}}\n{CLOSE}", (None, (PARIS,)), id="one brace too many"),
    pytest.param(f"{OPEN}{PARIS_TEXT}\nand more", (None, (PARIS,)), id="text inside the tags"),
]

MALFORMED = [
    pytest.param(f"Hm. {call('{bad}')} x", id="no JSON"),
    pytest.param(call(""), id="empty"),
    pytest.param(call("[1]"), id="list"),
    pytest.param(call('{"arguments": {}}'), id="no name"),
    pytest.param(call('{"name": 5, "arguments": {}}'), id="name is a number"),
    pytest.param(f"{call('{bad}')}\n{call(PARIS_TEXT)}", id="bad, then good"),
    pytest.param(f"{OPEN}\nthe tag opens a call", id="tag in prose"),
    pytest.param(f'{OPEN}{{"name": "get_w', id="cut name"),
    pytest.param(f'{OPEN}{{"arguments": {{"a": 1}}, "na', id="cut before the name"),
]


@pytest.mark.parametrize(("output", "expected"), WELL_FORMED)
@pytest.mark.parametrize("markers", [(), (OPEN, CLOSE)], ids=["spelled", "tokens"])
def test_every_grouping_says_the_same(output, expected, markers):
    check_says(runner(markers=markers), output, *expected)


@pytest.mark.parametrize("output", MALFORMED)
@pytest.mark.parametrize("markers", [(), (OPEN, CLOSE)], ids=["spelled", "tokens"])
def test_what_is_no_call_is_text(output, markers):
    check_text(runner(markers=markers), output)


@pytest.mark.parametrize(
    ("output", "sent"),
    [
        pytest.param(f'{OPEN}{{"name": "f"}}{CLOSE}', ("f", ""), id="no arguments"),
        pytest.param(f'{OPEN}{{"name": "f", "arguments": {{"a": 1,}}}}{CLOSE}', ("f", '{"a": 1,}}'), id="comma"),
        pytest.param(f'{OPEN}{{"name": "f", "arguments": {{"a": "x', ("f", '{"a": "x'), id="cut"),
        pytest.param(f'{OPEN}{{"name": "f", "arguments": {{"a": 1}}{CLOSE}', ("f", '{"a": 1}'), id="brace missing"),
    ],
)
def test_an_announced_call_cannot_be_taken_back(output, sent):
    run = runner(run=1)
    assert summary(run.message(output)) == (None, output, ())
    assert fold(run.deltas(output)) == ("", "", (sent,))


def test_a_malformed_call_in_one_chunk_is_text_even_in_a_stream():
    run = runner()
    output = call('{"name": "f", "arguments": {"a": 1,}}')
    assert fold(run.deltas(output, 1000)) == ("", output, ())


def test_all_or_nothing_but_a_stream_keeps_what_it_sent():
    run = runner()
    output = f"{call(PARIS_TEXT)}{call('{bad}')}{call(PING_TEXT)}"
    assert summary(run.message(output)) == (None, output, ())
    assert fold(run.deltas(output)) == ("", "", (PARIS,))


def test_a_second_malformed_call_goes_out_as_written():
    run = runner()
    output = f'{call(PARIS_TEXT)}{OPEN}{{"name": "f", "arguments": {{bad}}}}{CLOSE}{call(PING_TEXT)}'
    assert fold(run.deltas(output)) == ("", "", (PARIS, ("f", "{bad}}"), PING))


def test_deltas():
    run = runner(markers=(OPEN, CLOSE))
    ids = [
        *run.vocabulary.encode("Hi" + OPEN),
        *run.vocabulary.spell('\n{"', "name", '": "f', '", "arg', 'uments":', ' {"a": "x ', "\\", "n", '"', "}", "}\n"),
        *run.vocabulary.encode(CLOSE),
    ]
    found = [
        None if delta is None else (delta.content, [(entry.name, entry.arguments) for entry in delta.calls])
        for delta in run.deltas(ids)
    ]
    assert found == [
        ("Hi", []),
        None,
        None,
        None,
        None,
        (None, [("f", None)]),
        None,
        (None, [(None, '{"a": "x')]),
        (None, [(None, " \\")]),
        (None, [(None, "n")]),
        (None, [(None, '"')]),
        (None, [(None, "}")]),
        None,
        None,
    ]


def test_one_chunk_holds_name_and_arguments_as_entries_of_their_own():
    run = runner()
    (delta,) = run.deltas(call(PARIS_TEXT), 1000)
    first = delta.calls[0].id
    assert re.fullmatch("chatcmpl-tool-[0-9a-f]{16}", first)
    assert delta.calls == [
        CallDelta(index=0, id=first, name="get_weather"),
        CallDelta(index=0, arguments='{"city": "Paris"}'),
    ]


def test_a_late_stop_token_is_no_part_of_a_malformed_call():
    check_late_stop(runner(), call("{bad}"))


def test_without_tools_everything_is_content():
    vocabulary = FakeVocabulary()
    run = Runner(vocabulary, plan_of(vocabulary, tools="hermes"), context_of())
    assert summary(run.message(call(PARIS_TEXT))) == (None, call(PARIS_TEXT), ())


@pytest.mark.parametrize("choice", ["required", "auto"])
def test_forced_choices_read_the_format_itself(choice):
    run = runner(tool_choice=choice)
    assert summary(run.message(call(PARIS_TEXT)))[2] == (PARIS,)


def test_longcat_has_its_own_tags():
    run = runner(parser="longcat")
    output = f"<longcat_tool_call>\n{PARIS_TEXT}\n</longcat_tool_call>"
    assert summary(run.message(output)) == (None, None, (PARIS,))
    assert set(run.folds(output).values()) == {("", "", (PARIS,))}


def test_alias():
    assert summary(runner(parser="qwen3_json").message(call(PARIS_TEXT))) == (None, None, (PARIS,))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                OPEN,
                CLOSE,
                PARIS_TEXT,
                PING_TEXT,
                "{",
                "}",
                '"',
                "name",
                "\\",
                ": ",
                ", ",
                "\n",
                "<",
                "tool",
                " é",
                "[1]",
            ]
        ),
        max_size=12,
    ),
    st.integers(1, 6),
)
def test_never_raises_and_loses_no_call(parts, size):
    message, streamed = check_anything(runner(), "".join(parts), size)
    assert len(streamed[2]) >= len(message[2])
    if len(streamed[2]) == len(message[2]):
        assert loose(streamed) == loose(message)


def test_work_and_state_do_not_grow_with_the_call():
    check_linear(runner, lambda run: run.vocabulary.spell(OPEN, '{"name": "f", "arguments": {"a": "'), keeps=False)
