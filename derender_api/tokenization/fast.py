"""Tokenizers with a tokenizer.json, through the `tokenizers` library."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer

from derender_api.tokenization.codecs import AnyCodec, ByteCodec, SentencePieceCodec
from derender_api.tokenization.files import LISTED_TOKENS, NAMED_TOKENS, named_special_tokens, read_facts, read_json
from derender_api.tokenization.handle import MAX_ID, ModelFacts, Offsets, TokenizerHandle
from parsers.engine.detokenizer import Codec

GENERIC_CLASSES = frozenset({"PreTrainedTokenizerFast", "TokenizersBackend"})
# Named special tokens that a class registers by itself. The classes here decode exactly as their tokenizer.json says.
CLASS_DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "Qwen2Tokenizer": dict.fromkeys(("unk_token", "eos_token", "pad_token"), "<|endoftext|>"),
}
SENTENCE_PIECE_STEPS = frozenset({"Replace", "ByteFallback", "Fuse", "Strip", "Metaspace"})


class FastBackend:
    """A `tokenizers.Tokenizer` as a backend."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def piece(self, token_id: int) -> str:
        return (self._tokenizer.id_to_token(token_id) or "") if 0 <= token_id <= MAX_ID else ""

    def token_id(self, piece: str) -> int | None:
        return self._tokenizer.token_to_id(piece)

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=add_special_tokens).ids

    def encode_with_offsets(self, text: str, *, add_special_tokens: bool) -> tuple[list[int], Offsets | None]:
        encoding = self._tokenizer.encode(text, add_special_tokens=add_special_tokens)
        return encoding.ids, encoding.offsets

    def size(self) -> int:
        return self._tokenizer.get_vocab_size(with_added_tokens=True)


def is_readable_alone(folder: Path) -> bool:
    """Whether tokenizer.json and the configuration say all that transformers would make of the tokenizer."""
    return (folder / "tokenizer.json").exists() and (
        _class_name(folder) in GENERIC_CLASSES or _class_name(folder) in CLASS_DEFAULTS
    )


def load_fast(folder: Path) -> TokenizerHandle:
    """Read the tokenizer in `folder` without transformers."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    named = {**CLASS_DEFAULTS.get(_class_name(folder), {}), **named_special_tokens(folder)}
    _register(tokenizer, folder, named)
    texts = [named[name] for name in NAMED_TOKENS if name in named]
    texts += [text for name in LISTED_TOKENS for text in named.get(name, ())]
    special = {tokenizer.token_to_id(str(text)): str(text) for text in texts}
    eos = named.get("eos_token")
    return fast_handle(
        tokenizer,
        facts=read_facts(folder),
        special_tokens={token_id: text for token_id, text in special.items() if token_id is not None},
        eos_id=tokenizer.token_to_id(str(eos)) if eos else None,
    )


def fast_handle(
    tokenizer: Tokenizer,
    *,
    facts: ModelFacts,
    special_tokens: Mapping[int, str],
    eos_id: int | None,
    clean_up: Callable[[str], str] | None = None,
) -> TokenizerHandle:
    """A handle on a tokenizer of the `tokenizers` library."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    backend = FastBackend(tokenizer)
    return TokenizerHandle(
        backend,
        codec=_codec(tokenizer, backend, special_tokens),
        facts=facts,
        eos_id=eos_id,
        special_tokens=special_tokens,
        restores_spaces="Metaspace" in _kinds(_component(tokenizer.pre_tokenizer), "pretokenizers"),
        clean_up=clean_up,
    )


def _class_name(folder: Path) -> str:
    name = read_json(folder / "tokenizer_config.json").get("tokenizer_class") or ""
    return name if name in GENERIC_CLASSES else str(name).removesuffix("Fast")


def _register(tokenizer: Tokenizer, folder: Path, named: Mapping[str, str | list[str]]) -> None:
    """Add the tokens that only tokenizer_config.json knows, at the IDs it gives and then at the end."""
    declared = read_json(folder / "tokenizer_config.json").get("added_tokens_decoder") or {}
    for _, entry in sorted(declared.items(), key=lambda item: int(item[0])):
        if isinstance(entry, Mapping) and tokenizer.token_to_id(entry["content"]) is None:
            tokenizer.add_tokens([AddedToken(**entry)])
    texts: Iterable[str] = (text for value in named.values() for text in ([value] if isinstance(value, str) else value))
    missing = [text for text in texts if tokenizer.token_to_id(text) is None]
    if missing:
        tokenizer.add_special_tokens(list(dict.fromkeys(missing)))


def _component(part: Any) -> Mapping[str, Any]:
    return json.loads(part.__getstate__()) if part is not None else {}


def _kinds(component: Mapping[str, Any], key: str) -> list[str]:
    """Types of the steps of a pre-tokenizer or decoder, nested sequences unfolded."""
    if component.get("type") != "Sequence":
        return [component["type"]] if component else []
    return [kind for step in component[key] for kind in _kinds(step, key)]


def _codec(tokenizer: Tokenizer, backend: FastBackend, special_ids: Iterable[int]) -> Codec:
    kinds = _kinds(_component(tokenizer.decoder), "decoders")
    if kinds == ["ByteLevel"]:
        return ByteCodec(backend, special_ids=special_ids)
    join: Callable[[list[str]], str] = tokenizer.decoder.decode if tokenizer.decoder else " ".join
    if kinds and SENTENCE_PIECE_STEPS.issuperset(kinds):
        return SentencePieceCodec(backend, special_ids=special_ids, join=join)
    return AnyCodec(backend, special_ids=special_ids, join=join)
