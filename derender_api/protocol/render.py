"""Requests and answers of the render endpoints (protocol 10)."""

from typing import Any, Literal

from pydantic import RootModel

from derender_api.protocol.common import WireModel
from derender_api.protocol.openai_request import ChatCompletionRequest, CompletionRequest


class ChatRenderRequest(ChatCompletionRequest):
    """A chat request to render."""

    model: str | None = None
    """Served model name; the first one if null or empty."""
    frequency_penalty: float | None = None
    """-2 to 2; absent: the model's default."""
    presence_penalty: float | None = None
    """-2 to 2; absent: the model's default."""
    add_special_tokens: bool = False
    """Add the special tokens that the tokenizer puts around a text; chat templates write them themselves."""
    chat_template: str | None = None
    """A template in the place of the model's; only where the model trusts requests."""
    return_token_offsets: bool | None = False
    """Return the characters of the prompt that each token covers."""


class CompletionRenderRequest(CompletionRequest):
    """A completion request to render."""

    model: str | None = None
    """Served model name; the first one if null or empty."""
    prompt: Any = None
    """Text, texts, token IDs or lists of token IDs."""
    frequency_penalty: float | None = None
    """-2 to 2; absent: the model's default."""
    presence_penalty: float | None = None
    """-2 to 2; absent: the model's default."""
    return_token_offsets: bool | None = False
    """Return the characters of the prompt that each token covers."""


class ParseContextAnswer(WireModel):
    """What a parser of the output needs of the request."""

    tools: list[dict[str, Any]] | None
    """Tools the model may use."""
    tool_choice: str | dict[str, Any] | None
    """Which calls are kept."""
    parallel_tool_calls: bool | None
    """false keeps the first call only."""
    include_reasoning: bool
    """false leaves reasoning out."""
    chat_template_kwargs: dict[str, Any]
    """Effective arguments of the chat template."""
    history_tool_call_cnt: int
    """Number of calls in the conversation."""


class GenerateRequestAnswer(WireModel):
    """A request for the engine's `/inference/v1/generate`."""

    request_id: str
    """ID of the request, of the engine's response, and of the answer."""
    token_ids: list[int]
    """The prompt."""
    token_offsets: list[tuple[int, int]] | None
    """First character and character behind the last of each token; null unless asked for."""
    features: dict[str, Any] | None
    """Always null: text only."""
    content_parts: list[Any] | None
    """Always null: text only."""
    sampling_params: dict[str, Any]
    """Sampling parameters; what is absent has the engine's default."""
    model: str | None
    """The model as the request named it."""
    reasoning_ended: bool | None
    """Whether output begins behind the reasoning; null without a reasoning parser."""
    reasoning_parser_kwargs: dict[str, Any] | None
    """Arguments of the engine's reasoning parser; null without one."""
    return_token_ids: bool | None
    """As in the request."""
    output_mode: Literal["tokens"]
    """The engine answers with token IDs."""
    parse_context: ParseContextAnswer | None
    """For the parser of the output; null for completions."""
    stream: bool
    """As in the request."""
    stream_options: dict[str, Any] | None
    """As in the request, complete; null unless streaming."""
    cache_salt: str | None
    """As in the request."""
    priority: int
    """As in the request."""
    kv_transfer_params: dict[str, Any] | None
    """As in the request, but for the prompt's token IDs."""
    ec_transfer_params: dict[str, Any] | None
    """As in the request."""


class GenerateRequestsAnswer(RootModel[list[GenerateRequestAnswer]]):
    """One engine request per prompt."""
