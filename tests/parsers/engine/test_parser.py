"""The rules around the stages: what is sent when, and what a request hides."""

import pytest

from parsers.engine.assembly import Delta
from parsers.engine.context import NamedToolChoice, RequestContext, finish_reason
from parsers.engine.exceptions import InvalidSnapshotError
from tests.parsers.support import FakeVocabulary, Runner, context_of, plan_of, tool

NOTE = tool("note", text={"type": "string"})
CALL = "<tool_call><function=note><parameter=text>x</parameter></function></tool_call>"


def runner(*, tools="qwen3_coder", reasoning="qwen3", request=(NOTE,), **fields):
    vocabulary = FakeVocabulary(("<think>", "</think>", "<tool_call>", "</tool_call>"))
    return Runner(vocabulary, plan_of(vocabulary, tools=tools, reasoning=reasoning), context_of(*request, **fields))


def test_a_finish_without_output_sends_nothing():
    assert runner().plan.open(context_of()).feed([], [], finished=True) is None


def test_an_empty_chunk_behind_reasoning_sends_empty_content_without_a_tool_parser():
    run = runner(tools=None)
    parser = run.plan.open(run.context)
    ids = run.ids("T</think>")
    parser.feed(ids, [run.vocabulary.text(token_id) for token_id in ids], finished=False)
    assert parser.feed([1000], [""], finished=False) == Delta(content="")


def test_hidden_reasoning_leaves_no_delta():
    run = runner(include_reasoning=False)
    assert run.deltas("T</think>A") == [None, None, Delta(content="A")]


def test_calls_that_are_not_kept_leave_no_delta():
    run = runner(tool_choice="none")
    assert all(delta is None or not delta.calls for delta in run.deltas(f"</think>{CALL}"))
    assert run.message(f"</think>{CALL}").calls == ()


def test_generated_call_ids_depend_on_the_seed_alone():
    first, second = runner(), runner()
    one_shot = first.message(f"</think>{CALL}{CALL}").calls
    streamed = [
        entry.id for delta in second.deltas(f"</think>{CALL}{CALL}") if delta for entry in delta.calls if entry.id
    ]
    assert [call.id for call in one_shot] == streamed
    assert len(set(streamed)) == 2
    assert all(len(call_id) == len("chatcmpl-tool-") + 16 for call_id in streamed)


@pytest.mark.parametrize("parallel", [True, False])
def test_calls_streamed_counts_before_the_parallel_filter(parallel):
    run = runner(parallel_tool_calls=parallel)
    parser = run.plan.open(run.context)
    ids = run.ids(f"</think>{CALL}{CALL}")
    delta = parser.feed(ids, [run.vocabulary.text(token_id) for token_id in ids], finished=True)
    assert delta is not None
    assert {entry.index for entry in delta.calls} == ({0, 1} if parallel else {0})
    assert parser.calls_streamed


@pytest.mark.parametrize(
    "damage",
    [
        {"v": 99},
        {"format": "other+other"},
        {"reasoning": {"unknown": 1}},
        {"tools": None},
        {"unified": {}},
    ],
)
def test_foreign_snapshots_are_refused(damage):
    run = runner()
    snapshot = run.plan.open(run.context).snapshot() | damage
    with pytest.raises(InvalidSnapshotError):
        run.plan.restore(run.context, snapshot)


@pytest.mark.parametrize(
    ("choice", "reason", "has_calls", "expected"),
    [
        ("auto", "stop", True, "tool_calls"),
        ("auto", None, True, "tool_calls"),
        ("auto", "", False, "stop"),
        ("auto", "length", True, "length"),
        ("required", "stop", True, "tool_calls"),
        (NamedToolChoice("f"), "stop", True, "stop"),
        ("auto", "abort", False, "abort"),
    ],
)
def test_finish_reason(choice, reason, has_calls, expected):
    assert finish_reason(RequestContext(tool_choice=choice), reason, has_calls) == expected
