"""Formats on the grammar of qwen3: mimo, seed_oss, step3p5, step5; reasoning of Nemotron, Granite 4.2, MiniCPM-V."""

import pytest

from parsers.formats.minicpmv import Unescaped, UnescapedState
from tests.parsers.formats.xml_checks import check, check_groupings, mutated
from tests.parsers.support import FakeVocabulary, Runner, context_of, entries, fold, plan_of, summary, tool

MARKERS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_start|>", "<|im_end|>", "<|reserved_12|>")
SEED_MARKERS = ("<seed:think>", "</seed:think>", "<seed:tool_call>", "</seed:tool_call>", "<seed:bos>")
WEATHER = tool("get_weather", city={"type": "string"}, days={"type": "integer"})
NOTE = tool("note", text={"type": "string"})
PARIS = ("get_weather", '{"city": "Paris", "days": 3}')


def runner(*, tools=None, reasoning=None, markers=MARKERS, request=(WEATHER, NOTE), prompt=None, **fields):
    vocabulary = FakeVocabulary(markers)
    plan = plan_of(vocabulary, tools=tools, reasoning=reasoning)
    prompt_ids = vocabulary.encode(prompt) if prompt is not None else None
    return Runner(vocabulary, plan, context_of(*request, **fields), prompt_ids)


def call(name, *, break_="\n", opener="<tool_call>", closer="</tool_call>", **parameters):
    body = "".join(f"<parameter={key}>{break_}{value}{break_}</parameter>\n" for key, value in parameters.items())
    return f"{opener}\n<function={name}>\n{body}</function>\n{closer}"


def seed_call(name, **parameters):
    return call(name, opener="<seed:tool_call>", closer="</seed:tool_call>", **parameters)


def test_mimo_values_are_verbatim():
    run = runner(tools="mimo", reasoning="mimo")
    output = f"T</think>A{call('note', break_='', text=' x')}{call('note', text='y')}<eos>"
    check(run, output, ("T", "A", (("note", '{"text": " x"}'), ("note", '{"text": "\\ny\\n"}'))))


def test_seed_oss_has_tags_of_its_own():
    run = runner(tools="seed_oss", reasoning="seed_oss", markers=SEED_MARKERS)
    output = f"<seed:think>T</seed:think>A{seed_call('get_weather', city='Paris', days=3)}<eos>"
    check(run, output, ("T", "A", (PARIS,)))


def test_seed_oss_reads_a_forced_choice_as_json():
    run = runner(tools="seed_oss", markers=SEED_MARKERS, tool_choice="required")
    calls = (PARIS, ("note", '{"text": "a"}'))
    output = (
        '[{"name": "get_weather", "parameters": {"city": "Paris", "days": 3}}, '
        '{"name": "note", "parameters": {"text": "a"}}]'
    )
    check(run, output, (None, "", calls))


@pytest.mark.parametrize(("tools", "content"), [("step3p5", "Sure."), ("step5", "\n Sure.\n\n")])
def test_white_space_around_content(tools, content):
    run = runner(tools=tools)
    output = f"\n Sure.\n\n{call('note', text='x')}"
    check(run, output, (None, content, (("note", '{"text": "x"}'),)))


def test_step5_sends_blank_content_before_a_call():
    run = runner(tools="step5")
    assert fold(run.deltas(f"\n\n{call('note', text='x')}"))[1] == "\n\n"
    assert fold(runner(tools="step3p5").deltas(f"\n\n{call('note', text='x')}"))[1] == ""


def test_step3p5_thinks_whatever_the_switch_says_and_drops_trailing_white_space():
    run = runner(reasoning="step3p5", request=(), template_kwargs={"enable_thinking": False})
    check(run, "T \n\n</think>A", ("T", "A", ()))


def test_a_call_without_a_name_is_nothing():
    run = runner(tools="mimo")
    check(
        run,
        "<tool_call>\n<function=>\n<parameter=text>y</parameter>\n</function>\n</tool_call>after",
        (None, "after", ()),
    )


# --- nemotron_v3 ------------------------------------------------------------------------------------------------------


def forced(reasoning, **fields):
    return runner(reasoning=reasoning, request=(), own_template_kwargs={"force_nonempty_content": True}, **fields)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("T</think>A", ("T", "A", ())),
        ("T only", (None, "T only", ())),
        ("T</think>", (None, "T", ())),
        ("T</think>\n\n", ("\n\n", "T", ())),
    ],
)
def test_nemotron_never_leaves_the_answer_empty_if_asked(output, expected):
    assert summary(forced("nemotron_v3").message(output)) == expected


def test_nemotron_sends_unclosed_thoughts_again_as_the_answer():
    assert set(forced("nemotron_v3").folds("T only").values()) == {("T only", "T only", ())}
    assert set(forced("nemotron_v3").folds("T</think>A").values()) == {("T", "A", ())}


def test_nemotron_keeps_the_answer_empty_unless_asked():
    check(runner(reasoning="nemotron_v3", request=()), "T</think>", ("T", None, ()))


def test_nemotron_takes_a_call_for_an_answer():
    run = runner(tools="qwen3_coder", reasoning="nemotron_v3", own_template_kwargs={"force_nonempty_content": True})
    check(run, f"T</think>{call('note', text='x')}", ("T", None, (("note", '{"text": "x"}'),)))


# --- granite_thinking_parser ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("T\n</think>\n\n\nA\nB", ("T", "A\nB", ())),
        ("T</think>\n  \n A", ("T", "  \n A", ())),
        ("T</think>\n\n", ("T", None, ())),
    ],
)
def test_granite_thinking_drops_line_breaks_before_the_answer(output, expected):
    check(runner(reasoning="granite_thinking_parser", request=()), output, expected)


def test_granite_thinking_with_thoughts_only():
    run = forced("granite_thinking_parser")
    assert summary(run.message("T</think>")) == (None, "T", ())
    assert summary(run.message("T</think>\n\n")) == ("T", None, ())
    assert set(run.folds("T</think>").values()) == {("T", "T", ())}


def test_granite_thinking_passes_everything_when_thinking_is_off():
    run = runner(reasoning="granite_thinking_parser", request=(), template_kwargs={"enable_thinking": False})
    check(run, "<think>T</think>A", (None, "<think>T</think>A", ()))


@pytest.mark.parametrize("reasoning", ["granite_thinking_parser", "minicpmv", "minimax_m2"])
def test_a_prompt_that_closed_the_thoughts_is_obeyed_until_the_model_opens_them_again(reasoning):
    markers = ("<think>", "</think>", "<tool_call>", "<minimax:tool_call>")
    run = runner(reasoning=reasoning, markers=markers, request=(), prompt="<think></think>")
    assert loose_summary(run, "A") == (None, "A", ())
    assert loose_summary(run, "<think>T</think>A") == ("T", "A", ())


def loose_summary(run, output):
    found = summary(run.message(output))
    assert {(r or None, c or None, t) for r, c, t in run.folds(output).values()} == {found}
    return found


# --- minicpmv ---------------------------------------------------------------------------------------------------------

UNESCAPED = [
    ("a\\nb\\r\\nc\\rd", "a\nb\nc\nd"),
    ("\\t \\x \\\\n \\\\\\n", "\\t \\x \\\\n \\\\\\n"),
    ("`a\\n` ``\\n ```b\\n``` \\n", "`a\\n` ``\n ```b\\n``` \n"),
    ("$a\\n$ $$b\\n$$ \\(c\\n\\) \\[d\\n\\] \\n", "$a\\n$ $$b\\n$$ \\(c\\n\\) \\[d\\n\\] \n"),
    ("`open\\n", "`open\\n"),
    ("tail\\", "tail\\"),
    ("tail\\r\\", "tail\n\\"),
    ("``", "``"),
]


@pytest.mark.parametrize(("text", "expected"), UNESCAPED)
def test_escaped_line_breaks_at_every_cut(text, expected):
    assert Unescaped(UnescapedState()).feed(text, final=True) == expected
    for at in range(len(text) + 1):
        state = UnescapedState()
        assert Unescaped(state).feed(text[:at]) + Unescaped(state).feed(text[at:], final=True) == expected
    state = UnescapedState()
    pieces = [Unescaped(state).feed(character) for character in text]
    assert "".join(pieces) + Unescaped(state).feed("", final=True) == expected


def test_minicpmv_resolves_escapes_in_both_texts_but_not_in_arguments():
    run = runner(tools="qwen3_coder", reasoning="minicpmv")
    output = f"a\\nb</think>c\\nd{call('note', text='e' + chr(92) + 'n')}"
    check(run, output, ("a\nb", "c\nd", (("note", '{"text": "e\\\\n"}'),)))


def test_minicpmv_swallows_reserved_tokens_and_the_end_of_the_turn():
    check(runner(reasoning="minicpmv", request=()), "a<|reserved_12|>b</think>c<|im_end|>d", ("ab", "cd", ()))


def test_minicpmv_hides_thoughts_that_were_turned_off():
    run = runner(reasoning="minicpmv", request=(), template_kwargs={"enable_thinking": False})
    check(run, "a<think>b\\nc</think>d", (None, "ad", ()))


# --- all --------------------------------------------------------------------------------------------------------------

PAIRS = [
    ("mimo", "mimo", MARKERS),
    ("seed_oss", "seed_oss", SEED_MARKERS),
    ("step3p5", "step3p5", MARKERS),
    ("step5", "step5", MARKERS),
    ("qwen3_coder", "nemotron_v3", MARKERS),
    ("qwen3_coder", "granite_thinking_parser", MARKERS),
    ("qwen3_coder", "minicpmv", MARKERS),
]


@pytest.mark.parametrize(("tools", "reasoning", "markers"), PAIRS)
@pytest.mark.parametrize("seed", range(12))
def test_damaged_output_means_the_same_in_every_grouping(tools, reasoning, markers, seed):
    run = runner(tools=tools, reasoning=reasoning, markers=markers)
    spelled = seed_call if tools == "seed_oss" else call
    think = "</seed:think>" if tools == "seed_oss" else "</think>"
    sample = (
        f"T \\n T{think}\n\nA\\n {spelled('get_weather', city='Pa<ris', days=3)}\n{spelled('note', text='a > b')} B"
    )
    check_groupings(run, mutated(sample, seed))


def test_the_name_goes_out_before_the_arguments():
    run = runner(tools="mimo")
    found = [entry for chunk in entries(run.deltas(call("note", break_="", text="xyz"))) for entry in chunk]
    assert found[:2] == [(0, "note", None), (0, None, '{"text": "')]


def test_a_closing_function_tag_inside_a_value_is_text():
    run = runner(tools="mimo")
    output = call("note", break_="", text="a </function> b") + call("note", break_="", text="c")
    check(run, output, (None, None, (("note", '{"text": "a </function> b"}'), ("note", '{"text": "c"}'))))


def test_a_value_without_its_closing_tag_ends_with_the_function():
    run = runner(tools="mimo")
    output = f"<tool_call><function=note><parameter=text>a</function></tool_call>{call('note', break_='', text='b')}"
    check(run, output, (None, None, (("note", '{"text": "a"}'), ("note", '{"text": "b"}'))))
