"""DeepSeek V3 and V3.1 calls: whole answers, exact deltas, every grouping, slightly malformed calls."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.assembly import CallDelta, Delta
from parsers.engine.exceptions import ParserConfigurationError
from parsers.formats.deepseek_v3 import BLOCK_BEGIN, BLOCK_END, CALL_BEGIN, CALL_END, MARKERS, SEPARATOR
from tests.parsers.support import FakeVocabulary, Runner, context_of, fold, plan_of, summary, tool

THINK = ("<think>", "</think>")
TOOLS = (tool("get_time", tz={"type": "string"}), tool("ping"))
TIME = ("get_time", '{"tz": "UTC"}')


def runner(tools="deepseek_v3", *, reasoning=None, request=TOOLS, markers=(*MARKERS, *THINK), prompt=None, **fields):
    vocabulary = FakeVocabulary(markers)
    plan = plan_of(vocabulary, tools=tools, reasoning=reasoning)
    prompt_ids = vocabulary.encode(prompt) if prompt is not None else None
    return Runner(vocabulary, plan, context_of(*request, **fields), prompt_ids)


def v3(name, arguments, kind="function"):
    return f"{CALL_BEGIN}{kind}{SEPARATOR}{name}\n```json\n{arguments}\n```{CALL_END}"


def v31(name, arguments):
    return f"{CALL_BEGIN}{name}{SEPARATOR}{arguments}{CALL_END}"


def block(*calls):
    return BLOCK_BEGIN + "".join(calls) + BLOCK_END


ANSWERS = [
    pytest.param("deepseek_v3", "Hello!<eos>", "Hello!", (), id="text"),
    pytest.param("deepseek_v3", block(v3(*TIME)), None, (TIME,), id="v3 call"),
    pytest.param("deepseek_v31", block(v31(*TIME)), None, (TIME,), id="v31 call"),
    pytest.param("deepseek_v3", "Both:\n" + block(v3(*TIME), "\n", v3(*TIME)), "Both:\n", (TIME, TIME), id="v3 two"),
    pytest.param("deepseek_v31", "Both:\n" + block(v31(*TIME), v31(*TIME)), "Both:\n", (TIME, TIME), id="v31 two"),
    pytest.param("deepseek_v3", block(v3(*TIME)) + "\nDone.", "\nDone.", (TIME,), id="v3 text behind"),
    pytest.param("deepseek_v31", block(v31(*TIME)) + "\nDone.", None, (TIME,), id="v31 text behind"),
    pytest.param("deepseek_v3", BLOCK_BEGIN + v3(*TIME), None, (TIME,), id="block not closed"),
    pytest.param("deepseek_v3", v3(*TIME), v3(*TIME), (), id="no block"),
    pytest.param("deepseek_v3", block(v3("ping", "")), None, (("ping", "{}"),), id="v3 no arguments"),
    pytest.param("deepseek_v31", block(v31("ping", "")), None, (("ping", "{}"),), id="v31 no arguments"),
    pytest.param("deepseek_v31", block(v31("ping", " \n  ")), None, (("ping", "{}"),), id="v31 blank arguments"),
    pytest.param("deepseek_v3", block(v3("f", "a=1")), None, (("f", "a=1"),), id="arguments that are no JSON"),
    pytest.param(
        "deepseek_v3", block(v3("f", '{"a": "``` \n"}')), None, (("f", '{"a": "``` \n"}'),), id="fence in an argument"
    ),
    pytest.param("deepseek_v31", "Hm " + BLOCK_BEGIN, "Hm ", (), id="only an opening"),
]

MALFORMED = [
    pytest.param("deepseek_v3", block(v31(*TIME)), None, (TIME,), id="v31 call read by v3"),
    pytest.param("deepseek_v31", block(v3(*TIME)), None, (TIME,), id="v3 call read by v31"),
    pytest.param("deepseek_v3", block(v3(*TIME, kind="tool")), None, (TIME,), id="another kind"),
    pytest.param("deepseek_v3", block(v3(*TIME, kind="")), None, (TIME,), id="no kind"),
    pytest.param(
        "deepseek_v3",
        block(f"{CALL_BEGIN}function{SEPARATOR}get_time\n{TIME[1]}{CALL_END}"),
        None,
        (TIME,),
        id="no fence",
    ),
    pytest.param(
        "deepseek_v3",
        block(f"{CALL_BEGIN}function{SEPARATOR}get_time\n```json\n{TIME[1]}```{CALL_END}"),
        None,
        (TIME,),
        id="closing fence on the same line",
    ),
    pytest.param(
        "deepseek_v3",
        block(f"{CALL_BEGIN}function{SEPARATOR}get_time\n```json\n{TIME[1]}\n``` \n{CALL_END}"),
        None,
        (TIME,),
        id="white space behind the fence",
    ),
    pytest.param(
        "deepseek_v31", f"{BLOCK_BEGIN}{CALL_BEGIN}get_time{SEPARATOR}{TIME[1]}{BLOCK_END}", None, (TIME,), id="no end"
    ),
    pytest.param(
        "deepseek_v31",
        f"{BLOCK_BEGIN}{CALL_BEGIN}get_time{SEPARATOR}{TIME[1]}{v31(*TIME)}",
        None,
        (TIME, TIME),
        id="the next call ends a call",
    ),
    pytest.param(
        "deepseek_v3",
        block(f"{CALL_BEGIN}function{SEPARATOR}get_time```json\n{TIME[1]}\n```{CALL_END}"),
        None,
        (TIME,),
        id="fence on the line of the name",
    ),
    pytest.param("deepseek_v31", f"Hm {BLOCK_BEGIN} never mind", "Hm  never mind", (), id="text instead of a call"),
    pytest.param(
        "deepseek_v31",
        block(f"{CALL_BEGIN}get\ntime{SEPARATOR}{{}}{CALL_END}"),
        f"{CALL_BEGIN}get\ntime{SEPARATOR}{{}}{CALL_END}",
        (),
        id="a call without a name is text",
    ),
]


@pytest.mark.parametrize(("tools", "output", "content", "calls"), ANSWERS + MALFORMED)
def test_one_shot(tools, output, content, calls):
    assert summary(runner(tools).message(output)) == (None, content, calls)


@pytest.mark.parametrize(("tools", "output", "content", "calls"), ANSWERS + MALFORMED)
def test_every_grouping_folds_to_the_one_shot_answer(tools, output, content, calls):
    for grouping, (_, c, found) in runner(tools).folds(output).items():
        assert (c.strip(), found) == ((content or "").strip(), calls), grouping


def test_deltas_of_a_v3_call():
    run = runner()
    chunks = [BLOCK_BEGIN, CALL_BEGIN, "function", SEPARATOR, "get_", "time", "\n", "``", "`json", "\n", '{"tz', '": "']
    chunks += ["UTC", '"}\n', "``", "`", CALL_END, BLOCK_END, "<eos>"]
    ids = [i for chunk in chunks for i in (run.ids(chunk) if chunk[0] == "<" else run.vocabulary.spell(chunk))]
    empty = Delta(content="")
    first = Delta(calls=[CallDelta(index=0, id=run.context.call_id(0), name="get_time")])
    pieces = [Delta(calls=[CallDelta(index=0, arguments=text)]) for text in ('{"tz', '": "', "UTC", '"}')]
    expected = [empty, *[None] * 5, first, *[None] * 3, *pieces, *[None] * 3, empty, empty]
    assert run.deltas(ids) == expected


def test_arguments_do_not_share_the_chunk_that_names_the_call():
    run = runner("deepseek_v31")
    ids = [*run.ids(BLOCK_BEGIN + CALL_BEGIN), *run.vocabulary.spell("ping"), *run.ids(SEPARATOR)]
    ids += [*run.vocabulary.spell("{", '"a": 1', "}"), *run.ids(CALL_END)]
    deltas = run.deltas(ids, [2, 3, 1, 2])
    assert deltas == [
        None,
        Delta(calls=[CallDelta(index=0, id=run.context.call_id(0), name="ping")]),
        Delta(calls=[CallDelta(index=0, arguments='{"a": 1')]),
        Delta(calls=[CallDelta(index=0, arguments="}")]),
    ]


def test_a_whole_call_in_one_chunk_is_one_entry():
    run = runner()
    ids = run.ids("Hi" + block(v3(*TIME)))
    entry = CallDelta(index=0, id=run.context.call_id(0), name="get_time", arguments=TIME[1])
    assert run.deltas(ids, [len(ids)]) == [Delta(content="Hi", calls=[entry])]


@pytest.mark.parametrize(
    ("tools", "opened", "streamed"),
    [
        ("deepseek_v3", f"{CALL_BEGIN}function{SEPARATOR}get_", ()),
        ("deepseek_v3", f'{CALL_BEGIN}function{SEPARATOR}get_time\n```json\n{{"t', (("get_time", '{"t'),)),
        ("deepseek_v31", f'{CALL_BEGIN}get_time{SEPARATOR}{{"t', (("get_time", '{"t'),)),
    ],
)
def test_a_cut_call_is_none(tools, opened, streamed):
    run = runner(tools)
    assert summary(run.message(BLOCK_BEGIN + opened)) == (None, None, ())
    assert set(run.folds(BLOCK_BEGIN + opened).values()) == {("", "", streamed)}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"tool_choice": "none"}, (None, "A " + block(v31(*TIME)), ())),
        ({"tool_choice": "required"}, (None, "A ", (TIME,))),
        ({"parallel_tool_calls": False}, (None, "A ", (TIME,))),
        ({"request": ()}, (None, "A " + block(v31(*TIME)), ())),
    ],
)
def test_request_fields(fields, expected):
    assert summary(runner("deepseek_v31", **fields).message("A " + block(v31(*TIME)))) == expected


@pytest.mark.parametrize(
    ("name", "calls"),
    [(" get_time ", ((" get_time ", TIME[1]),)), ("two words", (("two words", TIME[1]),)), ("no: such", ())],
)
@pytest.mark.parametrize(("tools", "written"), [("deepseek_v3", v3), ("deepseek_v31", v31)])
def test_names(tools, written, name, calls):
    message = runner(tools, request=(*TOOLS, tool("two words"))).message(block(written(name, TIME[1])))
    assert summary(message)[2] == calls
    assert (message.content or "") == ("" if calls else written(name, TIME[1]))


def test_thoughts_in_front_of_a_call():
    run = runner(reasoning="deepseek_r1", prompt="<think>")
    output = "I call.</think>\n\n" + block(v3(*TIME))
    assert summary(run.message(output)) == ("I call.", None, (TIME,))
    assert {(r, c.strip(), calls) for r, c, calls in run.folds(output).values()} == {("I call.", "", (TIME,))}


def test_a_prompt_that_closed_reasoning():
    run = runner("deepseek_v31", reasoning="deepseek_v3", prompt="</think>", template_kwargs={"thinking": True})
    assert summary(run.message(block(v31(*TIME)))) == (None, None, (TIME,))


def test_a_cut_stop_token_still_closes_the_call():
    run = runner("deepseek_v31")
    ids = run.ids(BLOCK_BEGIN + v31(*TIME))
    texts = [run.vocabulary.text(i) for i in ids]
    texts[-1] = ""
    message = run.plan.open(run.context).parse(ids, texts)
    assert summary(message) == (None, None, (TIME,))


@pytest.mark.parametrize("missing", MARKERS)
def test_a_tokenizer_without_the_markers_is_refused_at_start(missing):
    with pytest.raises(ParserConfigurationError, match="no <"):
        runner(markers=[marker for marker in MARKERS if marker != missing])


def test_a_long_argument_takes_linear_time():
    def seconds(length):
        run = runner("deepseek_v3")
        ids = run.ids(block(v3("f", '{"a": "' + "xyz " * length + '"}')))
        texts = [run.vocabulary.text(token_id) for token_id in ids]
        parser = run.plan.open(run.context)
        start = time.process_time()
        for token_id, text in zip(ids, texts, strict=True):
            parser.feed([token_id], [text], finished=False)
        assert len(str(parser.snapshot())) < 1000
        return time.process_time() - start

    short, long = min(seconds(2000) for _ in range(3)), min(seconds(16000) for _ in range(3))
    assert long < 24 * short


@pytest.mark.parametrize("opened", [CALL_BEGIN, f"{CALL_BEGIN}function{SEPARATOR}"])
def test_a_long_text_without_a_name_is_released_before_the_end(opened):
    run = runner()
    deltas = run.deltas(BLOCK_BEGIN + opened + "word " * 500)
    assert sum(bool(delta and delta.content) for delta in deltas) > 500
    assert fold(deltas) == ("", opened + "word " * 500, ())


PARTS = [*MARKERS, "function", "get_time", "\n", "```json", "```", "{", "}", " ", "ok", "`"]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["deepseek_v3", "deepseek_v31"]), st.lists(st.sampled_from(PARTS), min_size=1, max_size=10))
def test_any_output_folds_alike(tools, parts):
    run = runner(tools)
    folds = {(r, c.strip(), calls) for r, c, calls in run.folds(BLOCK_BEGIN + "".join(parts)).values()}
    assert len(folds) == 1


@settings(max_examples=100, deadline=None)
@given(st.text('{}"a:,\n`\\ 1é', min_size=1, max_size=30).filter(str.strip))
def test_arguments_are_the_models_own_text(text):
    run = runner("deepseek_v31")
    assert run.message(block(v31("f", text))).calls[0].arguments == text
    assert fold(run.deltas(block(v31("f", text))))[2] == (("f", text),)
