"""/tokenize and /detokenize (protocol 10.3)."""

from typing import Any

from derender_api.catalog import catalog
from derender_api.exceptions import BadRequest
from derender_api.loaded_model import LoadedModel
from derender_api.protocol.tokenize import DetokenizeRequest, TokenizeChatRequest, TokenizePromptRequest
from derender_api.render.chat_text import chat_text
from derender_api.render.tools import tool_objects


def tokenize(request: TokenizePromptRequest | TokenizeChatRequest) -> dict[str, Any]:
    """Token IDs of a text or a rendered conversation, on request with their vocabulary pieces."""
    model = catalog.resolve(request.model or None)
    text = request.prompt if isinstance(request, TokenizePromptRequest) else _chat_text(request, model)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadRequest(str(error)) from error
    tokens = model.tokenizer.encode(text, add_special_tokens=request.add_special_tokens)
    return {
        "count": len(tokens),
        "max_model_len": model.max_model_len,
        "tokens": tokens,
        "token_strs": [model.tokenizer.piece(each) for each in tokens] if request.return_token_strs else None,
    }


def _chat_text(request: TokenizeChatRequest, model: LoadedModel) -> str:
    return chat_text(
        request.messages,
        model,
        tools=tool_objects(request.tools),
        kwargs={
            **model.configuration.default_chat_template_kwargs,
            **(request.chat_template_kwargs or {}),
            "add_generation_prompt": request.add_generation_prompt,
            "continue_final_message": request.continue_final_message,
        },
        chat_template=request.chat_template,
    )


def detokenize(request: DetokenizeRequest) -> dict[str, Any]:
    """The text of token IDs, special tokens kept; unknown IDs vanish."""
    model = catalog.resolve(request.model or None)
    return {"prompt": model.tokenizer.decode(request.tokens)}
