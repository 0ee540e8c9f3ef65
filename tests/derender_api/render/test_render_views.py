"""POST /v1/chat/completions/render and /v1/completions/render; the suites of rendering hold vLLM's answers."""

import json
import shutil

import pytest
from django.test import Client

from tests.derender_api.support import HELLO, MESSAGES, TOKENIZERS, TOOLS, WORLD, error, parsed_model, post, served

CHAT = "/v1/chat/completions/render"
COMPLETION = "/v1/completions/render"
PROMPT = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
NAMED = {"type": "function", "function": {"name": "get_weather"}}
KEYS = [
    "request_id",
    "token_ids",
    "token_offsets",
    "features",
    "content_parts",
    "sampling_params",
    "model",
    "reasoning_ended",
    "reasoning_parser_kwargs",
    "return_token_ids",
    "output_mode",
    "parse_context",
    "stream",
    "stream_options",
    "cache_salt",
    "priority",
    "kv_transfer_params",
    "ec_transfer_params",
]


@pytest.fixture
def model():
    with parsed_model() as model:
        yield model


def response(path, body, **headers):
    return Client().post(path, json.dumps(body), content_type="application/json", headers=headers)


def test_a_chat_becomes_an_engine_request(model):
    status, answer = post(CHAT, {"model": "model", "messages": MESSAGES, "max_tokens": 7, "temperature": 0.5})

    assert status == 200
    assert list(answer) == KEYS
    assert answer["token_ids"] == model.tokenizer.encode(PROMPT)
    assert answer["sampling_params"]["max_tokens"] == 7
    assert answer["sampling_params"]["temperature"] == 0.5
    assert answer["parse_context"]["tool_choice"] == "none"
    assert answer["reasoning_ended"] is False


def test_completions_become_one_engine_request_per_prompt(model):
    status, answer = post(COMPLETION, {"prompt": ["Hello", "Hello world"], "request_id": "r"})

    assert status == 200
    assert [list(each) for each in answer] == [KEYS, KEYS]
    assert [each["token_ids"] for each in answer] == [[HELLO], [HELLO, WORLD]]
    assert [each["request_id"] for each in answer] == ["cmpl-r-0", "cmpl-r-1"]


def test_the_header_names_the_request(model):
    answer = response(CHAT, {"messages": MESSAGES, "request_id": "body"}, x_request_id="header").json()

    assert answer["request_id"] == "chatcmpl-header"


def test_streaming_is_kept(model):
    body = {"messages": MESSAGES, "stream": True, "stream_options": {"include_usage": True}}
    _, answer = post(CHAT, body)

    assert answer["stream"] is True
    assert answer["stream_options"] == {"include_usage": True, "continuous_usage_stats": False}
    assert answer["sampling_params"]["output_kind"] == 1


def test_offsets_say_which_characters_a_token_covers(model):
    _, answer = post(COMPLETION, {"prompt": "Hello world", "return_token_offsets": True})

    assert answer[0]["token_offsets"] == [[0, 5], [5, 11]]


def test_given_token_ids_take_the_place_of_the_template(model):
    params = {"prompt_token_ids": [HELLO, WORLD], "remote": 1}
    _, answer = post(CHAT, {"messages": [], "kv_transfer_params": params})

    assert answer["token_ids"] == [HELLO, WORLD]
    assert answer["kv_transfer_params"] == {"remote": 1}


@pytest.mark.parametrize(
    ("part", "named"),
    [
        ({"type": "image_url", "image_url": {"url": "https://example.org/x.png"}}, "of type 'image_url'"),
        ({"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}, "of type 'input_audio'"),
        ({"type": "file", "file": {}}, "of type 'file'"),
        ({"image_url": "x"}, "with the keys image_url"),
        ({"type": ["text"]}, "of type '['text']'"),
        ({}, "with the keys (none)"),
    ],
)
def test_parts_that_are_no_text_are_refused_by_name(model, part, named):
    messages = [{"role": "user", "content": [{"type": "text", "text": "see"}, part]}]
    status, answer = post(CHAT, {"messages": messages})

    assert status == 400
    assert answer["error"]["message"].startswith(f"messages[0].content[1] is a part {named}")


@pytest.mark.parametrize(
    "body",
    [
        {"messages": 5},
        {"messages": [{"role": "user", "content": None}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"id": "1", "type": "function"}]}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": 5}}]}]},
        {"messages": [{"role": "assistant", "tool_calls": ["x"]}]},
        {"messages": MESSAGES, "temperature": "hot"},
        {"messages": MESSAGES, "tools": [{"type": "custom"}]},
    ],
)
def test_bodies_that_are_no_request_are_schema_errors(model, body):
    status, answer = post(CHAT, body)

    assert (status, answer["error"]["type"]) == (400, "Bad Request")
    assert answer["error"]["param"].startswith("body.")


@pytest.mark.parametrize("prompt", [[], [[]], [1, "a"], [["a"]], 5, {}, [-1], None])
def test_prompts_that_are_none_are_refused(model, prompt):
    assert post(COMPLETION, {"prompt": prompt})[0] == 400


def test_choices_need_a_parser():
    with served():
        assert post(CHAT, {"messages": MESSAGES, "tools": TOOLS})[0] == 400
        assert post(CHAT, {"messages": MESSAGES, "tools": TOOLS, "tool_choice": "required"}) == error(
            'tool_choice="required" requires --tool-call-parser to be set'
        )
        assert post(CHAT, {"messages": MESSAGES, "tools": TOOLS, "tool_choice": NAMED})[0] == 400
        assert post(CHAT, {"messages": MESSAGES, "tools": TOOLS, "tool_choice": "none"})[0] == 200


def test_an_unknown_model_is_not_found(model):
    assert post(CHAT, {"model": "nope", "messages": MESSAGES})[0] == 404
    assert post(COMPLETION, {"model": "nope", "prompt": "x"})[0] == 404


def test_a_constraint_that_is_left_out_is_announced():
    body = {"messages": MESSAGES, "tools": TOOLS, "tool_choice": "required"}
    with served(tool_call_parser="dots", enable_auto_tool_choice=True, tokenizer="dots"):
        answer = response(CHAT, body)

    assert "structured_outputs" not in answer.json()["sampling_params"]
    assert "calls of dots have no grammar here" in answer["X-Derender-Warning"]


def test_a_forced_call_is_constrained_without_a_warning(model):
    answer = response(CHAT, {"messages": MESSAGES, "tools": TOOLS, "tool_choice": NAMED})
    tag = json.loads(answer.json()["sampling_params"]["structured_outputs"]["structural_tag"])

    assert tag["format"]["tags"][0]["begin"] == '<tool_call>\n{"name": "get_weather", "arguments": '
    assert "X-Derender-Warning" not in answer


def test_the_rendered_request_is_what_derender_needs(model):
    """The loop of render, generate and derender with one chat request."""
    request = {"messages": MESSAGES, "tools": TOOLS}
    _, rendered = post(CHAT, request)
    output = model.tokenizer.encode(
        '<think>ok</think>\n<tool_call>\n{"name": "get_weather", "arguments": {}}\n</tool_call>'
    )
    choice = {"index": 0, "token_ids": output, "finish_reason": "stop"}
    status, answer = post(
        "/v1/chat/completions/derender",
        {
            "generate_response": {"request_id": rendered["request_id"], "choices": [choice]},
            "prompt_tokens": len(rendered["token_ids"]),
            "chat_request": request,
        },
    )

    assert status == 200
    assert answer["id"] == rendered["request_id"]
    assert answer["choices"][0]["finish_reason"] == "tool_calls"
    assert answer["usage"]["prompt_tokens"] == len(rendered["token_ids"])


def test_every_field_of_an_openai_client_is_accepted(model):
    body = {
        "model": "model",
        "messages": [
            {"role": "user", "content": "hi", "name": "bob"},
            {
                "role": "assistant",
                "content": None,
                "refusal": None,
                "annotations": [],
                "audio": None,
                "function_call": None,
                "tool_calls": None,
            },
            {"role": "user", "content": [{"type": "text", "text": "go on"}]},
        ],
        "audio": None,
        "frequency_penalty": 0,
        "logit_bias": {"5": 1},
        "logprobs": True,
        "max_completion_tokens": 9,
        "metadata": {"k": "v"},
        "modalities": ["text"],
        "n": 2,
        "parallel_tool_calls": True,
        "prediction": None,
        "presence_penalty": None,
        "prompt_cache_key": "k",
        "reasoning_effort": "low",
        "response_format": {"type": "text"},
        "safety_identifier": "s",
        "seed": 3,
        "service_tier": "auto",
        "stop": None,
        "store": False,
        "stream": False,
        "stream_options": None,
        "temperature": None,
        "top_logprobs": 2,
        "top_p": None,
        "user": "u",
        "verbosity": "low",
        "web_search_options": {},
    }

    assert post(CHAT, body)[0] == 200


def test_encoders_of_vllm_are_not_imitated():
    with served(tokenizer_mode="cohere"):
        refusal = error(
            "Chats of --tokenizer-mode cohere are not rendered here: its encoder is vLLM's. Serve the model with a "
            "--chat-template."
        )
        assert post(CHAT, {"messages": MESSAGES}) == refusal
        assert post("/tokenize", {"messages": MESSAGES}) == refusal
    with served(tokenizer_mode="cohere", chat_template="{{ messages[0].content }}"):
        assert post(CHAT, {"messages": MESSAGES})[0] == 200


def test_deepseek_has_an_encoder_by_mode_or_architecture(tmp_path):
    messages = [{"role": "user", "content": "hi"}]
    folder = shutil.copytree(TOKENIZERS / "deepseek_dsml", tmp_path / "deepseek")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["DeepseekV41ForCausalLM"]}))
    prompts = []
    for tokenizer, mode in (("deepseek_dsml", "deepseek_v41"), (folder, "auto"), (folder, "hf")):
        with served(tokenizer, tokenizer_mode=mode) as model:
            prompts.append(model.tokenizer.decode(post(CHAT, {"messages": messages})[1]["token_ids"]))

    assert prompts[0] == prompts[1] != prompts[2]
    assert "Reasoning Effort: 75" in prompts[0]


@pytest.mark.parametrize("tools", [1, [1], [{}], [{"function": "f"}]])
def test_tools_of_a_deepseek_developer_message_are_functions(tools):
    developer = {"role": "developer", "content": "Be terse.", "tools": tools}
    with served("deepseek_dsml", tokenizer_mode="deepseek_v4"):
        body = {"messages": [developer], "chat_template_kwargs": {"thinking": False}}
        assert post(CHAT, body) == error("messages[0].tools must be a list of functions.")


def test_results_of_deepseek_calls_are_sorted_by_their_ids_of_any_type():
    calls = [{"id": each, "type": "function", "function": {"name": "f", "arguments": "{}"}} for each in ([1], "b", "c")]
    results = [{"role": "tool", "tool_call_id": each, "content": each * 2} for each in ("c", "b")]
    with served("deepseek_dsml", tokenizer_mode="deepseek_v4") as model:
        body = {"messages": [{"role": "assistant", "content": None, "tool_calls": calls}, *results]}
        prompt = model.tokenizer.decode(post(CHAT, body)[1]["token_ids"])

    assert "<tool_result>bb</tool_result>\n\n<tool_result>cc</tool_result>" in prompt


def test_kimi_k3_has_results_in_the_order_of_the_calls():
    calls = [{"id": each, "type": "function", "function": {"name": each * 2, "arguments": "{}"}} for each in "ab"]
    results = [{"role": "tool", "tool_call_id": each, "content": f"{each}!"} for each in "ba"]
    body = {"messages": [{"role": "assistant", "content": None, "tool_calls": calls}, *results]}
    template = "{% for m in messages %}{{ m.index }}{{ m.tool }}{{ m.content }} {% endfor %}"
    with served(tokenizer_mode="kimi_k3", chat_template=template) as model:
        for path, key in ((CHAT, "token_ids"), ("/tokenize", "tokens")):
            assert model.tokenizer.decode(post(path, body)[1][key]) == " 1aaa! 2bbb! "
