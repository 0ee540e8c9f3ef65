"""Log probabilities: token IDs to strings, characters that are spread over several tokens put right (protocol 8.7)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from derender_api.exceptions import BadRequest
from derender_api.protocol.generate import (
    GenerateLogProbs,
    PlaceholderLogprob,
    SampledPlaceholderLogprob,
    SampledTokenLogprob,
    TokenLogprob,
)
from derender_api.protocol.openai_request import ChatCompletionRequest, CompletionRequest
from derender_api.tokenization import TokenizerHandle
from parsers.engine.detokenizer import REPLACEMENT

CONTEXT_TOKENS = 4
PLACEHOLDER = "token_id:"

Entry = SampledTokenLogprob | SampledPlaceholderLogprob
Candidate = TokenLogprob | PlaceholderLogprob


class NonFiniteNumber(BadRequest):
    """The client's fault: a NaN or an infinity, for which JSON has no word."""

    def __init__(self) -> None:
        super().__init__("Out of range float values are not JSON compliant")


@dataclass(frozen=True, slots=True)
class TokenText:
    """A token's string and its bytes; `utf8` is None where the vocabulary does not know the token."""

    text: str
    utf8: list[int] | None


def chat_limit(request: ChatCompletionRequest | None) -> int | None:
    """How many candidates of an entry are answered; None is all."""
    if request is None or not request.logprobs:
        return None
    if request.logprob_token_ids or request.top_logprobs == -1:
        return None
    return request.top_logprobs or 0


def completion_limit(request: CompletionRequest | None) -> int | None:
    """How many candidates of an entry are answered; None is all. The sampled token comes on top of those asked for."""
    if request is None or request.logprobs is None:
        return None
    if request.logprob_token_ids or request.logprobs == -1:
        return None
    return request.logprobs + 1


def next_context(context: Sequence[int], token_ids: Iterable[int]) -> list[int]:
    """The last sampled IDs, behind which an incomplete character may go on."""
    return [*context, *token_ids][-CONTEXT_TOKENS:]


class LogprobResolver:
    """Resolves the entries of one output or chunk, in order. `context` holds the IDs sampled before."""

    def __init__(self, tokenizer: TokenizerHandle, *, context: Sequence[int] = (), limit: int | None) -> None:
        self._tokenizer = tokenizer
        self._context = list(context)
        self._limit = limit
        self._known: dict[int, TokenText] = {}

    def chat(self, logprobs: GenerateLogProbs | None) -> dict[str, Any] | None:
        """`logprobs` of a chat choice. Raises NonFiniteNumber, TokenIdOutOfRange."""
        if logprobs is None:
            return None
        if logprobs.content is None:
            return {"content": None}
        entries = []
        for entry in logprobs.content:
            item = self._item(entry)
            item["top_logprobs"] = [self._item(candidate) for candidate in self._kept(entry)]
            entries.append(item)
            self._advance(entry)
        _require_finite(logprobs.content)
        return {"content": entries}

    def completion(self, logprobs: GenerateLogProbs | None, *, text_offset: int = 0) -> dict[str, Any] | None:
        """`logprobs` of a completion choice; `text_offset` is that of the first token, in characters."""
        if logprobs is None:
            return None
        offsets: list[int] = []
        values: list[float] = []
        tokens: list[str] = []
        candidates: list[dict[str, float] | None] = []
        for entry in logprobs.content or ():
            token = self._resolved(entry).text
            offsets.append(text_offset)
            values.append(entry.logprob)
            tokens.append(token)
            kept = {self._resolved(each).text: each.logprob for each in self._kept(entry)}
            candidates.append(kept if entry.top_logprobs else None)
            text_offset += len(token)
            self._advance(entry)
        _require_finite(logprobs.content or ())
        return {"text_offset": offsets, "token_logprobs": values, "tokens": tokens, "top_logprobs": candidates}

    def _kept(self, entry: Entry) -> Sequence[Candidate]:
        """The candidates to answer; engines that sent placeholders had cut them already."""
        if self._limit is None or isinstance(entry, SampledPlaceholderLogprob):
            return entry.top_logprobs
        return entry.top_logprobs[: self._limit]

    def _item(self, candidate: Candidate) -> dict[str, Any]:
        resolved = self._resolved(candidate)
        return {"token": resolved.text, "logprob": candidate.logprob, "bytes": resolved.utf8}

    def _resolved(self, candidate: Candidate) -> TokenText:
        token_id = _token_id(candidate)
        if token_id is None:
            return TokenText(candidate.token if isinstance(candidate, PlaceholderLogprob) else "", None)
        known = self._known.get(token_id)
        return known if known is not None else self._resolve(token_id)

    def _resolve(self, token_id: int) -> TokenText:
        text = self._tokenizer.token_text(token_id)
        if text is None:
            return TokenText("", None)
        if text.endswith(REPLACEMENT):
            text = self._corrected(token_id)
            return TokenText(text, list(text.encode()))
        self._known[token_id] = resolved = TokenText(text, list(text.encode()))
        return resolved

    def _corrected(self, token_id: int) -> str:
        """The text that an incomplete token completes together with those before it, "" where it completes none."""
        for length in range(1, min(CONTEXT_TOKENS, len(self._context)) + 1):
            before = self._context[-length:]
            full = self._tokenizer.decode([*before, token_id])
            if full.endswith(REPLACEMENT):
                continue
            while before and self._is_incomplete(before[-1]):
                before.pop()
            prefix = self._tokenizer.decode(before) if before else ""
            return full[_common_length(full, prefix) :]
        return ""

    def _is_incomplete(self, token_id: int) -> bool:
        return (self._tokenizer.token_text(token_id) or "").endswith(REPLACEMENT)

    def _advance(self, entry: Entry) -> None:
        token_id = _token_id(entry)
        if token_id is not None:
            self._context = next_context(self._context, (token_id,))


def _common_length(one: str, other: str) -> int:
    """The number of characters that two texts share at the start."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (left, right) in pairs if left != right), min(len(one), len(other)))


def _token_id(candidate: Candidate) -> int | None:
    """The token ID of a candidate; None where a placeholder holds none."""
    if isinstance(candidate, TokenLogprob):
        return candidate.token_id
    number = candidate.token.removeprefix(PLACEHOLDER)
    if number == candidate.token:
        return None
    try:
        return int(number)
    except ValueError:
        return None


def _require_finite(entries: Iterable[Entry]) -> None:
    for entry in entries:
        if not isfinite(entry.logprob) or not all(isfinite(each.logprob) for each in entry.top_logprobs):
            raise NonFiniteNumber
