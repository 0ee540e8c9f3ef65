"""What the parser learns of a chat request."""

import pytest

from derender_api.parsing import request_context, stream_seed, template_kwargs
from derender_api.protocol.openai_request import ChatCompletionRequest
from derender_api.stream_state import Carried
from parsers.engine.context import NamedToolChoice
from tests.derender_api.support import MESSAGES, TOOLS, served

ALWAYS = {"add_generation_prompt": True, "continue_final_message": False, "cohere_format": "cmd4"}


def request(**fields):
    return ChatCompletionRequest.model_validate({"messages": MESSAGES, **fields})


@pytest.mark.parametrize(
    ("fields", "defaults", "kwargs"),
    [
        ({}, {}, ALWAYS),
        ({"chat_template_kwargs": {"a": 1}}, {"a": 2, "b": 3}, {**ALWAYS, "a": 1, "b": 3}),
        ({"chat_template_kwargs": {"a": None, "b": "auto"}}, {"a": 2, "b": 3}, {**ALWAYS, "a": 2, "b": 3}),
        ({"reasoning_effort": "low"}, {}, {**ALWAYS, "reasoning_effort": "low", "enable_thinking": True}),
        ({"reasoning_effort": "none"}, {}, {**ALWAYS, "reasoning_effort": "none", "enable_thinking": False}),
        (
            {"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": True}},
            {"enable_thinking": False},
            {**ALWAYS, "reasoning_effort": "none", "enable_thinking": True},
        ),
        (
            {"reasoning_effort": "low"},
            {"enable_thinking": False},
            {**ALWAYS, "reasoning_effort": "low", "enable_thinking": True},
        ),
        (
            {"documents": [], "add_generation_prompt": False, "chat_template_kwargs": {"documents": 5}},
            {"cohere_format": "cmd3"},
            {
                "documents": [],
                "add_generation_prompt": False,
                "continue_final_message": False,
                "cohere_format": "cmd3",
            },
        ),
    ],
)
def test_template_arguments(fields, defaults, kwargs):
    with served(default_chat_template_kwargs=defaults) as model:
        assert template_kwargs(request(**fields), model) == kwargs


@pytest.mark.parametrize(
    ("fields", "choice"),
    [
        ({}, "none"),
        ({"tools": TOOLS}, "auto"),
        ({"tools": TOOLS, "tool_choice": None}, None),
        ({"tools": TOOLS, "tool_choice": "required"}, "required"),
        ({"tools": TOOLS, "tool_choice": {"function": {"name": "get_weather"}}}, NamedToolChoice("get_weather")),
    ],
)
def test_the_tool_choice(fields, choice):
    with served() as model:
        context = request_context(request(**fields), model, call_id_seed=b"x")

    assert context.tool_choice == choice
    assert context.tools == fields.get("tools")


def test_earlier_calls_are_counted():
    messages = [
        {"role": "assistant", "tool_calls": [{}, {}]},
        {"role": "tool"},
        {"role": "assistant", "tool_calls": [{}]},
    ]
    with served() as model:
        context = request_context(
            request(messages=messages, parallel_tool_calls=None, include_reasoning=False), model, call_id_seed=b"x"
        )

    assert context.history_tool_calls == 3
    assert (context.parallel_tool_calls, context.include_reasoning) == (True, False)


def test_the_seed_of_call_ids_tells_streams_apart():
    def carried(*ids):
        return Carried(is_new=False, output_token_ids=list(ids), output_chunk_lens=[1] * len(ids))

    seeds = {
        stream_seed("r", 0, [1, 2], carried(5)),
        stream_seed("r", 1, [1, 2], carried(5)),
        stream_seed("s", 0, [1, 2], carried(5)),
        stream_seed("r", 0, [1, 3], carried(5)),
        stream_seed("r", 0, [1], carried(5)),
    }

    assert len(seeds) == 5
    assert stream_seed("r\ud83c", 0, [], carried()) == stream_seed("r\ud83c", 0, [], carried())
