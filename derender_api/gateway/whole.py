"""An engine's whole response."""

from functools import partial

from derender_api.gateway.engine_request import constrained_if_possible, engine_request
from derender_api.gateway.engines import engines
from derender_api.gateway.stop_strings import gather
from derender_api.loaded_model import LoadedModel
from derender_api.protocol.generate import GenerateTokensResponse
from derender_api.protocol.openai_request import ChatCompletionRequest, CompletionRequest
from derender_api.services.common import Json
from derender_api.stop import StopRules


async def whole_response(
    request: ChatCompletionRequest | CompletionRequest, model: LoadedModel, rendered: Json, *, keeps_special: bool
) -> GenerateTokensResponse:
    """The response to one engine request, with the prompt's IDs. Raises ApiError.

    `keeps_special`: special tokens are text, because a parser reads it.
    """
    urls, asked = model.configuration.engine_urls, engine_request(rendered, model)
    if StopRules.of(request).stop:
        stream = await constrained_if_possible(partial(engines.stream, urls), asked, request)
        response = await gather(
            stream, request, model, prompt_token_ids=rendered["token_ids"], keeps_special=keeps_special
        )
    else:
        response = await constrained_if_possible(partial(engines.whole, urls), asked, request)
    response.prompt_token_ids = rendered["token_ids"]
    return response
