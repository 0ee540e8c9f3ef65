"""Chat completions and their chunks, as answered (protocol 7.1, 7.2)."""

from typing import Any, Literal

from derender_api.protocol.answer import AnswerModel, Usage
from derender_api.protocol.generate import PromptLogprob


class CandidateLogprob(AnswerModel):
    """A token with its log probability."""

    token: str
    """Text of the token, "" where it completes no character or is unknown."""
    logprob: float
    """Log probability."""
    bytes: list[int] | None
    """UTF-8 of `token`; null where the token is unknown."""


class ChatLogprob(CandidateLogprob):
    """The sampled token of one position."""

    top_logprobs: list[CandidateLogprob]
    """Candidates, the sampled token first."""


class ChatLogprobs(AnswerModel):
    """Log probabilities of a chat choice."""

    content: list[ChatLogprob] | None
    """One entry per token."""


class FunctionCall(AnswerModel):
    """A function with its arguments."""

    name: str
    """Name of the function."""
    arguments: str
    """JSON text."""


class ToolCall(AnswerModel):
    """A call of a tool."""

    id: str
    """ID of the call."""
    type: Literal["function"]
    """Only functions exist."""
    function: FunctionCall
    """The function."""


class ChatAnswerMessage(AnswerModel):
    """The assistant's message."""

    role: Literal["assistant"]
    """Who speaks."""
    content: str | None
    """Text for the user."""
    refusal: None
    """Always null."""
    annotations: None
    """Always null."""
    audio: None
    """Always null."""
    function_call: None
    """Always null."""
    tool_calls: list[ToolCall] | None = None
    """Calls; absent where there are none."""
    reasoning: str | None
    """The model's thoughts."""


class ChatAnswerChoice(AnswerModel):
    """One choice of a chat completion."""

    index: int
    """Number of the choice, as the engine gave it."""
    message: ChatAnswerMessage
    """The message."""
    logprobs: ChatLogprobs | None
    """Log probabilities, where the engine sent them."""
    finish_reason: str
    """Why the output ended; "tool_calls" where it ended with calls."""
    stop_reason: int | str | None
    """The stop token or stop string that ended it."""
    token_ids: list[int] | None
    """The output's token IDs, where the request asked for them."""
    routed_experts: None
    """Always null."""
    weight_versions: None
    """Always null."""


class ChatCompletionAnswer(AnswerModel):
    """A chat completion."""

    id: str
    """The engine's request ID."""
    object: Literal["chat.completion"]
    """Kind of object."""
    created: int
    """Seconds since the epoch."""
    model: str
    """The model the request named, else the first one served."""
    choices: list[ChatAnswerChoice]
    """The outputs."""
    service_tier: None
    """Always null."""
    system_fingerprint: None
    """Always null."""
    usage: Usage
    """Token counts."""
    prompt_logprobs: list[dict[str, PromptLogprob] | None] | None
    """As the engine sent them, token IDs as strings."""
    prompt_token_ids: list[int] | None
    """The prompt's token IDs, where the request asked for them."""
    prompt_text: None
    """Always null."""
    kv_transfer_params: dict[str, Any] | None
    """As the engine sent them."""
    ec_transfer_params: None
    """Always null."""
    metrics: dict[str, Any] | None
    """As the engine sent them."""


class FunctionCallDelta(AnswerModel):
    """What a chunk adds to a call."""

    name: str | None
    """Name of the function, with the first delta of a call."""
    arguments: str | None
    """More of the arguments' JSON text."""


class ToolCallDelta(AnswerModel):
    """What a chunk adds to call `index`."""

    id: str | None
    """ID of the call, with its first delta."""
    type: Literal["function"] | None
    """With the first delta of a call."""
    index: int
    """Number of the call."""
    function: FunctionCallDelta
    """What it adds."""


class CitationDelta(AnswerModel):
    """A passage of the text that is backed by sources."""

    start: int
    """First character."""
    end: int
    """Character behind the last."""
    text: str
    """The passage."""
    sources: list[Any]
    """Always empty."""
    content_index: None
    """Always null."""
    type: str
    """Kind of text it is in."""


class ChatDelta(AnswerModel):
    """What a chunk adds to the message."""

    role: Literal["assistant"] | None
    """With the first delta of a choice."""
    content: str | None
    """More text for the user."""
    reasoning: str | None
    """More thoughts."""
    tool_calls: list[ToolCallDelta] | None = None
    """More of the calls; absent where there is nothing."""
    citations: list[CitationDelta] | None = None
    """Passages backed by sources, for formats that have them; absent where there are none."""


class ChatChunkChoice(AnswerModel):
    """The choice of a chat chunk."""

    index: int
    """Number of the choice."""
    delta: ChatDelta
    """What it adds."""
    logprobs: ChatLogprobs | None
    """Log probabilities of this chunk's tokens."""
    finish_reason: str | None
    """Why the output ended, with its last chunk."""
    stop_reason: int | str | None
    """The stop token that ended it."""
    token_ids: list[int] | None
    """This chunk's token IDs, where the request asked for them."""
    weight_versions: None
    """Always null."""


class ChatChunk(AnswerModel):
    """A chunk of a chat completion, to be passed on."""

    id: str
    """The engine's request ID."""
    object: Literal["chat.completion.chunk"]
    """Kind of object."""
    created: int
    """Seconds since the epoch."""
    model: str
    """The model the request named, else the first one served."""
    choices: list[ChatChunkChoice]
    """One choice, none in a usage chunk."""
    usage: Usage | None
    """Token counts, where the engine's chunk has them."""
    system_fingerprint: None
    """Always null."""
    prompt_token_ids: list[int] | None
    """As the engine sent them, where the request asked for them."""
    prompt_text: None
    """Always null."""
    metrics: dict[str, Any] | None
    """As the engine sent them."""
    kv_transfer_params: None
    """Always null."""


class ChatChunkAnswer(AnswerModel):
    """A chunk and what the next call needs."""

    chunk: ChatChunk
    """The chunk."""
    stream_state: dict[str, Any]
    """Send it back with the next chunk of this choice."""
