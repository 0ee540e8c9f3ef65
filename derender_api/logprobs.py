"""Log probabilities: token IDs to strings, characters that are spread over several tokens put right (protocol 8.7)."""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from derender_api.exceptions import BadRequest
from derender_api.protocol.generate import (
    GenerateLogProbs,
)
from derender_api.protocol.openai_request import ChatCompletionRequest, CompletionRequest
from derender_api.tokenization import TokenizerHandle
from parsers.engine.detokenizer import REPLACEMENT

CONTEXT_TOKENS = 4
PLACEHOLDER = "token_id:"
MISSING_LOGPROB = -9999.0

Entry = Mapping[str, Any]  # SampledTokenLogprob or SampledPlaceholderLogprob
Candidate = Mapping[str, Any]  # TokenLogprob or PlaceholderLogprob; `token` tells them apart
Json = dict[str, Any]


class NonFiniteNumber(BadRequest):
    """The client's fault: a NaN or an infinity, for which JSON has no word."""

    def __init__(self) -> None:
        super().__init__("Out of range float values are not JSON compliant")


TokenText = tuple[str, list[int] | None]
"""A token's string and its UTF-8 bytes, None where the vocabulary does not know the token."""


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

    def chat(self, logprobs: GenerateLogProbs | None) -> Json | None:
        """`logprobs` of a chat choice. Raises NonFiniteNumber, TokenIdOutOfRange."""
        if logprobs is None:
            return None
        if logprobs.content is None:
            return {"content": None}
        entries = []
        for entry in logprobs.content:
            item = self._items((entry,))[0]
            item["top_logprobs"] = self._items(self._kept(entry))
            entries.append(item)
            self._advance(entry)
        return {"content": entries}

    def completion(self, logprobs: GenerateLogProbs | None, *, text_offset: int = 0) -> Json | None:
        """`logprobs` of a completion choice; `text_offset` is that of the first token, in characters."""
        if logprobs is None:
            return None
        answer: Json = {"text_offset": [], "token_logprobs": [], "tokens": [], "top_logprobs": []}
        for entry in logprobs.content or ():
            token = self._items((entry,))[0]
            kept = {item["token"]: item["logprob"] for item in self._items(self._kept(entry))}
            answer["text_offset"].append(text_offset)
            answer["token_logprobs"].append(token["logprob"])
            answer["tokens"].append(token["token"])
            answer["top_logprobs"].append(kept if entry.get("top_logprobs") else None)
            text_offset += len(token["token"])
            self._advance(entry)
        return answer

    def _kept(self, entry: Entry) -> Sequence[Candidate]:
        """The candidates to answer; engines that sent placeholders had cut them already."""
        candidates: Sequence[Candidate] = entry.get("top_logprobs", ())
        return candidates if self._limit is None or "token" in entry else candidates[: self._limit]

    def _items(self, candidates: Sequence[Candidate]) -> list[Json]:
        known = self._known
        items: list[Json] = []
        total = 0.0
        for candidate in candidates:
            resolved = known.get(candidate.get("token_id", -1)) or self._resolved(candidate)
            logprob = candidate.get("logprob", MISSING_LOGPROB)
            total += logprob
            items.append({"token": resolved[0], "logprob": logprob, "bytes": resolved[1]})
        if not isfinite(total) and not all(isfinite(item["logprob"]) for item in items):
            raise NonFiniteNumber
        return items

    def _resolved(self, candidate: Candidate) -> TokenText:
        token_id = _token_id(candidate)
        if token_id is None:
            return str(candidate.get("token", "")), None
        text = self._tokenizer.token_text(token_id)
        if text is None:
            return "", None
        if text.endswith(REPLACEMENT):
            text = self._corrected(token_id)
            return text, list(text.encode())
        self._known[token_id] = resolved = (text, list(text.encode()))
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
    if "token_id" in candidate:
        return candidate["token_id"]
    number = candidate["token"].removeprefix(PLACEHOLDER)
    if number == candidate["token"]:
        return None
    try:
        return int(number)
    except ValueError:
        return None
