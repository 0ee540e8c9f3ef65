"""Log probabilities (protocol 8.7); whole answers are recorded in the suites detok and protocol."""

import pytest

from derender_api.logprobs import LogprobResolver, NonFiniteNumber, chat_limit, completion_limit, next_context
from derender_api.protocol.generate import GenerateLogProbs
from derender_api.protocol.openai_request import ChatCompletionRequest, CompletionRequest
from tests.derender_api.support import HELLO, WORLD, served


@pytest.fixture(scope="module")
def tokenizer():
    with served() as model:
        yield model.tokenizer


def logprobs(*entries):
    return GenerateLogProbs.model_validate({"content": list(entries)})


def entry(token_id, *candidates, logprob=-1.0):
    top = [{"token_id": each, "logprob": -2.0} for each in candidates]
    return {"token_id": token_id, "logprob": logprob, "top_logprobs": top}


def tokens(answer):
    return [each["token"] for each in answer["content"]]


def test_a_chat_entry_carries_text_and_bytes(tokenizer):
    answer = LogprobResolver(tokenizer, limit=None).chat(logprobs(entry(HELLO, HELLO, 999_999)))

    assert answer == {
        "content": [
            {
                "token": "Hello",
                "logprob": -1.0,
                "bytes": [72, 101, 108, 108, 111],
                "top_logprobs": [
                    {"token": "Hello", "logprob": -2.0, "bytes": [72, 101, 108, 108, 111]},
                    {"token": "", "logprob": -2.0, "bytes": None},
                ],
            }
        ]
    }


def test_the_last_piece_of_a_character_carries_all_of_it(tokenizer):
    ids = tokenizer.encode("日本")
    resolver = LogprobResolver(tokenizer, limit=None)

    assert "".join(tokens(resolver.chat(logprobs(*map(entry, ids))))) == "日本"
    assert len(ids) > 2


def test_a_character_may_begin_before_the_chunk(tokenizer):
    ids = tokenizer.encode("😀")

    resolver = LogprobResolver(tokenizer, context=ids[:-1], limit=None)

    assert tokens(resolver.chat(logprobs(entry(ids[-1])))) == ["😀"]


def test_the_placeholder_shape_of_older_engines_is_read(tokenizer):
    old = {"token": f"token_id:{HELLO}", "logprob": -1, "bytes": None}
    given = GenerateLogProbs.model_validate(
        {
            "content": [
                {**old, "top_logprobs": [old, {"token": "token_id:x"}, {"token": "plain"}]},
                {"token": "token_id:999999", "logprob": -1},
            ]
        }
    )

    answer = LogprobResolver(tokenizer, limit=0).chat(given)

    hello = {"token": "Hello", "logprob": -1.0, "bytes": [72, 101, 108, 108, 111]}
    assert answer == {
        "content": [
            {
                **hello,
                "top_logprobs": [
                    hello,
                    {"token": "token_id:x", "logprob": -9999.0, "bytes": None},
                    {"token": "plain", "logprob": -9999.0, "bytes": None},
                ],
            },
            {"token": "", "logprob": -1.0, "bytes": None, "top_logprobs": []},
        ]
    }


def test_completions_count_text_offsets_in_characters(tokenizer):
    given = logprobs(entry(HELLO, HELLO, WORLD), entry(WORLD))

    answer = LogprobResolver(tokenizer, limit=2).completion(given, text_offset=3)

    assert answer == {
        "text_offset": [3, 8],
        "token_logprobs": [-1.0, -1.0],
        "tokens": ["Hello", " world"],
        "top_logprobs": [{"Hello": -2.0, " world": -2.0}, None],
    }


def test_nothing_and_no_entries_are_told_apart(tokenizer):
    resolver = LogprobResolver(tokenizer, limit=None)

    assert resolver.chat(None) is None
    assert resolver.chat(GenerateLogProbs()) == {"content": None}
    assert resolver.completion(GenerateLogProbs()) == {
        "text_offset": [],
        "token_logprobs": [],
        "tokens": [],
        "top_logprobs": [],
    }


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_cannot_hold_are_refused(tokenizer, value):
    for shape in (LogprobResolver.chat, LogprobResolver.completion):
        with pytest.raises(NonFiniteNumber):
            shape(LogprobResolver(tokenizer, limit=None), logprobs(entry(HELLO, logprob=value)))


def test_finite_numbers_may_add_up_to_infinity(tokenizer):
    given = logprobs(entry(HELLO, HELLO, HELLO), entry(HELLO, logprob=-1.7e308))
    given.content[0]["top_logprobs"] = [{"token_id": HELLO, "logprob": -1.7e308}] * 2

    assert len(LogprobResolver(tokenizer, limit=None).chat(given)["content"]) == 2


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({}, None),
        ({"logprobs": True}, 0),
        ({"logprobs": True, "top_logprobs": 3}, 3),
        ({"logprobs": True, "top_logprobs": -1}, None),
        ({"logprobs": True, "top_logprobs": 1, "logprob_token_ids": [5]}, None),
    ],
)
def test_chat_requests_limit_candidates(fields, limit):
    assert chat_limit(ChatCompletionRequest.model_validate({"messages": [], **fields})) == limit
    assert chat_limit(None) is None


@pytest.mark.parametrize(
    ("fields", "limit"),
    [({}, None), ({"logprobs": 0}, 1), ({"logprobs": -1}, None), ({"logprobs": 1, "logprob_token_ids": [5]}, None)],
)
def test_completion_requests_limit_candidates(fields, limit):
    assert completion_limit(CompletionRequest.model_validate({"prompt": "a", **fields})) == limit
    assert completion_limit(None) is None


def test_four_tokens_are_context():
    assert next_context([1, 2, 3], [4, 5]) == [2, 3, 4, 5]
    assert next_context([1], []) == [1]
