"""The prompt of a chat request, in the way that the model's family renders it."""

from collections.abc import Mapping
from typing import Any

from derender_api.exceptions import RequestRuleViolation
from derender_api.loaded_model import LoadedModel
from derender_api.protocol.render import ChatRenderRequest
from derender_api.render.chat_text import chat_text, check_trust
from derender_api.render.deepseek.encoder import deepseek_encoder
from derender_api.render.families import is_harmony
from derender_api.render.harmony import harmony_tokens
from derender_api.render.kimi_k3 import is_kimi_k3, request_variables
from derender_api.render.mistral import mistral_tokens
from derender_api.render.prompt import Prompt, given_prompt, prompt_of_ids, prompt_of_text, ready_prompt

NO_TEMPLATES = "chat_template is not supported for Mistral tokenizers."


def chat_prompt(
    request: ChatRenderRequest, model: LoadedModel, *, tools: list[dict[str, Any]] | None, kwargs: Mapping[str, Any]
) -> Prompt:
    """The prompt. `tools` are complete tool objects, `kwargs` the effective template arguments.

    Raises BadRequest.
    """
    given = given_prompt(request.kv_transfer_params, model)
    if given is not None:
        return given
    if request.tool_choice == "none" and model.configuration.exclude_tools_when_tool_choice_none:
        tools = None
    if is_harmony(model):
        token_ids = harmony_tokens(request.messages, model, tools=tools, effort=request.reasoning_effort)
        return ready_prompt(token_ids, model)
    if model.tokenizer.chat_encoder is not None:
        if request.chat_template is not None or request.chat_template_kwargs is not None:
            raise RequestRuleViolation(NO_TEMPLATES, param="chat_template")
        token_ids = mistral_tokens(
            request.messages,
            model.tokenizer.chat_encoder,
            tools=tools,
            add_generation_prompt=request.add_generation_prompt,
            continue_final_message=request.continue_final_message,
        )
        return prompt_of_ids(token_ids, request, model)
    encode = deepseek_encoder(model)
    if encode is not None:
        check_trust(request.chat_template, kwargs, model)
        text = encode(request.messages, tools=tools, kwargs=kwargs)
        return prompt_of_text(text, request, model, with_offsets=False)
    is_kimi = is_kimi_k3(model)
    if is_kimi:
        kwargs = {**kwargs, **request_variables(request)}
    text = chat_text(request.messages, model, tools=tools, kwargs=kwargs, chat_template=request.chat_template)
    return prompt_of_text(text, request, model, with_offsets=bool(request.return_token_offsets) and not is_kimi)
