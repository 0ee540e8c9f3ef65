"""What the engine sent: `/inference/v1/generate` responses, whole and in chunks (protocol 3.3, 3.4, 3.4a)."""

import secrets
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Discriminator, Field, Tag, field_validator, model_validator, with_config
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from derender_api.protocol.common import (
    WIRE_CONFIG,
    OutputTokenIds,
    PerRequestMetrics,
    PlaceholderRange,
    TokenIds,
    UsageInfo,
    WeightVersion,
    WireModel,
)

MAX_WINDOW = 1024


def random_request_id() -> str:
    """16 hex digits, for a response without an ID."""
    return secrets.token_hex(8)


@with_config(WIRE_CONFIG)
class TokenLogprob(TypedDict):
    """A candidate: token and log probability. A plain dict, because there are thousands of them."""

    token_id: int
    """Token ID."""
    logprob: float
    """Log probability."""
    rank: NotRequired[int | None]
    """Ignored."""


@with_config(WIRE_CONFIG)
class SampledTokenLogprob(TokenLogprob):
    """The sampled token of one position, and its candidates."""

    top_logprobs: NotRequired[list[TokenLogprob]]
    """Candidates: the sampled token first, then by rank."""


@with_config(WIRE_CONFIG)
class PlaceholderLogprob(TypedDict):
    """A candidate as engines before 0.32 sent it."""

    token: str
    """`token_id:N`, or a text that is left as it is."""
    logprob: NotRequired[float]
    """Log probability; -9999 if absent."""
    bytes: NotRequired[list[int] | None]
    """Ignored."""


@with_config(WIRE_CONFIG)
class SampledPlaceholderLogprob(PlaceholderLogprob):
    """The sampled token of one position as engines before 0.32 sent it."""

    top_logprobs: NotRequired[list[PlaceholderLogprob]]
    """Candidates, best first."""


class GenerateLogProbs(WireModel):
    """Log probabilities of the sampled tokens."""

    content: Annotated[
        list[SampledTokenLogprob] | list[SampledPlaceholderLogprob] | None, Field(union_mode="left_to_right")
    ] = None
    """One entry per token; the number need not be that of `token_ids`."""


class PromptLogprob(WireModel):
    """Log probability of one candidate of a prompt position."""

    logprob: float
    """Log probability."""
    rank: int | None = None
    """Rank among the candidates."""
    decoded_token: str | None = None
    """Text of the token."""


class GenerateChoice(WireModel):
    """What choices of whole and streamed responses share."""

    index: int
    """Number of the choice; echoed."""
    stop_reason: int | str | None = None
    """The stop token or stop string that ended the output, where it was one of the request's."""
    logprobs: GenerateLogProbs | None = None
    """Log probabilities of the tokens."""
    routed_experts: str | None = None
    """Ignored."""
    sampling_mask: list[list[int]] | None = None
    """Ignored."""
    weight_versions: list[WeightVersion] | None = None
    """Ignored."""


class GenerateTokensChoice(GenerateChoice):
    """One complete output."""

    finish_reason: str | None = "stop"
    """Why the output ended; null stays null."""
    token_ids: OutputTokenIds | None = None
    """The output's token IDs, stop token included. Must not be empty."""


class GenerateTokensStreamChoice(GenerateChoice):
    """One chunk of an output."""

    finish_reason: str | None = None
    """Why the output ended; null before its last chunk."""
    token_ids: list[int] | None = None
    """The chunk's token IDs; may be empty."""


class GenerateTokensResponse(WireModel):
    """A complete response of a token-in, token-out engine."""

    request_id: str = Field(default_factory=random_request_id)
    """Becomes the answer's `id`."""
    output_mode: Literal["tokens"] = "tokens"
    """Only "tokens" can be derendered."""
    choices: list[GenerateTokensChoice]
    """The outputs."""
    prompt_logprobs: list[dict[int, PromptLogprob] | None] | None = None
    """Log probabilities of the prompt; echoed in chat."""
    prompt_token_ids: TokenIds | None = None
    """Token IDs of the prompt: seed of the detokenization and start state of the parser."""
    kv_transfer_params: dict[str, Any] | None = None
    """Echoed."""
    metrics: PerRequestMetrics | None = None
    """Echoed."""
    model: str | None = None
    """Ignored."""
    created: int | None = None
    """Ignored."""
    usage: UsageInfo | None = None
    """Ignored; usage is counted."""
    prompt_token_id_logprobs: str | None = None
    """Ignored."""
    mm_placeholders: dict[str, list[PlaceholderRange]] | None = None
    """Ignored."""
    ec_transfer_params: dict[str, Any] | None = None
    """Ignored."""


class GenerateTokensStreamResponse(WireModel):
    """One chunk of a streamed response of a token-in, token-out engine: the data of one server-sent event."""

    request_id: str = Field(default_factory=random_request_id)
    """Becomes the answer's `id`."""
    output_mode: Literal["tokens"] = "tokens"
    """Only "tokens" can be derendered."""
    choices: list[GenerateTokensStreamChoice]
    """No choice (usage only), or one."""
    usage: UsageInfo | None = None
    """Token counts; asks for `usage` in the answer."""
    prompt_token_ids: TokenIds | None = None
    """Token IDs of the prompt, where this chunk carries them."""
    metrics: PerRequestMetrics | None = None
    """Echoed."""
    mm_placeholders: dict[str, list[PlaceholderRange]] | None = None
    """Ignored."""


class StreamState(WireModel):
    """What a streaming client carries from call to call (protocol 5). Send back what the last answer held."""

    prev_tokens: list[str] = Field(default_factory=list)
    """Decode window: vocabulary pieces, at most 1024."""
    prefix_offset: Annotated[int, Field(ge=0)] = 0
    """Offset into the window from which text is decoded."""
    read_offset: Annotated[int, Field(ge=0)] = 0
    """Offset into the window up to which text was sent."""
    role_sent: bool = False
    """The first delta, with the role, was sent."""
    logprob_context_token_ids: Annotated[list[int], Field(max_length=4)] = Field(default_factory=list)
    """The last output IDs, for characters that are spread over several tokens."""
    logprob_text_offset: Annotated[int, Field(ge=0)] = 0
    """Next `text_offset` of completions."""
    output_token_ids: list[int] = Field(default_factory=list)
    """Parsed models: all output IDs so far."""
    output_chunk_lens: list[Annotated[int, Field(gt=0)]] = Field(default_factory=list)
    """Parsed models: the number of IDs in each chunk so far."""
    tools_streamed: bool = False
    """A tool call was sent."""
    last_tool_call_ids: list[str] = Field(default_factory=list)
    """IDs of the tool calls sent, in order."""

    @field_validator("prev_tokens")
    @classmethod
    def _bound_window(cls, value: list[str]) -> list[str]:
        if len(value) > MAX_WINDOW:
            raise PydanticCustomError(
                "value_error",
                "Value error, prev_tokens length ({length}) exceeds maximum ({maximum})",
                {"length": len(value), "maximum": MAX_WINDOW},
            )
        return value

    @model_validator(mode="after")
    def _lengths_add_up(self) -> "StreamState":
        total, count = sum(self.output_chunk_lens), len(self.output_token_ids)
        if total != count:
            raise PydanticCustomError(
                "value_error",
                "Value error, output_chunk_lens must sum to len(output_token_ids) "
                "(got sum={total}, len(output_token_ids)={count})",
                {"total": total, "count": count},
            )
        return self


class CompactState(WireModel):
    """What a client that asked for the compact form carries instead.

    The parser's own state, signed. Send it back as is.
    """

    format: Literal["compact"]
    """Tells the form."""
    state: str
    """Signed by this service; nothing in it is meant to be read."""


def _form(value: Any) -> str:
    has_format = isinstance(value, dict) and value.get("format") == "compact"
    return "[compact]" if has_format or isinstance(value, CompactState) else "[replay]"


AnyState = Annotated[
    Annotated[StreamState, Tag("[replay]")] | Annotated[CompactState, Tag("[compact]")], Discriminator(_form)
]
"""A stream state in either form; both are accepted at any time."""
