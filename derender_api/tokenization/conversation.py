"""Conversations to text with a chat template, by transformers (imported when first needed)."""

from collections.abc import Mapping, Sequence
from typing import Any


def render_conversation(
    messages: Sequence[Mapping[str, Any]],
    *,
    chat_template: str,
    tools: Sequence[Mapping[str, Any]] | None,
    add_generation_prompt: bool,
    continue_final_message: bool,
    variables: Mapping[str, Any],
) -> str:
    """The conversation as text. Raises whatever the template raises."""
    from transformers.utils import chat_template_utils

    # Its own annotations are narrower than what templates take.
    render: Any = chat_template_utils.render_jinja_template
    texts, _ = render(
        conversations=[list(messages)],
        chat_template=chat_template,
        tools=tools,
        add_generation_prompt=add_generation_prompt,
        continue_final_message=continue_final_message,
        **variables,
    )
    return str(texts[0])
