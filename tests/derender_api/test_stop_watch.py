"""Stop strings in streams: held back, cut, and every form and size of chunk alike, as the one-shot answer has it."""

import pytest

from derender_api.stop_watch import StopWatch
from tests.derender_api.support import (
    CHAT,
    COMPLETION,
    MESSAGES,
    TOOLS,
    chunk,
    encode,
    parsed_model,
    post,
    served,
)

REQUEST = {"messages": MESSAGES, "tools": TOOLS}
TEXT = "one two STOP three four"


@pytest.fixture
def parsed():
    with parsed_model() as model:
        yield model


def rendered(path, rules):
    if path == CHAT:
        return {"chat_request": {**REQUEST, **rules}}
    return {"completion_request": {"prompt": "x", **rules}}


def text_of(choice):
    if "delta" in choice:
        return choice["delta"].get("content") or ""
    return choice["text"]


def streamed(path, token_ids, *, rules, size=1, form="replay", finish_reason="stop"):
    """Choices of a stream of chunks of `size` tokens."""
    state, choices = None, []
    for start in range(0, len(token_ids), size):
        is_last = start + size >= len(token_ids)
        body = chunk(
            token_ids[start : start + size],
            choice={"finish_reason": finish_reason if is_last else None},
            stream_state=state,
            stream_state_format=form,
            prompt_token_ids=[1, 2],
            **rendered(path, rules),
        )
        status, answer = post(path, body)
        assert status == 200, answer
        state = answer["stream_state"]
        choices.append(answer["chunk"]["choices"][0])
    return choices


def joined(choices):
    return "".join(map(text_of, choices))


def ends(choices):
    return [(choice["finish_reason"], choice["stop_reason"]) for choice in choices if choice["finish_reason"]]


@pytest.mark.parametrize("form", ["replay", "compact"])
@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("path", [CHAT, COMPLETION])
@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ({"stop": "STOP"}, "one two "),
        ({"stop": [" three", "OP t"]}, "one two ST"),
        ({"stop": "STOP", "include_stop_str_in_output": True}, "one two STOP"),
        ({"stop": "o S"}, "one tw"),
    ],
)
def test_a_plain_stream_ends_where_the_stop_string_begins(path, rules, text, size, form):
    with served() as model:
        choices = streamed(path, encode(model, TEXT), rules=rules, size=size, form=form)
    stop = rules["stop"] if isinstance(rules["stop"], str) else rules["stop"][1]
    assert joined(choices) == text
    assert ends(choices) == [("stop", stop)]


@pytest.mark.parametrize("form", ["replay", "compact"])
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_parsed_stream_ends_where_the_stop_string_begins(parsed, size, form):
    ids = encode(parsed, f"<think>Hm, STO</think>{TEXT}")
    choices = streamed(CHAT, ids, rules={"stop": "STOP"}, size=size, form=form)
    assert "".join(choice["delta"].get("reasoning") or "" for choice in choices) == "Hm, STO"
    assert joined(choices) == "one two "
    assert ends(choices) == [("stop", "STOP")]


@pytest.mark.parametrize("form", ["replay", "compact"])
@pytest.mark.parametrize("path", [CHAT, COMPLETION])
def test_text_that_only_begins_a_stop_string_is_sent_at_the_end(path, form):
    with served() as model:
        ids = encode(model, "one two STO")
        for size in (1, 2, 100):
            choices = streamed(path, ids, rules={"stop": "STOP"}, size=size, form=form, finish_reason="length")
            assert joined(choices) == "one two STO"
            assert ends(choices) == [("length", None)]


def test_what_may_begin_a_stop_string_waits():
    with served() as model:
        choices = streamed(CHAT, encode(model, "a S b STOP c"), rules={"stop": "STOP"})
    sent = ""
    for choice in choices:
        sent += text_of(choice)
        assert not sent.rstrip().endswith("S")
        assert "ST" not in sent
    assert sent == "a S b "


@pytest.mark.parametrize("form", ["replay", "compact"])
def test_min_tokens_are_not_searched(form):
    with served() as model:
        ids = encode(model, "STOP one STOP two")
        first = len(encode(model, "STOP one"))
        choices = streamed(CHAT, ids, rules={"stop": "STOP", "min_tokens": first}, form=form)
    assert joined(choices) == "STOP one "


@pytest.mark.parametrize("path", [CHAT, COMPLETION])
@pytest.mark.parametrize("size", [1, 4])
def test_the_stream_is_the_one_shot_answer_in_pieces(path, size):
    with served() as model:
        ids = encode(model, TEXT)
        rules = {"stop": ["wo S", "three"]}
        response = {"request_id": "r", "choices": [{"index": 0, "token_ids": ids, "finish_reason": "stop"}]}
        name, value = ("generate_response", response) if path == CHAT else ("generate_responses", [response])
        whole = post(path, {name: value, **rendered(path, rules)})[1]["choices"][0]
        choices = streamed(path, ids, rules=rules, size=size)
    assert joined(choices) == (whole["message"]["content"] if path == CHAT else whole["text"])
    assert ends(choices) == [(whole["finish_reason"], whole["stop_reason"])]


def test_a_stop_string_in_arguments_ends_the_call(parsed):
    output = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome, STOP"}}\n</tool_call>'
    prompt = "</think>\n\n"
    choices = streamed(CHAT, encode(parsed, prompt + output), rules={"stop": "STOP"})
    arguments = "".join(
        (call.get("function") or {}).get("arguments") or ""
        for choice in choices
        for call in choice["delta"].get("tool_calls") or ()
    )
    assert arguments == '{"city": "Rome,'
    assert ends(choices) == [("tool_calls", "STOP")]


def test_the_search_goes_on_from_its_state():
    first = StopWatch(stops=["abc"], min_tokens=1)
    assert first.pass_on(["xab"]) == ["x"]
    second = StopWatch(stops=["abc"], min_tokens=1)
    second.resume(first.state())
    assert second.pass_on(["c", "d"]) == ["", ""]
    assert second.matched == "abc"
