"""POST /v1/chat/completions/derender, one-shot: whole bodies, checks in order, what a parser adds."""

import json

import pytest
from django.test import Client

from tests.derender_api.support import (
    CHAT,
    END,
    HELLO,
    MESSAGES,
    TOOLS,
    WORLD,
    encode,
    error,
    oneshot,
    parsed_model,
    served,
)
from tests.derender_api.support import post as _post

REQUEST = {"messages": MESSAGES}
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'


def post(body):
    return _post(CHAT, body)


def choices(body):
    status, answer = post(body)
    assert status == 200, answer
    return answer["choices"]


@pytest.fixture
def model():
    with served() as model:
        yield model


@pytest.fixture
def parsed():
    with parsed_model() as model:
        yield model


def test_a_whole_answer(model):
    status, answer = post(oneshot(prompt_tokens=2))

    assert status == 200
    assert isinstance(answer.pop("created"), int)
    assert answer == {
        "id": "r1",
        "object": "chat.completion",
        "model": "model",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "Hello world",
                    "refusal": None,
                    "annotations": None,
                    "audio": None,
                    "function_call": None,
                    "reasoning": None,
                },
                "logprobs": None,
                "finish_reason": "stop",
                "stop_reason": None,
                "token_ids": None,
                "routed_experts": None,
                "weight_versions": None,
            }
        ],
        "service_tier": None,
        "system_fingerprint": None,
        "usage": {
            "prompt_tokens": 2,
            "total_tokens": 5,
            "completion_tokens": 3,
            "prompt_tokens_details": None,
            "completion_tokens_details": None,
        },
        "prompt_logprobs": None,
        "prompt_token_ids": None,
        "prompt_text": None,
        "kv_transfer_params": None,
        "ec_transfer_params": None,
        "metrics": None,
    }


def test_the_body_is_compact_utf8(model):
    response = Client().post(
        CHAT, json.dumps(oneshot(encode(model, "é 日"), response={"request_id": "ü"})), content_type="application/json"
    )

    assert response["Content-Type"] == "application/json"
    assert response.content.startswith('{"id":"ü","object":"chat.completion","created":'.encode())
    assert '"content":"é 日"'.encode() in response.content


def test_what_the_engine_reports_is_echoed(model):
    response = {
        "kv_transfer_params": {"a": [1, {"b": None}]},
        "metrics": {"extra": 1, "queue_time_ms": 2},
        "prompt_logprobs": [None, {"5": {"logprob": -1, "x": 1}}],
        "prompt_token_ids": [5, 6],
    }

    _, answer = post(oneshot(response=response, chat_request={**REQUEST, "return_token_ids": True}))

    assert answer["kv_transfer_params"] == {"a": [1, {"b": None}]}
    assert answer["metrics"] == {
        "time_to_first_token_ms": None,
        "generation_time_ms": None,
        "queue_time_ms": 2.0,
        "mean_itl_ms": None,
        "tokens_per_second": None,
        "speculative_decoding": None,
        "extra": 1,
    }
    assert answer["prompt_logprobs"] == [None, {"5": {"logprob": -1.0, "rank": None, "decoded_token": None}}]
    assert answer["prompt_token_ids"] == [5, 6]
    assert answer["choices"][0]["token_ids"] == [HELLO, WORLD, END]


def test_integers_beyond_64_bits_and_deep_values_are_echoed(model):
    deep = json.loads("[" * 300 + "]" * 300)

    _, answer = post(oneshot(choice={"index": 2**70}, response={"kv_transfer_params": {"a": 2**64, "b": deep}}))

    assert answer["choices"][0]["index"] == 2**70
    assert answer["kv_transfer_params"] == {"a": 2**64, "b": deep}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            b'{"generate_response":{"request_id":"r","kv_transfer_params":{"x":[NaN]},"choices":[]}}',
            "Out of range float values are not JSON compliant",
        ),
        (
            b'{"generate_response":{"request_id":"r","metrics":{"x":1e999},"choices":[]}}',
            "Out of range float values are not JSON compliant",
        ),
        (
            b'{"generate_response":{"request_id":"\\ud83c","choices":[]}}',
            "'utf-8' codec can't encode character '\\ud83c' in position 7: surrogates not allowed",
        ),
    ],
)
def test_what_json_or_utf8_cannot_hold_is_a_bad_request(model, body, message):
    assert post(body) == error(message)


def test_checks_are_made_in_order():
    long = [HELLO] * 33
    bounds = oneshot(long, choice={"logprobs": {"content": [{"token_id": 1, "logprob": -1}] * 33}})
    bounds["generate_response"]["prompt_logprobs"] = [None] * 33
    bounds["prompt_token_ids"] = long
    with parsed_model(max_model_len=32):
        assert post({**bounds, "model": "nope"}) == error(
            "The model `nope` does not exist. Valid aliases: model.", param="model", type="NotFoundError", code=404
        )
        assert post(bounds) == error("token_ids length (33) in choice 0 exceeds max_model_len (32).")
        choice = bounds["generate_response"]["choices"][0]
        choice["token_ids"] = []
        assert post(bounds) == error("logprobs.content length (33) in choice 0 exceeds max_model_len (32).")
        choice["logprobs"]["content"] = [
            {"token_id": 1, "logprob": -1, "top_logprobs": [{"token_id": 1, "logprob": -1}] * 21}
        ]
        assert post(bounds) == error("top_logprobs count (21) in choice 0 exceeds max_logprobs (20).")
        choice["logprobs"] = None
        assert post(bounds) == error("prompt_logprobs length (33) in response 'r1' exceeds max_model_len (32).")
        bounds["generate_response"]["prompt_logprobs"] = None
        assert post(bounds) == error("prompt_token_ids length (33) exceeds max_model_len (32).")
        bounds["prompt_token_ids"] = None
        status, answer = post(bounds)
        assert (status, answer["error"]["message"][:24]) == (400, "chat_request is required")
        bounds["chat_request"] = REQUEST
        assert post(bounds) == error("choice 0 has empty or null token_ids")


def test_the_number_of_choices_is_limited(model, settings):
    settings.DERENDER = {**settings.DERENDER, "MAX_N_SEQUENCES": 1}
    body = oneshot()
    body["generate_response"]["choices"] *= 2

    assert post(body) == error("choices count (2) in response 'r1' exceeds server maximum (1).")


@pytest.mark.parametrize(
    ("given", "answered"),
    [("length", "length"), ("abort", "abort"), (None, "stop"), ("", "stop"), ("tool_calls", "tool_calls")],
)
def test_a_missing_finish_reason_is_stop(model, given, answered):
    assert choices(oneshot(choice={"finish_reason": given}))[0]["finish_reason"] == answered


def test_a_stop_string_cuts_the_text_and_becomes_the_stop_reason(model):
    choice = choices(oneshot(chat_request={**REQUEST, "stop": [" wor"]}))[0]

    assert (choice["message"]["content"], choice["stop_reason"]) == ("Hello", " wor")


def test_a_reported_empty_stop_string_cuts_nothing(model):
    choice = choices(oneshot([HELLO, WORLD], choice={"stop_reason": ""}))[0]

    assert (choice["message"]["content"], choice["stop_reason"]) == ("Hello world", "")


def test_a_parser_splits_reasoning_content_and_calls(parsed):
    ids = [*encode(parsed, f"<think>\nhm\n</think>\n\nSure.\n{CALL}"), END]

    choice = choices(oneshot(ids, chat_request={**REQUEST, "tools": TOOLS}))[0]

    (call,) = choice["message"].pop("tool_calls")
    assert call.pop("id").startswith("chatcmpl-tool-")
    assert call == {"type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}
    assert choice["message"] == {
        "role": "assistant",
        "content": "\n\nSure.\n",
        "refusal": None,
        "annotations": None,
        "audio": None,
        "function_call": None,
        "reasoning": "\nhm\n",
    }
    assert choice["finish_reason"] == "tool_calls"


def test_call_ids_are_new_in_every_answer(parsed):
    body = oneshot(encode(parsed, CALL), chat_request={**REQUEST, "tools": TOOLS})

    first, second = (choices(body)[0]["message"]["tool_calls"][0]["id"] for _ in range(2))

    assert first != second


def test_hidden_reasoning_hides_ids_and_log_probabilities(parsed):
    body = oneshot(
        choice={"logprobs": {"content": [{"token_id": HELLO, "logprob": -1}]}},
        response={"prompt_token_ids": [1]},
        chat_request={**REQUEST, "include_reasoning": False, "return_token_ids": True, "logprobs": True},
    )

    _, answer = post(body)

    assert (answer["choices"][0]["logprobs"], answer["choices"][0]["token_ids"]) == (None, None)
    assert answer["prompt_token_ids"] == [1]


def test_a_failing_parser_leaves_the_text_as_content(parsed, monkeypatch):
    monkeypatch.setattr(type(parsed.plan), "open", lambda *args, **kwargs: 1 / 0)

    assert choices(oneshot(chat_request=REQUEST))[0]["message"]["content"] == "Hello world"


def test_a_tool_parser_without_automatic_choice_is_no_parser():
    with served(tool_call_parser="hermes") as model:
        ids = encode(model, CALL)

        assert choices(oneshot(ids))[0]["message"]["content"] == CALL
