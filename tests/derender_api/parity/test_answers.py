"""Folding deltas, and reading messages."""

from derender_api.parity.answers import Answer, answer_from_json, answer_from_message, fold


def call(index, *, name=None, arguments=None, call_id=None):
    return {"id": call_id, "type": None, "index": index, "function": {"name": name, "arguments": arguments}}


def test_fold_joins_texts_calls_by_index_and_keeps_the_last_finish_reason():
    chunks = [
        [{"role": "assistant", "reasoning": "a"}, None],
        [{"reasoning": "b", "content": ""}, None],
        [{"tool_calls": [call(0, name="f", call_id="x"), call(0, arguments="{")]}, None],
        [{"content": " c", "tool_calls": [call(1, name="g", arguments="{}"), call(0, arguments="}")]}, "tool_calls"],
        [{}, None],
    ]
    assert fold(chunks) == Answer("ab", " c", (("f", "{}"), ("g", "{}")), "tool_calls")


def test_fold_of_a_refused_stream_is_nothing():
    assert fold([[{"content": "a"}, None], {"error": {"message": "no"}}]) is None


def test_message_keeps_null_apart_from_empty_until_it_is_filled():
    message = {"role": "assistant", "content": None, "reasoning": " r\n"}
    answer = answer_from_message(message, finish_reason="stop")
    assert answer == Answer(" r\n", None, (), "stop")
    assert answer.filled == Answer(" r\n", "", (), "stop")
    assert answer.loose == Answer("r", "", (), "stop")


def test_json_form_goes_both_ways():
    answer = Answer(None, "c", (("f", '{"a": 1}'),), "tool_calls")
    assert answer_from_json(answer.as_json()) == answer
