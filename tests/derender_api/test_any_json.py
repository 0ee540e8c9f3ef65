"""JSON of anything a client may send."""

import pytest

from derender_api import any_json
from tests.derender_api.support import CHAT, COMPLETION, HELLO, MESSAGES, TOOLS, WORLD, chunk, parsed_model, post

BIG = 2**70


@pytest.mark.parametrize("value", [{"a": [1, 2.5, None, "é"]}, [BIG, -BIG], ["\ud83c"], {"a": {"b": [BIG, "\ud83c"]}}])
def test_values_are_read_as_they_were(value):
    assert any_json.loads(any_json.dumps(value)) == value


def test_what_is_no_json_becomes_its_representation():
    assert any_json.loads(any_json.dumps([{1}, BIG])) == ["{1}", BIG]
    assert any_json.loads(any_json.dumps([{1}])) == ["{1}"]


def test_what_is_no_json_text_is_an_error():
    for text in (b"{", b" {", b""):
        with pytest.raises(ValueError, match=r".+"):
            any_json.loads(text)


@pytest.mark.parametrize("form", ["replay", "compact"])
@pytest.mark.parametrize("path", [CHAT, COMPLETION])
def test_a_stream_may_hold_a_token_id_beyond_64_bits(form, path):
    fields = {"chat_request": {"messages": MESSAGES}} if path == CHAT else {}
    with parsed_model():
        first = post(path, chunk([HELLO, BIG], prompt_token_ids=[1], stream_state_format=form, **fields))
        second = post(path, chunk([WORLD], prompt_token_ids=[1], stream_state=first[1]["stream_state"], **fields))

    assert (first[0], second[0]) == (200, 200)


@pytest.mark.parametrize("form", ["replay", "compact"])
@pytest.mark.parametrize("value", [BIG, "\ud83c"])
def test_a_request_may_hold_any_value(form, value):
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"default": value}}}, *TOOLS]
    fields = {"chat_request": {"messages": MESSAGES, "tools": tools, "chat_template_kwargs": {"x": value}}}
    with parsed_model():
        first = post(CHAT, chunk([HELLO], prompt_token_ids=[1], stream_state_format=form, **fields))
        second = post(CHAT, chunk([WORLD], prompt_token_ids=[1], stream_state=first[1]["stream_state"], **fields))

    assert (first[0], second[0]) == (200, 200)
