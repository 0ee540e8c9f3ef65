"""hy_v3 reasoning and calls: whole answers, exact deltas, every grouping."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.exceptions import ParserConfigurationError
from tests.parsers.support import FakeVocabulary, Runner, context_of, entries, fold, plan_of, summary, tool

TAGS = ("<tool_calls>", "</tool_calls>", "<tool_call>", "</tool_call>", "<tool_sep>")
TAGS += ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
THINK = ("<think>", "</think>")
WEATHER = tool("get_weather", city={"type": "string"}, days={"type": "integer"})
PING = tool("ping")
OPEN = "<tool_calls><tool_call>get_weather<tool_sep><arg_key>city</arg_key><arg_value>"


def runner(*, tools="hy_v3", reasoning=None, prompt=None, effort="high", request=(WEATHER, PING), **fields):
    vocabulary = FakeVocabulary((*TAGS, *THINK))
    plan = plan_of(vocabulary, tools=tools, reasoning=reasoning)
    context = context_of(*request, template_kwargs={"reasoning_effort": effort}, **fields)
    return Runner(vocabulary, plan, context, vocabulary.encode(prompt) if prompt is not None else None)


def call(name="get_weather", **pairs):
    body = "".join(f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n" for key, value in pairs.items())
    return f"<tool_call>{name}<tool_sep>\n{body}</tool_call>\n"


def block(*calls):
    return "<tool_calls>\n" + "".join(calls) + "</tool_calls>"


PARIS = ("get_weather", '{"city": "Paris", "days": 2}')

WELL_FORMED = [
    pytest.param("Hello.<eos>", "Hello.", (), id="plain"),
    pytest.param(block(call(city="Paris", days="2")), None, (PARIS,), id="one call"),
    pytest.param("Sure. " + block(call(city="Paris", days="2")), "Sure. ", (PARIS,), id="text before"),
    pytest.param(block(call("ping"), call(city="Paris", days="2")), None, (("ping", "{}"), PARIS), id="two calls"),
    pytest.param(
        block(call("ping")) + "and " + block(call("ping")), None, (("ping", "{}"), ("ping", "{}")), id="two blocks"
    ),
    pytest.param(
        block(call(city='a "b" \\ \n é\x07 </b>')),
        None,
        (("get_weather", '{"city": "a \\"b\\" \\\\ \\n é\\u0007 </b>"}'),),
        id="escapes",
    ),
    pytest.param(block(call(" ping \n")), None, (("ping", "{}"),), id="padded name"),
    pytest.param(block(call(other="5")), None, (("get_weather", '{"other": "5"}'),), id="unknown parameter"),
    pytest.param("<tool_call>no block</tool_call>", "<tool_call>no block</tool_call>", (), id="call outside a block"),
]


@pytest.mark.parametrize(("output", "content", "calls"), WELL_FORMED)
def test_whole_answers_and_every_grouping(output, content, calls):
    run = runner()
    assert summary(run.message(output)) == (None, content, calls)
    assert set(run.folds(output).values()) == {("", content or "", calls)}


MENDED = [
    pytest.param("<tool_call>get_weather<tool_sep><arg_key>city</arg_key><arg_value>Paris</tool_call>", id="value"),
    pytest.param("<tool_call>get_weather<tool_sep><arg_key>city</arg_key><arg_value>Paris</arg_value>", id="call"),
    pytest.param(
        "<tool_call>get_weather<tool_sep><arg_key>city</arg_key> = <arg_value>Paris</arg_value></tool_call>", id="gap"
    ),
]


@pytest.mark.parametrize("body", MENDED)
def test_a_missing_end_tag_loses_nothing(body):
    run = runner()
    expected = (("get_weather", '{"city": "Paris"}'), ("ping", "{}"))
    output = f"<tool_calls>{body}{call('ping')}</tool_calls>"
    assert summary(run.message(output)) == (None, None, expected)
    assert set(run.folds(output).values()) == {("", "", expected)}


def test_a_call_written_inside_a_value_is_part_of_it():
    run = runner()
    output = block(call(city="see <tool_call>x</tool_call> here"))
    expected = (("get_weather", '{"city": "see <tool_call>x</tool_call> here"}'),)
    assert summary(run.message(output)) == (None, None, expected)
    assert set(run.folds(output).values()) == {("", "", expected)}


@pytest.mark.parametrize(
    ("output", "content"),
    [
        ("<tool_calls>just text</tool_calls> more", "<tool_calls>just text</tool_calls> more"),
        ("<tool_calls><tool_call>get_w", "<tool_calls><tool_call>get_w"),
        ("A<tool_calls></tool_calls>", "A"),
        ("A<tool_calls>\n<tool_call>", "A"),
    ],
)
def test_a_block_without_a_call_is_given_back_if_it_holds_text(output, content):
    run = runner()
    assert summary(run.message(output)) == (None, content, ())
    assert set(run.folds(output).values()) == {("", content, ())}


@pytest.mark.parametrize(
    ("body", "streamed", "whole"),
    [
        ("<arg_key>ci", "{}", "{}"),
        ("<arg_key>city</arg_key><arg_value>Par", '{"city": "Par', "{}"),
        ("<arg_key>days</arg_key><arg_value>1", "{}", "{}"),
        ("<arg_key>city</arg_key><arg_value>P</arg_value>", '{"city": "P"}', '{"city": "P"}'),
    ],
)
def test_a_cut_call(body, streamed, whole):
    run = runner()
    output = f"<tool_calls><tool_call>get_weather<tool_sep>{body}"
    assert run.message(output).calls[0].arguments == whole
    assert {calls for _, _, calls in run.folds(output).values()} == {(("get_weather", streamed),)}


def test_a_repeated_key_has_its_last_value():
    run = runner()
    pair = "<arg_key>city</arg_key><arg_value>{}</arg_value>"
    output = f"<tool_calls><tool_call>get_weather<tool_sep>{pair.format('A')}{pair.format('B')}</tool_call>"
    assert run.message(output).calls[0].arguments == '{"city": "B"}'
    [(_, streamed)] = fold(run.deltas(output))[2]
    assert json.loads(streamed) == {"city": "B"}


def test_the_name_goes_out_alone_and_the_arguments_from_the_next_chunk_on():
    chunks = ["<tool_calls><tool_call>", "ping", "<tool_sep><arg_key>a</arg_key>", "\n"]
    chunks += ["<arg_value>", "x", "</arg_value>", "</tool_call>"]
    assert entries(runner().chunked(*chunks)) == [
        [],
        [],
        [(0, "ping", None)],
        [(0, None, "{")],
        [(0, None, '"a": "')],
        [(0, None, "x")],
        [(0, None, '"')],
        [(0, None, "}")],
    ]


def test_behind_a_finished_call_only_complete_calls_go_out_in_the_same_chunk():
    chunks = ["<tool_calls><tool_call>ping<tool_sep>", f"</tool_call>{call('ping')}<tool_call>ping<tool_sep>"]
    chunks += ["\n", "</tool_call></tool_calls>"]
    assert entries(runner().chunked(*chunks)) == [
        [(0, "ping", None)],
        [(0, None, "{}"), (1, "ping", "{}")],
        [(2, "ping", None)],
        [(2, None, "{}")],
    ]


def test_content_before_a_block_is_sent_even_if_it_is_empty():
    run = runner()
    deltas = run.deltas("Hi<tool_calls>")
    assert [delta.content if delta else None for delta in deltas] == ["Hi", None]
    assert [delta.content for delta in run.deltas("Hi<eos>")] == ["Hi", ""]


def test_spelled_tags_are_text():
    run = runner()
    ids = [*run.vocabulary.spell("Use ", "<tool_calls>"), *run.ids(block(call("ping")))]
    assert summary(run.message(ids)) == (None, "Use <tool_calls>", (("ping", "{}"),))
    ids = run.ids("<tool_calls><tool_call>get_weather<tool_sep><arg_key>city</arg_key><arg_value>")
    ids += [*run.vocabulary.spell("a", "</arg_value>", "b"), *run.ids("</arg_value></tool_call></tool_calls>")]
    assert run.message(ids).calls[0].arguments == '{"city": "a</arg_value>b"}'


def test_tags_may_have_a_suffix():
    tags = [f"{tag[:-1]}:x>" for tag in (*TAGS, *THINK)]
    vocabulary = FakeVocabulary(tags, extras={"token_suffix": ":x"})
    plan = plan_of(vocabulary, tools="hy_v3", reasoning="hy_v3")
    run = Runner(vocabulary, plan, context_of(PING, template_kwargs={"reasoning_effort": "high"}))
    output = "<think:x>t</think:x><tool_calls:x><tool_call:x>ping<tool_sep:x></tool_call:x></tool_calls:x>"
    assert summary(run.message(output)) == ("t", None, (("ping", "{}"),))


def test_tags_without_tokens_are_found_in_the_text_of_a_block():
    vocabulary = FakeVocabulary(("<tool_calls>", "</tool_calls>"))
    run = Runner(vocabulary, plan_of(vocabulary, tools="hy_v3"), context_of(WEATHER))
    output = "<tool_call> " + block(call(city="a < b"))
    assert summary(run.message(output)) == (None, "<tool_call> ", (("get_weather", '{"city": "a < b"}'),))
    assert set(run.folds(output).values()) == {("", "<tool_call> ", (("get_weather", '{"city": "a < b"}'),))}


@pytest.mark.parametrize(("tools", "reasoning"), [("hy_v3", None), (None, "hy_v3"), ("hy_v4", None)])
def test_a_tokenizer_without_the_tags_is_refused(tools, reasoning):
    with pytest.raises(ParserConfigurationError, match="the tokenizer has no"):
        plan_of(FakeVocabulary(("<tool_call>",)), tools=tools, reasoning=reasoning)


REASONING = [
    pytest.param({}, "<think>t</think>A", ("t", "A"), id="thoughts"),
    pytest.param({}, "t</think>A", ("t", "A"), id="the prompt opened them"),
    pytest.param({}, "never closed", ("never closed", None), id="never closed"),
    pytest.param({}, "</think>A", ("", "A"), id="empty"),
    pytest.param({"effort": None}, "<think>t</think>A", (None, "<think>t</think>A"), id="no effort"),
    pytest.param({"effort": "no_think"}, "<think>t</think>A", (None, "<think>t</think>A"), id="no_think"),
    pytest.param({"effort": "none"}, "<think>t</think>A", ("t", "A"), id="any other word is an effort"),
    pytest.param({"prompt": "<think></think>"}, "A", (None, "A"), id="the prompt closed them"),
]


@pytest.mark.parametrize(("fields", "output", "expected"), REASONING)
def test_reasoning(fields, output, expected):
    run = runner(tools=None, reasoning="hy_v3", request=(), **fields)
    assert summary(run.message(output)) == (*expected, ())
    assert set(run.folds(output).values()) == {(expected[0] or "", expected[1] or "", ())}


def test_the_pair_hands_over_behind_the_end_tag():
    run = runner(reasoning="hy_v3")
    output = f"<think>t</think>Sure.{block(call('ping'))}"
    assert summary(run.message(output)) == ("t", "Sure.", (("ping", "{}"),))
    assert set(run.folds(output).values()) == {("t", "Sure.", (("ping", "{}"),))}


def test_a_forced_choice_expects_plain_json():
    run = runner(tool_choice="required")
    output = '[{"name": "ping", "parameters": {}}]'
    assert summary(run.message(output)) == (None, "", (("ping", "{}"),))


def test_a_snapshot_stays_small():
    run = runner()
    parser = run.plan.open(run.context)
    sizes = []
    ids = run.ids(
        "T" * 3000 + "<tool_calls><tool_call>get_weather<tool_sep><arg_key>city</arg_key><arg_value>" + "x" * 3000
    )
    for token_id in ids:
        parser.feed([token_id], [run.vocabulary.text(token_id)], finished=False)
        sizes.append(len(json.dumps(parser.snapshot())))
    assert max(sizes) < 700


def test_a_long_argument_costs_linear_time():
    def seconds(characters):
        run = runner()
        ids = run.ids(
            "<tool_calls><tool_call>get_weather<tool_sep><arg_key>city</arg_key><arg_value>" + "x" * characters
        )
        start = time.process_time()
        run.deltas(ids)
        return time.process_time() - start

    seconds(1_000)
    assert seconds(60_000) < 40 * max(seconds(6_000), 0.005)


PIECES = [*TAGS, *THINK, "get_weather", "city", "days", "2", " ", "\n", "x<y", '"', "<eos>"]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=24), st.sampled_from(["hy_v3", None]))
def test_random_outputs_never_raise_and_do_not_depend_on_grouping(pieces, reasoning):
    run = runner(reasoning=reasoning)
    output = "".join(pieces)
    run.message(output)
    assert len({(r.strip(), c, calls) for r, c, calls in run.folds(output).values()}) == 1
