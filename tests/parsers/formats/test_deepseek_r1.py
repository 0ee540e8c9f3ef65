"""R1 reasoning and its relatives: whole answers, exact deltas, prompts, every grouping."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.assembly import Delta
from parsers.engine.exceptions import ParserConfigurationError
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary

MARKERS = ("<think>", "</think>", "<user>", "<assistant>")


def runner(reasoning="deepseek_r1", *, prompt=None, markers=MARKERS, **fields):
    vocabulary = FakeVocabulary(markers)
    plan = plan_of(vocabulary, reasoning=reasoning)
    return Runner(vocabulary, plan, context_of(**fields), vocabulary.encode(prompt) if prompt is not None else None)


ANSWERS = [
    pytest.param("Think.\n</think>\n\nHello!<eos>", ("Think.\n", "\n\nHello!"), id="opened by the prompt"),
    pytest.param("<think>Think.</think>Hello!<eos>", ("Think.", "Hello!"), id="opening tag is swallowed"),
    pytest.param("<think>\n\n</think>\n\nHi", ("\n\n", "\n\nHi"), id="blank thoughts"),
    pytest.param("<think></think>Hi", ("", "Hi"), id="empty thoughts"),
    pytest.param("</think>Hi", ("", "Hi"), id="only the end tag"),
    pytest.param("never closed", ("never closed", None), id="all reasoning"),
    pytest.param("<think>", ("", None), id="only the opening tag"),
    pytest.param("</think>", ("", None), id="nothing but the end tag"),
    pytest.param("<eos>", ("", None), id="nothing at all"),
    pytest.param("a</think>b</think>c", ("a", "b</think>c"), id="second end tag is content"),
    pytest.param("a</think>b<think>c</think>d", ("a", "b<think>c</think>d"), id="tags in the answer are content"),
    pytest.param("<think><think>a</think>b", ("<think>a", "b"), id="second opening tag is a thought"),
    pytest.param("Well, <think>hm</think>ok", ("Well, hm", "ok"), id="text before the opening tag is a thought"),
    pytest.param("\n<think>hm</think>ok", ("hm", "ok"), id="white space before the opening tag is nothing"),
]


@pytest.mark.parametrize(("output", "expected"), ANSWERS)
@pytest.mark.parametrize("name", ["deepseek_r1", "step5", "holo2"])
def test_one_shot(name, output, expected):
    assert summary(runner(name).message(output)) == (*expected, ())


@pytest.mark.parametrize(("output", "expected"), ANSWERS)
def test_every_grouping_folds_to_the_one_shot_answer(output, expected):
    reasoning, content = expected
    for grouping, (r, c, _) in runner().folds(output).items():
        assert (r.strip(), c) == (reasoning.strip(), content or ""), grouping


@pytest.mark.parametrize(
    ("output", "lens", "deltas"),
    [
        ("<think>abc</think>xyz<eos>", 1, [None, Delta("abc"), None, Delta(None, "xyz"), Delta(None, "")]),
        ("<think>abc</think>xyz<eos>", 2, [Delta("abc"), Delta("", "xyz"), Delta(None, "")]),
        ("<think>abc</think>xyz<eos>", [5], [Delta("abc", "xyz")]),
        ("<think></think>", 2, [Delta("")]),
        ("abc<eos>", 1, [Delta("abc"), Delta("")]),
    ],
)
def test_deltas(output, lens, deltas):
    assert runner().deltas(output, lens) == deltas


def test_spelled_tags_are_text():
    run = runner()
    ids = [*run.vocabulary.spell("the tag ", "</think>", " ends"), *run.ids("</think>"), *run.vocabulary.spell("ok")]
    assert summary(run.message(ids)) == ("the tag </think> ends", "ok", ())


@pytest.mark.parametrize(
    ("prompt", "output", "expected"),
    [
        ("<user>hi<assistant><think>\n", "A", ("A", None)),
        ("<user>hi<assistant><think>\n\n</think>\n\n", "A", (None, "A")),
        ("<user>hi<assistant></think>", "<think>a</think>b", ("a", "b")),
        ("<user>hi<assistant></think>", "\n<think>a</think>b", ("a", "\nb")),
        ("<user>hi<assistant></think>", "b<think>c", (None, "b<think>c")),
        ("<assistant>t</think>hello<user>hi<assistant>", "a</think>b", ("a", "b")),
    ],
)
def test_the_prompt_decides_where_the_output_starts(prompt, output, expected):
    run = runner(prompt=prompt)
    assert summary(run.message(output)) == (*expected, ())
    for grouping, (r, c, _) in run.folds(output).items():
        assert (r, c) == (expected[0] or "", expected[1] or ""), grouping


def test_a_continued_message_is_past_its_thoughts():
    run = runner(prompt="<assistant><think>t</think>The ans", template_kwargs={"continue_final_message": True})
    assert summary(run.message("wer")) == (None, "wer", ())


@pytest.mark.parametrize(
    ("name", "kwargs", "expected"),
    [
        ("deepseek_v3", {}, (None, "a</think>b")),
        ("deepseek_v3", {"thinking": True}, ("a", "b")),
        ("deepseek_v3", {"enable_thinking": True}, ("a", "b")),
        ("deepseek_v3", {"thinking": None}, (None, "a</think>b")),
        ("holo2", {}, ("a", "b")),
        ("holo2", {"thinking": None}, ("a", "b")),
        ("holo2", {"thinking": False}, (None, "a</think>b")),
        ("holo2", {"thinking": False, "enable_thinking": True}, ("a", "b")),
        ("deepseek_r1", {"thinking": False}, ("a", "b")),
    ],
)
def test_template_kwargs(name, kwargs, expected):
    run = runner(name, template_kwargs=kwargs)
    assert summary(run.message("a</think>b")) == (*expected, ())
    assert fold(run.deltas("a</think>b")) == (expected[0] or "", expected[1], ())


def test_holo2_does_not_look_at_the_prompt():
    run = runner("holo2", prompt="<user>hi<assistant></think>")
    assert summary(run.message("a</think>b")) == ("a", "b", ())


@pytest.mark.parametrize("name", ["deepseek_r1", "holo2", "step5"])
def test_a_tokenizer_without_tags_is_refused_at_start(name):
    with pytest.raises(ParserConfigurationError, match="</think>"):
        runner(name, markers=())


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("a</think>b</think>c", ("a", "b</think>c")),
        ("<think>a < b</think>c", ("a < b", "c")),
        ("</think>a", ("", "a")),
        ("a </thin", ("a </thin", None)),
    ],
)
def test_deepseek_v3_finds_the_tags_in_the_text_of_a_tokenizer_without_them(output, expected):
    run = runner("deepseek_v3", markers=(), template_kwargs={"thinking": True})
    assert summary(run.message(output)) == (*expected, ())
    assert {(r, c) for r, c, _ in run.folds(output).values()} == {(expected[0], expected[1] or "")}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["<think>", "</think>", "ab", " ", "\n", "<", "th"]), max_size=8))
def test_any_output_folds_alike(parts):
    run = runner()
    ids = [token_id for part in parts for token_id in run.ids(part)]
    reasoning, content, _ = summary(run.message(ids))
    for r, c, _ in run.folds(ids).values() if ids else ():
        assert (r.strip(), c) == ((reasoning or "").strip(), content or "")
