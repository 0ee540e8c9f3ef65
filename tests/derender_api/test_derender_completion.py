"""POST /v1/completions/derender, one-shot and streaming."""

import pytest

from tests.derender_api.support import (
    COMPLETION,
    END,
    HELLO,
    WORLD,
    chunk,
    completions,
    encode,
    error,
    oneshot,
    parsed_model,
    post,
    served,
)

REQUEST = {"prompt": "hi"}


@pytest.fixture
def model():
    with served() as model:
        yield model


def response(token_ids=(HELLO, WORLD), **fields):
    return oneshot(token_ids, response=fields)["generate_response"]


def test_a_whole_answer(model):
    status, answer = post(COMPLETION, completions(prompt_tokens=[2]))

    assert status == 200
    assert isinstance(answer.pop("created"), int)
    assert answer == {
        "id": "r1",
        "object": "text_completion",
        "model": "model",
        "choices": [
            {
                "index": 0,
                "text": "Hello world",
                "logprobs": None,
                "finish_reason": "stop",
                "stop_reason": None,
                "token_ids": None,
                "prompt_logprobs": None,
                "prompt_token_ids": None,
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
        "kv_transfer_params": None,
        "ec_transfer_params": None,
        "metrics": None,
    }


def test_choices_of_all_responses_are_numbered_through(model):
    responses = [response(request_id="a"), response([HELLO], request_id="b", prompt_token_ids=[7])]
    responses[0]["choices"] *= 2

    _, answer = post(
        COMPLETION,
        {
            "generate_responses": responses,
            "prompt_tokens": [3, 4],
            "prompt_token_ids": [None, [5]],
            "completion_request": {**REQUEST, "return_token_ids": True},
        },
    )

    assert answer["id"] == "a"
    assert [(each["index"], each["text"], each["prompt_token_ids"]) for each in answer["choices"]] == [
        (0, "Hello world", None),
        (1, "Hello world", None),
        (2, "Hello", [7]),
    ]
    assert answer["usage"]["prompt_tokens"] == 7


@pytest.mark.parametrize(
    ("params", "merged"),
    [
        ([{"a": 1}, {"a": 1}], {"a": 1}),
        ([{"a": 1}, {"a": 2}], None),
        ([{"a": 1}, None], None),
        ([None, None], None),
    ],
)
def test_transfer_params_are_kept_where_all_agree(model, params, merged):
    responses = [response(kv_transfer_params=each, metrics={"x": 1}) for each in params]

    _, answer = post(COMPLETION, {"generate_responses": responses})

    assert (answer["kv_transfer_params"], answer["metrics"]) == (merged, None)


def test_metrics_of_a_single_response_are_echoed(model):
    _, answer = post(COMPLETION, {"generate_responses": [response(metrics={"queue_time_ms": 1})]})

    assert answer["metrics"]["queue_time_ms"] == 1.0


def test_a_missing_finish_reason_stays_null(model):
    _, answer = post(COMPLETION, completions(choice={"finish_reason": None}))

    assert answer["choices"][0]["finish_reason"] is None


def test_no_parser_runs():
    with parsed_model() as model:
        text = '<think>a</think><tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'

        _, answer = post(
            COMPLETION,
            completions(encode(model, text), completion_request={**REQUEST, "skip_special_tokens": False}),
        )

        assert answer["choices"][0]["text"] == text


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"generate_responses": []}, "generate_responses must not be empty"),
        (
            {"generate_responses": [response()] * 3},
            "generate_responses count (3) exceeds server maximum (2). Set VLLM_MAX_N_SEQUENCES to increase this limit.",
        ),
        (completions([]), "choice 0 in response r1 has empty or null token_ids"),
        (completions([HELLO] * 33), "token_ids length (33) in choice 0 exceeds max_model_len (32)."),
        (
            completions(prompt_token_ids=[[1] * 33]),
            "prompt_token_ids length (33) exceeds max_model_len (32).",
        ),
        (
            chunk(response={"choices": [{"index": 0}, {"index": 1}]}),
            "derender_completion_stream expects at most one choice per chunk",
        ),
        (chunk(prompt_token_ids=[1] * 33), "prompt_token_ids length (33) exceeds max_model_len (32)."),
        (
            chunk([HELLO], choice={"logprobs": {"content": [{"token_id": -1, "logprob": 0}]}}),
            "number too small to fit in target type",
        ),
        (
            completions([HELLO], choice={"logprobs": {"content": [{"token_id": 2**32, "logprob": 0}]}}),
            "number too large to fit in target type",
        ),
    ],
)
def test_refusals(settings, body, message):
    settings.DERENDER = {**settings.DERENDER, "MAX_N_SEQUENCES": 2}
    with served(max_model_len=32):
        assert post(COMPLETION, body) == error(message)


def test_a_stream_goes_on_from_its_state(model):
    request = {**REQUEST, "logprobs": 0}
    state, texts, offsets = None, "", []
    ids = [*encode(model, "Hé 日本"), END]
    for token_id in ids:
        entry = {"token_id": token_id, "logprob": -1}
        _, answer = post(
            COMPLETION,
            chunk(
                [token_id],
                choice={"logprobs": {"content": [entry]}, "finish_reason": "stop" if token_id == END else None},
                stream_state=state,
                completion_request=request,
            ),
        )
        state, choice = answer["stream_state"], answer["chunk"]["choices"][0]
        texts += choice["text"]
        offsets += choice["logprobs"]["text_offset"]

    assert texts == "Hé 日本"
    assert (offsets[0], offsets[-1], state["logprob_text_offset"]) == (0, 5, 5 + len("<|im_end|>"))
    assert (state["role_sent"], state["output_token_ids"]) == (False, [])


def test_a_whole_chunk(model):
    _, answer = post(COMPLETION, chunk([HELLO]))

    assert isinstance(answer["chunk"].pop("created"), int)
    assert answer["chunk"] == {
        "id": "r1",
        "object": "text_completion",
        "model": "model",
        "choices": [
            {
                "index": 0,
                "text": "Hello",
                "logprobs": None,
                "finish_reason": None,
                "stop_reason": None,
                "prompt_token_ids": None,
                "token_ids": None,
                "weight_versions": None,
            }
        ],
        "usage": None,
        "system_fingerprint": None,
        "metrics": None,
        "kv_transfer_params": None,
    }
    assert answer["stream_state"]["logprob_text_offset"] == 5
