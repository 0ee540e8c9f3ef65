"""Tokenizers that only transformers can read: classes of their own, slow tokenizers, remote vocabularies."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from derender_api.tokenization.codecs import AnyCodec
from derender_api.tokenization.fast import fast_handle
from derender_api.tokenization.files import read_facts
from derender_api.tokenization.handle import Offsets, TokenizerHandle


def load_with_transformers(folder: Path, *, use_fast: bool) -> TokenizerHandle:
    """Read the tokenizer in `folder` with transformers' AutoTokenizer."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(folder), use_fast=use_fast)
    special_tokens = dict(zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True))
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        return fast_handle(
            backend, facts=read_facts(folder), special_tokens=special_tokens, eos_id=tokenizer.eos_token_id
        )
    return _slow_handle(tokenizer, folder, special_tokens)


class SlowBackend:
    """A Python tokenizer of transformers as a backend."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._size = len(tokenizer)

    def piece(self, token_id: int) -> str:
        if not 0 <= token_id < self._size:
            return ""
        return self._tokenizer.convert_ids_to_tokens(token_id) or ""

    def token_id(self, piece: str) -> int | None:
        return self._tokenizer.get_vocab().get(piece)

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=add_special_tokens)

    def encode_with_offsets(self, text: str, *, add_special_tokens: bool) -> tuple[list[int], Offsets | None]:
        return self.encode(text, add_special_tokens=add_special_tokens), None

    def size(self) -> int:
        return self._size


def _slow_handle(tokenizer: Any, folder: Path, special_tokens: Mapping[int, str]) -> TokenizerHandle:
    backend = SlowBackend(tokenizer)
    added = frozenset(tokenizer.get_added_vocab())

    def codec(separator: str) -> AnyCodec:
        join = _segment_join(tokenizer.convert_tokens_to_string, added, separator)
        return AnyCodec(backend, special_ids=special_tokens, join=join)

    return TokenizerHandle(
        backend,
        codec=codec(" "),
        codec_unspaced=codec(""),
        facts=read_facts(folder),
        eos_id=tokenizer.eos_token_id,
        special_tokens=special_tokens,
    )


def _segment_join(
    to_text: Callable[[list[str]], str], added: frozenset[str], separator: str
) -> Callable[[list[str]], str]:
    """Joins pieces segment by segment: added tokens literally, what is between them by the tokenizer (protocol 8.4)."""

    def join(pieces: list[str]) -> str:
        return separator.join(text for text in _segments(pieces, to_text, added))

    return join


def _segments(pieces: Sequence[str], to_text: Callable[[list[str]], str], added: frozenset[str]) -> Iterator[str]:
    run: list[str] = []
    for piece in pieces:
        if piece not in added:
            run.append(piece)
            continue
        if run:
            yield to_text(run)
            run = []
        yield piece
    if run:
        yield to_text(run)
