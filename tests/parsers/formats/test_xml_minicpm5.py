"""MiniCPM5: XML elements as calls, leniently; blocks that are no calls."""

import pytest

from parsers.engine.assembly import Delta
from parsers.engine.function_block import read_block
from tests.parsers.formats.xml_checks import check, check_linear, loose, mutated, timed
from tests.parsers.support import FakeVocabulary, Runner, context_of, entries, fold, plan_of, summary, tool

MARKERS = ("<function", "</function>", "<param", "</param>")
WEATHER = tool("get_weather", city={"type": "string"}, days={"type": "integer"})
NOTE = tool("note", text={"type": "string"})
FREE = tool("free")
STRICT = {
    "type": "function",
    "function": {"name": "strict", "parameters": {"properties": {"a": {}}, "required": ["a"]}},
}
PHONE = tool("get_customer_by_phone", phone_number={"type": "string"})


def runner(*, markers=MARKERS, request=(WEATHER, NOTE, FREE, STRICT, PHONE), **fields):
    vocabulary = FakeVocabulary(markers)
    return Runner(vocabulary, plan_of(vocabulary, tools="minicpm5"), context_of(*request, **fields))


def call(name, **parameters):
    body = "".join(f'<param name="{key}">{value}</param>' for key, value in parameters.items())
    return f'<function name="{name}">{body}</function>'


PARIS = ("get_weather", '{"city": "Paris", "days": 3}')
PARIS_CALL = call("get_weather", city="Paris", days=3)

ANSWERS = [
    pytest.param(f"A {PARIS_CALL}<eos>", ("A", (PARIS,)), id="one call"),
    pytest.param(f"{PARIS_CALL} then {call('note', text='a')} B", (None, (PARIS, ("note", '{"text": "a"}'))), id="two"),
    pytest.param(call("note"), (None, (("note", "{}"),)), id="no arguments"),
    pytest.param(
        "<function name='note'><param name='text'>a</param></function>",
        (None, (("note", '{"text": "a"}'),)),
        id="single quotes",
    ),
    pytest.param(
        '<functionname="note"><paramname="text">a</param></function>',
        (None, (("note", '{"text": "a"}'),)),
        id="collapsed tags",
    ),
    pytest.param(
        '<function\u0120name="note"><param name="text">a\u0120b</param></function>',
        (None, (("note", '{"text": "a b"}'),)),
        id="marked spaces",
    ),
    pytest.param(
        '<function name="note"><arguments><param name="text">a</param></arguments></function>',
        (None, (("note", '{"text": "a"}'),)),
        id="wrapped",
    ),
    pytest.param(call("note", properties='{"text": "a", "x": 1}'), (None, (("note", '{"text": "a"}'),)), id="one dict"),
    pytest.param(
        call("note", text="1 &lt; 2 &amp;&amp; 3"), (None, (("note", '{"text": "1 < 2 && 3"}'),)), id="entities"
    ),
    pytest.param(call("note", text="<![CDATA[a < b]]>"), (None, (("note", '{"text": "a < b"}'),)), id="CDATA"),
    pytest.param(
        call("note", text="x <![CDATA[<b>]]> y"), (None, (("note", '{"text": "x <b> y"}'),)), id="CDATA in text"
    ),
    pytest.param(call("note", text=" a "), (None, (("note", '{"text": " a "}'),)), id="white space in XML"),
    pytest.param(
        call("note", text="\nif a < b:\n  c\n"), (None, (("note", '{"text": "if a < b:\\n  c"}'),)), id="no XML"
    ),
    pytest.param(
        call("note", text="<b>x</b> &amp; y"),
        (None, (("note", '{"text": "<b>x</b> &amp; y"}'),)),
        id="elements in a value",
    ),
    pytest.param(
        call("free", a="True", b="None", c="(1, 2)", d="007", e="NaN", f="1_0"),
        (None, (("free", '{"a": true, "b": null, "c": [1, 2], "d": "007", "e": "NaN", "f": 10}'),)),
        id="literals",
    ),
    pytest.param(call("note", text="5", other="x"), (None, (("note", '{"text": "5"}'),)), id="unknown parameter"),
    pytest.param(
        call("get_details_by_phone", phone="555"),
        (None, (("get_customer_by_phone", '{"phone_number": 555}'),)),
        id="alias",
    ),
    pytest.param(call("zzz", a=1), (call("zzz", a=1), ()), id="unknown function"),
    pytest.param("a < b <func </function>", ("a < b <func </function>", ()), id="no call"),
]


@pytest.mark.parametrize(("output", "expected"), ANSWERS)
def test_answers_in_every_grouping(output, expected):
    check(runner(), output, (None, *expected))


NO_CALLS = [
    pytest.param(call("strict"), id="required parameter missing"),
    pytest.param(
        '<function name="note"><param name="text">a</param><param name="text">b</param></function>', id="twice"
    ),
    pytest.param('<function name="note"><param>a</param></function>', id="parameter without a name"),
    pytest.param(call("note", properties="no dict"), id="no dict"),
    pytest.param('<function name="note"><param name="text">a', id="cut"),
]


@pytest.mark.parametrize("block", NO_CALLS)
def test_a_block_that_is_no_call_is_text(block):
    run = runner()
    assert summary(run.message(f"A {block}")) == (None, f"A {block}", ())


def test_a_call_that_was_announced_in_vain_does_not_hide_the_next():
    run = runner()
    output = call("strict") + call("note", text="a")
    assert summary(run.message(output)) == (None, call("strict"), (("note", '{"text": "a"}'),))
    found = fold(run.deltas(output))
    assert found == ("", call("strict"), (("strict", ""), ("note", '{"text": "a"}')))


def test_without_its_token_the_tag_is_found_in_the_text():
    run = runner(markers=())
    check(run, f"A <{PARIS_CALL}", (None, "A <", (PARIS,)))
    check(run, "a <func b", (None, "a <func b", ()))


def test_with_its_token_the_spelled_tag_is_text():
    run = runner()
    ids = run.vocabulary.spell("<func", "tion", ' name="note">', "x")
    check(run, ids, (None, '<function name="note">x', ()))


def test_deltas_of_a_call():
    run = runner()
    chunks = [
        "<function",
        ' name="get_weather"',
        ">",
        "<param",
        ' name="city">',
        "Pa",
        "ris",
        "</param>",
        "<param",
        ' name="days">',
        "3",
        "</param>",
        "</function>",
        "<eos>",
    ]
    ids = [
        i for chunk in chunks for i in (run.ids(chunk) if chunk in (*MARKERS, "<eos>") else run.vocabulary.spell(chunk))
    ]
    deltas = run.deltas(ids)
    assert [chunk for chunk in entries(deltas) if chunk] == [
        [(0, "get_weather", None)],
        [(0, None, '{"city": "Paris"')],
        [(0, None, ', "days": 3')],
        [(0, None, "}")],
    ]
    assert deltas[-1] == Delta(content="")


def test_call_ids_tell_the_modes_apart():
    run = runner()
    assert run.message(PARIS_CALL).calls[0].id.startswith("call_")
    [delta] = run.deltas(PARIS_CALL, [len(run.ids(PARIS_CALL))])
    assert delta is not None
    assert (delta.calls[0].id or "").startswith("chatcmpl-tool-")


@pytest.mark.parametrize("seed", range(60))
def test_damaged_output_means_the_same_in_every_grouping(seed):
    """A call that was announced in vain is all that groupings may differ in."""
    run = runner()
    output = mutated(f"A {PARIS_CALL} x {call('note', text='<b>a</b> &amp; ')}{call('zzz')} B", seed)
    whole = summary(run.message(output))
    for lens in (1, 2, 3, 7, [len(run.ids(output))]):
        folded = loose(fold(run.deltas(output, lens)))
        assert set(whole[2]) <= set(folded[2])
        if len(folded[2]) == len(whole[2]):
            assert folded == loose(whole)
        assert run.deltas(output, lens, snapshots=True) == run.deltas(output, lens)


@pytest.mark.parametrize(
    "block", ["<function", "<function>", '<function name="">', "<function name=note></function>", "</function>"]
)
def test_blocks_without_a_name_are_none(block):
    assert read_block(block) is None


def test_a_long_value_costs_linear_time():
    check_linear(lambda characters: timed(runner(), '<function name="note"><param name="text">' + "x" * characters))
