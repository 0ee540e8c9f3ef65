"""Requests of /tokenize and /detokenize (protocol 10.3)."""

from typing import Annotated, Any

from pydantic import Field

from derender_api.protocol.common import WireModel
from derender_api.protocol.openai_request import ChatMessage, Tool


class TokenizePromptRequest(WireModel):
    """Tokenize a text."""

    model: str | None = None
    """Served model name; the first one if null or empty."""
    prompt: str
    """The text."""
    add_special_tokens: bool = True
    """Add the special tokens that the tokenizer puts around a text."""
    return_token_strs: bool | None = False
    """Return the vocabulary pieces as well."""


class TokenizeChatRequest(WireModel):
    """Render a conversation with the model's chat template and tokenize it."""

    model: str | None = None
    """Served model name; the first one if null or empty."""
    messages: list[ChatMessage]
    """The conversation."""
    add_generation_prompt: bool = True
    """End with the start of an assistant message."""
    continue_final_message: bool = False
    """Leave the last message open."""
    add_special_tokens: bool = False
    """Add the special tokens that the tokenizer puts around a text."""
    return_token_strs: bool | None = False
    """Return the vocabulary pieces as well."""
    chat_template: str | None = None
    """Refused: templates of requests are not trusted."""
    chat_template_kwargs: dict[str, Any] | None = None
    """Further arguments of the template."""
    tools: list[Tool] | None = None
    """Tools to render."""


class DetokenizeRequest(WireModel):
    """Decode token IDs."""

    model: str | None = None
    """Served model name; the first one if null or empty."""
    tokens: list[Annotated[int, Field(ge=0, le=2**63 - 1)]]
    """Token IDs."""
