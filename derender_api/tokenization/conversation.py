"""Conversations to text with a chat template, by transformers (imported when first needed)."""

from collections.abc import Mapping, Sequence
from typing import Any

RESERVED = frozenset({"messages", "conversation", "conversations", "return_assistant_tokens_mask"})
"""Names that no variable of a template can have."""


def render_conversation(
    *, messages: Sequence[Mapping[str, Any]], chat_template: str, variables: Mapping[str, Any]
) -> str:
    """The conversation as text. `variables` are what the template sees besides `messages`.

    Raises whatever the template raises.
    """
    from transformers.utils import chat_template_utils

    # Its own annotations are narrower than what templates take.
    render: Any = chat_template_utils.render_jinja_template
    texts, _ = render(conversations=[list(messages)], chat_template=chat_template, **variables)
    return str(texts[0])
