"""Nothing a client sends makes the server fail or hang: an answer, or an error of its own making."""

import copy
import json
import os
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from derender_api.api_keys import key_store
from tests.derender_api.support import CHAT, COMPLETION, HELLO, MESSAGES, TOOLS, WORLD, parsed_model, post, served

LOGPROBS = {"content": [{"token_id": HELLO, "logprob": -1, "top_logprobs": [{"token_id": 172, "logprob": -2}]}]}
CHOICE = {"index": 0, "token_ids": [4005, HELLO, 172, 4006], "finish_reason": "stop", "logprobs": LOGPROBS}
RENDERED = {
    "messages": [*MESSAGES, {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f"}}]}],
    "tools": TOOLS,
    "tool_choice": "auto",
    "chat_template_kwargs": {"enable_thinking": True},
    "reasoning_effort": "low",
    "stop": [],
    "stop_token_ids": [5],
    "min_tokens": 1,
    "logprobs": True,
    "top_logprobs": 1,
    "return_token_ids": True,
}
STATE = {
    "prev_tokens": ["Hello"],
    "prefix_offset": 0,
    "read_offset": 1,
    "logprob_context_token_ids": [HELLO],
    "logprob_text_offset": 5,
    "output_token_ids": [HELLO, WORLD],
    "output_chunk_lens": [1, 1],
    "last_tool_call_ids": ["x"],
}
RESPONSE = {
    "request_id": "r",
    "choices": [CHOICE],
    "prompt_token_ids": [1, 2],
    "usage": {"prompt_tokens": 1},
    "metrics": {"x": 1.5},
    "kv_transfer_params": {"a": 1},
    "prompt_logprobs": [None, {"5": {"logprob": -1}}],
}
BODIES = [
    (CHAT, {"generate_response": RESPONSE, "chat_request": RENDERED, "prompt_tokens": 2, "model": "model"}),
    (
        CHAT,
        {
            "stream": True,
            "generate_chunk": RESPONSE,
            "stream_state": STATE,
            "prompt_token_ids": [1],
            "chat_request": RENDERED,
        },
    ),
    (
        COMPLETION,
        {
            "generate_responses": [RESPONSE],
            "completion_request": {"prompt": "x", "logprobs": 1},
            "prompt_tokens": [1],
            "prompt_token_ids": [[1]],
        },
    ),
    (
        COMPLETION,
        {"stream": True, "generate_chunk": RESPONSE, "stream_state": STATE, "completion_request": {"prompt": "x"}},
    ),
    (
        CHAT,
        {
            "stream": True,
            "stream_state_format": "compact",
            "generate_chunks": [
                {"request_id": "r", "choices": [{"index": 0, "token_ids": [4005, HELLO]}]},
                {"request_id": "r", "choices": [{"index": 0, "token_ids": [4006], "finish_reason": "length"}]},
                {"request_id": "r", "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 3}},
            ],
            "prompt_token_ids": [1],
            "chat_request": {**RENDERED, "stop": ["lo", "</tool_call>"], "tool_choice": "required"},
        },
    ),
    (
        COMPLETION,
        {
            "stream": True,
            "stream_state_format": "compact",
            "generate_chunks": [{"request_id": "r", "choices": [{"index": 0, "token_ids": [172, HELLO]}]}],
            "completion_request": {"prompt": "x", "stop": ["lo"], "skip_special_tokens": False, "logprobs": 0},
        },
    ),
    ("/v1/chat/completions/render", {**RENDERED, "max_tokens": 5, "temperature": 0.5, "stream": True}),
    (
        "/v1/completions/render",
        {"prompt": ["x", "y"], "max_tokens": 5, "logprobs": 1, "stop": ["a"], "truncate_prompt_tokens": 3, "n": 1},
    ),
    ("/tokenize", {"prompt": "x", "messages": MESSAGES, "tools": TOOLS, "return_token_strs": True}),
    ("/detokenize", {"tokens": [HELLO, 172]}),
]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10),
    st.sampled_from([HELLO, 172, 4002, 4003, 2**31, 2**32, 2**63, 2**70, -(2**70), 131073]),
    st.floats(),
    st.text(max_size=4),
    st.sampled_from(["stop", "auto", "required", "\ud83c", "\x00", "1e400", "-Infinity", "<tool_call>"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["index", "token_ids", "name", "function", "type", "a", "5"]), inner, max_size=3
        ),
    ),
    max_leaves=6,
)


def places(value, path=()):
    """The path of every value inside `value`."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield from places(each, (*path, key))


def replaced(value, path, new):
    """A copy of `value` with `new` at `path`."""
    if not path:
        return new
    value = copy.deepcopy(value)
    target = value
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = new
    return value


@st.composite
def requests(draw, bodies=BODIES):
    """A path and a body that is right but for one or two values."""
    path, body = draw(st.sampled_from(bodies))
    for _ in range(draw(st.integers(1, 2))):
        body = replaced(body, draw(st.sampled_from(list(places(body)))), draw(VALUES))
    return path, json.dumps(body).encode()


FUZZ_REQUESTS = int(os.environ.get("DERENDER_TEST_FUZZ_REQUESTS", "400"))
"""Requests of all tests here together; continuous integration makes many."""


def fuzz(share):
    """Settings for a test that makes `share` of the requests. What takes half a minute hangs."""
    return settings(
        max_examples=max(1, round(share * FUZZ_REQUESTS)),
        deadline=timedelta(seconds=30),
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


def assert_answered(path, body):
    status, answer = post(path, body)

    assert status in (200, 400, 404), (status, answer)
    if status != 200:
        assert list(answer["error"]) == ["message", "type", "param", "code"]
        assert answer["error"]["code"] == status


@pytest.fixture(scope="module")
def plain():
    with served():
        yield


@pytest.fixture(scope="module")
def parsed():
    with parsed_model():
        yield


@fuzz(0.3)
@given(request_=requests())
def test_wrong_values_on_a_plain_model(plain, request_):
    assert_answered(*request_)


@fuzz(0.3)
@given(request_=requests())
def test_wrong_values_on_a_parsed_model(parsed, request_):
    assert_answered(*request_)


@fuzz(0.1)
@given(path=st.sampled_from([path for path, _ in BODIES]), body=st.binary(max_size=40))
def test_bodies_of_any_bytes(plain, path, body):
    assert_answered(path, body)


@st.composite
def damaged(draw):
    """A path and the bytes of a right body with some of them cut out, doubled or replaced."""
    path, body = draw(st.sampled_from(BODIES))
    text = json.dumps(body).encode()
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + 20)))
    return path, text[:start] + draw(
        st.sampled_from([b"", text[start:end] * 2, b"\x00", b"\xff", b"[", b"1e999"])
    ) + text[end:]


@fuzz(0.1)
@given(request_=damaged())
def test_damaged_bodies(parsed, request_):
    assert_answered(*request_)


BULK = next(body for path, body in BODIES if path == CHAT and "generate_chunks" in body)
FIRST = {**BULK, "generate_chunks": BULK["generate_chunks"][:1]}
SECOND = (CHAT, {**BULK, "stream_state": "@state"})


@pytest.fixture(scope="module")
def state(parsed):
    """A compact state that this service has signed."""
    with key_store.override(()):
        return json.dumps(post(CHAT, FIRST)[1]["stream_state"]).encode()


@fuzz(0.2)
@given(request_=requests(bodies=[SECOND]))
def test_wrong_values_beside_a_signed_state(state, request_):
    path, body = request_
    status, answer = post(path, body.replace(b'"@state"', state))

    assert status in (200, 400, 404, 409), (status, answer)
