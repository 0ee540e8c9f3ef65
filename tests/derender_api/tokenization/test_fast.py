"""Tokenizers read without transformers are what transformers would make of them."""

import json
import random

import pytest
from tokenizers import Tokenizer, decoders, models

from derender_api.tokenization import load_tokenizer
from derender_api.tokenization.codecs import AnyCodec, ByteCodec, SentencePieceCodec
from derender_api.tokenization.fast import fast_handle, is_readable_alone
from derender_api.tokenization.handle import ModelFacts, TokenIdOutOfRange
from derender_api.tokenization.hugging_face import load_with_transformers
from tests.derender_api.support import TOKENIZERS

FOLDERS = sorted(path.name for path in TOKENIZERS.iterdir() if (path / "tokenizer.json").exists())


@pytest.mark.parametrize("name", FOLDERS)
def test_a_handle_is_what_transformers_makes_of_the_folder(name):
    assert is_readable_alone(TOKENIZERS / name)
    alone, other = load_tokenizer(str(TOKENIZERS / name)), load_with_transformers(TOKENIZERS / name, use_fast=True)

    assert alone.codec.special_ids == other.codec.special_ids
    assert dict(alone.special_tokens) == dict(other.special_tokens)
    assert (alone.eos_id, alone.model_eos_ids) == (other.eos_id, other.model_eos_ids)
    assert alone.encode("Hé, 日本 <|im_end|>\n") == other.encode("Hé, 日本 <|im_end|>\n")
    chooser = random.Random(name)
    for _ in range(50):
        ids = [chooser.randrange(4020) for _ in range(6)]
        assert alone.decode(ids) == other.decode(ids)
        assert [alone.token_text(each) for each in ids] == [other.token_text(each) for each in ids]


def test_tokens_that_only_the_configuration_knows_are_added(tmp_path):
    source = TOKENIZERS / "chatml"
    (tmp_path / "tokenizer.json").write_bytes((source / "tokenizer.json").read_bytes())
    config = json.loads((source / "tokenizer_config.json").read_text())
    added = {"content": "<new>", "special": True, "lstrip": False, "rstrip": False}
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({**config, "pad_token": "<pad-new>", "added_tokens_decoder": {"9000": {**added}}})
    )

    handle = load_tokenizer(str(tmp_path))

    assert handle.codec.special_ids == {handle.eos_id, handle.token_id("<pad-new>")}
    assert handle.decode([handle.token_id("<new>")]) == "<new>"


def test_a_map_of_special_tokens_counts_too(tmp_path):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((TOKENIZERS / "chatml" / name).read_bytes())
    (tmp_path / "special_tokens_map.json").write_text(
        json.dumps({"additional_special_tokens": ["<think>"], "unk_token": {"content": "</think>"}})
    )

    handle = load_tokenizer(str(tmp_path))

    assert sorted(handle.special_tokens.values()) == ["</think>", "<think>", "<|im_end|>"]


@pytest.mark.parametrize(
    ("decoder", "codec"),
    [
        (decoders.ByteLevel(), ByteCodec),
        (decoders.Metaspace(), SentencePieceCodec),
        (decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]), SentencePieceCodec),
        (decoders.WordPiece(), AnyCodec),
        (None, AnyCodec),
    ],
)
def test_the_decoder_chooses_the_codec(decoder, codec):
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "##b": 1}, unk_token="a"))
    if decoder is not None:
        tokenizer.decoder = decoder

    handle = fast_handle(tokenizer, facts=ModelFacts(), special_tokens={}, eos_id=None)

    assert type(handle.codec) is codec
    assert handle.decode([0, 1]) == {AnyCodec: "ab" if decoder else "a ##b"}.get(codec, "a##b")


@pytest.mark.parametrize(("token_id", "problem"), [(-1, "too small"), (2**32, "too large")])
def test_ids_that_no_vocabulary_holds_are_refused(token_id, problem):
    handle = load_tokenizer(str(TOKENIZERS / "chatml"))

    with pytest.raises(TokenIdOutOfRange, match=f"number {problem} to fit in target type"):
        handle.decode([token_id])
    assert handle.piece(token_id) == ""


def test_leading_spaces_are_restored_only_with_a_metaspace_pre_tokenizer():
    texts = {}
    for name in ("proto_metaspace", "proto_metaspace_pre"):
        handle = load_tokenizer(str(TOKENIZERS / name))
        texts[name] = handle.token_text(handle.token_id("▁then"))

    assert texts == {"proto_metaspace": "then", "proto_metaspace_pre": " then"}


def test_the_core_reads_the_vocabulary():
    handle = load_tokenizer(str(TOKENIZERS / "chatml"))

    vocabulary = handle.vocabulary

    assert vocabulary.special_tokens == {4002: "<|im_end|>"}
    assert (vocabulary.token_id("<think>"), vocabulary.token_id("no such token")) == (4003, None)
    assert vocabulary.model_type == "qwen3"
    assert vocabulary.chat_template.startswith("{% for m in messages %}")
    assert list(vocabulary.encode("Hello world")) == [2541, 3048]
    assert (vocabulary.extra("model_max_length"), vocabulary.extra("nothing")) == (131072, None)
