"""OLMo 3: calls in lines between tags, thoughts whose tags are ordinary text."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.exceptions import ParserConfigurationError
from parsers.formats.olmo3_reasoning import REQUIRED, touches
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool

WEATHER, NOOP_TOOL = tool("get_weather", city={"type": "string"}), tool("noop")
OPEN, CLOSE = "<function_calls>", "</function_calls>"
PARIS_TEXT, PARIS = 'get_weather(city="Paris")', ("get_weather", '{"city": "Paris"}')
NOOP = ("noop", "{}")


def runner(*, run=3, tags=(OPEN, CLOSE), **fields):
    vocabulary = FakeVocabulary(tags, run=run)
    return Runner(vocabulary, plan_of(vocabulary, tools="olmo3"), context_of(WEATHER, NOOP_TOOL, **fields))


CALLS = [
    pytest.param("Hello! a < b", ("Hello! a < b", ()), id="answer"),
    pytest.param("<b>Hello</b>", ("<b>Hello</b>", ()), id="answer that begins like a tag"),
    pytest.param("get well soon", ("get well soon", ()), id="answer that begins like a name"),
    pytest.param(f"{OPEN}{PARIS_TEXT}{CLOSE}", (None, (PARIS,)), id="one call"),
    pytest.param(
        f"{OPEN}\n{PARIS_TEXT}\n\n  noop()  \n{CLOSE}\n", (None, (PARIS, NOOP)), id="two lines, much white space"
    ),
    pytest.param(
        f'{OPEN}f(x="a\nb", y="a{CLOSE}b"){CLOSE}',
        (None, (("f", f'{{"x": "a\\nb", "y": "a{CLOSE}b"}}'),)),
        id="line breaks and tags in strings are data",
    ),
    pytest.param(f"Hm.\n{OPEN}{PARIS_TEXT}{CLOSE} Done.", ("Hm.\n Done.", (PARIS,)), id="text around"),
    pytest.param(f"{OPEN}{PARIS_TEXT}{CLOSE}\n{OPEN}noop(){CLOSE}", (None, (PARIS, NOOP)), id="two blocks"),
    pytest.param(f"{PARIS_TEXT}\nnoop()", (None, (PARIS, NOOP)), id="no tags"),
    pytest.param(f"{PARIS_TEXT} is a call", (f"{PARIS_TEXT} is a call", ()), id="prose about a call"),
    pytest.param("print(x=1)", ("print(x=1)", ()), id="code: no function on offer"),
    pytest.param(f"[{PARIS_TEXT}]", (f"[{PARIS_TEXT}]", ()), id="a list"),
]

MALFORMED = [
    pytest.param(f"{OPEN}{CLOSE}", id="empty block"),
    pytest.param(f'{OPEN}get_weather("Paris"){CLOSE}', id="positional argument"),
    pytest.param(f"{OPEN}{PARIS_TEXT},\nnoop(){CLOSE}", id="comma behind a line"),
    pytest.param(f"{OPEN}{PARIS_TEXT}", id="no closing tag"),
    pytest.param(f"{OPEN}get_weather(\ncity='Paris'){CLOSE}", id="call over two lines"),
    pytest.param("<function_ca", id="half a tag"),
]


def _loose(message):
    return ((message[0] or "").strip(), (message[1] or "").strip(), message[2])


@pytest.mark.parametrize("tags", [(OPEN, CLOSE), ()], ids=["tags are tokens", "tags are text"])
@pytest.mark.parametrize(("output", "expected"), CALLS)
def test_answers_alike_in_every_grouping(output, expected, tags):
    run = runner(tags=tags)
    message = summary(run.message(output + "<eos>"))
    assert message == (None, *expected)
    for name, folded in run.folds(output + "<eos>").items():
        assert _loose(folded) == _loose(message), name


@pytest.mark.parametrize("output", MALFORMED)
def test_a_malformed_block_is_text_unless_some_of_it_was_sent(output):
    run = runner()
    assert summary(run.message(output + "<eos>")) == (None, output, ())
    for name, (_, content, calls) in run.folds(output + "<eos>").items():
        assert bool(calls) != (content == output), name


def test_calls_are_sent_as_vllm_sends_them():
    """olmo3-tool/two-lines, grouping 1: a newline is no comma, so that the second call's values come at once."""
    run = runner()
    ids = run.vocabulary.encode(OPEN) + run.vocabulary.spell(
        "f", "(x=", '"', "a", '")', "\n", "g", "(", 'y="b"', ", z=", "1"
    )
    ids += run.vocabulary.spell(")") + run.vocabulary.encode(CLOSE)
    shown = [
        each and (each.content, [(c.name, c.arguments) for c in each.calls])
        for each in run.deltas([*ids, *run.ids("<eos>")])
    ]
    assert shown == [
        None,
        None,
        None,
        (None, [("f", '{"x": "')]),
        (None, [(None, "a")]),
        (None, [(None, '"}')]),
        ("", []),
        None,
        (None, [("g", "{")]),
        (None, [(None, '"y": "b"')]),
        None,
        (None, [(None, ', "z": 1')]),
        (None, [(None, "}")]),
        ("", []),
        ("", []),
    ]


@settings(max_examples=100, deadline=None)
@given(st.text(f"<>/_()=,'\"fgx1 \n{OPEN}", max_size=30), st.booleans(), st.booleans())
def test_noise_never_raises_and_loses_no_text(noise, opened, closed):
    output = OPEN * opened + noise + CLOSE * closed
    run = runner()
    message = summary(run.message(output))
    assert message[2] or (message[1] or "") == output
    for lens in (1, 2):
        folded = fold(run.deltas(output, lens, snapshots=True))
        assert folded[2] or folded[1] == output


@pytest.mark.parametrize("piece", ["abc", '")\ng(y="', "a\n", "  "])
def test_work_is_linear(piece):
    def seconds(count):
        run = runner()
        ids = run.ids(OPEN) + run.vocabulary.spell('f(x="') + run.vocabulary.spell(piece) * count
        start = time.process_time()
        run.deltas(ids)
        return time.process_time() - start

    seconds(100)
    assert seconds(8_000) < 25 * seconds(800) + 0.3


# --- thoughts ---

PIECES = ("</", "Ġ</", "think", ">", "<", "<|im_start|>")


def thinker(*, prompt=None, tools=None, **fields):
    vocabulary = FakeVocabulary(PIECES, run=3)
    plan = plan_of(vocabulary, tools=tools, reasoning="olmo3")
    ids = None if prompt is None else vocabulary.encode(prompt)
    return Runner(vocabulary, plan, context_of(*([WEATHER, NOOP_TOOL] if tools else []), **fields), ids)


THOUGHTS = [
    pytest.param("Let me see.</think>Hello!", ("Let me see.", "Hello!"), id="prompt opened them"),
    pytest.param("<think>Let me see.</think>\n\nHello!", ("Let me see.", "\n\nHello!"), id="answer opens them"),
    pytest.param("<think></think>Hi", (None, "Hi"), id="none"),
    pytest.param("a</think>b<think>c</think>d", ("a", "b<think>c</think>d"), id="tags in the answer are text"),
    pytest.param("a </thi b</think>c", ("a </thi b", "c"), id="half a tag"),
    pytest.param("Hm <think>a</think>b", ("Hm <think>a", "b"), id="opening tag in their midst"),
    pytest.param("<think>never closed", ("never closed", None), id="never closed"),
    pytest.param("ends with </thin", ("ends with </thin", None), id="cut in the tag"),
]


@pytest.mark.parametrize(("output", "expected"), THOUGHTS)
@pytest.mark.parametrize("spelled", [False, True], ids=["usual tokens", "other tokens"])
def test_thoughts_are_told_alike_in_every_grouping(output, expected, spelled):
    run = thinker()
    ids = run.vocabulary.spell(*output) if spelled else run.ids(output)
    message = summary(run.message(ids))
    assert (message[0] or None, message[1]) == expected
    for name, folded in run.folds(ids).items():
        assert _loose(folded) == _loose(message), name


def test_the_end_tag_in_its_usual_tokens_begins_the_answer():
    """olmo3-reasoning/close-no-newline, grouping 1."""
    deltas = thinker().deltas("a.</think>Hi<eos>")
    assert [each and (each.reasoning, each.content) for each in deltas] == [
        ("a.", None),
        None,
        None,
        (None, ""),
        (None, "Hi"),
        (None, ""),
    ]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        pytest.param("<|im_start|>x<think>", ("Hello", None), id="open"),
        pytest.param("<|im_start|>x<think>y</think>", (None, "Hello"), id="closed"),
        pytest.param(
            "<|im_start|><think>y</think><|im_start|>x<think>", ("Hello", None), id="closed in an earlier turn"
        ),
        pytest.param("<|im_start|><think>y</think><|im_start|>x", (None, "Hello"), id="closed in an earlier turn only"),
    ],
)
def test_the_prompt_says_whether_the_output_begins_with_thoughts(prompt, expected):
    run = thinker(prompt=prompt)
    message = summary(run.message("Hello"))
    assert message == (*expected, ())
    assert {_loose(folded) for folded in run.folds("Hello").values()} == {_loose(message)}


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        pytest.param("Hello", (None, "Hello"), id="answer"),
        pytest.param("<b>Hello", (None, "<b>Hello"), id="answer that begins like a tag"),
        pytest.param("<thi", (None, "<thi"), id="half a tag"),
        pytest.param("<think>Hm.</think>Hello", ("Hm.", "Hello"), id="thoughts all the same"),
    ],
)
def test_without_thinking_the_output_is_the_answer(output, expected):
    """families/olmo3-reasoning/thinking-off"""
    run = thinker(prompt="<|im_start|>x", template_kwargs={"enable_thinking": False})
    message = summary(run.message(output))
    assert message == (*expected, ())
    assert {_loose(folded) for folded in run.folds(output).values()} == {_loose(message)}


def test_a_prompt_that_opened_thoughts_is_believed():
    run = thinker(prompt="<|im_start|>x<think>", template_kwargs={"enable_thinking": False})
    assert summary(run.message("Hm.</think>Hello")) == ("Hm.", "Hello", ())


@pytest.mark.parametrize("tag", ["</think>", "</think>\n\n", " </think>\n"])
def test_calls_follow_the_thoughts(tag):
    run = thinker(tools="olmo3")
    output = f"Hm.{tag}{OPEN}{PARIS_TEXT}{CLOSE}<eos>"
    message = summary(run.message(output))
    assert _loose(message) == ("Hm.", "", (PARIS,))
    for name, folded in run.folds(output).items():
        assert _loose(folded) == _loose(message), name


@pytest.mark.parametrize("missing", REQUIRED)
def test_a_tokenizer_without_the_tags_pieces_is_refused(missing):
    with pytest.raises(ParserConfigurationError, match="has no token"):
        plan_of(FakeVocabulary([piece for piece in PIECES if piece != missing]), reasoning="olmo3")


@pytest.mark.parametrize(
    ("text", "touched"),
    [("", True), ("thi", True), ("a <", True), ("k> b", True), ("abc", False), ("<think>", False), ("a <b", False)],
)
def test_a_chunk_may_hold_part_of_a_tag(text, touched):
    assert touches(text, "<think>") is touched


@given(st.lists(st.sampled_from(["<think>", "</think>", "</", "think", ">", "<", "a", " b", "in", "\n"]), max_size=12))
def test_thoughts_of_any_shape_are_told_alike(pieces):
    run = thinker()
    output = "".join(pieces)
    message = summary(run.message(output))
    for lens in (1, 2, 5):
        assert _loose(fold(run.deltas(output, lens, snapshots=True))) == _loose(message)
