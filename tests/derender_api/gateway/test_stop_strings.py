"""Stop strings, which the gateway finds itself: engines without a detokenizer refuse them."""

from collections.abc import Iterator

import pytest

from tests.derender_api.gateway.support import (
    CHAT,
    COMPLETION,
    Json,
    ask,
    chat,
    completion,
    folded_chat,
    folded_text,
    model_on,
    saying,
    streamed,
    whole_chat,
)
from tests.replay_engine import ReplayEngine, Script, replaying, until

TEXT = "one two three four five six"


@pytest.fixture
def engine() -> Iterator[ReplayEngine]:
    """An engine that would go on for long behind its words."""
    with replaying(Script()) as engine, model_on(engine):
        engine.script = Script(outputs=[saying(TEXT + " more" * 2000)], pause=0.002)
        yield engine


def both(body: Json) -> tuple[Json, Json]:
    """The one-shot answer's choice, and what the stream adds up to."""
    return whole_chat(ask(CHAT, body).json), folded_chat(ask(CHAT, streamed(body)).events)


@pytest.mark.parametrize(
    ("fields", "content"),
    [
        ({"stop": "three"}, "one two "),
        ({"stop": ["x", "four", " thr"]}, "one two"),
        ({"stop": "three", "include_stop_str_in_output": True}, "one two three"),
        ({"stop": "o t", "include_stop_str_in_output": True}, None),
        ({"stop": "two", "min_tokens": 4}, "one two three four five six more"),
    ],
    ids=["one", "several", "kept", "none", "min_tokens"],
)
def test_the_text_ends_there(engine: ReplayEngine, fields: Json, content: str | None) -> None:
    engine.script = Script(outputs=[saying(TEXT + " more")])
    whole, folded = both(chat(**fields))

    assert folded == whole
    if content is not None:
        assert whole["message"]["content"] == content


@pytest.mark.parametrize("stream", [False, True])
def test_the_engine_is_stopped_early_and_never_told(engine: ReplayEngine, stream: bool) -> None:
    reply = ask(CHAT, chat(stop="four", stream=stream))

    choice = folded_chat(reply.events) if stream else whole_chat(reply.json)
    assert choice["message"]["content"] == "one two three "
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", "four")
    assert "stop" not in engine.only.sampling
    assert engine.only.request["stream"] is True
    until(lambda: engine.only.was_aborted)
    assert engine.only.sent < 1000


def test_tokens_are_counted_up_to_the_stop_string(engine: ReplayEngine) -> None:
    options = {"stream_options": {"include_usage": True}}
    whole = ask(CHAT, chat(stop="three")).json["usage"]
    streamed_usage = ask(CHAT, streamed(chat(stop="three"), **options)).events[-1]["usage"]

    assert whole == streamed_usage
    assert whole["completion_tokens"] < 10


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 100])
def test_a_stop_string_in_the_middle_of_a_chunk(engine: ReplayEngine, size: int) -> None:
    engine.script = Script(outputs=[saying(TEXT, chunk=size)])
    body = chat(stop="three", logprobs=True, return_token_ids=True)
    whole = ask(CHAT, body).json
    events = ask(CHAT, streamed(body, stream_options={"include_usage": True})).events
    parts = [event["choices"][0] for event in events[:-1]]

    assert folded_chat(events) == whole_chat(whole)
    assert whole["choices"][0]["message"]["content"] == "one two "
    assert events[-1]["usage"] == whole["usage"]
    assert [each for part in parts for each in part["token_ids"]] == whole["choices"][0]["token_ids"]
    logprobs = [entry for part in parts for entry in part["logprobs"]["content"]]
    assert logprobs == whole["choices"][0]["logprobs"]["content"]


def test_an_output_without_it_ends_as_the_engine_says(engine: ReplayEngine) -> None:
    engine.script = Script(outputs=[saying(TEXT, ends=False, finish_reason="length")])
    whole, folded = both(chat(stop="seven"))

    assert folded == whole
    assert (whole["message"]["content"], whole["finish_reason"]) == (TEXT, "length")
    until(lambda: engine.in_flight() == 0)
    assert not any(asked.was_aborted for asked in engine.asked)


def test_each_choice_has_its_own_end(engine: ReplayEngine) -> None:
    outputs = [saying("one two three" + " more" * 2000), saying("a b c d e f g h i j three" + " more" * 2000)]
    engine.script = Script(outputs=outputs, pause=0.002)
    body = chat(stop="three", n=2)
    whole = ask(CHAT, body).json
    events = ask(CHAT, streamed(body)).events

    assert [choice["message"]["content"] for choice in whole["choices"]] == ["one two ", "a b c d e f g h i j "]
    assert [folded_chat(events, index) for index in (0, 1)] == [whole_chat(whole, index) for index in (0, 1)]
    until(lambda: all(asked.was_aborted for asked in engine.asked))


def test_one_choice_that_ends_by_itself(engine: ReplayEngine) -> None:
    engine.script = Script(outputs=[saying("one"), saying("two three" + " more" * 2000)], pause=0.002)
    whole = ask(CHAT, chat(stop="three", n=2)).json

    assert [(each["message"]["content"], each["stop_reason"]) for each in whole["choices"]] == [
        ("one", None),
        ("two ", "three"),
    ]


def test_completions_of_several_prompts(engine: ReplayEngine) -> None:
    body = completion([[1], [2]], stop="three")
    whole = ask(COMPLETION, body).json
    events = ask(COMPLETION, streamed(body)).events

    assert [(choice["text"], choice["stop_reason"]) for choice in whole["choices"]] == [("one two ", "three")] * 2
    assert [folded_text(events, index) for index in (0, 1)] == [("one two ", "stop")] * 2
    until(lambda: all(asked.was_aborted for asked in engine.asked))


def test_log_probabilities_end_with_the_text(engine: ReplayEngine) -> None:
    content = ask(CHAT, chat(stop="three", logprobs=True)).json["choices"][0]["logprobs"]["content"]
    events = ask(CHAT, streamed(chat(stop="three", logprobs=True))).events

    assert "".join(entry["token"] for entry in content).endswith("three")
    assert [entry for event in events for entry in event["choices"][0]["logprobs"]["content"]] == content


def test_calls_in_front_of_a_stop_string() -> None:
    text = '<tool_call>\n{"name": "f", "arguments": {"a": "STOP"}}\n</tool_call>'
    parsers = {"tool_call_parser": "hermes", "reasoning_parser": "qwen3", "enable_auto_tool_choice": True}
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    body = chat(tools=tools, stop="STOP", chat_template_kwargs={"enable_thinking": False})
    with replaying(Script()) as engine, model_on(engine, **parsers):
        engine.script = Script(outputs=[saying(f"<think>\nWell\n</think>{text}")])
        whole, folded = both({**body, "stop": "</tool_call>"})
        early, _ = both(body)

    assert folded["message"]["tool_calls"] == whole["message"]["tool_calls"]
    assert whole["message"]["tool_calls"] == [{"name": "f", "arguments": '{"a": "STOP"}'}]
    assert (early["finish_reason"], early["stop_reason"]) != ("length", None)


@pytest.mark.parametrize("stop", [[], [""], None, ""])
def test_no_stop_string_needs_no_stream(engine: ReplayEngine, stop: object) -> None:
    engine.script = Script(outputs=[saying("one")])
    reply = ask(CHAT, chat(stop=stop))

    if reply.status == 200:
        assert engine.only.request["stream"] is False
        assert "stop" not in engine.only.sampling
    else:
        assert reply.status == 400
