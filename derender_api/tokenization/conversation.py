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
    from transformers.utils.chat_template_utils import render_jinja_template

    rendered: Any = render_jinja_template(
        conversations=[list(messages)],
        chat_template=chat_template,
        tools=tools,
        add_generation_prompt=add_generation_prompt,
        continue_final_message=continue_final_message,
        **variables,
    )
    texts, _ = rendered
    return str(texts[0])
