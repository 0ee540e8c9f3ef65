"""muse and muse_glimmer: channels, calls in tags, hand-over between the parsers, every grouping."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsers.support import FakeVocabulary, Runner, context_of, entries, plan_of, summary, tool

START, MESSAGE, EOM, EOT = "<|start|>", "<|message|>", "<|eom|>", "<|eot|>"
MARKERS = (START, MESSAGE, EOM)
WEATHER = tool("get_weather", city={"type": "string"}, days={"type": "integer"})
PING = tool("ping")


def runner(*, tools="muse", reasoning="muse", markers=MARKERS, prompt=None, request=(WEATHER, PING), **fields):
    vocabulary = FakeVocabulary(markers, specials=(EOT,))
    plan = plan_of(vocabulary, tools=tools, reasoning=reasoning)
    return Runner(vocabulary, plan, context_of(*request, **fields), vocabulary.encode(prompt) if prompt else None)


def message(to, body, *, first=False, end=EOM):
    return f"{'' if first else START + 'assistant'}{f' to={to}' if to else ''}{MESSAGE}{body}{end}"


def invoke(name, **parameters):
    body = "".join(f'<atem:parameter name="{key}">{value}</atem:parameter>\n' for key, value in parameters.items())
    return f'<atem:invoke name="{name}">\n{body}</atem:invoke>\n'


def calls(*invokes):
    return f"<atem:function_calls>\n{''.join(invokes)}</atem:function_calls>"


SELF = message("self", "t", first=True)
PARIS = ("get_weather", '{"city": "Paris", "days": 2}')
PING_CALL = message("ping", calls(invoke("ping")))
PINGED = ("ping", "{}")

PAIR = [
    pytest.param(SELF + message("user", "Hi", end=EOT), ("t", "Hi", ()), id="answer"),
    pytest.param(
        SELF + message("get_weather", calls(invoke("get_weather", city="Paris", days=2)), end=EOT),
        ("t", None, (PARIS,)),
        id="call",
    ),
    pytest.param(SELF + message("user", "Wait.") + PING_CALL, ("t", "Wait.", (PINGED,)), id="answer, call"),
    pytest.param(SELF + PING_CALL + message("user", "Done.", end=EOT), ("t", "Done.", (PINGED,)), id="call, answer"),
    pytest.param(SELF + PING_CALL + PING_CALL, ("t", None, (PINGED, PINGED)), id="two messages"),
    pytest.param(
        SELF + message("x", calls(invoke("ping"), invoke("ping.ping"), invoke("other"))),
        ("t", None, (PINGED, PINGED, ("other", "{}"))),
        id="three in one",
    ),
    pytest.param(SELF + message("user", "a < b to=c <| d <", end=EOT), ("t", "a < b to=c <| d <", ()), id="tails"),
    pytest.param(
        SELF + message("user", "see " + calls(invoke("ping")), end=EOT),
        ("t", "see " + calls(invoke("ping")), ()),
        id="a call in an answer is no call",
    ),
    pytest.param(message("self", calls(invoke("ping")), first=True), (calls(invoke("ping")), None, ()), id="thought"),
    pytest.param("Just text", (None, "Just text", ()), id="no header"),
    pytest.param("Just text" + message("user", "Hi", end=EOT), (None, "Just textHi", ()), id="text before the header"),
]


@pytest.mark.parametrize(("output", "expected"), PAIR)
@pytest.mark.parametrize("family", ["muse", "musespark1x", "muse_glimmer"])
@pytest.mark.parametrize("markers", [MARKERS, ()], ids=["tokens", "text"])
def test_whole_answers_and_every_grouping(output, expected, family, markers):
    run = runner(tools=family, reasoning=family, markers=markers)
    assert summary(run.message(output)) == expected
    assert set(run.folds(output).values()) == {(expected[0] or "", expected[1] or "", expected[2])}


CHANNELS = [
    ("muse", "", ("b", None)),
    ("muse", "commentary", (None, "b")),
    ("muse", "developer", (None, None)),
    ("muse_glimmer", "commentary", (None, None)),
    ("muse_glimmer", "developer", (None, None)),
]


@pytest.mark.parametrize(("family", "recipient", "expected"), CHANNELS)
def test_channels(family, recipient, expected):
    run = runner(tools=family, reasoning=family)
    output = message(recipient, "b", first=True)
    assert summary(run.message(output)) == (*expected, ())
    assert set(run.folds(output).values()) == {(expected[0] or "", expected[1] or "", ())}


def test_glimmer_puts_thoughts_on_lines_of_their_own():
    run = runner(tools=None, reasoning="muse_glimmer", request=())
    output = message("self", "a", first=True) + message("self", "b") + message("user", "c", end=EOT)
    assert summary(run.message(output)) == ("a\nb", "c", ())
    assert set(run.folds(output).values()) == {("a\nb", "c", ())}
    assert run.message(message("self", "", first=True)).reasoning == ""


@pytest.mark.parametrize("family", ["muse", "muse_glimmer"])
@pytest.mark.parametrize("body", ['{"city": "Paris"}', '<atem:invoke name="">x</atem:invoke>', '<atem:invoke name="pi'])
def test_a_tools_message_without_a_call_is_given_back(family, body):
    run = runner(tools=family, reasoning=family)
    output = SELF + message("ping", body, end="")
    given_back = message("ping", body, end="")
    found = run.message(output)
    assert (found.reasoning, found.content.strip(), found.calls) == ("t", given_back, ())
    assert {(r, c.strip(), k) for r, c, k in run.folds(output).values()} == {("t", given_back, ())}


def test_values():
    note = tool("note", text={"type": "string"}, n={"type": "integer"})
    values = {"text": '"C"', "n": "7", "o": '{"a": NaN}', "s": " x ", "e": "1e400"}
    output = message("note", calls(invoke("note", **values)), first=True)
    muse = runner(request=(note,)).message(output).calls[0].arguments
    assert json.loads(muse) == {"text": '"C"', "n": 7, "o": {"a": "NaN"}, "s": " x ", "e": "1e400"}
    glimmer = runner(tools="muse_glimmer", reasoning="muse_glimmer", request=(note,)).message(output)
    assert json.loads(glimmer.calls[0].arguments)["text"] == "C"


def test_attributes_may_come_in_any_order():
    body = '<atem:invoke id="1" name="ping" x=\'y\'><atem:parameter type="s" name="a">1</atem:parameter></atem:invoke>'
    run = runner()
    assert summary(run.message(message("x", body, first=True))) == (None, None, (("ping", '{"a": 1}'),))


def test_a_call_is_sent_whole_when_it_is_complete():
    run = runner()
    chunks = [" to=ping" + MESSAGE, "<atem:function_calls>", '\n<atem:invoke name="ping">', "</atem:inv", "oke>", "\n"]
    assert entries(run.chunked(*chunks)) == [[], [], [], [], [(0, "ping", "{}")], []]


def test_the_end_marker_may_be_missing():
    run = runner(reasoning=None)
    output = message("self", "thinking", first=True, end="") + " to=ping" + MESSAGE + invoke("ping")
    assert summary(run.message(output)) == ("thinking ", None, (PINGED,))
    assert set(run.folds(output).values()) == {("thinking ", "", (PINGED,))}


def test_without_any_header_calls_count_wherever_they_stand():
    run = runner(reasoning=None)
    output = "Sure. " + calls(invoke("ping")) + " bye"
    assert summary(run.message(output)) == (None, output, (PINGED,))
    assert set(run.folds(output).values()) == {("", output, (PINGED,))}


def test_the_tool_parser_alone_separates_thoughts_and_framing():
    run = runner(reasoning=None)
    output = SELF + message("user", "Hi", end=EOT)
    assert summary(run.message(output)) == ("t", "Hi", ())
    assert set(run.folds(output).values()) == {("t", "Hi", ())}


def test_the_reasoning_parser_alone_shows_a_call_as_it_is_written():
    run = runner(tools=None, request=())
    assert summary(run.message(SELF + PING_CALL)) == ("t", PING_CALL, ())
    assert set(run.folds(SELF + PING_CALL).values()) == {("t", PING_CALL, ())}
    deltas = run.chunked(SELF, f"{START}assistant to=ping{MESSAGE}<atem:invoke", " ", "<", "/", "x")
    assert [delta.content if delta else None for delta in deltas] == [
        None,
        f"{START}assistant to=ping{MESSAGE}<atem:invoke",
        " ",
        "<",
        "/",
        "x",
    ]


@pytest.mark.parametrize("family", ["muse", "muse_glimmer"])
def test_a_message_that_the_prompt_left_open_goes_on(family):
    run = runner(tools=family, reasoning=family, prompt=f"{START}user{MESSAGE}x{EOM}{START}assistant to=self{MESSAGE}")
    output = f"go on{EOM}{message('user', 'Hi', end=EOT)}"
    assert summary(run.message(output)) == ("go on", "Hi", ())
    assert set(run.folds(output).values()) == {("go on", "Hi", ())}


def test_without_tools_everything_is_text():
    run = runner(reasoning=None, request=())
    assert summary(run.message(SELF)) == (None, SELF, ())


def test_a_long_answer_costs_linear_time():
    def seconds(characters):
        run = runner()
        ids = run.ids(SELF + START + "assistant to=user" + MESSAGE + "x to=y " * (characters // 7))
        start = time.process_time()
        run.deltas(ids)
        return time.process_time() - start

    seconds(1_000)
    assert seconds(60_000) < 40 * max(seconds(6_000), 0.005)


PIECES = [*MARKERS, " to=self", " to=user", " to=ping", "assistant", "<atem:invoke", ' name="ping">', "</atem:invoke>"]
PIECES += [
    "<atem:function_calls>",
    '<atem:parameter name="a">',
    "</atem:parameter>",
    "text",
    " ",
    " t",
    " to",
    "<",
    EOT,
]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(PIECES), max_size=24),
    st.sampled_from(["muse", "muse_glimmer", None]),
    st.sampled_from(["muse", "muse_glimmer"]),
)
def test_random_outputs_never_raise_and_do_not_depend_on_grouping(pieces, reasoning, tools):
    run = runner(tools=tools, reasoning=reasoning)
    output = "".join(pieces)
    run.message(output)
    assert len(set(run.folds(output).values())) == 1
