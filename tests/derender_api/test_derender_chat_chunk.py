"""POST /v1/chat/completions/derender with stream: chunks, states, and what is refused."""

import pytest

from tests.derender_api.support import (
    CHAT,
    END,
    HELLO,
    MESSAGES,
    TOOLS,
    WORLD,
    chunk,
    encode,
    error,
    oneshot,
    parsed_model,
    post,
    served,
)

REQUEST = {"messages": MESSAGES, "tools": TOOLS}
FIRST_STATE = {
    "prev_tokens": [],
    "prefix_offset": 0,
    "read_offset": 0,
    "role_sent": False,
    "logprob_context_token_ids": [],
    "logprob_text_offset": 0,
    "output_token_ids": [],
    "output_chunk_lens": [],
    "tools_streamed": False,
    "last_tool_call_ids": [],
}
CALLS = (
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>'
)


@pytest.fixture
def model():
    with served() as model:
        yield model


@pytest.fixture
def parsed():
    with parsed_model() as model:
        yield model


def streamed(token_ids, *, size, request=REQUEST, finish_reason="stop", **fields):
    """All chunks of an output, `size` tokens each."""
    parts = [token_ids[start : start + size] for start in range(0, len(token_ids), size)]
    state, chunks = None, []
    for number, part in enumerate(parts):
        choice = {"finish_reason": finish_reason if number == len(parts) - 1 else None}
        status, answer = post(
            CHAT,
            chunk(part, choice=choice, stream_state=state, chat_request=request, prompt_token_ids=[1, 2], **fields),
        )
        assert status == 200, answer
        state = answer["stream_state"]
        chunks.append(answer["chunk"])
    return chunks, state


def folded(chunks):
    """The message that the deltas add up to, and the finish reason."""
    message = {"reasoning": "", "content": "", "calls": []}
    for each in chunks:
        delta = each["choices"][0]["delta"]
        message["reasoning"] += delta["reasoning"] or ""
        message["content"] += delta["content"] or ""
        for call in delta.get("tool_calls", ()):
            if call["index"] == len(message["calls"]):
                message["calls"].append({"id": call["id"], "name": "", "arguments": ""})
            target = message["calls"][call["index"]]
            assert call["id"] in (None, target["id"])
            target["name"] += call["function"]["name"] or ""
            target["arguments"] += call["function"]["arguments"] or ""
    return message, chunks[-1]["choices"][0]["finish_reason"]


def test_a_whole_chunk_and_its_state(model):
    status, answer = post(CHAT, chunk([HELLO, WORLD]))

    assert status == 200
    assert isinstance(answer["chunk"].pop("created"), int)
    assert answer == {
        "chunk": {
            "id": "r1",
            "object": "chat.completion.chunk",
            "model": "model",
            "choices": [
                {
                    "index": 0,
                    "delta": {"role": "assistant", "content": "Hello world", "reasoning": None},
                    "logprobs": None,
                    "finish_reason": None,
                    "stop_reason": None,
                    "token_ids": None,
                    "weight_versions": None,
                }
            ],
            "usage": None,
            "system_fingerprint": None,
            "prompt_token_ids": None,
            "prompt_text": None,
            "metrics": None,
            "kv_transfer_params": None,
        },
        "stream_state": {
            **FIRST_STATE,
            "prev_tokens": ["Ġworld"],
            "read_offset": 1,
            "role_sent": True,
            "logprob_context_token_ids": [HELLO, WORLD],
        },
    }
    assert list(answer["stream_state"]) == list(FIRST_STATE)


def test_a_usage_chunk_has_no_choice_and_sends_no_role(model):
    body = chunk(response={"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 7}}, stream_state={})

    _, answer = post(CHAT, body)

    assert answer["chunk"]["choices"] == []
    assert answer["chunk"]["usage"] == {
        "prompt_tokens": 5,
        "total_tokens": 12,
        "completion_tokens": 7,
        "prompt_tokens_details": None,
        "completion_tokens_details": None,
    }
    assert answer["stream_state"] == FIRST_STATE
    assert post(CHAT, {**body, "prompt_tokens": 0})[1]["chunk"]["usage"]["prompt_tokens"] == 0


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_parsed_stream_folds_to_the_one_shot_answer(parsed, size):
    text = f"<think>\nhm 日本 😀\n</think>\n\nSure.\n{CALLS}"
    ids = [*encode(parsed, text), END]

    message, finish_reason = folded(streamed(ids, size=size)[0])

    _, whole = post(CHAT, oneshot(ids, chat_request=REQUEST))
    choice = whole["choices"][0]
    assert (message["reasoning"], message["content"]) == (choice["message"]["reasoning"], choice["message"]["content"])
    assert [(call["name"], call["arguments"]) for call in message["calls"]] == [
        (call["function"]["name"], call["function"]["arguments"]) for call in choice["message"]["tool_calls"]
    ]
    assert finish_reason == choice["finish_reason"] == "tool_calls"


def test_the_state_of_a_parsed_stream_is_its_history(parsed):
    ids = encode(parsed, CALLS)

    _, state = streamed(ids, size=4)

    assert state["output_token_ids"] == ids
    assert state["output_chunk_lens"] == [4] * (len(ids) // 4) + [len(ids) % 4] * bool(len(ids) % 4)
    assert state["tools_streamed"] is True
    assert len(state["last_tool_call_ids"]) == 2


def test_a_chunk_that_is_sent_again_gets_the_same_answer(parsed):
    ids = encode(parsed, CALLS)
    body = chunk(ids, chat_request=REQUEST, prompt_token_ids=[1])

    first, second = post(CHAT, body)[1], post(CHAT, body)[1]

    assert first["stream_state"] == second["stream_state"]
    other = post(CHAT, {**body, "prompt_token_ids": [2]})[1]
    assert other["stream_state"]["last_tool_call_ids"] != first["stream_state"]["last_tool_call_ids"]


def test_pinned_call_ids_are_kept(parsed):
    ids = encode(parsed, CALLS)
    state = {"last_tool_call_ids": ["pinned"]}

    _, answer = post(CHAT, chunk(ids, chat_request=REQUEST, prompt_token_ids=[], stream_state=state))

    calls = answer["chunk"]["choices"][0]["delta"]["tool_calls"]
    opened = [call["id"] for call in calls if call["id"]]
    assert opened[0] == "pinned"
    assert answer["stream_state"]["last_tool_call_ids"] == opened


def test_only_the_first_call_is_kept_without_parallel_calls(parsed):
    chunks, state = streamed(encode(parsed, CALLS), size=3, request={**REQUEST, "parallel_tool_calls": False})

    message, finish_reason = folded(chunks)

    assert [call["arguments"] for call in message["calls"]] == ['{"city": "Paris"}']
    assert (finish_reason, state["tools_streamed"]) == ("tool_calls", True)


def test_a_chunk_without_ids_and_finish_is_no_step_of_the_parser(parsed):
    state = {**FIRST_STATE, "output_token_ids": [HELLO], "output_chunk_lens": [1]}

    _, answer = post(CHAT, chunk([], chat_request=REQUEST, prompt_token_ids=[], stream_state=state))

    assert answer["chunk"]["choices"][0]["delta"] == {"role": "assistant", "content": None, "reasoning": None}
    assert answer["stream_state"] == {**state, "role_sent": True}


@pytest.mark.parametrize("finish_reason", ["stop", "length"])
def test_a_finish_reason_alone_ends_a_stream(parsed, finish_reason):
    body = chunk([], choice={"finish_reason": finish_reason}, chat_request=REQUEST, prompt_token_ids=[])

    _, answer = post(CHAT, body)

    choice = answer["chunk"]["choices"][0]
    assert choice["delta"] == {"role": "assistant", "content": None, "reasoning": None}
    assert choice["finish_reason"] == finish_reason


def test_one_state_per_choice_keeps_streams_apart(model):
    states = {0: None, 1: None}
    texts = {0: "", 1: ""}
    for index, token in [(0, HELLO), (1, WORLD), (1, HELLO), (0, WORLD)]:
        _, answer = post(CHAT, chunk([token], choice={"index": index}, stream_state=states[index]))
        states[index] = answer["stream_state"]
        texts[index] += answer["chunk"]["choices"][0]["delta"]["content"]
        assert answer["chunk"]["choices"][0]["index"] == index

    assert texts == {0: "Hello world", 1: " worldHello"}


def test_checks_are_made_in_order():
    two = {"choices": [{"index": 0, "token_ids": [HELLO] * 20}] * 2}
    body = chunk(response=two, model="nope", chat_request=REQUEST)
    with parsed_model(max_model_len=32):
        assert post(CHAT, body)[0] == 404
        body["model"] = None
        del body["chat_request"]
        assert post(CHAT, body)[1]["error"]["message"].startswith("chat_request is required")
        body["chat_request"] = REQUEST
        assert post(CHAT, body)[1]["error"]["message"].startswith("prompt_token_ids is required")
        body["prompt_token_ids"] = [1] * 5
        assert post(CHAT, body) == error("derender_chat_stream expects at most one choice per chunk (got 2).")
        two["choices"].pop()
        body["generate_chunk"]["choices"] = two["choices"]
        body["stream_state"] = {"output_token_ids": [HELLO] * 8, "output_chunk_lens": [8]}
        assert post(CHAT, body) == error(
            "prompt_token_ids length (5) plus output_token_ids length (8) plus delta (20) exceeds max_model_len (32)."
        )


@pytest.mark.parametrize("token_id", [-1, 2**32])
def test_ids_that_no_vocabulary_holds_make_the_state_invalid(model, token_id):
    body = chunk([HELLO], choice={"logprobs": {"content": [{"token_id": token_id, "logprob": -1}]}})

    assert post(CHAT, body) == error("invalid stream_state: derender failed")


def test_a_failure_of_the_parser_is_an_invalid_state(parsed, monkeypatch):
    monkeypatch.setattr(type(parsed.plan), "open", lambda *args, **kwargs: 1 / 0)

    assert post(CHAT, chunk([HELLO], chat_request=REQUEST, prompt_token_ids=[])) == error(
        "invalid stream_state: derender failed"
    )
