"""What the endpoints answer, field by field in the order of the wire (protocol 7): for OpenAPI and for the tests.

The answers themselves are built as plain dicts (`derender_api.answers`).
"""

from pydantic import BaseModel, ConfigDict


class AnswerModel(BaseModel):
    """A JSON object of an answer; it has no other keys than these."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, protected_namespaces=())


class Usage(AnswerModel):
    """Token counts."""

    prompt_tokens: int
    """Tokens of the prompt, as the caller counted them."""
    total_tokens: int
    """Sum of both."""
    completion_tokens: int
    """Tokens of the output, stop tokens included."""
    prompt_tokens_details: None
    """Always null."""
    completion_tokens_details: None
    """Always null."""


class TokenizeAnswer(AnswerModel):
    """Token IDs of a text."""

    count: int
    """Number of tokens."""
    max_model_len: int
    """Longest prompt plus output of the model, in tokens."""
    tokens: list[int]
    """Token IDs."""
    token_strs: list[str] | None
    """Their vocabulary pieces, where they were asked for."""


class DetokenizeAnswer(AnswerModel):
    """The text of token IDs."""

    prompt: str
    """The text, special tokens kept."""


class ErrorDetail(AnswerModel):
    """What is wrong."""

    message: str
    """In words."""
    type: str
    """Kind of error."""
    param: str | None
    """The field that it is about."""
    code: int
    """The HTTP status."""


class ErrorAnswer(AnswerModel):
    """Any refusal."""

    error: ErrorDetail
    """What is wrong."""
