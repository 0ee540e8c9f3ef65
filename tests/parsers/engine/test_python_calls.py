"""Whole lists against the standard library, any chunks alike, bounded work."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.engine.events import CallArguments, CallStart, Malformed
from parsers.engine.python_calls import CallListReader
from parsers.engine.python_mending import mended
from parsers.engine.python_state import CallListState
from parsers.engine.python_stream import CallStream, CallStreamState, ListStyle
from parsers.engine.state import dump, load
from tests.parsers.python_reference import call_lists, calls_of, chunked, damaged_lists


def read(*chunks, **style):
    """(name, arguments) of each call, None if the text is no complete call list. Each chunk goes through a snapshot."""
    state, events = CallStreamState(), []
    for chunk in chunks:
        state = load(CallStreamState, json.loads(json.dumps(dump(state))))
        stream = CallStream(state, ListStyle(**{"gated": False, **style}))
        if stream.feed(chunk):
            return None
        events += stream.events()
    events += stream.finish()
    calls = {event.index: [event.name, ""] for event in events if isinstance(event, CallStart)}
    for event in events:
        if isinstance(event, CallArguments):
            calls[event.index][1] += event.text
    complete = calls and not any(isinstance(event, Malformed) for event in events)
    return tuple(tuple(call) for call in calls.values()) if complete else None


def value(source):
    calls = read(f"[f(x={source})]")
    return calls and calls[0][1].removeprefix('{"x": ').removesuffix("}")


@pytest.mark.parametrize(
    ("source", "dumped"),
    [
        ("'a' \"b\"", '"ab"'),
        ("[1, 'a', [], {}]", '[1, "a", [], {}]'),
        ("(1, 2)", "[1, 2]"),
        ("(1,)", "[1]"),
        ("(1)", "1"),
        ("()", "[]"),
        ("{'x', 'y'}", '["x", "y"]'),
        ("{1: 'a', True: 'b', None: 'c', 2.5: 'd'}", '{"1": "b", "null": "c", "2.5": "d"}'),
        ("{'1': 0, 1: 1}", '{"1": 0, "1": 1}'),
        ("{'a': 1, 'b': 2, 'a': 3}", '{"a": 3, "b": 2}'),
        ("{'a': {'b': (1, {2})}}", '{"a": {"b": [1, [2]]}}'),
        ("-(3)", "-3"),
        ("-(-0.5)", "0.5"),
        ("f'{{x}}' 'y'", '"{x}y"'),
        ("[1, # one\n 2, \\\n 3]", "[1, 2, 3]"),
    ],
)
def test_converts_values(source, dumped):
    assert value(source) == dumped


@pytest.mark.parametrize(
    "source",
    [
        *("b'x'", "...", "Paris", "not True", "-True", "1 + 2", "g()", "a.b", "[*x]", "{**x}", "{a: 1}", "{(1,): 1}"),
        *("{'a': 1, 'b'}", "{'a', 'b': 1}", "{-1: 2}", "1j", "f'{x}'", "ru'x'", "'a' b'c'", "'a', 'b'", "lambda: 0"),
        *("[,]", "(,)", "{:}", "'a\nb'", "07", "{f'a': 1}"),
    ],
)
def test_refuses_other_expressions(source):
    assert value(source) is None


@pytest.mark.parametrize(
    ("source", "calls"),
    [
        ("[f(), g(x=1)]", (("f", "{}"), ("g", '{"x": 1}'))),
        ("[a.b(x=1)]", (("a.b", '{"x": 1}'),)),
        ("[ f ( x = 1 , y = 2 , ) , ]", (("f", '{"x": 1, "y": 2}'),)),
        ("[f('a', [1, g(',')], *z, x=1, *z)]", (("f", '{"x": 1}'),)),
        ("[f(x=1, **{'y': 2})]", (("f", '{"x": 1, "null": {"y": 2}}'),)),
        ("[f(x==1)]", (("f", "{}"),)),
        ("[f()] # note", (("f", "{}"),)),
        ("[f()]\n[g()]", (("f", "{}"),)),
    ],
)
def test_reads_calls(source, calls):
    assert read(source) == calls
    assert read(*source) == calls


def test_the_last_of_equal_arguments_counts_unless_the_first_was_sent():
    assert read("[f(x=1, x='b', y=2)]") == (("f", '{"x": "b", "y": 2}'),)
    assert read("[f(x='a", "', y=1, x='b')]") == (("f", '{"x": "a", "y": 1}'),)
    assert read("[f(x='", "a', x='b')]") == (("f", '{"x": "b"}'),)


@pytest.mark.parametrize(
    "source",
    [
        *("[]", "[f]", "[f()", "f()", "[[f()]]", "[f(]", "[f(,)]", "[f(x=)]", "[f(x=1 y=2)]", "[f(x=1, 2)]"),
        *("[f(**x, 1)]", "[f(from=1)]", "[None()]", "[f()][0]", "[f()] done", "[f(), ", "[f() g()]", "[1, 2]"),
        *("[f(x='a)]", "[f(1 +)]"),
    ],
)
def test_refuses_what_is_no_list_of_calls(source):
    assert read(source) is None


def test_arguments_may_be_called_like_keywords_where_the_format_allows_it():
    assert read("[f(from=1, in='x')]", keyword_names=True) == (("f", '{"from": 1, "in": "x"}'),)


@pytest.mark.parametrize("source", ["[ f()]", "[_f()]", "[f (x=1)]", "[f(x =1)]", "[f( x=1)]", "[f('a')]", "[a.b()]"])
def test_a_gated_list_begins_narrowly(source):
    assert read(source) is not None
    assert read(source, gated=True) is None


def test_a_gated_list_is_free_behind_its_first_keyword():
    assert read("[f(), g(x=1), a.b('c', y = 2)\n]", gated=True) == (("f", "{}"), ("g", '{"x": 1}'), ("a.b", '{"y": 2}'))


@given(chunked(call_lists))
def test_agrees_with_the_standard_library_in_any_chunks(case):
    text, chunks = case
    assert read(text) == calls_of(text)
    assert read(*chunks) == calls_of(text)


@settings(max_examples=300, deadline=None)
@given(chunked(damaged_lists()))
def test_damage_never_raises_and_is_judged_as_python_does(case):
    text, chunks = case
    expected = calls_of(text)
    got = read(*chunks)
    assert got == read(text)
    if expected is None:
        assert got is None


@given(st.text("[](){}'\"\\,=:f1.x #\n", max_size=40))
def test_noise_never_raises(text):
    assert read(text) == read(*text or [""])


@pytest.mark.parametrize(
    ("opening", "piece", "closing"),
    [
        ("[f(x='", "a", "')]"),
        ("[f(x='", "\\n", "')]"),
        ("[f(x=[", "(1, {2: 'a'}), ", "])]"),
        ("[f(x={", "'k': 1, ", "})]"),
        ("[", "f(x=1), ", "]"),
        ("[f(x=", "[", ""),
        ("[f(", "(", ""),
        ("[f()]", "; x", ""),
    ],
)
def test_work_is_linear(opening, piece, closing):
    def seconds(count):
        state = CallListState()
        reader = CallListReader(state, gated=False)
        start = time.process_time()
        for chunk in (opening, *[piece] * count, closing):
            reader.feed(chunk)
            if not reader.invalid:
                reader.take()
        return time.process_time() - start

    seconds(200)
    assert seconds(16_000) < 40 * seconds(1_000) + 0.2


# --- strings that seem to end in their midst ---


def mend(source):
    state = CallListState()
    reader = CallListReader(state, gated=False, keyword_names=True, waits=True)
    reader.feed(source)
    found = mended(state)
    events = CallListReader(found, gated=False).take() if found else []
    return [event.text for event in events if isinstance(event, CallArguments)]


@pytest.mark.parametrize(
    ("source", "arguments"),
    [
        pytest.param("[f(x='Martha's', y=1)]", ['{"x": "Martha\'s", "y": 1}'], id="apostrophe"),
        pytest.param("[f(x='p(\"a\", 'b')', y=1)]", ['{"x": "p(\\"a\\", \'b\')", "y": 1}'], id="quotes within quotes"),
        pytest.param("[f(x='a' 'b')]", ['{"x": "ab"}'], id="side by side, as it stands"),
        pytest.param("[f(x='it's', y='b')]", [], id="more than one reading"),
        pytest.param("[f(x='a' b", [], id="no end"),
        pytest.param("[f(from='it's')]", [], id="an argument called like a keyword"),
    ],
)
def test_mends_the_one_reading_that_is_a_list(source, arguments):
    assert mend(source) == arguments
