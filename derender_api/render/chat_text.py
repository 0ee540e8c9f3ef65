"""A conversation to text with a chat template: which template, with what in it, and what a request may change."""

from collections.abc import Mapping
from typing import Any

from derender_api.exceptions import BadRequest
from derender_api.loaded_model import LoadedModel
from derender_api.protocol.openai_request import ChatMessage
from derender_api.render.conversation import template_messages
from derender_api.render.kimi_k3 import is_kimi_k3, kimi_messages, kimi_variables
from derender_api.render.sandbox import render_untrusted
from derender_api.render.template_traits import TemplateTraits, traits_of
from derender_api.tokenization.conversation import RESERVED, render_conversation
from derender_api.tokenization.files import NAMED_TOKENS

UNTRUSTED = (
    "Chat template is passed with request, but --trust-request-chat-template is not set. "
    "Refused request with untrusted chat template."
)
INCOMPATIBLE = (
    "continue_final_message and add_generation_prompt are not compatible. Use continue_final_message when you want "
    "the model to continue the final message, and add_generation_prompt when you want to add a header that will "
    "prompt it to start a new assistant message instead."
)
EMPTY = "Cannot apply chat template to an empty conversation. Provide at least one message."
NO_ENCODER = (
    "Chats of --tokenizer-mode {mode} are not rendered here: its encoder is vLLM's. Serve the model with a "
    "--chat-template."
)
NO_TEMPLATE = (
    "As of transformers v4.44, default chat template is no longer allowed, so you must provide a chat template if the "
    "tokenizer does not define one."
)


def chat_text(
    messages: list[ChatMessage],
    model: LoadedModel,
    *,
    tools: list[dict[str, Any]] | None,
    kwargs: Mapping[str, Any],
    chat_template: str | None,
) -> str:
    """The text of a conversation. `kwargs` are the effective template arguments, `chat_template` the request's own.

    Raises BadRequest for what the request may not do and for whatever the template raises: templates say in words what
    is wrong with a conversation.
    """
    check_trust(chat_template, kwargs, model)
    if model.configuration.needs_encoder and chat_template is None:
        raise BadRequest(NO_ENCODER.format(mode=model.configuration.tokenizer_mode))
    template = chat_template or model.tokenizer.chat_template
    if not messages:
        raise BadRequest(EMPTY)
    if kwargs.get("continue_final_message") and kwargs.get("add_generation_prompt"):
        raise BadRequest(INCOMPATIBLE)
    if not template:
        raise BadRequest(NO_TEMPLATE)
    reserved = sorted(RESERVED.intersection(kwargs))
    if reserved:
        raise BadRequest(f"chat_template_kwargs must not hold {', '.join(map(repr, reserved))}.")
    traits, is_kimi = _traits(template, model), is_kimi_k3(model)
    made = template_messages(
        messages, wants_parts=traits.wants_parts, knows_developer=traits.knows_developer or is_kimi
    )
    arguments: dict[str, Any] = {
        "messages": kimi_messages(made) if is_kimi else made,
        "chat_template": template,
        "variables": {
            **special_tokens(model),
            "tools": tools,
            **_variables(kimi_variables(kwargs) if is_kimi else kwargs),
        },
    }
    if chat_template:
        return render_untrusted(arguments)
    try:
        return render_conversation(**arguments)
    except Exception as error:
        raise BadRequest(str(error) or type(error).__name__) from error


def check_trust(chat_template: str | None, kwargs: Mapping[str, Any], model: LoadedModel) -> None:
    """Raise BadRequest for a request with a template of its own where the model trusts none."""
    own = chat_template if chat_template is not None else kwargs.get("chat_template")
    if own is not None and not model.configuration.trust_request_chat_template:
        raise BadRequest(UNTRUSTED)


def _traits(template: str, model: LoadedModel) -> TemplateTraits:
    traits, wanted = traits_of(template), model.configuration.chat_template_content_format
    if wanted == "auto":
        return traits
    return TemplateTraits(wants_parts=wanted == "openai", knows_developer=traits.knows_developer)


def _variables(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in kwargs.items() if name != "chat_template"}


def special_tokens(model: LoadedModel) -> dict[str, str]:
    """bos_token and the others, which templates use by name."""
    config = model.tokenizer.tokenizer_config
    tokens = {name: config.get(name) for name in NAMED_TOKENS}
    texts = {name: token.get("content") if isinstance(token, dict) else token for name, token in tokens.items()}
    return {name: text for name, text in texts.items() if isinstance(text, str)}
