"""The prompts of a completion request."""

from typing import Any

from pydantic import TypeAdapter, ValidationError

from derender_api.exceptions import BadRequest, RequestRuleViolation, SchemaViolation
from derender_api.loaded_model import LoadedModel
from derender_api.protocol.common import TokenIds
from derender_api.protocol.render import CompletionRenderRequest
from derender_api.render.prompt import Prompt, prompt_of_ids, prompt_of_text

NO_PROMPT = "You must pass at least one prompt"
NO_EMBEDS = "prompt_embeds cannot be rendered: only text and token IDs are."
NO_SUFFIX = "suffix is only supported for models with FIM completion rendering"

_PROMPTS: TypeAdapter[Any] = TypeAdapter(str | TokenIds | list[str] | list[TokenIds])


def completion_prompts(request: CompletionRenderRequest, model: LoadedModel) -> list[Prompt]:
    """One prompt for every text or list of token IDs. Raises BadRequest or SchemaViolation."""
    if request.suffix is not None:
        raise BadRequest(NO_SUFFIX, param="suffix")
    if request.prompt_embeds:
        raise BadRequest(NO_EMBEDS, param="prompt_embeds")
    prompts = _listed(_validated(request.prompt))
    if not prompts:
        raise RequestRuleViolation(NO_PROMPT, param="prompt")
    return [_prompt(each, request, model) for each in prompts]


def _validated(prompt: Any) -> Any:
    try:
        return _PROMPTS.validate_python(prompt)
    except ValidationError as error:
        raise SchemaViolation.from_errors(
            [{**each, "loc": ("prompt", *each["loc"])} for each in error.errors(include_url=False)]
        ) from error


def _listed(prompt: Any) -> list[Any]:
    if isinstance(prompt, str) or (prompt and isinstance(prompt[0], int)):
        return [prompt]
    return list(prompt)


def _prompt(prompt: str | list[int], request: CompletionRenderRequest, model: LoadedModel) -> Prompt:
    if isinstance(prompt, str):
        return prompt_of_text(prompt, request, model, with_offsets=bool(request.return_token_offsets))
    return prompt_of_ids(prompt, request, model)
