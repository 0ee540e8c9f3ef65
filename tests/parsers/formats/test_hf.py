"""hf and beam: regions of a response template, calls sent whole, the prompt's open region, refused templates."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.exceptions import ParserConfigurationError
from tests.parsers.support import FakeVocabulary, Runner, context_of, entries, plan_of, summary, tool

CALL = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
TEXT = {"content": "text"}
PLAIN = {
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "thinking": {"open": "<think>", "close": "</think>", **TEXT},
        "content": {"close": "<|im_end|>", **TEXT},
        "tool_calls": {
            "open": "<tool_call>",
            "close": "</tool_call>",
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
    },
}
TAGGED = {
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "thinking": {"open": "<think>", "close": "</think>"},
        "tool_calls": {
            "open_pattern": r"<tool_call>\s*<function=(?P<name>\w+)>",
            "close": "</tool_call>",
            "content": "xml-inline",
            "content_args": {
                "tag_pattern": r"<parameter=(?P<key>\w+)>\s*(?P<value>.*?)\s*</parameter>",
                "value_parser": {"name": "json", "args": {"allow_non_json": True}},
            },
            "transform": CALL,
        },
    },
}
FRAMED = {
    "start_anchor_pattern": r"<\|turn\|>bot",
    "fields": {
        "thinking": {"open_pattern": r"(?:<\|turn\|>bot)?<\|think\|>", "close": ["<|done|>", "<|eos|>"]},
        "content": {"open_pattern": r"(?:<\|turn\|>bot)?<\|say\|>", "close": ["<|done|>", "<|eos|>"]},
        "tool_calls": {
            "open_pattern": r"(?:<\|turn\|>bot)?<\|tool\|>(?P<name>\w+)<\|args\|>",
            "close": ["<|done|>", "<|eos|>"],
            "content": "json",
            "transform": CALL,
        },
    },
}
DIALECT = {
    "start_anchor": "<|turn>model\n",
    "fields": {
        "tool_calls": {
            "open_pattern": r"<\|tool_call>call:(?P<name>\w+)",
            "close": "<tool_call|>",
            "content": "json",
            "content_args": {"string_delims": [['<|"|>', '<|"|>']], "unquoted_keys": True},
            "transform": CALL,
        }
    },
}
EACH = {
    "start_anchor": "<|start|>",
    "fields": {
        "tool_calls": {
            "open": "<|act|>",
            "close": "<|end|>",
            "content": "json",
            "transform_each": True,
            "transform": {"function": {"name": "{tool_name}", "arguments": "{parameters}"}},
        }
    },
}
WEATHER = tool("get_weather", city={"type": "string"}, days={"type": "integer"})
PING = tool("ping")


def runner(template, *, tools="hf", reasoning="hf", prompt=None, request=(WEATHER, PING), **fields):
    vocabulary = FakeVocabulary((), extras={"response_template": template})
    plan = plan_of(vocabulary, tools=tools, reasoning=reasoning)
    return Runner(vocabulary, plan, context_of(*request, **fields), vocabulary.encode(prompt) if prompt else None)


PARIS = ("get_weather", '{"city": "Paris", "days": 2}')
PINGED = ("ping", "{}")
JSON_PING = '<tool_call>{"name": "ping", "arguments": {}}</tool_call>'

WELL_FORMED = [
    pytest.param(PLAIN, "<think>t</think> Hi \n", ("t", " Hi \n", ()), id="text stays as it is"),
    pytest.param(PLAIN, f"<think>t</think>a{JSON_PING}b", ("t", "ab", (PINGED,)), id="call"),
    pytest.param(PLAIN, "a<think>b</think>c<think>d", ("bd", "ac", ()), id="thoughts anywhere"),
    pytest.param(PLAIN, "a</think>b < c <thin", (None, "a</think>b < c <thin", ()), id="no opening tag"),
    pytest.param(PLAIN, f"<think>a{JSON_PING}", (f"a{JSON_PING}", None, ()), id="a call in a thought"),
    pytest.param(PLAIN, "Hi<|im_end|>more", (None, "Himore", ()), id="the end of the answer is removed"),
    pytest.param(
        TAGGED,
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>2</parameter>"
        "</function>\n</tool_call>",
        (None, None, (PARIS,)),
        id="tags",
    ),
    pytest.param(TAGGED, "<tool_call> <function", (None, "<tool_call> <function", ()), id="no opener"),
    pytest.param(
        TAGGED,
        "<tool_call><tool_call><function=ping></tool_call>",
        (None, "<tool_call>", (PINGED,)),
        id="second opener",
    ),
    pytest.param(TAGGED, "<tool_call><function=ping>", (None, None, (PINGED,)), id="closed by the end"),
    pytest.param(
        FRAMED,
        "<|think|>t<|done|><|turn|>bot<|say|>a<|done|>x<|turn|>bot<|tool|>ping<|args|>{}<|eos|>",
        ("t", "a", (PINGED,)),
        id="text outside regions is nobody's",
    ),
    pytest.param(FRAMED, "nobody's", (None, None, ()), id="unframed"),
    pytest.param(FRAMED, "<|say|>a<|say|>b", (None, "a<|say|>b", ()), id="opener in a region"),
    pytest.param(
        DIALECT,
        '<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:2}<tool_call|>',
        (None, None, (PARIS,)),
        id="dialect",
    ),
    pytest.param(
        DIALECT,
        '<|tool_call>call:ping{a:<|"|>{b:1} "c"<|"|>,"d":"e,f:g"}<tool_call|>',
        (None, None, (("ping", '{"a": "{b:1} \\"c\\"", "d": "e,f:g"}'),)),
        id="key-like text in strings",
    ),
    pytest.param(
        EACH,
        '<|act|>[{"tool_name": "ping", "parameters": {}}, '
        '{"tool_name": "get_weather", "parameters": {"days": "3"}}]<|end|>',
        (None, None, (PINGED, ("get_weather", '{"days": 3}'))),
        id="each",
    ),
]


@pytest.mark.parametrize(("template", "output", "expected"), WELL_FORMED)
def test_whole_answers_and_every_grouping(template, output, expected):
    reasoning = "hf" if "thinking" in template["fields"] else None
    run = runner(template, reasoning=reasoning)
    assert summary(run.message(output)) == expected
    assert set(run.folds(output).values()) == {(expected[0] or "", expected[1] or "", expected[2])}


MALFORMED = [
    (PLAIN, '<tool_call>{"name": "ping"}</tool_call>'),
    (PLAIN, '<tool_call>{"name": "ping", "arguments": {</tool_call>'),
    (PLAIN, '<tool_call>{"name": "ping", "argum'),
    (DIALECT, "<|tool_call>call:ping<tool_call|>"),
    (DIALECT, "<|tool_call>call:ping{a: x}<tool_call|>"),
    (EACH, '<|act|>{"tool_name": "ping", "parameters": {}}<|end|>'),
    (EACH, '<|act|>[{"tool_name": "ping"}]<|end|>'),
]


@pytest.mark.parametrize(("template", "output"), MALFORMED)
def test_a_region_that_makes_no_call_is_given_back(template, output):
    run = runner(template, reasoning=None)
    assert summary(run.message(output)) == (None, output, ())
    assert set(run.folds(output).values()) == {("", output, ())}


def test_numbers_that_json_cannot_say_stay_text():
    run = runner(PLAIN)
    output = '<tool_call>{"name": "ping", "arguments": {"a": NaN, "b": -Infinity, "c": 1e400}}</tool_call>'
    assert json.loads(run.message(output).calls[0].arguments) == {"a": "NaN", "b": "-Infinity", "c": "1e400"}


def test_values_are_typed_by_the_schema():
    mix = tool(
        "mix",
        i={"type": "integer"},
        n={"type": "number"},
        b={"type": "boolean"},
        u={"anyOf": [{"type": "integer"}, {"type": "string"}]},
        m={"type": "integer", "nullable": True},
        o={"type": "object"},
        s={"type": "string"},
        a={"type": "array"},
    )
    written = {"i": "3.0", "n": "1.5", "b": "True", "u": "x", "m": "None", "o": "{}", "s": "5", "a": "[1]", "z": "1"}
    output = "<tool_call>" + json.dumps({"name": "mix", "arguments": written}) + "</tool_call>"
    found = json.loads(runner(PLAIN, request=(mix,)).message(output).calls[0].arguments)
    assert found == {"i": 3, "n": 1.5, "b": True, "u": "x", "m": None, "o": {}, "s": "5", "a": [1], "z": "1"}


def test_a_call_is_sent_whole_and_text_up_to_what_may_be_a_delimiter():
    run = runner(PLAIN)
    deltas = run.chunked("a", " <", "tool_", "x <tool_call>", '{"name": "ping", "arguments": {}}', "</tool_call>", "b")
    assert [delta.content if delta else None for delta in deltas] == ["a", " ", None, "<tool_x ", None, None, "b"]
    assert entries(deltas) == [[], [], [], [], [], [(0, "ping", "{}")], []]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"tools": None}, ("t", f"a{JSON_PING}", ())),
        ({"tool_choice": "none"}, ("t", f"a{JSON_PING}", ())),
        ({"request": ()}, ("t", f"a{JSON_PING}", ())),
        ({"reasoning": None}, (None, "ta", (PINGED,))),
        ({"tool_choice": "required"}, ("t", "a", (PINGED,))),
        ({"include_reasoning": False}, (None, "a", (PINGED,))),
    ],
)
def test_what_is_asked_for(fields, expected):
    run = runner(PLAIN, **fields)
    output = f"<think>t</think>a{JSON_PING}"
    assert summary(run.message(output)) == expected
    assert set(run.folds(output).values()) == {(expected[0] or "", expected[1] or "", expected[2])}


@pytest.mark.parametrize(
    ("prompt", "output", "expected"),
    [
        ("<|im_start|>assistant\n<think>", "t</think>a", ("t", "a", ())),
        ("<|im_start|>assistant\n<think>t</think>", "a", (None, "a", ())),
        ("<think>x<|im_start|>assistant\n", "a", (None, "a", ())),
        ("<think>no anchor", "t</think>a", ("t", "a", ())),
        (
            "<|im_start|>assistant\n<tool_call>",
            '{"name": "ping", "arguments": {}}</tool_call>',
            (None, None, (PINGED,)),
        ),
        ("<|im_start|>assistant\n<thi", "nk>t</think>a", ("t", "a", ())),
        ("x <|im_start|>assistant\n" + "word " * 3000 + "<think>", "t</think>a", ("t", "a", ())),
    ],
)
def test_regions_that_the_prompt_left_open_go_on(prompt, output, expected):
    run = runner(PLAIN, prompt=prompt)
    assert summary(run.message(output)) == expected
    assert set(run.folds(output).values()) == {(expected[0] or "", expected[1] or "", expected[2])}


def test_a_close_that_ends_with_the_next_anchor_is_completed():
    template = {
        "start_anchor": "<turn>",
        "fields": {"tool_calls": {**PLAIN["fields"]["tool_calls"], "close": "</tool_call><turn>"}},
    }
    run = runner(template, reasoning=None)
    output = JSON_PING
    assert summary(run.message(output)) == (None, None, (PINGED,))
    assert set(run.folds(output).values()) == {("", "", (PINGED,))}


def test_calls_may_be_the_text_outside_all_regions():
    template = {
        "start_anchor": "<a>",
        "fields": {
            "thinking": {"open": "<think>", "close": "</think>"},
            "tool_calls": {"close": "<end>", "content": "json", "transform": {"function": "{content}"}},
        },
    }
    run = runner(template)
    output = ' {"name": "ping", "arguments": {}} <think>t</think>{"name": "ping", "arguments": {}}<end>'
    assert summary(run.message(output)) == ("t", None, (PINGED, PINGED))
    assert set(run.folds(output).values()) == {("t", "", (PINGED, PINGED))}
    assert run.message("no call").content == "no call"


@pytest.mark.parametrize("field", ["thinking", "content"])
def test_delimiters_without_width_end(field):
    template = {"start_anchor": "<a>", "fields": {"thinking": {"open_pattern": "(?=x)", "close_pattern": "(?=y)|$"}}}
    template["fields"]["content"] = {"close_pattern": "(?=x)|$"} if field == "content" else {}
    run = runner(template, tools=None)
    output = "axxbyy <xy> z"
    run.message(output)
    run.folds(output)


FIELD = {"fields": {"thinking": {"open": "<t>", "close": "</t>"}}}
REFUSED = [
    pytest.param(None, "requires `response_template` metadata", id="none"),
    pytest.param("text", "`response_template` must be an object", id="no object"),
    pytest.param({"start_anchor": "a", "surprise": 1, **FIELD}, "unknown keys: surprise", id="key"),
    pytest.param(FIELD, "exactly one of `start_anchor`", id="no anchor"),
    pytest.param({"start_anchor": "a", "version": 2, **FIELD}, "unsupported version 2", id="version"),
    pytest.param({"start_anchor": "a", "fields": {"other": {}}}, "unknown field 'other'", id="field"),
    pytest.param(
        {"start_anchor": "a", "fields": {"thinking": {}, "content": {}}}, "more than one field", id="implicit"
    ),
    pytest.param({"start_anchor_pattern": "(", **FIELD}, "pattern '\\('", id="pattern"),
    pytest.param({"start_anchor": "a", "fields": {"thinking": {"transform": {}}}}, "can only be text", id="text"),
    pytest.param(
        {"start_anchor": "a", "fields": {"content": {}}}, "requires a response_template with a `th", id="needs"
    ),
    pytest.param(
        {"start_anchor": "a", "fields": {"tool_calls": {"open": "x", "content": "yaml"}}}, "unknown parser", id="parser"
    ),
    pytest.param(
        {"start_anchor": "a", "fields": {"tool_calls": {"open_pattern": "(?P<n>x)"}}}, "no transform", id="groups"
    ),
    pytest.param({"start_anchor": "a", "fields": {"thinking": {"open": ["", "a"]}}}, "none of them empty", id="empty"),
]


@pytest.mark.parametrize(("template", "why"), REFUSED)
def test_refused_templates(template, why):
    with pytest.raises(ParserConfigurationError, match=why) as caught:
        runner(template, tools=None)
    assert "--reasoning-parser hf" in str(caught.value)


@pytest.mark.parametrize(("tools", "reasoning"), [("hf", "qwen3"), ("hermes", "hf"), ("hf", "beam")])
def test_it_cannot_be_combined_with_another_parser(tools, reasoning):
    with pytest.raises(
        ParserConfigurationError, match=f"--reasoning-parser {reasoning} and --tool-call-parser {tools}"
    ):
        runner(PLAIN, tools=tools, reasoning=reasoning)


def test_beam_is_the_same_machine():
    run = runner(FRAMED, tools="beam", reasoning="beam")
    output = "<|think|>t<|done|><|turn|>bot<|tool|>ping<|args|>{}<|eos|>"
    assert summary(run.message(output)) == ("t", None, (PINGED,))


@pytest.mark.parametrize("opening", ["", "<think>", "<tool_call>", "<tool_call>\n<function=x"])
def test_long_regions_cost_linear_time(opening):
    def seconds(characters):
        run = runner(TAGGED)
        ids = run.ids(opening + "x < y " * (characters // 6))
        start = time.process_time()
        run.deltas(ids)
        return time.process_time() - start

    seconds(1_000)
    assert seconds(40_000) < 40 * max(seconds(4_000), 0.005)


def test_what_begins_like_a_delimiter_and_never_ends_is_released():
    template = {"start_anchor": "a", "fields": {"thinking": {"open_pattern": "<t.*>", "close": "</t>"}, "content": {}}}
    run = runner(template, tools=None)
    output = "<t" + "x" * 3000
    deltas = run.deltas(output)
    assert sum(bool(delta and delta.content) for delta in deltas) > 500
    assert set(run.folds(output).values()) == {("", output, ())}


PIECES = [
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    '{"name": "ping"',
    ', "arguments": {}}',
    "<function=ping>",
]
PIECES += ["<parameter=a>", "</parameter>", "<|im_end|>", "<|say|>", "<|done|>", "<|turn|>bot", "<|tool|>ping<|args|>"]
PIECES += ["{}", "text", " ", "<", "\n", "<eos>"]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=20), st.sampled_from([PLAIN, TAGGED, FRAMED]))
def test_random_outputs_never_raise_and_do_not_depend_on_grouping(pieces, template):
    run = runner(template)
    output = "".join(pieces)
    message = run.message(output)
    folded = (
        message.reasoning or "",
        message.content or "",
        tuple((call.name, call.arguments) for call in message.calls),
    )
    assert set(run.folds(output).values()) == {folded}
