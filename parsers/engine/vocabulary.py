"""What the core needs to know of a tokenizer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol


class Vocabulary(Protocol):
    """A tokenizer's vocabulary, read once when a model is configured."""

    @property
    def special_tokens(self) -> Mapping[int, str]:
        """ID -> text of the *declared* special tokens (bos, eos, ..., additional).

        Transformers' `all_special_tokens`.
        """

    @property
    def model_type(self) -> str:
        """`model_type` of config.json, "" where there is none."""

    @property
    def chat_template(self) -> str:
        """The tokenizer's chat template, "" where there is none."""

    def token_id(self, text: str) -> int | None:
        """The ID of the single vocabulary entry spelled `text` (added token or piece); None where there is none."""

    def encode(self, text: str) -> Sequence[int]:
        """Token IDs of `text`, without special tokens added around it."""

    def extra(self, key: str) -> object:
        """An entry of tokenizer_config.json (such as a response template), None where absent."""

    def pieces(self) -> Iterable[str]:
        """All vocabulary entries, added tokens included, in the order of their IDs."""

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of `token_ids` together, special tokens kept."""
