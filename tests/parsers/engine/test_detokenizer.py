"""The incremental window gives, token by token, what decoding the whole window twice gives (protocol 8.4)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derender_api.tokenization.codecs import AnyCodec, ByteCodec, SentencePieceCodec
from parsers.engine.detokenizer import REPLACEMENT, Detokenizer, Window, seeded_window

BYTE_PIECES = ["Hello", "Ġworld", "é", "Ģ", "ðŁ", "ĺ", "Ģ", "ðŁĺĢ", "ï¿½", "Ġ", "<end>", "æĹ", "¥", "æ", "Ãł"]
MARKER_PIECES = ["▁Hello", "world", "▁", "▁▁", "<0xE6>", "<0x97>", "<0xA5>", "<0x80>", "<0x41>", "\ufffd", "</s>", ","]


class Table:
    """A vocabulary: the position of a piece is its ID."""

    def __init__(self, pieces):
        self.pieces = pieces

    def piece(self, token_id):
        return self.pieces[token_id] if 0 <= token_id < len(self.pieces) else ""


def gemma_join(pieces):
    """SentencePiece's decoding as Gemma's tokenizer.json spells it: byte runs all or nothing."""
    text, run = "", bytearray()
    for piece in [*pieces, None]:
        if piece is not None and len(piece) == 6 and piece.startswith("<0x"):
            run.append(int(piece[3:5], 16))
            continue
        try:
            text += run.decode()
        except UnicodeDecodeError:
            text += REPLACEMENT * len(run)
        run.clear()
        text += (piece or "").replace("▁", " ")
    return text


def llama_join(pieces):
    """As Llama's tokenizer.json spells it: one leading space is stripped."""
    return gemma_join(pieces).removeprefix(" ")


def byte_codec():
    return ByteCodec(Table(BYTE_PIECES), special_ids=[10])


def llama_codec():
    return SentencePieceCodec(Table(MARKER_PIECES), special_ids=[10], join=llama_join)


CODECS = {
    "byte-level": byte_codec(),
    "llama": llama_codec(),
    "gemma": SentencePieceCodec(Table(MARKER_PIECES), special_ids=[10], join=gemma_join),
    "unknown": AnyCodec(Table(MARKER_PIECES), special_ids=[10], join=llama_join),
}


def decoded_plainly(codec, token_ids, *, skip_special, window):
    """Protocol 8.4 word by word."""
    pieces, prefix, read, texts = list(window.pieces), window.prefix, window.read, []
    for token_id in token_ids:
        is_skipped = skip_special and token_id in codec.special_ids
        every = pieces if is_skipped else [*pieces, codec.piece(token_id)]
        before, after = codec.text(every[prefix:read]), codec.text(every[prefix:])
        if len(after) <= len(before) or after.endswith(REPLACEMENT):
            texts.append("")
        else:
            texts.append(after[len(before) :])
            prefix, read = read, len(every)
        pieces, read, prefix = every[prefix:], read - prefix, 0
    return texts, Window(pieces=tuple(pieces), prefix=prefix, read=read)


@pytest.mark.parametrize("name", CODECS)
@settings(max_examples=400, deadline=None)
@given(
    token_ids=st.lists(st.integers(-1, 16), max_size=14),
    prompt=st.lists(st.integers(-1, 16), max_size=9),
    skip_special=st.booleans(),
    cut=st.integers(0, 14),
)
def test_every_token_releases_what_the_window_says(name, token_ids, prompt, skip_special, cut):
    codec = CODECS[name]
    window = seeded_window(codec, prompt, skip_special=skip_special)
    expected = decoded_plainly(codec, token_ids, skip_special=skip_special, window=window)

    first = Detokenizer(codec, skip_special=skip_special, window=window)
    texts = first.decode(token_ids[:cut])
    second = Detokenizer(codec, skip_special=skip_special, window=first.window)
    texts += second.decode(token_ids[cut:])

    assert (texts, second.window) == expected


@pytest.mark.parametrize("name", CODECS)
@settings(max_examples=200, deadline=None)
@given(
    token_ids=st.lists(st.integers(-1, 16), min_size=1, max_size=8),
    pieces=st.lists(st.sampled_from([*MARKER_PIECES, *BYTE_PIECES, "no piece"]), max_size=4),
    offsets=st.tuples(st.integers(0, 6), st.integers(0, 6)),
)
def test_windows_of_any_client_are_decoded_as_they_are(name, token_ids, pieces, offsets):
    codec = CODECS[name]
    window = Window(pieces=tuple(pieces), prefix=min(offsets), read=max(offsets))
    detokenizer = Detokenizer(codec, skip_special=False, window=window)

    texts = detokenizer.decode(token_ids)

    assert (texts, detokenizer.window) == decoded_plainly(codec, token_ids, skip_special=False, window=window)


def test_a_character_of_several_tokens_comes_with_its_last_one():
    assert Detokenizer(byte_codec(), skip_special=False).decode([0, 4, 5, 6, 1]) == ["Hello", "", "", "😀", " world"]


def test_an_incomplete_character_at_the_end_is_held_back():
    detokenizer = Detokenizer(byte_codec(), skip_special=False)

    assert detokenizer.decode([0, 4]) == ["Hello", ""]
    assert detokenizer.window == Window(pieces=("Hello", "ðŁ"), prefix=0, read=1)


def test_an_invalid_byte_is_shown_once_text_follows():
    assert Detokenizer(byte_codec(), skip_special=False).decode([3, 0]) == ["", "\ufffdHello"]


def test_only_the_first_word_of_an_unseeded_output_loses_its_space():
    assert Detokenizer(llama_codec(), skip_special=False).decode([0, 0]) == ["Hello", " Hello"]


def test_a_seeded_output_keeps_its_first_space():
    codec = llama_codec()
    window = seeded_window(codec, [1], skip_special=False)

    assert Detokenizer(codec, skip_special=False, window=window).decode([0]) == [" Hello"]


def test_seeding_takes_the_last_seven_tokens_and_drops_skipped_ones():
    codec = byte_codec()

    assert seeded_window(codec, [0, 1, 0, 0, 10, 0, 0, 0, 99], skip_special=True) == Window(
        pieces=("Hello", "Hello", "Hello", "Hello", "Hello", ""), prefix=1, read=6
    )
    assert seeded_window(codec, [10], skip_special=True) == Window()


@pytest.mark.parametrize("token_ids", [[3], [4], [3, 4], [9, 3, 0]], ids=str)
@pytest.mark.parametrize("name", ["byte-level", "llama"])
def test_work_is_linear_in_hostile_outputs(name, token_ids):
    """A hundred thousand tokens that never complete a character: quadratic work would take minutes."""
    assert len(Detokenizer(CODECS[name], skip_special=False).decode(token_ids * 30_000)) == 30_000 * len(token_ids)
