"""MiniMax M2 and M3: invocations with named parameters or elements, their thoughts, every grouping."""

import json

import pytest

from parsers.engine.exceptions import ParserConfigurationError
from tests.parsers.formats.xml_checks import check, check_groupings, check_linear, mutated, timed
from tests.parsers.support import FakeVocabulary, Runner, context_of, entries, fold, plan_of, summary, tool

M2_MARKERS = ("<think>", "</think>", "<minimax:tool_call>", "</minimax:tool_call>")
M3_MARKERS = ("<mm:think>", "</mm:think>", "]<]minimax[>[")
WEATHER = tool("get_weather", city={"type": "string"}, days={"type": "integer"})
NOTE = tool("note", text={"type": "string"})
ORDER = tool(
    "order",
    tags={"type": "array", "items": {"type": "string"}},
    address={"type": "object", "properties": {"zip": {"type": "integer"}}},
    extra={"type": "object", "additionalProperties": {"type": "integer"}},
    free={},
    either={"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]},
)
PARIS = ("get_weather", '{"city": "Paris", "days": 3}')
NS = "]<]minimax[>["


def m2(*, tools="minimax_m2", reasoning=None, request=(WEATHER, NOTE), prompt=None, **fields):
    vocabulary = FakeVocabulary(M2_MARKERS)
    plan = plan_of(vocabulary, tools=tools, reasoning=reasoning)
    prompt_ids = vocabulary.encode(prompt) if prompt is not None else None
    return Runner(vocabulary, plan, context_of(*request, **fields), prompt_ids)


def m3(*, tools="minimax_m3", reasoning=None, request=(WEATHER, NOTE, ORDER), **fields):
    vocabulary = FakeVocabulary(M3_MARKERS)
    return Runner(vocabulary, plan_of(vocabulary, tools=tools, reasoning=reasoning), context_of(*request, **fields))


def invoke(name, **parameters):
    body = "".join(f'<parameter name="{key}">{value}</parameter>\n' for key, value in parameters.items())
    return f'<invoke name="{name}">\n{body}</invoke>\n'


def block(*calls):
    return f"<minimax:tool_call>\n{''.join(calls)}</minimax:tool_call>"


def elements(text):
    """Tags of `text` with the prefix."""
    return text.replace("<", f"{NS}<")


def m3_block(*calls):
    return elements("<tool_call>") + "\n" + "".join(map(elements, calls)) + elements("</tool_call>")


# --- minimax_m2 -------------------------------------------------------------------------------------------------------

M2_ANSWERS = [
    pytest.param(f"A {block(invoke('get_weather', city='Paris', days=3))}<eos>", ("A", (PARIS,)), id="one call"),
    pytest.param(
        block(invoke("note", text="a"), invoke("note")),
        (None, (("note", '{"text": "a"}'), ("note", "{}"))),
        id="two in a block",
    ),
    pytest.param(f"A {invoke('note', text='a')} B", ("A", (("note", '{"text": "a"}'),)), id="without the block"),
    pytest.param(
        block("<invoke name='note'><parameter name='text'>a</parameter></invoke>"),
        (None, (("note", '{"text": "a"}'),)),
        id="single quotes",
    ),
    pytest.param(
        block("<invoke name=note><parameter name=text>a</parameter></invoke>"),
        (None, (("note", '{"text": "a"}'),)),
        id="no quotes",
    ),
    pytest.param(
        block('<invoke name=" note "><parameter  name = " text " >a</parameter></invoke>'),
        (None, (("note", '{"text": "a"}'),)),
        id="blanks",
    ),
    pytest.param(
        block('<invoke name="note"><parameter name="">x</parameter><parameter name="text">a</parameter></invoke>'),
        (None, (("note", '{"text": "a"}'),)),
        id="parameter without a name",
    ),
    pytest.param(
        block(invoke("note", text='a > "b" </x> <par')),
        (None, (("note", '{"text": "a > \\"b\\" </x> <par"}'),)),
        id="markup in a value",
    ),
    pytest.param(
        block(invoke("note", text="a </invoke> b")),
        (None, (("note", '{"text": "a </invoke> b"}'),)),
        id="end of call in a value",
    ),
    pytest.param("He said \"x\" > 'y' </invoke>", ("He said \"x\" > 'y' </invoke>", ()), id="quotes in content"),
    pytest.param("a </minimax:tool_call> b", ("a  b", ()), id="stray end"),
    pytest.param(
        'A <minimax:tool_call>\n<invoke name="">\n</invoke>\n</minimax:tool_call> B', ("A  B", ()), id="empty name"
    ),
]


@pytest.mark.parametrize(("output", "expected"), M2_ANSWERS)
def test_m2_answers_in_every_grouping(output, expected):
    check(m2(), output, (None, *expected))


def test_m2_gives_back_a_call_of_an_unknown_function():
    text = f"A {block(invoke('zzz', a=1))} B"
    check(m2(), text, (None, text, ()))


def test_m2_thinks_until_the_tag_or_a_call():
    run = m2(reasoning="minimax_m2")
    check(run, f"T </think>A{block(invoke('note', text='a'))}", ("T", "A", (("note", '{"text": "a"}'),)))
    check(run, f"T {block(invoke('note', text='a'))}", ("T", None, (("note", '{"text": "a"}'),)))


def test_m2_append_think_keeps_the_thoughts_in_the_content():
    run = m2(tools=None, reasoning="minimax_m2_append_think", request=())
    check(run, "T</think>A", (None, "<think>T</think>A", ()))


def test_m2_append_think_with_a_call():
    run = m2(reasoning="minimax_m2_append_think")
    check(run, f"T</think>\n{block(invoke('note', text='a'))}", (None, "<think>T", (("note", '{"text": "a"}'),)))


def test_m2_append_think_holds_white_space_behind_the_thoughts():
    run = m2(reasoning="minimax_m2_append_think")
    assert fold(run.deltas(f"T</think>\n\n{block(invoke('note', text='a'))}"))[1] == "<think>T"
    assert fold(run.deltas("T</think>\n\nA"))[1] == "<think>T\n\nA"


def test_m2_deltas_of_a_call():
    chunks = [
        "<minimax:tool_call>",
        '\n<invoke name="note',
        '">',
        "\n",
        '<parameter name="text">',
        "a",
        "b",
        "</parameter>",
        "\n</invoke>",
    ]
    run = m2()
    ids = [i for chunk in chunks for i in (run.ids(chunk) if "minimax" in chunk else run.vocabulary.spell(chunk))]
    assert [chunk for chunk in entries(run.deltas(ids)) if chunk] == [
        [(0, "note", None)],
        [(0, None, '{"text": "')],
        [(0, None, "a")],
        [(0, None, "b")],
        [(0, None, '"}')],
    ]


@pytest.mark.parametrize("seed", range(40))
def test_m2_damaged_output_means_the_same_in_every_grouping(seed):
    sample = f"T\n</think>A {block(invoke('get_weather', city='Pa<ris', days=3), invoke('zzz', a=1))} B"
    check_groupings(m2(reasoning="minimax_m2"), mutated(sample, seed))


# --- minimax_m3 -------------------------------------------------------------------------------------------------------

M3_ARGUMENTS = [
    pytest.param("<city>Paris</city><days>3</days>", "get_weather", {"city": "Paris", "days": 3}, id="typed"),
    pytest.param("\n<city>Paris</city>\n", "get_weather", {"city": "Paris"}, id="lines"),
    pytest.param("<tags><item>a</item><item>1</item></tags>", "order", {"tags": ["a", "1"]}, id="list"),
    pytest.param("<tags><item>a</item></tags>", "order", {"tags": ["a"]}, id="list of one"),
    pytest.param("<tags></tags><address></address>", "order", {"tags": [], "address": {}}, id="empty containers"),
    pytest.param("<address><zip>12</zip></address>", "order", {"address": {"zip": 12}}, id="object"),
    pytest.param("<extra><a>1</a><b>2</b></extra>", "order", {"extra": {"a": 1, "b": 2}}, id="additional properties"),
    pytest.param("<free><a>1</a><a>2</a></free>", "order", {"free": {"a": ["1", "2"]}}, id="repeated names"),
    pytest.param("<free>x<a>1</a>y</free>", "order", {"free": {"a": "1", "$text": "xy"}}, id="text beside elements"),
    pytest.param("<free>x<$text>1</$text></free>", "order", {"free": {"$text": "1", "$$text": "x"}}, id="name in use"),
    pytest.param("<either><i>1</i></either>", "order", {"either": [1]}, id="alternatives"),
    pytest.param("<days>3</days>and<city>x</city>", "get_weather", {"days": 3}, id="text between"),
    pytest.param("<days>3</days><city>x", "get_weather", {"days": 3}, id="open element"),
    pytest.param("<days>3</days><city>x</town></city>", "get_weather", {"days": 3}, id="wrong end"),
    pytest.param("", "get_weather", {}, id="none"),
]


@pytest.mark.parametrize(("body", "name", "arguments"), M3_ARGUMENTS)
def test_m3_elements(body, name, arguments):
    output = m3_block(f'<invoke name="{name}">{body}</invoke>\n')
    check(m3(), output, (None, None, ((name, json.dumps(arguments)),)))


def test_m3_elements_that_are_nested_too_deeply_are_none():
    output = m3_block('<invoke name="note">' + "<a>" * 200 + "x" + "</a>" * 200 + "</invoke>")
    assert summary(m3().message(output)) == (None, None, (("note", "{}"),))


def test_m3_values_may_hold_any_tag_without_the_prefix():
    output = m3_block('<invoke name="note">').replace(elements("</tool_call>"), "")
    output += f"{NS}<text><b>1</b> </text> > {NS}</text>{NS}</invoke>{NS}</tool_call>"
    check(m3(), output, (None, None, (("note", '{"text": "<b>1</b> </text> > "}'),)))


def test_m3_equal_arguments_are_typed_by_their_own_function():
    call = '<invoke name="{}"><days>007</days></invoke>'
    output = m3_block(call.format("note"), call.format("get_weather"))
    check(m3(), output, (None, None, (("note", '{"days": "007"}'), ("get_weather", '{"days": 7}'))))


def test_m3_sends_the_name_first_and_the_arguments_at_the_end():
    run = m3()
    chunks = [
        chunk for chunk in entries(run.deltas(m3_block('<invoke name="note"><text>abc</text></invoke>'))) if chunk
    ]
    assert chunks == [[(0, "note", None)], [(0, None, '{"text": "abc"}')]]


def test_m3_drops_text_behind_a_block_and_keeps_it_behind_an_empty_one():
    output = "a " + m3_block('<invoke name="note"></invoke>') + " b"
    check(m3(), output, (None, "a ", (("note", "{}"),)))
    check(m3(), "a " + m3_block() + " b", (None, "a  b", ()))


M3_THOUGHTS = [
    ("<mm:think>T</mm:think>A", ("T", "A", ())),
    ("<mm:think>T", ("T", None, ())),
    ("<mm:think></mm:think>A", ("", "A", ())),
    ("</mm:think>A", (None, "A", ())),
    ("A only", (None, "A only", ())),
    ("A</mm:think>B", (None, "A</mm:think>B", ())),
    ("A<mm:think>T</mm:think>B", ("T", "AB", ())),
    ("<mm:think>T</mm:think>A<mm:think>B</mm:think>", ("T", "A<mm:think>B</mm:think>", ())),
    ("<mm:think>a <", ("a <", None, ())),
    ("<mm:th", (None, "<mm:th", ())),
]


@pytest.mark.parametrize(("output", "expected"), M3_THOUGHTS)
def test_m3_thoughts(output, expected):
    check(m3(tools=None, reasoning="minimax_m3", request=()), output, expected)


def test_m3_thoughts_spelled_with_ordinary_tokens():
    run = m3(tools=None, reasoning="minimax_m3", request=())
    check(run, run.vocabulary.spell("<mm:", "think>", "T", "</mm", ":think>", "A"), ("T", "A", ()))


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("T</mm:think>A", ("T", "A", ())),
        ("<mm:think>T</mm:think>A", ("T", "A", ())),
        ("T only", ("T only", None, ())),
        ("</mm:think>A", ("", "A", ())),
    ],
)
def test_m3_thoughts_opened_by_the_prompt(output, expected):
    kwargs = {"thinking_mode": "enabled"}
    check(m3(tools=None, reasoning="minimax_m3", request=(), template_kwargs=kwargs), output, expected)


def test_m3_thoughts_and_a_call():
    run = m3(reasoning="minimax_m3")
    output = "<mm:think>T</mm:think>" + m3_block('<invoke name="note"><text>a</text></invoke>')
    check(run, output, ("T", None, (("note", '{"text": "a"}'),)))


def test_m3_reasoning_needs_its_tokens():
    with pytest.raises(ParserConfigurationError):
        plan_of(FakeVocabulary(()), reasoning="minimax_m3")


def test_an_empty_output_is_an_empty_answer():
    assert summary(m3(tools=None, reasoning="minimax_m3", request=()).message("<eos>")) == (None, "", ())
    assert fold(m3(tools=None, reasoning="minimax_m3", request=()).deltas("<eos>")) == ("", "", ())


@pytest.mark.parametrize("seed", range(40))
def test_m3_damaged_output_means_the_same_in_every_grouping(seed):
    call = '<invoke name="order"><tags><i>a</i></tags><free>x<b>1</b></free></invoke>\n'
    sample = f"<mm:think>T\n</mm:think>A {m3_block(call, call)} B"
    check_groupings(m3(reasoning="minimax_m3"), mutated(sample, seed))


@pytest.mark.parametrize(
    ("run", "head"),
    [
        (m2(), '<minimax:tool_call><invoke name="note"><parameter name="text">'),
        (m3(), f'{NS}<tool_call>{NS}<invoke name="note">{NS}<text>'),
    ],
)
def test_a_long_value_costs_linear_time(run, head):
    check_linear(lambda characters: timed(run, head + "x" * characters))
