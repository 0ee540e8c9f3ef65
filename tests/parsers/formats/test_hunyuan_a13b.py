"""Hunyuan A13B: thoughts, answer and calls, each alone and together, every grouping."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.assembly import CallDelta
from tests.parsers.formats.call_checks import check_anything, check_says, check_text
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool


def runner(*, run=3, reasoning=None, **fields):
    vocabulary = FakeVocabulary(run=run)
    plan = plan_of(vocabulary, tools="hunyuan_a13b", reasoning=reasoning)
    return Runner(vocabulary, plan, context_of(tool("ping"), **fields))


def thinking(**fields):
    return runner(reasoning="hunyuan_a13b", **fields)


def calls(body):
    return f"<tool_calls>{body}</tool_calls>"


PARIS_TEXT = '{"name": "get_weather", "arguments": {"city":"Paris"}}'
PARIS = ("get_weather", '{"city": "Paris"}')
PING_TEXT = '{"arguments": {}, "name": "ping"}'
PING = ("ping", "{}")
THOUGHTS = "<think>\nI need it.\n</think>\n<answer>\n"

GOOD = [
    pytest.param("a < b, <tool_", ("a < b, <tool_", ()), id="answer"),
    pytest.param(calls(f"[{PARIS_TEXT}]"), (None, (PARIS,)), id="one call"),
    pytest.param(f"I look.{calls(f'[{PARIS_TEXT}, {PING_TEXT}]')} done", ("I look.", (PARIS, PING)), id="text around"),
    pytest.param(calls(f"[{PING_TEXT}]") + calls(f"[{PARIS_TEXT}]"), (None, (PING,)), id="the first list counts"),
    pytest.param(f"{calls('[x]')} x {calls(f'[{PING_TEXT}]')}", (f"{calls('[x]')} x ", (PING,)), id="bad before good"),
    pytest.param(f"<tool_calls>[{PING_TEXT}]", (None, (PING,)), id="no end"),
    pytest.param(calls('[{"name": "f", "arguments": "{\\"a\\":1}"}]'), (None, (("f", '{"a":1}'),)), id="string"),
    pytest.param(
        calls('[{"name": "f", "arguments": {"a": "</tool_calls>"}}]'),
        (None, (("f", '{"a": "</tool_calls>"}'),)),
        id="tag in a string",
    ),
    pytest.param(
        f"<think>{calls(f'[{PARIS_TEXT}]')}</think>{calls(f'[{PING_TEXT}]')}",
        (f"<think>{calls(f'[{PARIS_TEXT}]')}</think>", (PING,)),
        id="a list in a thought",
    ),
]

TEXT = [
    pytest.param(calls("[]"), id="empty"),
    pytest.param(calls(PARIS_TEXT), id="object"),
    pytest.param(calls("[ping(a=1)]"), id="another format"),
    pytest.param(calls('[{"name": 5, "arguments": {}}]'), id="name is a number"),
    pytest.param(f"[{PARIS_TEXT}]", id="no tags"),
    pytest.param('<tool_calls>[{"name": "f', id="cut"),
]

ANSWERS = [
    pytest.param(THOUGHTS + "Hello.\n</answer>", ("I need it.", "Hello.", ()), id="both"),
    pytest.param(THOUGHTS + "Hello.", ("I need it.", "Hello.", ()), id="answer without an end"),
    pytest.param(THOUGHTS + "a\n</answer> b\n</answer>", ("I need it.", "a", ()), id="text behind"),
    pytest.param(THOUGHTS + "a\n</answe> <answer>", ("I need it.", "a\n</answe> <answer>", ()), id="no tags"),
    pytest.param(THOUGHTS + calls(f"[{PING_TEXT}]") + "\n</answer>", ("I need it.", None, (PING,)), id="call"),
    pytest.param("<think>\n\n</think>\n<answer>\nHello.", (None, "Hello.", ()), id="no thoughts"),
    pytest.param("<think>\n</think>\n<answer>\nHello.", (None, "Hello.", ()), id="one line break"),
    pytest.param("<think>\na\n\nb\n</think>\nHello.", ("a\n\nb", "Hello.", ()), id="no answer tag"),
    pytest.param("<think>\na\n</think>", ("a", None, ()), id="cut behind the thoughts"),
    pytest.param("<think>\na\nb", ("a\nb", None, ()), id="cut in the thoughts"),
    pytest.param("<answer>\nHello.\n</answer>", (None, "Hello.", ()), id="answer alone"),
    pytest.param("Hello.\n</answer>", (None, "Hello.", ()), id="end of an answer"),
    pytest.param("<think>a</think>b", (None, "<think>a</think>b", ()), id="no line breaks"),
    pytest.param("a <think>\nb\n</think>\n", (None, "a <think>\nb\n</think>\n", ()), id="text before"),
    pytest.param("<thi", (None, "<thi", ()), id="cut tag"),
]


@pytest.mark.parametrize(("output", "expected"), GOOD)
def test_every_grouping_says_the_same(output, expected):
    check_says(runner(), output, *expected)


@pytest.mark.parametrize("output", TEXT)
def test_what_is_no_list_is_text(output):
    check_text(runner(), output)


@pytest.mark.parametrize(("output", "expected"), ANSWERS)
def test_thoughts_and_answer(output, expected):
    run = thinking()
    reasoning, content, found = expected
    assert summary(run.message(output + "<eos>")) == expected
    assert set(run.folds(output + "<eos>").values()) == {(reasoning or "", content or "", found)}


def test_the_prompt_may_have_opened_the_thoughts():
    run = thinking()
    run.prompt = run.ids("Hi<think>\n")
    assert summary(run.message("hmm\n</think>\n<answer>\nHello.")) == ("hmm", "Hello.", ())


@pytest.mark.parametrize("element", ['{"name": "f"}', '{"name": "f", "arguments": [1]}', '{"name": "f", "argum'])
def test_a_stream_has_announced_what_is_no_call(element):
    run = runner(run=1)
    output = "<tool_calls>[" + element
    assert summary(run.message(output)) == (None, output, ())
    assert fold(run.deltas(output)) == ("", "", (("f", ""),))


def test_another_list_may_follow_a_broken_one():
    run = runner(run=1)
    output = calls('[{"name": "f", "arguments": [1]}]') + " x " + calls(f"[{PING_TEXT}]")
    assert summary(run.message(output))[2] == (PING,)
    assert fold(run.deltas(output)) == ("", "", (("f", ""), PING))


def test_a_stream_keeps_what_it_sent():
    run = runner(run=1)
    output = f'<tool_calls>[{PING_TEXT}, {{"name": "f", "arguments": {{"a": 1,}}}}]'
    assert summary(run.message(output)) == (None, output, ())
    assert fold(run.deltas(output)) == ("", "", (PING, ("f", "")))


def test_arguments_are_sent_when_they_are_whole():
    run = runner()
    nothing, name, waits, brace, rest = run.chunked(
        "<tool_calls>[", '{"name": "f",', ' "arguments": {"a": 1', "}}", ", "
    )
    assert (nothing, waits) == (None, None)
    assert name.calls == [CallDelta(index=0, id=name.calls[0].id, name="f")]
    assert brace.calls == [CallDelta(index=0, arguments="{")]
    assert rest.calls[-1] == CallDelta(index=0, arguments='"a": 1}')


def test_call_ids_of_streams_have_their_number():
    run = runner()
    (call,) = run.message(calls(f"[{PING_TEXT}]")).calls
    (delta,) = run.deltas(calls(f"[{PING_TEXT}]"), 1000)
    assert delta.calls[0].id == call.id.replace("call_", "call_0_")


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            f'<tool_calls> </tool_calls> [ ] , {{ " \\n x <think> </think> <answer> </answer> {PING_TEXT}'.split(" ")
        ),
        max_size=12,
    ),
    st.integers(1, 6),
)
def test_any_text_streams_through_snapshots(pieces, size):
    check_anything(thinking(), "".join(pieces), size)


@given(st.dictionaries(st.text(max_size=4), st.text(max_size=12) | st.integers() | st.lists(st.none()), max_size=3))
@settings(max_examples=50, deadline=None)
def test_any_arguments_arrive(arguments):
    output = calls(json.dumps([{"name": "f", "arguments": arguments}], ensure_ascii=False))
    ((name, text),) = fold(runner().deltas(output, 2))[2]
    assert (name, json.loads(text)) == ("f", arguments)


@pytest.mark.parametrize("piece", ["x", "<tool_", "\n</think", PING_TEXT + ",", "<tool_calls>[x", "<think>\n"])
def test_work_is_linear(piece):
    run = thinking(run=1)

    def seconds(count):
        started = time.process_time()
        run.deltas(THOUGHTS + "<tool_calls>[" + piece * count, 50)
        run.deltas("<think>\n" + piece * count, 50)
        return time.process_time() - started

    seconds(100)
    assert min(seconds(4000) for _ in range(2)) < 16 * max(min(seconds(500) for _ in range(2)), 0.02)


def test_call_ids_of_forced_calls_are_ordinary():
    run = runner(tool_choice="required")
    output = '[{"name": "ping", "parameters": {}}]'
    (call,) = run.message(output).calls
    (delta,) = run.deltas(output, 1000)
    assert call.id == delta.calls[0].id == run.context.call_id(0)
