"""Mistral's own tokenizers: characters over several tokens, control tokens, log probabilities."""

import pytest

from derender_api.tokenization import load_tokenizer
from parsers.engine.detokenizer import Detokenizer
from tests.derender_api.support import TOKENIZERS


@pytest.fixture(scope="module")
def tekken():
    return load_tokenizer(str(TOKENIZERS / "mistral_tekken_v13"), mode="mistral")


@pytest.fixture(scope="module")
def sentence_piece():
    return load_tokenizer(str(TOKENIZERS / "mistral_spm_v3"), mode="mistral")


def test_a_character_over_several_tekken_tokens_is_whole(tekken):
    ids = tekken.encode("a😀b")

    assert len(ids) == 6
    assert Detokenizer(tekken.codec, skip_special=False).decode(ids) == ["a", "", "", "", "😀", "b"]


def test_pieces_that_are_no_text_are_spelled_as_bytes(tekken):
    ids = tekken.encode("😀")
    detokenizer = Detokenizer(tekken.codec, skip_special=False)
    detokenizer.decode(ids[:2])

    assert detokenizer.window.pieces == ("<0xF0>", "<0x9F>")
    again = Detokenizer(tekken.codec, skip_special=False, window=detokenizer.window)
    assert again.decode(ids[2:]) == ["", "😀"]


def test_only_markers_among_the_control_tokens_are_shown(tekken):
    call, image = tekken.token_id("[TOOL_CALLS]"), tekken.token_id("[IMG_BREAK]")

    assert Detokenizer(tekken.codec, skip_special=False).decode([call, image]) == ["[TOOL_CALLS]", ""]
    assert Detokenizer(tekken.codec, skip_special=True).decode([call, image]) == ["", ""]
    assert tekken.decode([call, image]) == "[TOOL_CALLS][IMG_BREAK]"
    assert tekken.token_text(image) == "[IMG_BREAK]"


def test_all_control_tokens_are_special(tekken, sentence_piece):
    assert tekken.codec.special_ids == frozenset(range(100))
    assert {0, 1, 2} <= sentence_piece.codec.special_ids
    assert (tekken.eos_id, sentence_piece.eos_id) == (2, 2)


def test_tekken_ids_of_pieces(tekken):
    assert (tekken.token_id("[INST]"), tekken.token_id("х"), tekken.token_id("no such token here")) == (3, 1001, None)
    assert (tekken.piece(1001), tekken.piece(-1), tekken.piece(12_100)) == ("х", "", "")


def test_a_sentence_piece_output_behind_a_control_token_starts_without_a_space(sentence_piece):
    shown, hidden = sentence_piece.token_id("[TOOL_CALLS]"), sentence_piece.token_id("[INST]")
    ids = sentence_piece.encode("after that")

    def decoded(token_ids):
        return "".join(Detokenizer(sentence_piece.codec, skip_special=False).decode(token_ids))

    assert decoded([hidden, *ids]) == "after that"
    assert decoded([*ids, shown, *ids]) == "after that[TOOL_CALLS]after that"


def test_sentence_piece_bytes_become_characters(sentence_piece):
    ids = sentence_piece.encode("a🫠b")

    texts = Detokenizer(sentence_piece.codec, skip_special=False).decode(ids)

    assert "".join(texts) == "a🫠b"
    assert texts.count("") >= 3


def test_sentence_piece_log_probabilities_are_pieces(sentence_piece):
    ids = sentence_piece.encode("after that")

    assert [sentence_piece.token_text(each) for each in ids] == ["▁after", "▁that"]
    assert sentence_piece.decode(ids) == "after that"
    assert sentence_piece.token_id("▁after") == ids[0]
    assert sentence_piece.token_id("no such piece") is None
