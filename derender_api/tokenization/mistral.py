"""Mistral's own tokenizers, tekken.json and tokenizer.model.v*, through mistral-common (extra `mistral`)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from derender_api.tokenization.codecs import ByteCodec, SentencePieceCodec
from derender_api.tokenization.files import read_facts
from derender_api.tokenization.handle import Offsets, TokenizerHandle
from parsers.engine.detokenizer import Codec

# Control tokens whose text is part of the output; all others have none, also when special tokens are kept.
VISIBLE = frozenset({"[TOOL_CALLS]", "[ARGS]", "[THINK]", "[/THINK]"})
HEX_PIECE = re.compile(r"(?:<0x[0-9A-F]{2}>)+")


def mistral_file(folder: Path) -> Path | None:
    """The tokenizer file that mistral-common reads, None where `folder` has none."""
    candidates = [folder / "tekken.json", *sorted(folder.glob("tokenizer.model.v*"), reverse=True)]
    return next((path for path in candidates if path.exists()), None)


def load_mistral(path: Path) -> TokenizerHandle:
    """Read a tokenizer of mistral-common."""
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    whole = MistralTokenizer.from_file(str(path))
    tokenizer = whole.instruct_tokenizer.tokenizer
    backend = TekkenBackend(tokenizer) if path.name == "tekken.json" else SentencePieceBackend(tokenizer)
    special_tokens = backend.special_tokens()
    return TokenizerHandle(
        backend,
        codec=backend.codec(special_tokens, hides_control=True),
        decode_codec=backend.codec(special_tokens, hides_control=False),
        # As vLLM: a log probability's token is the SentencePiece piece itself.
        texts_are_pieces=isinstance(backend, SentencePieceBackend),
        facts=replace(read_facts(path.parent), tokenizer_config={"mistral_version": tokenizer.version.value}),
        eos_id=tokenizer.eos_id,
        special_tokens=special_tokens,
        chat_encoder=MistralConversations(whole, version=int(tokenizer.version.value.lstrip("v").partition("m")[0])),
    )


class MistralConversations:
    """mistral-common's own encoding of conversations."""

    def __init__(self, tokenizer: Any, *, version: int) -> None:
        self._tokenizer = tokenizer
        self.version = version

    def encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None,
        continue_final_message: bool,
    ) -> list[int]:
        """Token IDs of a conversation. Raises ValueError, with mistral-common's words."""
        from mistral_common.exceptions import MistralCommonException
        from mistral_common.protocol.instruct.request import ChatCompletionRequest

        from_openai: Any = ChatCompletionRequest.from_openai
        try:
            request = from_openai(messages=messages, tools=tools, continue_final_message=continue_final_message)
            return self._tokenizer.encode_chat_completion(request).tokens
        except (MistralCommonException, AssertionError, LookupError, TypeError) as error:
            raise ValueError(str(error) or type(error).__name__) from error


class TekkenBackend:
    """A Tekkenizer. Pieces are the tokens' texts; one that is not whole UTF-8 is spelled `<0xE6><0x97>`."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._specials = tokenizer.num_special_tokens

    def piece(self, token_id: int) -> str:
        if not 0 <= token_id < self._tokenizer.n_words:
            return ""
        if token_id < self._specials:
            return str(self._tokenizer.id_to_piece(token_id))
        content = self._tokenizer.id_to_byte_piece(token_id)
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError:
            return "".join(f"<0x{byte:02X}>" for byte in content)

    def token_id(self, piece: str) -> int | None:
        if (special := self._special_ids().get(piece)) is not None:
            return special
        found = self.encode(piece, add_special_tokens=False)
        return found[0] if len(found) == 1 else None

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        return self._tokenizer.encode(text, bos=add_special_tokens, eos=False)

    def encode_with_offsets(self, text: str, *, add_special_tokens: bool) -> tuple[list[int], Offsets | None]:
        return self.encode(text, add_special_tokens=add_special_tokens), None

    def size(self) -> int:
        return self._tokenizer.n_words

    def special_tokens(self) -> dict[int, str]:
        return {token_id: self.piece(token_id) for token_id in range(self._specials)}

    def _special_ids(self) -> dict[str, int]:
        return {text: token_id for token_id, text in self.special_tokens().items()}

    def codec(self, special_tokens: dict[int, str], *, hides_control: bool) -> Codec:
        hidden = frozenset(special_tokens.values()) - VISIBLE if hides_control else frozenset[str]()

        def bytes_of(piece: str) -> bytes:
            if piece in hidden:
                return b""
            if HEX_PIECE.fullmatch(piece):
                return bytes.fromhex(piece.replace("<0x", "").replace(">", ""))
            return piece.encode("utf-8", "surrogatepass")

        return ByteCodec(self, special_ids=special_tokens, bytes_of=bytes_of)


class SentencePieceBackend:
    """mistral-common's SentencePiece tokenizer."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._model = tokenizer._model

    def piece(self, token_id: int) -> str:
        return self._tokenizer.id_to_piece(token_id) if 0 <= token_id < self._tokenizer.n_words else ""

    def token_id(self, piece: str) -> int | None:
        token_id = self._model.piece_to_id(piece)
        return token_id if self._model.id_to_piece(token_id) == piece else None

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        return self._tokenizer.encode(text, bos=add_special_tokens, eos=False)

    def encode_with_offsets(self, text: str, *, add_special_tokens: bool) -> tuple[list[int], Offsets | None]:
        return self.encode(text, add_special_tokens=add_special_tokens), None

    def size(self) -> int:
        return self._tokenizer.n_words

    def special_tokens(self) -> dict[int, str]:
        model = self._model
        special = (i for i in range(self.size()) if model.is_control(i) or model.is_unknown(i))
        return {token_id: self.piece(token_id) for token_id in special}

    def codec(self, special_tokens: dict[int, str], *, hides_control: bool) -> Codec:
        hidden = frozenset(special_tokens.values()) - VISIBLE if hides_control else frozenset[str]()

        def join(pieces: list[str]) -> str:
            return "".join(_segments(pieces, self._model.decode_pieces))

        return SentencePieceCodec(
            self, special_ids=special_tokens, join=join, reads_runs_piecewise=True, hidden=hidden, openers=VISIBLE
        )


def _segments(pieces: Sequence[str], to_text: Callable[[list[str]], str]) -> Iterator[str]:
    """The text between the visible control tokens, and those literally."""
    run: list[str] = []
    for piece in pieces:
        if piece in VISIBLE:
            yield to_text(run)
            yield piece
            run = []
        else:
            run.append(piece)
    yield to_text(run)
