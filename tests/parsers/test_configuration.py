"""Configurations from plain mappings: defaults, types, impossible combinations."""

import pytest

from parsers.configuration import (
    ModelConfiguration,
    ModelConfigurationError,
    configuration_from_mapping,
    require_unique_names,
)


def test_defaults_are_those_of_vllm() -> None:
    assert configuration_from_mapping({"model": "org/m"}) == ModelConfiguration(
        model="org/m",
        name="org/m",
        aliases=(),
        revision=None,
        tokenizer=None,
        tokenizer_mode="auto",
        tool_call_parser=None,
        reasoning_parser=None,
        enable_auto_tool_choice=False,
        chat_template=None,
        default_chat_template_kwargs={},
        max_model_len=None,
        max_logprobs=20,
    )


def test_every_key_is_taken_over() -> None:
    values = {
        "name": "n",
        "aliases": ["a", "b"],
        "model": "m",
        "revision": "r",
        "tokenizer": "t",
        "tokenizer_mode": "slow",
        "tool_call_parser": "hermes",
        "reasoning_parser": "qwen3",
        "enable_auto_tool_choice": True,
        "chat_template": "c",
        "default_chat_template_kwargs": {"enable_thinking": False},
        "max_model_len": 32,
        "max_logprobs": -1,
    }

    configuration = configuration_from_mapping(values)

    assert {key: getattr(configuration, key) for key in values} == {**values, "aliases": ("a", "b")}
    assert configuration.names == ("n", "a", "b")
    assert configuration.tokenizer_source == "t"


def test_null_means_the_default() -> None:
    values = dict.fromkeys(("name", "aliases", "tokenizer_mode", "max_logprobs", "default_chat_template_kwargs"))

    assert configuration_from_mapping({"model": "m", **values}) == ModelConfiguration(model="m")


def test_the_tool_parser_runs_only_with_automatic_tool_choice() -> None:
    named = ModelConfiguration(model="m", tool_call_parser="hermes")
    enabled = ModelConfiguration(model="m", tool_call_parser="hermes", enable_auto_tool_choice=True)

    assert (named.active_tool_parser, enabled.active_tool_parser) == (None, "hermes")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "?: model: Field required"),
        ({"model": ""}, "model must not be empty; give a folder or a hub id."),
        ({"model": "m", "tool_parser": "x"}, "m: unknown key tool_parser; known: model, name, aliases,"),
        ({"model": "m", "max_model_len": "many"}, "m: max_model_len: Input should be a valid integer"),
        ({"model": "m", "max_model_len": 0}, "m: max_model_len must be at least 1"),
        ({"model": "m", "max_logprobs": -2}, "m: max_logprobs must be -1 (no limit) or more"),
        (
            {"model": "m", "tokenizer_mode": "quick"},
            "m: tokenizer_mode: Input should be 'auto', 'hf', 'slow', 'mistral', 'deepseek_v32', ",
        ),
        ({"model": "m", "aliases": "a"}, "m: aliases: Input should be a valid tuple"),
        ({"model": "m", "aliases": ["m"]}, "m: aliases must be different from each other and not empty."),
        ({"model": "m", "aliases": [""]}, "m: aliases must be different from each other and not empty."),
        (
            {"model": "m", "enable_auto_tool_choice": True},
            "m: enable_auto_tool_choice needs a tool parser; set tool_call_parser (--tool-call-parser) as well.",
        ),
        (
            {"model": "m", "default_chat_template_kwargs": []},
            "m: default_chat_template_kwargs: Input should be a valid dict",
        ),
    ],
)
def test_errors_name_the_model_and_the_key(values: dict[str, object], message: str) -> None:
    with pytest.raises(ModelConfigurationError) as caught:
        configuration_from_mapping(values)

    assert str(caught.value).startswith(message)


def test_names_and_aliases_must_be_unique() -> None:
    models = [ModelConfiguration(model="a", aliases=("x",)), ModelConfiguration(model="b", aliases=("x",))]

    with pytest.raises(ModelConfigurationError, match="b: the name 'x' is already taken by 'a'"):
        require_unique_names(models)


@pytest.mark.parametrize("url", ["", "engine:8200", "ftp://engine", "http://", "http://a b", "http://host/?x=1"])
def test_engines_are_urls(url: str) -> None:
    with pytest.raises(ModelConfigurationError, match=r"is not the URL of an engine; give it as http://host:port"):
        ModelConfiguration(model="m", engine_urls=(url,))
