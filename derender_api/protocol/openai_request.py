"""The OpenAI-style requests that travel along: `chat_request` and `completion_request` (protocol 3.5, 9.4).

All of it is validated, little of it is read: the fields without a sentence of their own change nothing here.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, model_validator
from pydantic.functional_validators import ModelWrapValidatorHandler

from derender_api.protocol.common import Int64, OpenModel, StopStrings, TokenIds
from derender_api.protocol.rules import check_chat_request, check_completion_request

ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class FunctionName(OpenModel):
    """The name of a function."""

    name: str
    """Name of the function."""


class FunctionDefinition(FunctionName):
    """A function the model may call."""

    description: str | None = None
    """What the function does."""
    parameters: dict[str, Any] | None = None
    """JSON schema of the arguments; tells the types of argument values."""
    strict: bool | None = None
    """Ignored."""


class Tool(OpenModel):
    """A tool the model may use."""

    type: Literal["function"] = "function"
    """Only functions exist."""
    function: FunctionDefinition
    """The function."""


class NamedTool(OpenModel):
    """A `tool_choice` that names a function."""

    function: FunctionName
    """The function."""
    type: Literal["function"] = "function"
    """Only functions exist."""


class ChatMessage(OpenModel):
    """A message of the conversation. Read only to count earlier tool calls."""

    role: str
    """Who speaks; any string."""
    content: str | list[str | dict[str, Any]] | None = None
    """Text, or parts."""
    tool_calls: list[dict[str, Any]] | None = None
    """Calls of an assistant message."""


class JsonSchemaFormat(OpenModel):
    """A JSON schema for the output."""

    name: str
    """Name of the schema."""
    description: str | None = None
    """What it describes."""
    json_schema: dict[str, Any] | None = Field(default=None, alias="schema")
    """The schema."""
    strict: bool | None = None
    """Whether it is enforced."""


class ResponseFormat(OpenModel):
    """The format the engine was to keep to. Ignored."""

    type: Literal["text", "json_object", "json_schema", "structural_tag"]
    """Kind of format."""
    json_schema: JsonSchemaFormat | None = None
    """The schema of "json_schema"."""


class StreamOptions(OpenModel):
    """Options of streamed answers. Ignored."""

    include_usage: bool | None = None
    """Ignored."""
    continuous_usage_stats: bool | None = None
    """Ignored."""


class GenerationRequest(OpenModel):
    """What chat and completion requests share."""

    model: str | None = None
    """Ignored; the derender request's own `model` chooses."""
    stop: StopStrings = Field(default_factory=list)
    """Stop strings; end the text, also that of streams."""
    stop_token_ids: list[int] | None = Field(default_factory=list)
    """Further IDs that end the output."""
    include_stop_str_in_output: bool = False
    """Keep the stop token or stop string in the text."""
    ignore_eos: bool = False
    """End-of-sequence IDs do not end the output."""
    min_tokens: int = 0
    """Stop strings are not looked for before so many tokens."""
    skip_special_tokens: bool | None = True
    """Leave special tokens out of the text; without effect where a parser runs."""
    spaces_between_special_tokens: bool = True
    """Put spaces around added tokens; slow tokenizers only."""
    return_token_ids: bool | None = None
    """Return the IDs of prompt and output."""
    logprob_token_ids: list[int] | None = None
    """IDs whose log probabilities were asked for; then no candidate is cut."""
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    frequency_penalty: float | None = 0.0
    presence_penalty: float | None = 0.0
    repetition_penalty: float | None = None
    length_penalty: float = 1.0
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    logit_bias: dict[str, float] | None = None
    max_tokens: int | None = None
    seed: Int64 | None = None
    user: str | None = None
    use_beam_search: bool = False
    prompt_logprobs: int | None = None
    allowed_token_ids: list[int] | None = None
    bad_words: list[str] = Field(default_factory=list)
    add_special_tokens: bool = True
    truncate_prompt_tokens: Annotated[int, Field(ge=-1)] | None = None
    truncation_side: Literal["left", "right"] | None = None
    response_format: ResponseFormat | None = None
    structured_outputs: dict[str, Any] | None = None
    priority: Int64 = 0
    request_id: str = ""
    return_tokens_as_token_ids: bool | None = None
    cache_salt: str | None = None
    kv_transfer_params: dict[str, Any] | None = None
    ec_transfer_params: dict[str, Any] | None = None
    vllm_xargs: dict[str, str | int | float | list[str | int | float]] | None = None
    repetition_detection: dict[str, Any] | None = None
    stream_interval: Annotated[int, Field(ge=1)] | None = None
    routed_experts_prompt_start: Annotated[int, Field(ge=0)] | None = None
    mm_payload: Literal["tensors", "none"] | None = None
    thinking_token_budget: int | None = None


class ChatCompletionRequest(GenerationRequest):
    """The chat request that was rendered, complete."""

    messages: list[ChatMessage]
    """The conversation."""
    tools: list[Tool] | None = None
    """Tools the model may use."""
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = "none"
    """Which calls are kept. Absent: "auto" where there are tools, else "none"; null keeps none."""
    parallel_tool_calls: bool | None = True
    """false keeps the first call only."""
    include_reasoning: bool = True
    """false leaves reasoning out, and with it log probabilities and token IDs."""
    chat_template_kwargs: dict[str, Any] | None = None
    """Arguments of the chat template; some switch reasoning on or off."""
    reasoning_effort: ReasoningEffort | None = None
    """The value "none" switches reasoning off."""
    add_generation_prompt: bool = True
    """Handed to the parser as a template argument."""
    continue_final_message: bool = False
    """Handed to the parser as a template argument."""
    documents: list[dict[str, str]] | None = None
    """Handed to the parser as a template argument."""
    logprobs: bool | None = False
    """Whether log probabilities were asked for; without it no candidate is cut."""
    top_logprobs: int | None = 0
    """Number of candidates per token to return; -1 is all."""
    n: int | None = 1
    max_completion_tokens: int | None = None
    echo: bool = False
    chat_template: str | None = None
    media_io_kwargs: dict[str, dict[str, Any]] | None = None
    mm_processor_kwargs: dict[str, Any] | None = None

    _sent: Mapping[str, Any] = PrivateAttr(default_factory=dict)

    @property
    def sent_tools(self) -> list[dict[str, Any]] | None:
        """`tools` as they were sent."""
        return self._sent.get("tools")

    @model_validator(mode="wrap")
    @classmethod
    def _rules_first(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(value, Mapping):
            return handler(value)
        check_chat_request(value)
        request = handler(value)
        request._sent = value
        if "tool_choice" not in value and request.tools:
            request.tool_choice = "auto"
        return request


class CompletionRequest(GenerationRequest):
    """The completion request that was rendered, complete."""

    prompt: TokenIds | list[TokenIds] | str | list[str] | None = None
    """Text, texts, token IDs or lists of token IDs. Ignored."""
    prompt_embeds: str | list[str] | None = None
    """Ignored."""
    logprobs: int | None = None
    """Number of candidates per token to return besides the sampled one; -1 is all."""
    n: int = 1
    echo: bool | None = False
    suffix: str | None = None

    @model_validator(mode="wrap")
    @classmethod
    def _rules_first(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        from derender_api.conf import conf

        if isinstance(value, Mapping):
            check_completion_request(value, max_prompts=conf.max_completion_prompts)
        return handler(value)
