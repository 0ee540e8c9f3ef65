"""Reads the files beside a tokenizer: config.json, generation_config.json, tokenizer_config.json, chat templates."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from derender_api.tokenization.handle import ModelFacts

LENGTH_KEYS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)
SCALED_BY_FACTOR = ("linear", "dynamic", "yarn")
NAMED_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
LISTED_TOKENS = ("additional_special_tokens", "extra_special_tokens")


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in `path`, {} where there is no such file."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    return content if isinstance(content, dict) else {}


def read_facts(folder: Path) -> ModelFacts:
    """Everything that the configuration files in `folder` say about the model."""
    config = read_json(folder / "config.json")
    tokenizer_config = read_json(folder / "tokenizer_config.json")
    return ModelFacts(
        model_type=str(config.get("model_type") or ""),
        architecture=_architecture(config),
        max_model_len=_max_model_len(config),
        eos_ids=_eos_ids(folder, config),
        chat_template=_chat_template(folder, tokenizer_config),
        tokenizer_config=tokenizer_config,
        generation_config=read_json(folder / "generation_config.json"),
    )


def named_special_tokens(folder: Path) -> dict[str, str | list[str]]:
    """The registered special tokens by name (bos_token, ..., additional_special_tokens), as text."""
    named: dict[str, str | list[str]] = {}
    for source in (read_json(folder / "special_tokens_map.json"), read_json(folder / "tokenizer_config.json")):
        for name in NAMED_TOKENS:
            if text := _token_text(source.get(name)):
                named[name] = text
        for name in LISTED_TOKENS:
            if listed := list(_token_list(source.get(name))):
                named[name] = listed
    return named


def _token_text(value: Any) -> str | None:
    if isinstance(value, Mapping):
        value = value.get("content")
    return value if isinstance(value, str) and value else None


def _token_list(value: Any) -> Iterator[str]:
    values = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for each in values:
        if text := _token_text(each):
            yield text


def _architecture(config: Mapping[str, Any]) -> str:
    architectures = config.get("architectures")
    first = architectures[0] if isinstance(architectures, list) and architectures else None
    return first if isinstance(first, str) else ""


def _eos_ids(folder: Path, config: Mapping[str, Any]) -> frozenset[int]:
    path = folder / "generation_config.json"
    value = (read_json(path) if path.exists() else config).get("eos_token_id")
    values = value if isinstance(value, list) else [value]
    return frozenset(each for each in values if isinstance(each, int))


def _max_model_len(config: Mapping[str, Any]) -> int | None:
    text_config = config.get("text_config")
    if isinstance(text_config, Mapping):
        config = {**config, **text_config}
    lengths = [config[key] for key in LENGTH_KEYS if isinstance(config.get(key), int)]
    if not lengths:
        return None
    return _scaled(min(lengths), config.get("rope_scaling") or config.get("rope_parameters"))


def _scaled(length: int, scaling: Any) -> int:
    """The context length that a RoPE scaling gives; kinds whose factor is part of the length already change nothing."""
    if not isinstance(scaling, Mapping):
        return length
    kind = scaling.get("rope_type") or scaling.get("type")
    factor = scaling.get("factor")
    if kind not in SCALED_BY_FACTOR or not isinstance(factor, (int, float)):
        return length
    if kind == "yarn" and isinstance(scaling.get("original_max_position_embeddings"), int):
        length = scaling["original_max_position_embeddings"]
    return int(length * factor)


def _chat_template(folder: Path, tokenizer_config: Mapping[str, Any]) -> str:
    path = folder / "chat_template.jinja"
    if path.exists():
        return path.read_text(encoding="utf-8")
    template = read_json(folder / "chat_template.json").get("chat_template") or tokenizer_config.get("chat_template")
    if isinstance(template, list):
        by_name = {each.get("name"): each.get("template") for each in template if isinstance(each, Mapping)}
        template = by_name.get("default")
    return template if isinstance(template, str) else ""
