"""xLAM calls: a bare list and its wrappings, whole answers, every grouping, one step a chunk, what is no list."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsers.formats.call_checks import check_anything, check_linear, check_says, check_text
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool


def runner(*, run=3, **fields):
    vocabulary = FakeVocabulary(run=run)
    return Runner(vocabulary, plan_of(vocabulary, tools="xlam"), context_of(tool("ping"), **fields))


PARIS_TEXT = '{"name": "get_weather", "arguments": {"city":"Paris", "deep": {"a": [{}]}}}'
PARIS = ("get_weather", '{"city": "Paris", "deep": {"a": [{}]}}')
PING_TEXT = '{"name": "ping", "arguments": {}}'
PING = ("ping", "{}")
LIST = f"[{PARIS_TEXT}, {PING_TEXT}]"

WELL_FORMED = [
    pytest.param("Hello [1], a < b, `x`!", ("Hello [1], a < b, `x`!", ()), id="answer"),
    pytest.param(f"Look:\n{LIST}", (f"Look:\n{LIST}", ()), id="a list behind prose is none"),
    pytest.param("```python\nprint([1])\n```\n", ("```python\nprint([1])\n```\n", ()), id="code"),
    pytest.param("<b>x</b>", ("<b>x</b>", ()), id="markup"),
    pytest.param(LIST, (None, (PARIS, PING)), id="bare"),
    pytest.param(f"\n [\n{PARIS_TEXT}\n]\n", (None, (PARIS,)), id="white space"),
    pytest.param(f'[{PING_TEXT}, {{"foo": 1}}, {PARIS_TEXT}]', (None, (PING, PARIS)), id="objects that are no calls"),
    pytest.param('[{"arguments": {"a":1}, "name": "f"}]', (None, (("f", '{"a": 1}'),)), id="name last"),
    pytest.param('[{"name": "f", "arguments": "{\\"a\\":1}"}]', (None, (("f", '{"a":1}'),)), id="string as it is"),
    pytest.param(f"Sure:\n```json\n{LIST}\n```", ("Sure:", (PARIS, PING)), id="fence"),
    pytest.param(f"Sure:\n```\n{LIST}\n```\nDone.", ("Sure:\n\nDone.", (PARIS, PING)), id="plain fence"),
    pytest.param(f"[TOOL_CALLS]{LIST}", ("", (PARIS, PING)), id="marker"),
    pytest.param(f"[TOOL_CALLS] {LIST}\nmore", ("more", (PARIS, PING)), id="marker and a line"),
    pytest.param(f"<tool_call>{LIST}</tool_call>", ("", (PARIS, PING)), id="tags"),
    pytest.param(f"<think>\nx\n</think>\n\n{LIST}", ("<think>\nx\n</think>", (PARIS, PING)), id="thoughts"),
]

NO_CALLS = [
    pytest.param("[1, 2, 3]", id="numbers"),
    pytest.param("[]", id="empty"),
    pytest.param("[see] this", id="bracket in prose"),
    pytest.param("[f(a=1)]", id="another format"),
    pytest.param('[{"arguments": {}}]', id="no name"),
    pytest.param('[{"name": 5, "arguments": {}}]', id="name is a number"),
    pytest.param('[{"name": "get_w', id="cut name"),
    pytest.param(f"<tool_call>{PING_TEXT}</tool_call>", id="no list in the tags"),
    pytest.param("```json\n[1]\n```", id="fence around something else"),
    pytest.param("[TOOL_CALLS]", id="only a marker"),
]


@pytest.mark.parametrize(("output", "expected"), WELL_FORMED)
def test_every_grouping_says_the_same(output, expected):
    check_says(runner(), output, *expected, exactly=False)


@pytest.mark.parametrize("output", NO_CALLS)
def test_what_is_no_list_of_calls_is_text(output):
    check_text(runner(), output)


@pytest.mark.parametrize(
    ("output", "sent"),
    [
        pytest.param(f"[{PING_TEXT}] and more", (PING,), id="text behind"),
        pytest.param('[{"name": "f", "arguments": {"a": "x', (("f", ""),), id="cut"),
        pytest.param('[{"name": "f", "arguments": [1]}]', (("f", ""),), id="arguments are a list"),
        pytest.param('[{"name": "f"}]', (("f", ""),), id="no arguments"),
    ],
)
def test_a_stream_keeps_what_it_announced(output, sent):
    run = runner(run=1)
    assert summary(run.message(output)) == (None, output, ())
    assert fold(run.deltas(output)) == ("", "", sent)


def test_one_step_a_chunk():
    run = runner()
    pieces = (
        '[{"name',
        '": "f"',
        ', "arguments": {"a"',
        ": 1}",
        "}",
        ', {"name',
        '": "ping", "arg',
        'uments": {}}',
        "]",
    )
    found = [
        delta and [(entry.name, entry.arguments) for entry in delta.calls]
        for delta in run.deltas(run.vocabulary.spell(*pieces))
    ]
    assert found == [
        None,
        [("f", None)],
        None,
        [(None, "{")],
        [(None, '"a": 1}')],
        None,
        [("ping", None)],
        [(None, "{}")],
        None,
    ]


def test_a_marker_in_prose_may_be_out_by_a_character():
    """xlam/tool_call-tag-text"""
    run = runner(run=1)
    output = f"Hm. <tool_call>{LIST}</tool_call> ok"
    assert summary(run.message(output)) == (None, "Hm.  ok", (PARIS, PING))
    assert fold(run.deltas(output)) == ("", "Hm. < ok", (PARIS, PING))


def test_ids_tell_the_index():
    first, second = runner().message(LIST).calls
    assert (first.id[:7], second.id[:7]) == ("call_0_", "call_1_")
    assert len(first.id) == len("call_0_") + 16


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "[",
                "]",
                PARIS_TEXT,
                PING_TEXT,
                ", ",
                "```",
                "json\n",
                "<tool_call>",
                "</tool_call>",
                "[TOOL_CALLS]",
                "\n",
                "x",
            ]
        ),
        max_size=10,
    ),
    st.integers(1, 6),
)
def test_never_raises_and_loses_no_call(parts, size):
    message, streamed = check_anything(runner(), "".join(parts), size)
    assert len(streamed[2]) >= len(message[2])


def test_work_is_linear_in_the_call():
    check_linear(runner, lambda run: run.vocabulary.spell('[{"name": "f", "arguments": {"a": "'))


def test_call_ids_of_forced_calls_are_ordinary():
    run = runner(tool_choice="required")
    (call,) = run.message('[{"name": "ping", "parameters": {}}]').calls
    assert call.id == run.context.call_id(0)
