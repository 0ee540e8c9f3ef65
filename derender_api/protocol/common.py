"""Types shared by the wire models: token IDs, numbers, usage, metrics, stop strings.

Validation is lax as vLLM's (protocol 2.2): numeric strings and integral floats are integers, unknown keys are ignored.
"""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, WithJsonSchema, WrapValidator
from pydantic_core import PydanticCustomError

WIRE_CONFIG = ConfigDict(extra="ignore", use_attribute_docstrings=True, protected_namespaces=())


class WireModel(BaseModel):
    """A JSON object of a request. Unknown keys are ignored; a field's docstring is its description in OpenAPI."""

    model_config = WIRE_CONFIG


class OpenModel(BaseModel):
    """A JSON object whose unknown keys are kept."""

    model_config = ConfigDict(extra="allow", use_attribute_docstrings=True, protected_namespaces=())


_NATURAL_NUMBERS = TypeAdapter(list[Annotated[int, Field(ge=0)]])


def _natural_numbers(value: Any, handler: Callable[[Any], list[int]]) -> list[int]:
    """One look at the smallest ID instead of one check for each; the slow way only to name the wrong one."""
    numbers = handler(value)
    if numbers and min(numbers) < 0:
        _NATURAL_NUMBERS.validate_python(numbers)
    return numbers


def _no_negatives(value: Any, handler: Callable[[Any], list[int]]) -> list[int]:
    numbers = handler(value)
    if numbers and min(numbers) < 0:
        raise PydanticCustomError("value_error", "Value error, token_ids must not contain negative values")
    return numbers


TokenIds = Annotated[
    list[int],
    WrapValidator(_natural_numbers),
    WithJsonSchema({"type": "array", "items": {"type": "integer", "minimum": 0}}),
]
"""Token IDs, none of them negative; an error names the position of the first negative one."""

OutputTokenIds = Annotated[
    list[int],
    WrapValidator(_no_negatives),
    WithJsonSchema({"type": "array", "items": {"type": "integer", "minimum": 0}}),
]
"""Token IDs of an output, none of them negative."""

Int64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]


def _stop_strings(value: Any, handler: Callable[[Any], list[str]]) -> list[str]:
    from derender_api.conf import conf

    strings = handler(value)
    if len(strings) > conf.max_stop_strings:
        raise PydanticCustomError(
            "too_long",
            "List should have at most {max_length} items after validation, not {actual_length}",
            {"field_type": "List", "max_length": conf.max_stop_strings, "actual_length": len(strings)},
        )
    return strings


StopStrings = (
    str
    | Annotated[list[str], WrapValidator(_stop_strings), WithJsonSchema({"type": "array", "items": {"type": "string"}})]
    | None
)
"""`stop`: one string, or a list of at most VLLM_MAX_STOP_STRINGS."""


class PromptTokensDetails(WireModel):
    """Where the prompt's tokens came from."""

    cached_tokens: int | None = None
    """Tokens found in the prefix cache."""
    created_cache_tokens: int | None = None
    """Tokens newly written to the prefix cache."""
    multimodal_tokens: dict[str, int] | None = None
    """Tokens per modality."""


class CompletionTokensDetails(WireModel):
    """What the output's tokens were."""

    reasoning_tokens: int = 0
    """Tokens of the reasoning."""


class UsageInfo(WireModel):
    """Token counts as the engine reports them."""

    prompt_tokens: int = 0
    """Tokens of the prompt."""
    total_tokens: int = 0
    """Ignored; the answer's total is computed."""
    completion_tokens: int | None = 0
    """Tokens of the output."""
    prompt_tokens_details: PromptTokensDetails | None = None
    """Validated, otherwise ignored."""
    completion_tokens_details: CompletionTokensDetails | None = None
    """Validated, otherwise ignored."""


class SpeculativeDecodingMetrics(WireModel):
    """How speculative decoding went."""

    mean_acceptance_length: float
    """Mean number of tokens accepted per step."""
    draft_acceptance_rate: float
    """Accepted draft tokens per draft token."""
    acceptance_histogram: list[int]
    """Steps by number of accepted tokens."""
    num_spec_steps: int
    """Steps with drafts."""
    num_accepted_draft_tokens: int
    """Draft tokens accepted."""
    num_draft_tokens: int
    """Draft tokens proposed."""
    num_spec_tokens: int
    """Draft tokens proposed per step."""
    per_step_accepted: list[int] | None = None
    """Tokens accepted in each step."""
    per_step_drafted: list[int] | None = None
    """Tokens drafted in each step."""


class PerRequestMetrics(OpenModel):
    """Timings of one request, echoed in the answer; unknown keys follow the known ones."""

    time_to_first_token_ms: float | None = None
    """Milliseconds to the first token."""
    generation_time_ms: float | None = None
    """Milliseconds of generation."""
    queue_time_ms: float | None = None
    """Milliseconds in the queue."""
    mean_itl_ms: float | None = None
    """Mean milliseconds between tokens."""
    tokens_per_second: float | None = None
    """Output tokens per second."""
    speculative_decoding: SpeculativeDecodingMetrics | None = None
    """Speculative decoding, where it was used."""


class PlaceholderRange(WireModel):
    """Where a multi-modal item stands in the prompt."""

    offset: Annotated[int, Field(ge=0)]
    """First token."""
    length: Annotated[int, Field(gt=0)]
    """Number of tokens."""


class WeightVersion(WireModel):
    """A span of the output that one version of the weights produced."""

    version: str
    """Name of the version."""
    start: int
    """First token."""
    end: int
    """Token behind the last."""
