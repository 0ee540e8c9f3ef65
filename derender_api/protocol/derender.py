"""Requests of the derender endpoints: what the engine sent, with what the caller knows of it (protocol 3 and 4)."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from derender_api.protocol.common import TokenIds, WireModel
from derender_api.protocol.decoding import Shapes
from derender_api.protocol.generate import AnyState, GenerateTokensResponse, GenerateTokensStreamResponse
from derender_api.protocol.openai_request import ChatCompletionRequest, CompletionRequest


class StreamRequest(WireModel):
    """What streaming requests share."""

    stream: Literal[True]
    """Selects this shape."""
    model: str | None = None
    """Served model name; the first one if null or empty."""
    stream_state: AnyState | None = None
    """What the previous answer held; null on the first call."""
    stream_state_format: Literal["replay", "compact"] | None = None
    """First call only: the form of the states to come; null for the model's default. "replay" is vLLM's own."""
    prompt_tokens: int | None = None
    """Prompt tokens for `usage`; wins over the chunk's own count."""
    prompt_token_ids: TokenIds | None = None
    """Token IDs of the prompt. Where the model has a parser: needed on every call, in the compact form on the first."""


class DerenderChatRequest(WireModel):
    """One-shot chat: a complete response of the engine."""

    stream: Literal[False] = False
    """Selects this shape."""
    model: str | None = None
    """Served model name; the first one if null or empty."""
    generate_response: GenerateTokensResponse
    """The complete response of the engine."""
    prompt_tokens: int | None = None
    """Prompt tokens for `usage`; null counts as 0."""
    prompt_token_ids: TokenIds | None = None
    """Token IDs of the prompt, where the response does not carry them."""
    chat_request: ChatCompletionRequest | None = None
    """The chat request that was rendered; needed where the model has a parser."""


class ChatStreamRequest(StreamRequest):
    """What streaming chat requests share."""

    chat_request: ChatCompletionRequest | None = None
    """The chat request that was rendered. Where the model has a parser: needed on every call, in the compact form on
    the first, and again after a 409 with the code "context_required"."""


class DerenderChatStreamRequest(ChatStreamRequest):
    """Streaming chat: one chunk of the engine's stream."""

    generate_chunk: GenerateTokensStreamResponse
    """One chunk of the engine's stream."""


class DerenderChatBulkRequest(ChatStreamRequest):
    """Streaming chat: several chunks of one stream, in order, in one call."""

    generate_chunks: Annotated[list[GenerateTokensStreamResponse], Field(min_length=1)]
    """Chunks of the engine's stream, all of the same choice."""


class DerenderCompletionRequest(WireModel):
    """One-shot completions: the engine's responses, one per prompt."""

    stream: Literal[False] = False
    """Selects this shape."""
    model: str | None = None
    """Served model name; the first one if null or empty."""
    generate_responses: list[GenerateTokensResponse]
    """The complete responses of the engine, one per prompt."""
    prompt_tokens: list[int] | None = None
    """Prompt tokens for `usage`, one number per response; null counts as zeros."""
    prompt_token_ids: list[TokenIds | None] | None = None
    """Token IDs of the prompts, one list per response; null falls back to the response's own."""
    completion_request: CompletionRequest | None = None
    """The completion request that was rendered."""

    @model_validator(mode="after")
    def _one_entry_per_response(self) -> Self:
        count = len(self.generate_responses)
        for name in ("prompt_tokens", "prompt_token_ids"):
            given = getattr(self, name)
            if given is not None and len(given) != count:
                raise PydanticCustomError(
                    "value_error",
                    "Value error, {name} length ({length}) must equal generate_responses length ({count})",
                    {"name": name, "length": len(given), "count": count},
                )
        return self


class CompletionStreamRequest(StreamRequest):
    """What streaming completion requests share."""

    completion_request: CompletionRequest | None = None
    """The completion request that was rendered."""


class DerenderCompletionStreamRequest(CompletionStreamRequest):
    """Streaming completions: one chunk of the engine's stream."""

    generate_chunk: GenerateTokensStreamResponse
    """One chunk of the engine's stream."""


class DerenderCompletionBulkRequest(CompletionStreamRequest):
    """Streaming completions: several chunks of one stream, in order, in one call."""

    generate_chunks: Annotated[list[GenerateTokensStreamResponse], Field(min_length=1)]
    """Chunks of the engine's stream, all of the same choice."""


CHAT_SHAPES = Shapes(
    oneshot=DerenderChatRequest,
    streaming=DerenderChatStreamRequest,
    bulk=DerenderChatBulkRequest,
    oneshot_label="DerenderChatRequest",
    streaming_label="DerenderChatStreamRequest",
)
COMPLETION_SHAPES = Shapes(
    oneshot=DerenderCompletionRequest,
    streaming=DerenderCompletionStreamRequest,
    bulk=DerenderCompletionBulkRequest,
    oneshot_label="",
    streaming_label="DerenderCompletionStreamRequest",
)
