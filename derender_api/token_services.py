"""/tokenize and /detokenize (protocol 10.3)."""

from typing import Any

from derender_api.catalog import catalog
from derender_api.exceptions import BadRequest
from derender_api.loaded_model import LoadedModel
from derender_api.parsing import over_defaults
from derender_api.protocol.rules import CONTINUES_AND_GENERATES
from derender_api.protocol.tokenize import DetokenizeRequest, TokenizeChatRequest, TokenizePromptRequest
from derender_api.render.chat_text import chat_text, check_trust
from derender_api.render.deepseek.encoder import deepseek_encoder
from derender_api.render.families import is_harmony
from derender_api.render.harmony import harmony_tokens
from derender_api.render.mistral import mistral_tokens
from derender_api.render.prompt import check_encodable
from derender_api.render.tools import tool_objects


def tokenize(request: TokenizePromptRequest | TokenizeChatRequest) -> dict[str, Any]:
    """Token IDs of a text or a rendered conversation, on request with their vocabulary pieces."""
    model = catalog.resolve(request.model or None)
    if isinstance(request, TokenizePromptRequest):
        tokens = _encode(request.prompt, request, model)
    else:
        tokens = _chat_tokens(request, model)
    return {
        "count": len(tokens),
        "max_model_len": model.max_model_len,
        "tokens": tokens,
        "token_strs": [model.tokenizer.piece(each) for each in tokens] if request.return_token_strs else None,
    }


def _encode(text: str, request: TokenizePromptRequest | TokenizeChatRequest, model: LoadedModel) -> list[int]:
    check_encodable(text)
    return model.tokenizer.encode(text, add_special_tokens=request.add_special_tokens)


def _chat_tokens(request: TokenizeChatRequest, model: LoadedModel) -> list[int]:
    """What /render makes of a conversation, but that arguments which only templates have do not matter to others."""
    tools = tool_objects(request.tools)
    if is_harmony(model):
        if request.continue_final_message and request.add_generation_prompt:
            raise BadRequest(CONTINUES_AND_GENERATES)
        return harmony_tokens(request.messages, model, tools=tools)
    if model.tokenizer.chat_encoder is not None:
        check_trust(request.chat_template, request.chat_template_kwargs or {}, model)
        return mistral_tokens(
            request.messages,
            model.tokenizer.chat_encoder,
            tools=tools,
            add_generation_prompt=request.add_generation_prompt,
            continue_final_message=request.continue_final_message,
        )
    kwargs = {
        **over_defaults(request.chat_template_kwargs or {}, model),
        "add_generation_prompt": request.add_generation_prompt,
        "continue_final_message": request.continue_final_message,
    }
    encode = deepseek_encoder(model)
    if encode is not None:
        check_trust(request.chat_template, kwargs, model)
        return _encode(encode(request.messages, tools=tools, kwargs=kwargs), request, model)
    text = chat_text(request.messages, model, tools=tools, kwargs=kwargs, chat_template=request.chat_template)
    return _encode(text, request, model)


def detokenize(request: DetokenizeRequest) -> dict[str, Any]:
    """The text of token IDs, special tokens kept; unknown IDs vanish."""
    model = catalog.resolve(request.model or None)
    return {"prompt": model.tokenizer.decode(request.tokens)}
