"""Reading the right answers of bug reports, with the remarks that stand in place of values."""

import pytest

from derender_api.parity.answers import Answer
from derender_api.parity.right import right_answer


def right(**values):
    value = {"reasoning": None, "content": None, "tool_calls": [], "finish_reason": "stop"} | values
    judgement = {"vllm_oneshot": "wrong", "vllm_stream": "wrong"}
    return right_answer({"id": "bugs/x", "source": "a#1", "why": "because", "right": value, **judgement})


CALL = [{"name": "f", "arguments": {"a": [1, "é"]}}]


@pytest.mark.parametrize(
    ("values", "answer", "accepted"),
    [
        ({"content": "Hi."}, Answer(None, "\n Hi.\n", (), "stop"), True),
        ({"content": "Hi."}, Answer("", "Hi", (), "stop"), False),
        ({"content": "Hi."}, Answer(None, "Hi.", (), "length"), False),
        ({"reasoning": "(any)"}, Answer("whatever", None, (), "stop"), True),
        ({}, Answer("whatever", None, (), "stop"), False),
        ({"content": '"Now." or null (no markup)'}, Answer(None, "Now. ", (), "stop"), True),
        ({"content": '"Now." or null (no markup)'}, Answer(None, None, (), "stop"), True),
        ({"content": '"Now." or null (no markup)'}, Answer(None, "<x>Now.", (), "stop"), False),
        ({"content": "the prose, or null"}, Answer(None, "Some prose { here }", (), "stop"), True),
        ({"content": "the prose, or null"}, Answer(None, '{"name"', (), "stop"), False),
        ({"content": "the prose before and after"}, Answer(None, "Some prose", (), "stop"), True),
        ({"content": "the prose before and after"}, Answer(None, None, (), "stop"), False),
        ({"tool_calls": CALL}, Answer(None, None, (("f", '{"a":[1,"\\u00e9"]}'),), "stop"), True),
        ({"tool_calls": CALL}, Answer(None, None, (("f", '{"a":["1","é"]}'),), "stop"), False),
        ({"tool_calls": CALL}, Answer(None, None, (("f", '{"a":[1,"é"]'),), "stop"), False),
        ({"tool_calls": CALL}, Answer(None, None, (), "stop"), False),
        ({"tool_calls": "(any)"}, Answer(None, None, (("f", "{"),), "stop"), True),
        ({"tool_calls": "(none, or one that is visibly incomplete)"}, Answer(None, None, (("f", "{"),), "stop"), True),
        (
            {"tool_calls": "(none, or one that is visibly incomplete)"},
            Answer(None, None, (("f", "{}"),), "stop"),
            False,
        ),
        ({"finish_reason": "(stop or tool_calls, according to the calls)"}, Answer(None, None, (), "stop"), True),
        ({"finish_reason": "(stop or tool_calls, according to the calls)"}, Answer("", "", (), "tool_calls"), False),
    ],
)
def test_acceptance(values, answer, accepted):
    assert right(**values).accepts(answer) is accepted


def test_a_refusal_is_never_right():
    assert not right().accepts(None)


def test_a_remark_about_an_exchange_is_no_answer():
    judgement = {"id": "bugs/x", "source": "a#1", "why": "", "vllm_oneshot": "right", "vllm_stream": "right"}
    assert not right_answer({**judgement, "right": "HTTP 400 for each"}).is_answer
