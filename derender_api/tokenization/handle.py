"""What the service knows of one tokenizer: pieces, text, special and end-of-sequence IDs, model facts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

from parsers.engine.detokenizer import Codec

MARKER = "▁"
MAX_ID = 2**32 - 1
TEXT_CACHE = 65_536


class TokenIdOutOfRange(ValueError):
    """A token ID that no vocabulary can hold (outside the unsigned 32-bit range). The client's fault (protocol 8.7)."""


Offsets = list[tuple[int, int]]
"""First character and character behind the last of each token."""


class ChatEncoder(Protocol):
    """Encodes whole conversations, for tokenizers that need no chat template."""

    version: int
    """Version of its format."""

    def encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None,
        continue_final_message: bool,
    ) -> list[int]:
        """Token IDs of a conversation in OpenAI's form; raises ValueError for one that the format does not have."""
        ...


class Backend(Protocol):
    """The library behind a tokenizer."""

    def piece(self, token_id: int) -> str: ...

    def token_id(self, piece: str) -> int | None: ...

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]: ...

    def encode_with_offsets(self, text: str, *, add_special_tokens: bool) -> tuple[list[int], Offsets | None]: ...

    def size(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What the files beside the tokenizer say about the model."""

    model_type: str = ""
    architecture: str = ""
    max_model_len: int | None = None
    eos_ids: frozenset[int] = frozenset()
    chat_template: str = ""
    tokenizer_config: Mapping[str, Any] = field(default_factory=dict)
    generation_config: Mapping[str, Any] = field(default_factory=dict)


class TokenizerHandle:
    """One tokenizer, shared by every model that names its folder. Immutable but for caches, thread-safe.

    `codec` is what the detokenizer works with; `codec_unspaced` differs for slow tokenizers only, which otherwise put
    spaces around added tokens. `eos_id` is the tokenizer's own end-of-sequence ID, `model_eos_ids` all of the model's
    (protocol 8.1). `decode_codec` decodes whole lists of IDs, where that differs from the detokenizer's way.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        codec: Codec,
        facts: ModelFacts,
        eos_id: int | None,
        special_tokens: Mapping[int, str],
        codec_unspaced: Codec | None = None,
        decode_codec: Codec | None = None,
        texts_are_pieces: bool = False,
        restores_spaces: bool = False,
        clean_up: Callable[[str], str] | None = None,
        chat_encoder: ChatEncoder | None = None,
    ) -> None:
        self.codec = codec
        self.chat_encoder = chat_encoder
        self.codec_unspaced = codec_unspaced or codec
        self.eos_id = eos_id
        self.model_eos_ids = facts.eos_ids if eos_id is None else facts.eos_ids | {eos_id}
        self.facts = facts
        self.model_type = facts.model_type
        self.max_model_len = facts.max_model_len
        self.chat_template = facts.chat_template
        self.tokenizer_config = facts.tokenizer_config
        self.special_tokens = special_tokens
        self.vocabulary = HandleVocabulary(self)
        self._backend = backend
        self._decode_codec = decode_codec or codec
        self._texts_are_pieces = texts_are_pieces
        self._restores_spaces = restores_spaces
        self._clean_up = clean_up
        self.token_text = lru_cache(maxsize=TEXT_CACHE)(self._token_text)

    def of_model(self, facts: ModelFacts) -> "TokenizerHandle":
        """This tokenizer in the service of another model, whose type, context length, end IDs and template count."""
        handle = copy(self)
        handle.facts = facts
        handle.model_type = facts.model_type
        handle.max_model_len = facts.max_model_len
        handle.model_eos_ids = facts.eos_ids if self.eos_id is None else facts.eos_ids | {self.eos_id}
        handle.chat_template = facts.chat_template
        handle.vocabulary = HandleVocabulary(handle)
        return handle

    def piece(self, token_id: int) -> str:
        """The vocabulary piece of an ID, "" where there is none."""
        return self._backend.piece(token_id)

    def token_id(self, piece: str) -> int | None:
        """The ID of a vocabulary piece or added token."""
        return self._backend.token_id(piece)

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        """Token IDs of `text`."""
        return self._backend.encode(text, add_special_tokens=add_special_tokens)

    def encode_with_offsets(self, text: str, *, add_special_tokens: bool = False) -> tuple[list[int], Offsets | None]:
        """Token IDs of `text`, and the characters that each covers; None where the tokenizer cannot tell."""
        return self._backend.encode_with_offsets(text, add_special_tokens=add_special_tokens)

    @property
    def size(self) -> int:
        """Number of IDs, added tokens included."""
        return self._backend.size()

    def pieces(self) -> Iterator[str]:
        """All vocabulary entries in the order of their IDs."""
        return (piece for token_id in range(self._backend.size()) if (piece := self._backend.piece(token_id)))

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of all `token_ids` together, special tokens kept, unknown IDs left out.

        Raises TokenIdOutOfRange.
        """
        pieces = []
        for token_id in token_ids:
            if not 0 <= token_id <= MAX_ID:
                size = "small" if token_id < 0 else "large"
                raise TokenIdOutOfRange(f"number too {size} to fit in target type")
            if piece := self._backend.piece(token_id):
                pieces.append(piece)
        text = self._decode_codec.text(pieces)
        return self._clean_up(text) if self._clean_up else text

    def _token_text(self, token_id: int) -> str | None:
        """The text of one token alone, None where there is no such token (protocol 8.7). Raises TokenIdOutOfRange."""
        text = self.decode([token_id])
        piece = self._backend.piece(token_id)
        if not piece:
            return None
        if self._texts_are_pieces:
            return piece
        if self._restores_spaces:
            leading = len(piece) - len(piece.lstrip(MARKER))
            return " " * leading + text.lstrip(" ") if leading else text
        return text


class HandleVocabulary:
    """The parser core's view of a tokenizer (`parsers.engine.vocabulary.Vocabulary`)."""

    def __init__(self, handle: TokenizerHandle) -> None:
        self._handle = handle

    @property
    def special_tokens(self) -> Mapping[int, str]:
        return self._handle.special_tokens

    @property
    def model_type(self) -> str:
        return self._handle.model_type

    @property
    def chat_template(self) -> str:
        return self._handle.chat_template

    def token_id(self, text: str) -> int | None:
        return self._handle.token_id(text)

    def encode(self, text: str) -> Sequence[int]:
        return self._handle.encode(text)

    def extra(self, key: str) -> object:
        return self._handle.tokenizer_config.get(key)

    def pieces(self) -> Iterator[str]:
        return self._handle.pieces()

    def decode(self, token_ids: Sequence[int]) -> str:
        return self._handle.decode(token_ids)
