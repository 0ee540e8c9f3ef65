"""Choosing the library that reads a tokenizer, and what is said where none can."""

import sys

import pytest

from derender_api.tokenization import TokenizerError, load_tokenizer
from derender_api.tokenization.codecs import AnyCodec, ByteCodec, SentencePieceCodec
from derender_api.tokenization.hugging_face import _slow_handle
from tests.derender_api.support import TOKENIZERS


@pytest.mark.parametrize(
    ("name", "mode", "codec"),
    [
        ("chatml", "auto", ByteCodec),
        ("chatml", "hf", ByteCodec),
        ("mistral_tekken_v13", "auto", ByteCodec),
        ("mistral_tekken_v13", "mistral", ByteCodec),
        ("mistral_spm_v3", "auto", SentencePieceCodec),
        ("proto_metaspace", "auto", SentencePieceCodec),
    ],
)
def test_the_mode_chooses_the_library(name, mode, codec):
    assert type(load_tokenizer(str(TOKENIZERS / name), mode=mode).codec) is codec


def test_a_plain_tokenizer_needs_no_transformers(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)

    assert load_tokenizer(str(TOKENIZERS / "chatml")).eos_id == 4002


@pytest.mark.parametrize(
    ("path", "mode", "said"),
    [
        ("/no/such/folder", "auto", "there is no such folder"),
        ("no/such-model", "auto", "the hub does not give it"),
        (str(TOKENIZERS / "chatml"), "mistral", "use --tokenizer-mode hf"),
        (str(TOKENIZERS), "auto", "holds no tokenizer"),
    ],
)
def test_a_tokenizer_that_cannot_be_loaded_names_the_cure(path, mode, said):
    with pytest.raises(TokenizerError, match=said):
        load_tokenizer(path, mode=mode)


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mistral_common.tokens.tokenizers.mistral", None)

    with pytest.raises(TokenizerError, match=r"pip install 'derender\[mistral\]'"):
        load_tokenizer(str(TOKENIZERS / "mistral_spm_v3"))


def test_slow_tokenizers_put_spaces_around_added_tokens(tmp_path):
    handle = _slow_handle(SlowTokenizer(), tmp_path, {2: "<s>"})

    assert type(handle.codec) is AnyCodec
    assert handle.codec.text(["a", "b", "<s>", "c"]) == "ab <s> c"
    assert handle.codec_unspaced.text(["a", "b", "<s>", "c"]) == "ab<s>c"
    assert (handle.piece(0), handle.piece(7), handle.token_id("b"), handle.encode("ab")) == ("a", "", 1, [0, 1])


class SlowTokenizer:
    """A Python tokenizer of four characters, with the methods that transformers gives one."""

    eos_token_id = 2
    pieces = ("a", "b", "<s>", "c")

    def __len__(self):
        return len(self.pieces)

    def convert_ids_to_tokens(self, token_id):
        return self.pieces[token_id]

    def convert_tokens_to_string(self, pieces):
        return "".join(pieces)

    def get_vocab(self):
        return {piece: token_id for token_id, piece in enumerate(self.pieces)}

    def get_added_vocab(self):
        return {"<s>": 2}

    def encode(self, text, *, add_special_tokens):
        return [self.pieces.index(character) for character in text]
