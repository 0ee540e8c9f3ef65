"""What the files beside a tokenizer say about the model."""

import json

import pytest

from derender_api.tokenization.files import read_facts


def facts(folder, **files):
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return read_facts(folder)


@pytest.mark.parametrize(
    ("config", "length"),
    [
        ({}, None),
        ({"max_position_embeddings": 4096}, 4096),
        ({"max_position_embeddings": 4096, "n_positions": 1024}, 1024),
        ({"text_config": {"max_position_embeddings": 2048}, "max_position_embeddings": 4096}, 2048),
        ({"max_position_embeddings": 4096, "rope_scaling": {"rope_type": "linear", "factor": 2.0}}, 8192),
        ({"max_position_embeddings": 4096, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 4096),
        (
            {
                "max_position_embeddings": 32768,
                "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192},
            },
            32768,
        ),
        ({"max_position_embeddings": 4096, "rope_scaling": {"rope_type": "default"}}, 4096),
    ],
)
def test_the_context_length(tmp_path, config, length):
    assert facts(tmp_path, config=config).max_model_len == length


@pytest.mark.parametrize(
    ("files", "ids"),
    [
        ({"config": {"eos_token_id": 5}}, {5}),
        ({"config": {"eos_token_id": [5, 6]}}, {5, 6}),
        ({"config": {"eos_token_id": 5}, "generation_config": {"eos_token_id": [7, 8]}}, {7, 8}),
        ({"config": {"eos_token_id": 5}, "generation_config": {}}, set()),
        ({"config": {"eos_token_id": None}}, set()),
        ({}, set()),
    ],
)
def test_the_generation_configuration_names_the_ends(tmp_path, files, ids):
    assert facts(tmp_path, **files).eos_ids == ids


def test_chat_templates(tmp_path):
    assert facts(tmp_path).chat_template == ""
    assert facts(tmp_path, tokenizer_config={"chat_template": "a"}).chat_template == "a"
    named = [{"name": "tool_use", "template": "b"}, {"name": "default", "template": "c"}]
    assert facts(tmp_path, tokenizer_config={"chat_template": named}).chat_template == "c"
    assert facts(tmp_path, chat_template={"chat_template": "d"}).chat_template == "d"
    (tmp_path / "chat_template.jinja").write_text("e")
    assert facts(tmp_path).chat_template == "e"
