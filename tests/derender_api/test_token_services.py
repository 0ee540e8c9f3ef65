"""POST /tokenize and /detokenize; more exchanges are recorded in the suites protocol and rules."""

import pytest

from tests.derender_api.support import HELLO, MESSAGES, TOKENIZERS, WORLD, error, post, served

PROMPT = "<|im_start|>user\nhi<|im_end|>\n"


@pytest.fixture
def model():
    with served() as model:
        yield model


def test_a_text_becomes_ids(model):
    assert post("/tokenize", {"prompt": "Hello world", "return_token_strs": True}) == (
        200,
        {"count": 2, "max_model_len": 131072, "tokens": [HELLO, WORLD], "token_strs": ["Hello", "Ġworld"]},
    )


def test_a_conversation_is_rendered_by_the_template(model):
    _, answer = post("/tokenize", {"messages": MESSAGES})

    assert answer["tokens"] == model.tokenizer.encode(PROMPT + "<|im_start|>assistant\n")
    assert answer["token_strs"] is None


def test_another_template_may_be_served():
    with served(chat_template="{{ bos_token }}{% for m in messages %}<{{ m.content }}>{% endfor %}{{ flag }}") as model:
        model.tokenizer.tokenizer_config["bos_token"] = {"content": "Hello"}
        body = {"messages": MESSAGES, "chat_template_kwargs": {"flag": 1}}

        assert post("/tokenize", body)[1]["tokens"] == model.tokenizer.encode("Hello<hi>1")
        del model.tokenizer.tokenizer_config["bos_token"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"messages": []}, "Cannot apply chat template to an empty conversation. Provide at least one message."),
        ({"messages": MESSAGES, "chat_template_kwargs": {"chat_template": "x"}}, None),
        ({"messages": MESSAGES, "continue_final_message": True}, None),
        ({"prompt": "\ud83c"}, None),
    ],
)
def test_refusals(model, body, message):
    status, answer = post("/tokenize", body)

    assert (status, answer["error"]["type"]) == (400, "BadRequestError")
    assert message in (None, answer["error"]["message"])


def test_a_template_that_raises_is_a_bad_request():
    with served(chat_template="{{ raise_exception('roles must alternate') }}"):
        assert post("/tokenize", {"messages": MESSAGES}) == error("roles must alternate")


def test_ids_become_text_and_unknown_ones_vanish(model):
    assert post("/detokenize", {"tokens": [HELLO, 99999, WORLD, 4002]}) == (200, {"prompt": "Hello world<|im_end|>"})
    assert post("/detokenize", {"tokens": [2**62]}) == error("number too large to fit in target type")


def test_unknown_models_are_refused(model):
    for path, body in (("/tokenize", {"prompt": "x"}), ("/detokenize", {"tokens": []})):
        assert post(path, {**body, "model": "nope"})[0] == 404


def test_mistral_tokenizers_keep_control_tokens_in_detokenize():
    assert TOKENIZERS.exists()
    with served("mistral_tekken_v13", tokenizer_mode="mistral"):
        assert post("/detokenize", {"tokens": [9, 12, 1001]}) == (200, {"prompt": "[TOOL_CALLS][IMG_BREAK]х"})
        assert post("/tokenize", {"prompt": "a"})[1]["tokens"] == [1, 197]


def test_a_mistral_conversation_is_encoded_without_a_template():
    with served("mistral_tekken_v13", tokenizer_mode="mistral"):
        assert post("/tokenize", {"messages": MESSAGES})[1]["tokens"] == [1, 3, 7201, 4]
        both = {"messages": MESSAGES, "continue_final_message": True}
        assert post("/tokenize", both) == error(
            "Cannot set both `add_generation_prompt` and `continue_final_message` to True."
        )
