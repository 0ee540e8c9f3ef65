"""Step3: calls in a block of elements, one thing sent a chunk, thoughts without an opening tag."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.exceptions import ParserConfigurationError
from parsers.formats.step3 import BLOCK_BEGIN, BLOCK_END, CALL_BEGIN, CALL_END, SEPARATOR, cast_value
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool

MARKERS = (BLOCK_BEGIN, BLOCK_END, CALL_BEGIN, CALL_END, SEPARATOR)
WEATHER = tool("get_weather", city={"type": "string"}, days={"type": "integer"}, wet={"type": "boolean"})


def runner(*, run=3, reasoning=None, **fields):
    vocabulary = FakeVocabulary((*MARKERS, "</think>"), run=run)
    return Runner(vocabulary, plan_of(vocabulary, tools="step3", reasoning=reasoning), context_of(WEATHER, **fields))


def invoke(name, **parameters):
    inside = "".join(
        f'<steptml:parameter name="{key}">{value}</steptml:parameter>' for key, value in parameters.items()
    )
    return f'<steptml:invoke name="{name}">{inside}</steptml:invoke>'


def call(name, **parameters):
    return f"{CALL_BEGIN}function{SEPARATOR}{invoke(name, **parameters)}{CALL_END}"


def block(*calls):
    return BLOCK_BEGIN + "\n".join(calls) + BLOCK_END


PARIS_CALL, PARIS = call("get_weather", city="Paris", days=3), ("get_weather", '{"city": "Paris", "days": 3}')
NOOP_CALL, NOOP = call("noop"), ("noop", "{}")

CASES = [
    pytest.param("Hello, a < b <", ("Hello, a < b <", ()), id="answer"),
    pytest.param(block(PARIS_CALL), (None, (PARIS,)), id="one call"),
    pytest.param(
        f"I look.\n{block(NOOP_CALL, PARIS_CALL)}\nDone.", ("I look.\n\nDone.", (NOOP, PARIS)), id="text around"
    ),
    pytest.param(
        block(call("get_weather", city=" 1 ", days="x", wet="TRUE")),
        (None, (("get_weather", '{"city": "1", "days": "x", "wet": true}'),)),
        id="values as the schema says, if they can",
    ),
    pytest.param(block(call("nope", a=1)), (None, (("nope", '{"a": "1"}'),)), id="unknown function: text"),
    pytest.param(block(NOOP_CALL) + block(PARIS_CALL), (None, (NOOP, PARIS)), id="two blocks"),
    pytest.param(BLOCK_BEGIN + PARIS_CALL, (None, (PARIS,)), id="block end missing"),
    pytest.param(block(PARIS_CALL.removesuffix(CALL_END)), (None, (PARIS,)), id="call end missing"),
    pytest.param(block(PARIS_CALL.replace("function", "code")), (None, (PARIS,)), id="another type"),
    pytest.param(block("junk", PARIS_CALL), (None, (PARIS,)), id="junk before a call is dropped"),
    pytest.param(
        block(f"{CALL_BEGIN}hi{CALL_END}", PARIS_CALL), (None, (PARIS,)), id="a call without element, then one"
    ),
    pytest.param(
        block(f"{CALL_BEGIN}hi{CALL_END}"), (block(f"{CALL_BEGIN}hi{CALL_END}"), ()), id="no call in the block"
    ),
    pytest.param(block(), (block(), ()), id="empty block"),
    pytest.param(BLOCK_BEGIN, (BLOCK_BEGIN, ()), id="cut behind the marker"),
]


@pytest.mark.parametrize(("output", "expected"), CASES)
def test_answers_alike_in_every_grouping(output, expected):
    run = runner()
    message = summary(run.message(output + "<eos>"))
    assert message == (None, *expected)
    for name, (_, content, calls) in run.folds(output + "<eos>").items():
        assert (content.strip(), calls) == (message[1] or "", message[2]), name


def test_a_cut_call_is_text_unless_its_name_was_sent():
    run = runner()
    output = block(PARIS_CALL).partition("Paris")[0]
    assert summary(run.message(output)) == (None, output, ())
    assert set(run.folds(output).values()) == {("", "", (("get_weather", ""),))}


def test_one_thing_is_sent_a_chunk():
    """bugs/step3-two-deltas-empty-args: all in one chunk, the arguments are complete all the same."""
    run = runner()
    ids = run.ids("Hm." + block(NOOP_CALL) + " Done.<eos>")
    shown = [
        each and (each.content, [(call.name, call.arguments) for call in each.calls])
        for each in run.deltas(ids, [len(ids) - 4, 1, 1, 1, 1])
    ]
    assert shown == [
        ("Hm.", []),
        (None, [("noop", None)]),
        (None, [(None, "{}")]),
        (" Done.", []),
        None,
    ]


def test_white_space_before_the_block_waits():
    run = runner()
    deltas = run.deltas(run.vocabulary.spell("Hm.", " ", "\n", "So", " <") + run.ids(block(PARIS_CALL)))
    assert [each and each.content for each in deltas[:6]] == ["Hm.", None, None, " \nSo", None, " <"]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1_0", "integer", 10),
        ("3", "number", 3.0),
        ("x", "number", "x"),
        ("inf", "number", "inf"),
        ("False", "boolean", False),
        ("maybe", "boolean", "maybe"),
        ("x", "null", None),
        ("[1]", "array", "[1]"),
        ("1", ["integer"], "1"),
    ],
)
def test_casts_values(text, kind, value):
    assert cast_value(text, kind) == value


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        pytest.param("Hm.</think>Hello", ("Hm.", "Hello", ()), id="thoughts"),
        pytest.param("<think>Hm.", ("<think>Hm.", None, ()), id="never closed, the opening tag is text"),
        pytest.param(f"Hm.</think>Ok.\n{block(PARIS_CALL)}", ("Hm.", "Ok.", (PARIS,)), id="then a call"),
        pytest.param(f"Hm {block(PARIS_CALL)}</think>ok", (f"Hm {block(PARIS_CALL)}", "ok", ()), id="call in thoughts"),
    ],
)
def test_thoughts_end_at_the_first_tag(output, expected):
    run = runner(reasoning="step3")
    assert summary(run.message(output)) == expected
    for name, (reasoning, content, calls) in run.folds(output).items():
        assert (reasoning, content.strip() or None, calls) == expected, name


def test_a_prompt_that_ends_with_the_tag_ends_the_thoughts():
    run = runner(reasoning="step3")
    run.prompt = run.vocabulary.encode("x</think>")
    assert summary(run.message("Hello")) == (None, "Hello", ())
    run.prompt = run.vocabulary.encode("x</think>old turn")
    assert summary(run.message("Hm</think>Hello")) == ("Hm", "Hello", ())


def test_a_tokenizer_without_the_tag_is_refused():
    with pytest.raises(ParserConfigurationError, match="</think>"):
        plan_of(FakeVocabulary(), reasoning="step3")


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from([*MARKERS, '<steptml:invoke name="f">', "</steptml:invoke>", "x", " ", "<"]), max_size=12)
)
def test_anything_is_read_alike_in_any_grouping(pieces):
    run = runner()
    output = "".join(pieces)
    message = summary(run.message(output))
    for lens in (1, 2):
        _, content, calls = fold(run.deltas(output, lens, snapshots=True))
        if len(calls) == len(message[2]):
            assert (content.strip(), calls) == ((message[1] or "").strip(), message[2])


@pytest.mark.parametrize("piece", ["abc", '<steptml:parameter name="a">', "<", call("f")])
def test_work_is_linear(piece):
    def seconds(count):
        run = runner()
        ids = run.ids(BLOCK_BEGIN + call("f").removesuffix(CALL_END)) + run.ids(piece) * count
        start = time.process_time()
        run.deltas(ids)
        return time.process_time() - start

    seconds(50)
    assert seconds(2_000) < 25 * seconds(200) + 0.3
