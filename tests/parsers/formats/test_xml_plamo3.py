"""PLaMo 3: markers of several tokens, the end of the turn, raw arguments."""

import pytest

from tests.parsers.formats.xml_checks import check, check_groupings, check_linear, mutated, timed
from tests.parsers.support import FakeVocabulary, Runner, context_of, entries, plan_of, summary, tool

SPECIALS = ("<|plamo:tag|>", "<|plamo:begin_", "<|plamo:end_", ":plamo|>", "<|plamo:eos|>")
WEATHER = tool("get_weather", city={"type": "string"}, days={"type": "integer"})
NOTE = tool("note", text={"type": "string"})
TURN_END = "<|plamo:tag|>"


def runner(*, tools="plamo3", reasoning="plamo3", request=(WEATHER, NOTE), prompt=None, **fields):
    vocabulary = FakeVocabulary((), specials=SPECIALS)
    plan = plan_of(vocabulary, tools=tools, reasoning=reasoning)
    prompt_ids = vocabulary.encode(prompt) if prompt is not None else None
    return Runner(vocabulary, plan, context_of(*request, **fields), prompt_ids)


def begin(name):
    return f"<|plamo:begin_{name}:plamo|>"


def end(name):
    return f"<|plamo:end_{name}:plamo|>"


ARGUMENTS = begin("tool_arguments") + "<|plamo:constrain|>json<|plamo:msg|>"


def request(name, arguments):
    return (
        f"{begin('tool_request')}{begin('tool_name')}{name}{end('tool_name')}"
        f"{ARGUMENTS}{arguments}{end('tool_arguments')}{end('tool_request')}"
    )


def section(*requests):
    return begin("tool_requests") + "".join(requests) + end("tool_requests")


PARIS = '{"city": "Paris", "days": 3}'
THINK = f"{begin('think')}T{end('think')}"

ANSWERS = [
    pytest.param(f"{THINK}A{TURN_END}", ("T", "A", ()), id="answer"),
    pytest.param(f"T{end('think')}A", ("T", "A", ()), id="opened by the prompt"),
    pytest.param(
        f"{THINK}A {section(request('get_weather', PARIS))}{TURN_END}",
        ("T", "A ", (("get_weather", PARIS),)),
        id="call",
    ),
    pytest.param(
        f"T {section(request('note', '{}'), request('get_weather', PARIS))}",
        ("T ", None, (("note", "{}"), ("get_weather", PARIS))),
        id="calls end the thoughts",
    ),
    pytest.param(f"{THINK}{section(request(' note ', ' '))}", ("T", None, (("note", "{}"),)), id="blank arguments"),
    pytest.param(
        THINK + section(request("get_weather", '{"days": "3"}')),
        ("T", None, (("get_weather", '{"days": 3}'),)),
        id="typed",
    ),
    pytest.param(f"{THINK}b{begin('think')}c{end('think')}d", ("Tc", "bd", ()), id="thoughts opened again"),
    pytest.param(f"T{TURN_END} A", ("T", " A", ()), id="the end of the turn ends the thoughts"),
    pytest.param(f"{THINK}A{TURN_END}B", ("T", "AB", ()), id="text behind the end of the turn"),
    pytest.param(f"{THINK}A < b <|plamo:x", ("T", "A < b <|plamo:x", ()), id="beginning of no marker"),
    pytest.param(f"{THINK}A<|plamo:begin_", ("T", "A", ()), id="cut marker"),
    pytest.param(f"{THINK}A{section()}B", ("T", "AB", ()), id="empty section"),
]


@pytest.mark.parametrize(("output", "expected"), ANSWERS)
def test_answers_in_every_grouping(output, expected):
    check(runner(), output, expected)


def test_a_name_without_arguments_is_a_call():
    run = runner(reasoning=None)
    check(
        run,
        f"{begin('tool_requests')}{begin('tool_request')}{begin('tool_name')}note{end('tool_name')}",
        (None, None, (("note", "{}"),)),
    )


def test_the_end_of_the_turn_inside_arguments():
    run = runner(reasoning=None)
    output = f"{begin('tool_requests')}{begin('tool_name')}note{end('tool_name')}{ARGUMENTS}" + '{"text": "a' + TURN_END
    check(run, output, (None, None, (("note", '{"text": "a'),)))


def test_the_name_goes_out_with_the_first_arguments():
    run = runner(reasoning=None)
    chunks = [chunk for chunk in entries(run.deltas(section(request("note", '{"text": "ab"}')))) if chunk]
    index, name, arguments = chunks[0][0]
    assert (index, name) == (0, "note")
    assert '{"text": "ab"}'.startswith(arguments)
    assert "".join(entry[2] for chunk in chunks for entry in chunk) == '{"text": "ab"}'


def test_thoughts_nobody_asked_for_are_dropped():
    check(runner(reasoning=None), f"a{begin('think')}b{end('think')}c", (None, "ac", ()))


def test_thinking_off_leaves_the_tags_alone():
    run = runner(template_kwargs={"enable_thinking": False})
    check(run, f"a{begin('think')}b", (None, f"a{begin('think')}b", ()))


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (begin("think"), ("X", None, ())),
        (begin("think") + end("think"), (None, "X", ())),
        (begin("think") + end("think") + TURN_END + "assistant", ("X", None, ())),
    ],
)
def test_the_prompt_decides_where_the_output_starts(prompt, expected):
    assert summary(runner(prompt=prompt).message("X")) == expected


def test_thoughts_alone_hand_the_answer_on_unread():
    run = runner(tools=None, request=())
    markup = section(request("note", "{}"))
    check(run, f"{THINK}A <{markup}{TURN_END}", ("T", f"A <{markup}", ()))


@pytest.mark.parametrize("seed", range(40))
def test_damaged_output_means_the_same_in_every_grouping(seed):
    sample = f"T{end('think')}A {section(request('get_weather', PARIS), request('note', '[1]'))} B{TURN_END}"
    check_groupings(runner(), mutated(sample, seed))


def test_a_long_argument_costs_linear_time():
    head = f"{begin('tool_requests')}{begin('tool_name')}note{end('tool_name')}{ARGUMENTS}" + '{"text": "'
    check_linear(lambda characters: timed(runner(reasoning=None), head + "x" * characters))
