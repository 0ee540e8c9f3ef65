"""Stop tokens and stop strings (protocol 8.2, 8.3)."""

from types import SimpleNamespace

import pytest

from derender_api.protocol.openai_request import ChatCompletionRequest
from derender_api.stop import Ending, StopRules, cut_at_stop_string, end_of_output

TOKENIZER = SimpleNamespace(eos_id=9, model_eos_ids=frozenset({8, 9}))


@pytest.mark.parametrize(
    ("token_ids", "finish_reason", "stop_reason", "rules", "ending"),
    [
        ([1, 9], "stop", None, {}, Ending(1, None)),
        ([1, 9], "length", None, {}, Ending(2, None)),
        ([1, 9], None, None, {}, Ending(2, None)),
        ([1, 9], "stop", None, {"ignore_eos": True}, Ending(2, None)),
        ([1, 9], "stop", None, {"keeps_stop": True}, Ending(2, None)),
        ([1, 8], "stop", None, {}, Ending(1, 8)),
        ([1, 8], "stop", None, {"ignore_eos": True}, Ending(2, None)),
        ([1, 8], "stop", None, {"keeps_stop": True}, Ending(2, 8)),
        ([1, 5], "stop", None, {"stop_token_ids": [5]}, Ending(1, 5)),
        ([1, 9], "stop", None, {"stop_token_ids": [9], "ignore_eos": True}, Ending(1, 9)),
        ([1, 5], "stop", 5, {}, Ending(1, 5)),
        ([1, 9], "stop", 5, {}, Ending(2, 5)),
        ([1, 9], "stop", "x", {}, Ending(2, "x")),
        ([9, 9], "stop", None, {}, Ending(1, None)),
        ([], "stop", None, {}, Ending(0, None)),
    ],
)
def test_the_stop_token_is_left_out_of_the_text(token_ids, finish_reason, stop_reason, rules, ending):
    found = end_of_output(
        token_ids,
        finish_reason=finish_reason,
        stop_reason=stop_reason,
        rules=StopRules(**rules),
        tokenizer=TOKENIZER,
    )

    assert found == ending


@pytest.mark.parametrize(
    ("texts", "reported", "rules", "kept", "stop"),
    [
        (["ab", "cd", "ef"], None, {"stop": ["d"]}, ["ab", "c", ""], "d"),
        (["ab", "cd", "ef"], None, {"stop": ["d"], "keeps_stop": True}, ["ab", "cd", ""], "d"),
        (["ab", "cd", "ef"], None, {"stop": ["e", "bc"]}, ["a", "", ""], "bc"),
        (["ab", "cd"], None, {"stop": ["bcd", "cd"]}, ["a", ""], "bcd"),
        (["ab", "cd"], None, {"stop": ["x"]}, ["ab", "cd"], None),
        (["ab", "cd"], "d", {"stop": ["a"]}, ["ab", "c"], "d"),
        (["ab", "cd"], "x", {"stop": ["a"]}, ["ab", "cd"], None),
        (["ab", "cd"], 7, {"stop": ["a"]}, ["ab", "cd"], None),
        (["ab", "cd"], "", {"stop": ["a"]}, ["ab", "cd"], None),
        (["ab", "ab"], None, {"stop": ["a"], "min_tokens": 1}, ["ab", ""], "a"),
        (["ab", "ab"], None, {"stop": ["ba"], "min_tokens": 1}, ["a", ""], "ba"),
        (["ab", "ab"], None, {"stop": ["a"], "min_tokens": 2}, ["ab", "ab"], None),
        (["ab", "ab", "a"], None, {"stop": ["a"], "min_tokens": -1}, ["ab", "ab", ""], "a"),
    ],
)
def test_the_stop_string_that_ends_first_cuts_the_text(texts, reported, rules, kept, stop):
    cut = cut_at_stop_string(texts, finish_reason="stop", reported=reported, rules=StopRules(**rules))

    assert cut == (kept, stop)


def test_stop_strings_are_not_looked_for_in_an_output_that_ended_otherwise():
    assert cut_at_stop_string(["ab"], finish_reason="length", reported=None, rules=StopRules(stop=["a"])) == (
        ["ab"],
        None,
    )


@pytest.mark.parametrize(
    ("stop", "candidates"), [("a", ["a"]), ("", []), (["a", "", "b"], ["a", "b"]), (None, []), ([], [])]
)
def test_rules_come_from_the_request(stop, candidates):
    request = ChatCompletionRequest.model_validate({"messages": [], "stop": stop, "stop_token_ids": None})

    assert StopRules.of(request) == StopRules(stop=candidates, stop_token_ids=())
    assert StopRules.of(None) == StopRules()
