"""Text completions and their chunks, as answered (protocol 7.3, 7.4)."""

from typing import Any, Literal

from derender_api.protocol.answer import AnswerModel, Usage


class CompletionLogprobs(AnswerModel):
    """Log probabilities of a completion choice: parallel lists, an entry per token."""

    text_offset: list[int]
    """Where each token begins, in characters."""
    token_logprobs: list[float]
    """Log probabilities."""
    tokens: list[str]
    """Texts."""
    top_logprobs: list[dict[str, float] | None]
    """Candidates, null where the engine sent none."""


class CompletionChoice(AnswerModel):
    """One choice of a text completion."""

    index: int
    """Number of the choice over all responses."""
    text: str
    """The text."""
    logprobs: CompletionLogprobs | None
    """Log probabilities, where the engine sent them."""
    finish_reason: str | None
    """Why the output ended, as the engine said."""
    stop_reason: int | str | None
    """The stop token or stop string that ended it."""
    token_ids: list[int] | None
    """The output's token IDs, where the request asked for them."""
    prompt_logprobs: None
    """Always null."""
    prompt_token_ids: list[int] | None
    """The prompt's token IDs, where the request asked for them."""
    routed_experts: None
    """Always null."""
    weight_versions: None
    """Always null."""


class CompletionAnswer(AnswerModel):
    """A text completion."""

    id: str
    """Request ID of the first response."""
    object: Literal["text_completion"]
    """Kind of object."""
    created: int
    """Seconds since the epoch."""
    model: str
    """The model the request named, else the first one served."""
    choices: list[CompletionChoice]
    """The outputs of all responses."""
    service_tier: None
    """Always null."""
    system_fingerprint: None
    """Always null."""
    usage: Usage
    """Token counts."""
    kv_transfer_params: dict[str, Any] | None
    """As the engine sent them, where all responses agree."""
    ec_transfer_params: None
    """Always null."""
    metrics: dict[str, Any] | None
    """As the engine sent them, where there is one response."""


class CompletionChunkChoice(AnswerModel):
    """The choice of a text completion chunk."""

    index: int
    """Number of the choice."""
    text: str
    """What it adds."""
    logprobs: CompletionLogprobs | None
    """Log probabilities of this chunk's tokens."""
    finish_reason: str | None
    """Why the output ended, as the engine said."""
    stop_reason: int | str | None
    """The stop token that ended it."""
    prompt_token_ids: list[int] | None
    """As the engine sent them, where the request asked for them."""
    token_ids: list[int] | None
    """This chunk's token IDs, where the request asked for them."""
    weight_versions: None
    """Always null."""


class CompletionChunk(AnswerModel):
    """A chunk of a text completion, to be passed on."""

    id: str
    """The engine's request ID."""
    object: Literal["text_completion"]
    """Kind of object."""
    created: int
    """Seconds since the epoch."""
    model: str
    """The model the request named, else the first one served."""
    choices: list[CompletionChunkChoice]
    """One choice, none in a usage chunk."""
    usage: Usage | None
    """Token counts, where the engine's chunk has them."""
    system_fingerprint: None
    """Always null."""
    metrics: dict[str, Any] | None
    """As the engine sent them."""
    kv_transfer_params: None
    """Always null."""


class CompletionChunkAnswer(AnswerModel):
    """A chunk and what the next call needs."""

    chunk: CompletionChunk
    """The chunk."""
    stream_state: dict[str, Any]
    """Send it back with the next chunk of this choice."""
