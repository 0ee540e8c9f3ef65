"""Why an output ended: the stop token left out of the text, the stop string that cuts it (protocol 8.1 to 8.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from derender_api.protocol.openai_request import GenerationRequest
from derender_api.tokenization import TokenizerHandle

StopReason = int | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRules:
    """What the rendered request says about ends; the defaults where there is no request."""

    ignore_eos: bool = False
    stop_token_ids: Sequence[int] = ()
    stop: Sequence[str] = ()
    min_tokens: int = 0
    keeps_stop: bool = False

    @classmethod
    def of(cls, request: GenerationRequest | None) -> Self:
        """The rules of a `chat_request` or `completion_request`."""
        if request is None:
            return cls()
        stop = [request.stop] if isinstance(request.stop, str) else request.stop or []
        return cls(
            ignore_eos=request.ignore_eos,
            stop_token_ids=request.stop_token_ids or (),
            stop=[text for text in stop if text],
            min_tokens=request.min_tokens,
            keeps_stop=request.include_stop_str_in_output,
        )


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of an output: how many IDs are decoded, and the stop reason to answer."""

    decoded: int
    stop_reason: StopReason


def end_of_output(
    token_ids: Sequence[int],
    *,
    finish_reason: str | None,
    stop_reason: StopReason,
    rules: StopRules,
    tokenizer: TokenizerHandle,
) -> Ending:
    """Finds the stop token at the end of `token_ids` (protocol 8.2)."""
    count = len(token_ids)
    if finish_reason != "stop" or isinstance(stop_reason, str) or not token_ids:
        return Ending(count, stop_reason)
    last = token_ids[-1]
    if stop_reason is not None:
        stopped = last == stop_reason
    elif last == tokenizer.eos_id and not rules.ignore_eos:
        stopped = True
    else:
        stopped = last in rules.stop_token_ids or (last in tokenizer.model_eos_ids and not rules.ignore_eos)
        stop_reason = last if stopped else None
    return Ending(count - 1 if stopped and not rules.keeps_stop else count, stop_reason)


def cut_at_stop_string(
    texts: list[str], *, finish_reason: str | None, reported: StopReason, rules: StopRules
) -> tuple[list[str], str | None]:
    """Cuts the texts of an output at the first stop string; also returns that string (protocol 8.3).

    `reported` is the stop reason that the engine gave. The first `min_tokens` texts are not searched. A reported empty
    string is no stop string: cutting there would lose text.
    """
    candidates = _candidates(finish_reason, reported, rules)
    if not candidates:
        return texts, None
    text = "".join(texts)
    tail = "".join(texts[rules.min_tokens :])
    match = _earliest_match(text, candidates, searched_from=len(text) - len(tail)) if tail else None
    if match is None:
        return texts, None
    end, stop = match
    return _truncated(texts, end if rules.keeps_stop else end - len(stop)), stop


def _candidates(finish_reason: str | None, reported: StopReason, rules: StopRules) -> Sequence[str]:
    if finish_reason != "stop" or isinstance(reported, int):
        return ()
    if reported is None:
        return rules.stop
    return (reported,) if reported else ()


def _earliest_match(text: str, candidates: Sequence[str], *, searched_from: int) -> tuple[int, str] | None:
    """End and text of the stop string that ends first; it ends at least one character behind `searched_from`."""
    matches = []
    for stop in candidates:
        start = text.find(stop, max(searched_from - len(stop) + 1, 0))
        if start >= 0:
            matches.append((start + len(stop), stop))
    return min(matches, key=lambda match: match[0], default=None)


def _truncated(texts: Sequence[str], length: int) -> list[str]:
    """`texts` cut to `length` characters together; their number stays."""
    kept: list[str] = []
    for text in texts:
        kept.append(text[: max(length, 0)])
        length -= len(text)
    return kept
