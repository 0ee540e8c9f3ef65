"""hy_v4 reasoning and calls: strict whole answers, exact deltas, every grouping."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.exceptions import ParserConfigurationError
from tests.parsers.support import FakeVocabulary, Runner, context_of, entries, fold, plan_of, summary, tool

PLAIN = ("<tool_calls>", "</tool_calls>", "<tool_call>", "</tool_call>")
PLAIN += ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "<think>", "</think>")
TAGS = tuple(f"{tag[:-1]}:x>" for tag in PLAIN)
WEATHER = tool("get_weather", city={"type": "string"}, days={"type": "integer"})
PING = tool("ping")


def runner(*, tools="hy_v4", reasoning=None, tags=TAGS, effort=None, **fields):
    vocabulary = FakeVocabulary(tags)
    context = context_of(WEATHER, PING, template_kwargs={"reasoning_effort": effort}, **fields)
    return Runner(vocabulary, plan_of(vocabulary, tools=tools, reasoning=reasoning), context)


def suffixed(text):
    """`text` with the suffix in every tag."""
    for plain, tag in zip(PLAIN, TAGS, strict=True):
        text = text.replace(plain, tag)
    return text


def call(name="get_weather", **pairs):
    body = "".join(f"<arg_key>{key}</arg_key><arg_value>{value}</arg_value>" for key, value in pairs.items())
    return f"<tool_call>{name}{body}</tool_call>"


def block(*calls):
    return "<tool_calls>" + "".join(calls) + "</tool_calls>"


PARIS = ("get_weather", '{"city": "Paris", "days": 2}')

WELL_FORMED = [
    pytest.param("Hello.<eos>", "Hello.", (), id="plain"),
    pytest.param(block(call(city="Paris", days="2")), None, (PARIS,), id="one call"),
    pytest.param(
        "Sure.\n" + block(call("ping"), call(city="Paris", days="2")), "Sure.\n", (("ping", "{}"), PARIS), id="two"
    ),
    pytest.param(
        block(call(city="a < b </p> </arg_val")), None, (("get_weather", '{"city": "a < b </p> </arg_val"}'),), id="lt"
    ),
    pytest.param(
        "<tool_calls>\n" + call("ping") + "\n" + call("ping") + "\n</tool_calls>", None, (("ping", "{}"),) * 2, id="ws"
    ),
    pytest.param(block(call("ping")) + " and " + block(call("ping")), None, (("ping", "{}"),) * 2, id="two blocks"),
]


@pytest.mark.parametrize(("output", "content", "calls"), WELL_FORMED)
def test_whole_answers_and_every_grouping(output, content, calls):
    run = runner()
    output = suffixed(output)
    content = suffixed(content) if content else content
    assert summary(run.message(output)) == (None, content, calls)
    assert set(run.folds(output).values()) == {("", content or "", calls)}


@pytest.mark.parametrize(
    "output",
    [
        "Hi <tool_calls></tool_calls>",
        "Hi <tool_calls>oops</tool_calls> there",
        "<tool_calls><tool_call> <arg_key>city</arg_key><arg_value>A</arg_value></tool_call></tool_calls>",
        "<tool_calls><tool_call>pi",
        "<tool_calls>",
    ],
)
def test_a_malformed_block_without_a_call_is_given_back(output):
    run = runner()
    output = suffixed(output)
    assert summary(run.message(output)) == (None, output, ())
    assert set(run.folds(output).values()) == {("", output, ())}


@pytest.mark.parametrize(
    ("output", "streamed"),
    [
        (
            "<tool_calls><tool_call>get_weather<arg_key>city</arg_key> <arg_value>A</arg_value></tool_call>",
            '{"city": "A"}',
        ),
        (
            "<tool_calls><tool_call>get_weather<arg_key>city</arg_key><arg_value>A</tool_call></tool_calls>",
            '{"city": "A"}',
        ),
        (block(call(city="see <tool_call>x</tool_call>")), '{"city": "see <tool_call>x</tool_call>"}'),
        ("<tool_calls><tool_call>get_weather<arg_key>city</arg_key><arg_value>Par", '{"city": "Par'),
        ("<tool_calls>" + call(city="A"), '{"city": "A"}'),
    ],
)
def test_a_malformed_call_is_text_for_a_whole_answer_and_what_was_sent_stays(output, streamed):
    run = runner()
    output, streamed = suffixed(output), suffixed(streamed)
    assert summary(run.message(output)) == (None, output, ())
    assert {calls for _, _, calls in run.folds(output).values()} == {(("get_weather", streamed),)}


def test_deltas_of_two_calls():
    chunks = ["<tool_calls><tool_call>", "ping", "</tool_call>", "<tool_call>", "get_weather", "<arg_key>", "city"]
    chunks += ["</arg_key><arg_value>", "a <", "b", "</arg_value>", "</tool_call>", "</tool_calls>"]
    assert entries(runner().chunked(*map(suffixed, chunks))) == [
        [],
        [],
        [(0, "ping", "{}")],
        [],
        [],
        [(1, "get_weather", None)],
        [(1, None, "{")],
        [(1, None, '"city": "')],
        [(1, None, "a ")],
        [(1, None, "<b")],
        [(1, None, '"')],
        [(1, None, "}")],
        [],
    ]


def test_inside_a_block_spelled_tags_count():
    run = runner()
    opening, closing = run.ids(TAGS[0]), run.ids(TAGS[1])
    text = suffixed(call(city="a"))
    spelled = run.vocabulary.spell(*[text[at : at + 2] for at in range(0, len(text), 2)])
    ids = [*opening, *spelled, *closing]
    assert summary(run.message(ids)) == (None, None, (("get_weather", '{"city": "a"}'),))
    assert set(run.folds(ids).values()) == {("", "", (("get_weather", '{"city": "a"}'),))}
    assert run.message(run.vocabulary.spell(TAGS[0], "x")).content == f"{TAGS[0]}x"


def test_a_structural_tag_makes_the_spelled_block_tag_count():
    run = runner(structural_tag="{}")
    ids = run.vocabulary.spell("Hi < you ", "<tool_", "calls:x>", suffixed(call("ping")), TAGS[1])
    assert summary(run.message(ids)) == (None, "Hi < you ", (("ping", "{}"),))
    assert set(run.folds(ids).values()) == {("", "Hi < you ", (("ping", "{}"),))}
    assert fold(run.deltas("a < b <tool_cal")) == ("", "a < b <tool_cal", ())


def test_the_suffix_may_be_missing():
    run = runner(tags=PLAIN)
    assert summary(run.message(block(call("ping")))) == (None, None, (("ping", "{}"),))


def test_a_tokenizer_with_think_tokens_of_its_own_is_refused():
    vocabulary = FakeVocabulary(TAGS, extras={"model_specific_special_tokens": {"think_begin_token": "<t>"}})
    with pytest.raises(ParserConfigurationError, match="think_begin_token"):
        plan_of(vocabulary, tools="hy_v4")


@pytest.mark.parametrize(
    ("effort", "expected"),
    [(None, ("t", "A")), ("high", ("t", "A")), ("no_think", (None, "<think:x>t</think:x>A"))],
)
def test_reasoning_is_on_unless_asked_not_to(effort, expected):
    run = runner(tools=None, reasoning="hy_v4", effort=effort)
    output = suffixed("<think>t</think>A")
    assert summary(run.message(output)) == (*expected, ())
    assert set(run.folds(output).values()) == {(expected[0] or "", expected[1] or "", ())}


PIECES = [*TAGS, "get_weather", "city", "days", "2", " ", "\n", "x<y", '"', "<eos>"]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=24), st.sampled_from(["hy_v4", None]))
def test_random_outputs_never_raise_and_do_not_depend_on_grouping(pieces, reasoning):
    run = runner(reasoning=reasoning)
    output = "".join(pieces)
    run.message(output)
    assert len({(r.strip(), c, calls) for r, c, calls in run.folds(output).values()}) == 1
