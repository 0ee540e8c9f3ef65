"""Request rules where vLLM fails on the request itself; the others are recorded in tests/data/parity/rules."""

import pytest

from derender_api.exceptions import RequestRuleViolation
from derender_api.protocol.rules import check_chat_request, check_completion_request

WITHOUT_PARAM = ("continue_final_message", "structured_outputs")
NAMED = {"type": "function", "function": {"name": "f"}}


@pytest.mark.parametrize(
    "request_",
    [
        {"tools": [5], "tool_choice": NAMED},
        {"tools": [{"x": 1}], "tool_choice": NAMED},
        {"tools": [{"function": 5}], "tool_choice": NAMED},
        {"tools": 5, "tool_choice": NAMED},
        {"structured_outputs": 5},
        {"structured_outputs": []},
        {"response_format": 5},
        {"messages": 5},
    ],
    ids=str,
)
def test_what_has_the_wrong_kind_is_left_to_the_schema(request_):
    check_chat_request(request_)


def test_groups_of_rules_are_checked_in_order():
    request = {
        "continue_final_message": True,
        "add_generation_prompt": True,
        "tools": [],
        "structured_outputs": {},
        "logprob_token_ids": [1],
        "prompt_logprobs": -2,
        "top_logprobs": 1,
        "stream_options": {"include_usage": True},
        "response_format": {"type": "json_schema"},
        "cache_salt": "",
        "thinking_token_budget": "x",
    }
    fields = [name for name in request if name != "add_generation_prompt"]
    for field in fields:
        with pytest.raises(RequestRuleViolation) as caught:
            check_chat_request(request)
        assert caught.value.param == (None if field in WITHOUT_PARAM else field)
        del request[field]
    check_chat_request(request)


def test_the_number_of_prompts_is_limited():
    check_completion_request({"prompt": ["a", "b"]}, max_prompts=2)
    check_completion_request({"prompt": [1, 2, 3]}, max_prompts=2)
    with pytest.raises(RequestRuleViolation, match="prompt list length 3 exceeds the maximum allowed count of 2"):
        check_completion_request({"prompt": ["a", "b", "c"]}, max_prompts=2)
