"""The prompt of a chat request, in the way that the model's family renders it."""

from collections.abc import Mapping
from typing import Any

from derender_api.loaded_model import LoadedModel
from derender_api.protocol.render import ChatRenderRequest
from derender_api.render.chat_text import chat_text
from derender_api.render.prompt import Prompt, given_prompt, prompt_of_text

HARMONY_MODEL = "gpt_oss"


def is_harmony(model: LoadedModel) -> bool:
    """Whether the model speaks Harmony, which is rendered without its template."""
    return model.tokenizer.model_type == HARMONY_MODEL


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
    text = chat_text(request.messages, model, tools=tools, kwargs=kwargs, chat_template=request.chat_template)
    return prompt_of_text(text, request, model, with_offsets=bool(request.return_token_offsets))
