"""Every answer and every chunk is what the types of the `openai` package expect, and what our own say, key by key."""

import json

import pytest
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from derender_api.protocol.answer import ErrorAnswer
from derender_api.protocol.chat_answer import ChatChunkAnswer, ChatCompletionAnswer
from derender_api.protocol.completion_answer import CompletionAnswer, CompletionChunkAnswer
from tests.derender_api.support import (
    CHAT,
    COMPLETION,
    END,
    HELLO,
    MESSAGES,
    TOOLS,
    WORLD,
    chunk,
    completions,
    encode,
    oneshot,
    parsed_model,
    post,
    served,
)

TEXT = (
    "<think>\nhm 日本\n</think>\n\nSure.\n"
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "😀"}}\n</tool_call>'
)
LOGPROBS = {"content": [{"token_id": HELLO, "logprob": -1, "top_logprobs": [{"token_id": 172, "logprob": -2}]}]}
USAGE = {"prompt_tokens": 1, "completion_tokens": 2}


def valid(model, answer):
    """`answer` as a `model`, each known field of the right type."""
    return model.model_validate(answer, strict=True)


def assert_documented(model, answer):
    """`answer` has the fields of `model` and no others, in order; those that may be absent are not null."""
    documented = model.model_validate(answer, strict=True)
    assert json.dumps(documented.model_dump(exclude_unset=True)) == json.dumps(answer)


def posted(path, body):
    status, answer = post(path, body)
    assert status == 200, answer
    return answer


@pytest.mark.parametrize(
    "tool_choice", ["auto", "none", "required", {"type": "function", "function": {"name": "get_weather"}}]
)
def test_parsed_chat_answers_and_chunks(tool_choice):
    request = {"messages": MESSAGES, "tools": TOOLS, "tool_choice": tool_choice, "logprobs": True, "top_logprobs": 1}
    with parsed_model() as model:
        ids = [*encode(model, TEXT), END]
        answer = posted(CHAT, oneshot(ids, choice={"logprobs": LOGPROBS}, chat_request=request))
        assert valid(ChatCompletion, answer).choices[0].message.reasoning
        assert_documented(ChatCompletionAnswer, answer)

        state = None
        for number, token_id in enumerate(ids):
            last = number == len(ids) - 1
            answer = posted(
                CHAT,
                chunk(
                    [token_id],
                    choice={"finish_reason": "stop" if last else None, "logprobs": LOGPROBS},
                    response={"usage": USAGE},
                    stream_state=state,
                    chat_request=request,
                    prompt_token_ids=[],
                ),
            )
            state = answer["stream_state"]
            valid(ChatCompletionChunk, answer["chunk"])
            assert_documented(ChatChunkAnswer, answer)


def test_plain_chat_answers_and_chunks():
    with served():
        for logprobs in (None, {"content": None}, LOGPROBS):
            answer = posted(CHAT, oneshot(choice={"logprobs": logprobs, "finish_reason": "length"}))
            assert valid(ChatCompletion, answer).choices[0].message.content == "Hello world<|im_end|>"[:11]
        answer = posted(CHAT, chunk(response={"choices": [], "usage": USAGE}))
        assert valid(ChatCompletionChunk, answer["chunk"]).usage.total_tokens == 3


def test_completions_and_their_chunks():
    with served():
        answer = posted(COMPLETION, completions(choice={"logprobs": LOGPROBS}))
        assert valid(Completion, answer).choices[0].text == "Hello world"
        assert_documented(CompletionAnswer, answer)
        answer = posted(COMPLETION, chunk([WORLD], choice={"logprobs": LOGPROBS, "finish_reason": "stop"}))
        assert valid(Completion, answer["chunk"]).choices[0].text == " world"
        assert_documented(CompletionChunkAnswer, answer)


def test_errors():
    with served():
        status, answer = post(CHAT, {})

    assert status == 400
    assert_documented(ErrorAnswer, answer)
