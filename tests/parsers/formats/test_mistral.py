"""Mistral: both forms of calls, and thoughts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.exceptions import ParserConfigurationError
from parsers.registry import build_plan
from tests.parsers.support import FakeVocabulary, Runner, context_of, plan_of, summary, tool

WEATHER = tool("get_weather", city={"type": "string"}, days={"type": "integer"})
OLD = ("[TOOL_CALLS]",)
NEW = (*OLD, "[ARGS]", "[THINK]", "[/THINK]")
PARIS = ("get_weather", '{"city": "Paris", "days": 3}')


def runner(markers=NEW, *, request=(WEATHER,), extras=None, **fields):
    vocabulary = FakeVocabulary(markers, extras=extras or {})
    plan = plan_of(vocabulary, tools="mistral", reasoning="mistral")
    return Runner(vocabulary, plan, context_of(*request, **fields))


def array(*calls):
    elements = (f'{{"name": "{name}", "arguments": {arguments}}}' for name, arguments in calls)
    return f"[TOOL_CALLS][{', '.join(elements)}]"


NEW_CASES = [
    pytest.param("[THINK]T[/THINK]Hello!<eos>", ("T", "Hello!", ()), id="thoughts and answer"),
    pytest.param("A[THINK]T[/THINK]B", ("T", "AB", ()), id="text before thoughts"),
    pytest.param('[TOOL_CALLS]get_weather[ARGS]{"city": "Paris", "days": 3}', (None, None, (PARIS,)), id="call"),
    pytest.param(
        '[TOOL_CALLS]get_weather{"city": "Paris", "days": 3}', (None, None, (PARIS,)), id="no marker for arguments"
    ),
    pytest.param('[TOOL_CALLS]get_weather[ARGS]{"city": "Paris", "days": "3"}', (None, None, (PARIS,)), id="typed"),
    pytest.param(
        '[TOOL_CALLS]f[ARGS]{"a": {"b": 1}}[TOOL_CALLS]g[ARGS]{}',
        (None, None, (("f", '{"a": {"b": 1}}'), ("g", "{}"))),
        id="two calls",
    ),
    pytest.param(
        '[TOOL_CALLS]f[ARGS]{"a": 1} and more', (None, None, (("f", '{"a": 1}'),)), id="text behind the arguments"
    ),
    pytest.param("[TOOL_CALLS]f", (None, None, (("f", "{}"),)), id="cut name"),
    pytest.param(array(PARIS), (None, None, (PARIS,)), id="older form"),
]
OLD_CASES = [
    pytest.param(f"Text.{array(PARIS, PARIS)}", (None, "Text.", (PARIS, PARIS)), id="calls"),
    pytest.param(array(("f", "{}")) + " more", (None, None, (("f", "{}"),)), id="text behind the array"),
    pytest.param(array(("f", "null")), (None, None, (("f", "{}"),)), id="null"),
    pytest.param('[TOOL_CALLS] [{"name": "f"}]', (None, None, (("f", "{}"),)), id="no arguments"),
    pytest.param(
        '[TOOL_CALLS]{"arguments": {"a": 1}, "name": "f"}', (None, None, (("f", '{"a": 1}'),)), id="bare object"
    ),
    pytest.param("[TOOL_CALLS] nothing", (None, "nothing", ()), id="no array"),
    pytest.param('A [TOOL_CALLS] [{"name": "get_we', (None, 'A [{"name": "get_we', ()), id="cut name"),
    pytest.param('[TOOL_CALLS][{"x": 1}] more', (None, '[{"x": 1}] more', ()), id="no name"),
    pytest.param("<eos>", (None, None, ()), id="only the stop token"),
]


@pytest.mark.parametrize(("output", "expected"), NEW_CASES)
def test_name_by_name(output, expected):
    assert summary(runner().message(output)) == expected
    assert set(runner().folds(output).values()) == {(expected[0] or "", expected[1] or "", expected[2])}


@pytest.mark.parametrize(("output", "expected"), OLD_CASES)
def test_as_an_array(output, expected):
    assert summary(runner(OLD).message(output)) == expected
    folds = {(r, c.strip(), calls) for r, c, calls in runner(OLD).folds(output).values()}
    assert folds == {(expected[0] or "", expected[1] or "", expected[2])}


def test_a_cut_array_is_text_in_a_whole_answer_and_a_call_in_a_stream():
    run, output = runner(OLD), array(PARIS)[:-6]
    assert summary(run.message(output)) == (None, output.removeprefix("[TOOL_CALLS]"), ())
    assert {calls[0][0] for _, _, calls in run.folds(output).values()} == {"get_weather"}


def test_mistrals_own_tokenizers_think_in_plain_text_since_version_11():
    run = runner((*OLD, "[ARGS]"), extras={"mistral_version": "v11"})
    assert summary(run.message("<think>T</think>A")) == ("T", "A", ())


def test_a_forced_choice_reads_an_array_without_its_marker():
    run = runner(OLD, tool_choice="required")
    output = array(PARIS).removeprefix("[TOOL_CALLS]")
    assert summary(run.message(output)) == (None, "", (PARIS,))


def test_a_forced_choice_without_a_call_is_text():
    run, output = runner(OLD, tool_choice="required"), ' {"city": "Paris"} '
    assert summary(run.message(output)) == (None, output.strip(), ())
    assert {content.strip() for _, content, _ in run.folds(output).values()} == {output.strip()}


def test_call_ids_are_nine_letters_and_digits():
    [call] = runner().message("[TOOL_CALLS]f[ARGS]{}").calls
    assert len(call.id) == 9
    assert call.id.isalnum()


@pytest.mark.parametrize(("markers", "repeats"), [(OLD, True), (NEW, False)])
def test_entries_of_the_older_form_repeat_their_type(markers, repeats):
    entries = [entry for delta in runner(markers).deltas(array(PARIS)) if delta for entry in delta.calls]
    assert all(entry.type for entry in entries) is (repeats or len(entries) == 1)


def test_the_marker_must_be_a_token():
    with pytest.raises(ParserConfigurationError, match="lacks"):
        build_plan(tool_parser="mistral", reasoning_parser=None, vocabulary=FakeVocabulary())


PARTS = [*NEW, "f", "{", "}", "[", "]", '"', '"name": ', ", ", '"arguments": ', "{}", "1", " ", "<eos>"]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=20), st.booleans())
def test_no_mixture_of_markers_raises(parts, is_new):
    run = runner(NEW if is_new else OLD)
    run.folds("".join(parts))
    run.message("".join(parts))
