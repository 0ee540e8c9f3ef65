"""Conversations to text with a chat template, by transformers.

It takes a second to import; `load_template_engine` does so ahead of the first request.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

RESERVED = frozenset({"messages", "conversation", "conversations", "return_assistant_tokens_mask"})
"""Names that no variable of a template can have."""


def load_template_engine() -> Any:
    """The module that renders."""
    # It would tell every operator that there is no PyTorch.
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    from transformers.utils import chat_template_utils

    return chat_template_utils


def render_conversation(
    *, messages: Sequence[Mapping[str, Any]], chat_template: str, variables: Mapping[str, Any]
) -> str:
    """The conversation as text. `variables` are what the template sees besides `messages`.

    Raises whatever the template raises.
    """
    # Its own annotations are narrower than what templates take.
    texts, _ = load_template_engine().render_jinja_template(
        conversations=[list(messages)], chat_template=chat_template, **variables
    )
    return str(texts[0])
