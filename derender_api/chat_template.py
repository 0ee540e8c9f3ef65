"""Conversations of requests to text with a model's chat template."""

from typing import Any

from derender_api.exceptions import BadRequest
from derender_api.loaded_model import LoadedModel
from derender_api.protocol.tokenize import TokenizeChatRequest
from derender_api.tokenization.conversation import render_conversation
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


def render_chat(request: TokenizeChatRequest, model: LoadedModel) -> str:
    """The conversation as text. Raises BadRequest for what the template or its rules refuse."""
    kwargs = request.chat_template_kwargs or {}
    if request.chat_template is not None or kwargs.get("chat_template") is not None:
        raise BadRequest(UNTRUSTED)
    if not request.messages:
        raise BadRequest("Cannot apply chat template to an empty conversation. Provide at least one message.")
    if request.continue_final_message and request.add_generation_prompt:
        raise BadRequest(INCOMPATIBLE)
    template = model.tokenizer.chat_template
    if not template:
        raise BadRequest("The model has no chat template; serve it with --chat-template.")
    defaults = model.configuration.default_chat_template_kwargs
    try:
        return render_conversation(
            [_plain(message.model_dump(exclude_unset=True)) for message in request.messages],
            chat_template=template,
            tools=[tool.model_dump(exclude_none=True) for tool in request.tools] if request.tools else None,
            add_generation_prompt=request.add_generation_prompt,
            continue_final_message=request.continue_final_message,
            variables={**_special_tokens(model), **defaults, **kwargs},
        )
    except Exception as error:
        # Templates raise what they like, and say in words what is wrong with the conversation.
        raise BadRequest(str(error) or type(error).__name__) from error


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    """The message with parts that are all text joined to one string, and content that is never undefined."""
    content = message.get("content")
    if isinstance(content, list):
        texts = [part if isinstance(part, str) else part.get("text") for part in content]
        content = "\n".join(texts) if all(isinstance(text, str) for text in texts) else content
    return {**message, "content": "" if content is None else content}


def _special_tokens(model: LoadedModel) -> dict[str, str]:
    """bos_token and the others, which templates use by name."""
    config = model.tokenizer.tokenizer_config
    tokens = {name: config.get(name) for name in NAMED_TOKENS}
    texts = {name: token.get("content") if isinstance(token, dict) else token for name, token in tokens.items()}
    return {name: text for name, text in texts.items() if isinstance(text, str)}
