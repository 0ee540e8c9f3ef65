"""The incremental JSON rewriter: equal to parsing and dumping, early where the style allows it, closed at any point."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.engine.assembly import dump_json, unique_keys
from parsers.engine.json_stream import MAX_DEPTH, MAX_NUMBER, JsonStream, JsonStreamState, common_length

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
)
STYLES = st.fixed_dictionaries(
    {
        "ensure_ascii": st.booleans(),
        "indent": st.sampled_from([None, None, 2]),
        "separators": st.sampled_from([None, (",", ":")]),
    }
)


def feed_all(text, size, *, pauses=False):
    """(sent texts, stream) of `text` in pieces of `size`."""
    stream, sent = JsonStream(), []
    for at in range(0, len(text), size):
        out, position = stream.feed(text[at : at + size])
        sent.append(out + (stream.pause() if pauses else ""))
        if position < len(text[at : at + size]):
            break
    sent.append(stream.finish())
    return sent, stream


@given(VALUES, STYLES, st.integers(1, 9))
def test_the_sum_is_what_dumping_the_whole_gives(value, style, size):
    text = json.dumps(value, **style)
    sent, stream = feed_all(text, size)
    assert not stream.state.invalid
    assert "".join(sent) == dump_json(json.loads(text))


@given(VALUES, st.integers(1, 9))
def test_dumped_text_passes_at_once(value, size):
    text = dump_json(value).replace("\\u", "").replace("e", "").replace("E", "")
    if json_or_none(text) is None or dump_json(json.loads(text)) != text or "." in text:
        return
    sent, _ = feed_all(text, size, pauses=True)
    assert sent[:-1] == [text[at : at + size] for at in range(0, len(text), size)]


def json_or_none(text):
    try:
        return (json.loads(text),)
    except ValueError:
        return None


@given(st.text('{}[]",:\\ utrfalsenNI-.eE0123456789ab\n\x01', max_size=30), st.integers(1, 4))
def test_accepts_what_the_json_reader_accepts(text, size):
    sent, stream = feed_all(text, size, pauses=True)
    out, _ = JsonStream().feed(text)
    valid = not stream.state.invalid
    if json_or_none(text) is not None:
        assert valid
    if valid and json_or_none("".join(sent)) is None:
        pytest.fail(f"{text!r} became {sent!r}")
    assert isinstance(out, str)


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        pytest.param(['{"a', '":', " 1", "0", "}"], ['{"a', '":', " 1", "0", "}"], id="at once"),
        pytest.param(['{"a":1,"b":[1,2]}'], ['{"a": 1, "b": [1, 2]}'], id="compact"),
        pytest.param(["1.5", "0", "0", "1", " "], ["1.5", "", "", "001", ""], id="zeros behind the point wait"),
        pytest.param(["1", "e5", " "], ["1", "", "00000.0"], id="an exponent waits"),
        pytest.param(["[1.5e3]"], ["[1500.0]"], id="a number in one piece is rewritten"),
        pytest.param(["[1.5", "e", "3]"], ["[1.5", "e", "3]"], id="what is out cannot be rewritten"),
        pytest.param(["[-0]"], ["[0]"], id="minus zero"),
        pytest.param(['"\\', 'u00e9"'], ['"', 'é"'], id="an escape waits"),
        pytest.param(['"\\ud83d', '\\ude00"'], ['"', '😀"'], id="a surrogate pair waits"),
        pytest.param(['"\\ud83d', 'x"'], ['"', '\\ud83dx"'], id="half a pair keeps its escape"),
        pytest.param(["[ NaN , -Infinity]"], ["[ NaN, -Infinity]".replace("[ ", "[")], id="no numbers"),
    ],
)
def test_what_is_sent_when(text, sent):
    stream = JsonStream()
    assert [stream.feed(piece)[0] for piece in text] == sent


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        pytest.param(['"a\\', '"b"'], ['"a\\', '"b"'], id="a backslash most likely begins a minimal escape"),
        pytest.param(['"\\', '/\\u00e9"'], ['"\\', '/\\u00e9"'], id="once wrong, escapes stay as written"),
        pytest.param(['"\\/\\', 'n"'], ['"/', '\\n"'], id="once rewritten, escapes wait"),
        pytest.param(['{"a":"\\', '"'], ['{"a": "', '\\"'], id="once spaced, escapes wait"),
    ],
)
def test_pauses(text, sent):
    stream = JsonStream()
    assert [stream.feed(piece)[0] + stream.pause() for piece in text] == sent


@pytest.mark.parametrize(
    ("text", "closed", "without_strings"),
    [
        ("", None, None),
        ("{", "{}", "{}"),
        ('{"a', "{}", "{}"),
        ('{"a": ', "{}", "{}"),
        ('{"a": -', "{}", "{}"),
        ('{"a": 1', '{"a": 1}', '{"a": 1}'),
        ('{"a": 1.', '{"a": 1}', '{"a": 1}'),
        ('{"a": 1e5', '{"a": 100000.0}', '{"a": 100000.0}'),
        ('{"a": 1, "b": "x y ', '{"a": 1, "b": "x y"}', '{"a": 1}'),
        ('{"a": "x\\', '{"a": "x"}', "{}"),
        ('{"a": "x \\', '{"a": "x "}', "{}"),
        ('{"a": "\\ud83d\\', '{"a": "\ufffd"}', "{}"),
        ('{"a": [tr', '{"a": [true]}', '{"a": [true]}'),
        ('{"a": -I', '{"a": -Infinity}', '{"a": -Infinity}'),
        ('[1, ["a",', '[1, ["a"]]', '[1, ["a"]]'),
        ('{"a": {}}', '{"a": {}}', '{"a": {}}'),
        ('"x', '"x"', None),
        ("nope", None, None),
    ],
)
def test_closed(text, closed, without_strings):
    stream = JsonStream()
    tail, _ = stream.feed(text)
    assert stream.closed(tail) == closed
    assert stream.closed(tail, strings=False) == without_strings


def test_a_number_too_large_for_a_float_stays():
    assert JsonStream().feed('{"a":1e999}')[0] == '{"a": 1e999}'
    assert unique_keys('{"a": 1e999}') == '{"a": 1e999}'


def test_an_open_number_can_be_left_out():
    stream = JsonStream(JsonStreamState(whole_numbers=True))
    sent, _ = stream.feed('{"a": 1, "b": 1.5')
    assert sent == '{"a": 1, "b": '
    assert stream.closed(sent, numbers=False) == '{"a": 1}'
    assert stream.closed(sent) == '{"a": 1, "b": 1.5}'
    assert stream.feed("e3}")[0] == "1500.0}"


@given(VALUES, st.data())
def test_closed_is_json_wherever_the_text_ends(value, data):
    text = json.dumps(value)
    stream = JsonStream()
    tail, _ = stream.feed(text[: data.draw(st.integers(0, len(text)))])
    closed = stream.closed(tail)
    assert closed is None or dump_json(json.loads(closed)) == dump_json(json.loads(closed))


def test_stops_behind_the_value():
    assert JsonStream().feed('{"a": 1} tail') == ('{"a": 1}', 8)
    assert JsonStream().feed('xx{"a": 1}', 2) == ('{"a": 1}', 10)


@pytest.mark.parametrize("text", ["[" * (MAX_DEPTH + 1), "1" * (MAX_NUMBER + 1), "[" + "1" * (MAX_NUMBER + 1)])
def test_excess_is_no_json(text):
    stream = JsonStream()
    stream.feed(text)
    assert stream.state.invalid


def test_nesting_up_to_the_limit_is_read():
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert JsonStream().feed(text) == (text, len(text))


@pytest.mark.parametrize("size", [1, 3, 100])
def test_control_characters_are_escaped_where_they_are_read(size):
    state = JsonStreamState(controls=True)
    text = '{"a\n": "b\t\\"c\x01"}'
    out = "".join(JsonStream(state).feed(text[at : at + size])[0] for at in range(0, len(text), size))
    assert out == json.dumps(json.loads(text, strict=False))
    assert JsonStream(state).done


def test_work_is_linear_in_the_text():
    def seconds(length):
        started = time.process_time()
        feed_all('{"a": "' + "x" * length + '"}', 3, pauses=True)
        return time.process_time() - started

    assert seconds(200_000) < 12 * max(seconds(20_000), 0.001) + 0.5


def test_common_length():
    assert (common_length("abc", "abd"), common_length("ab", "abc"), common_length("", "x")) == (2, 2, 0)
