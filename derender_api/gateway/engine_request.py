"""What an engine is asked, made from a rendered request."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

from derender_api.catalog import catalog
from derender_api.exceptions import BadRequest, NotFound
from derender_api.gateway.errors import EngineRefused
from derender_api.loaded_model import LoadedModel
from derender_api.protocol.openai_request import ChatCompletionRequest, CompletionRequest
from derender_api.services.common import Json

P = ParamSpec("P")
T = TypeVar("T")

NO_CONSTRAINTS = "Structured outputs requires a tokenizer"
"""How vLLM refuses constraints of its output where it has no tokenizer (`--tokens-only`)."""
NO_ECHO = "echo is not supported: the answer holds what was generated, not the prompt."


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run what takes milliseconds or waits, such as rendering, beside the event loop."""
    return await asyncio.to_thread(function, *args, **kwargs)


async def require_engines() -> None:
    """Raises NotFound where no model has engines, as for a path that there is not."""
    if not catalog.is_fresh:
        await in_thread(catalog.models)
    if not any(model.configuration.engine_urls for model in catalog.models()):
        raise NotFound("Not Found")


def model_with_engine(name: str | None) -> LoadedModel:
    """The served model, which must have engines. Raises ModelNotFound or NotFound."""
    model = catalog.resolve(name or None)
    if not model.configuration.engine_urls:
        raise NotFound(f"No engine is configured for the model `{model.names[0]}`.")
    return model


def engine_request(rendered: Json, model: LoadedModel) -> Json:
    """`rendered` for the engine: with the name that the model has there, and without stop strings.

    An engine without a detokenizer cannot find stop strings, and refuses them; the gateway does.
    """
    sampling = {key: value for key, value in rendered["sampling_params"].items() if key != "stop"}
    return {**rendered, "model": model.configuration.engine_model, "sampling_params": sampling}


async def constrained_if_possible(
    call: Callable[[Json], Awaitable[T]], asked: Json, request: ChatCompletionRequest | CompletionRequest
) -> T:
    """`call` with `asked`; where the engine can keep no constraint, once more without one that no client asked for."""
    try:
        return await call(asked)
    except EngineRefused as refusal:
        if NO_CONSTRAINTS not in refusal.message or not _is_free(request):
            raise
    sampling = {key: value for key, value in asked["sampling_params"].items() if key != "structured_outputs"}
    return await call({**asked, "sampling_params": sampling})


def _is_free(request: ChatCompletionRequest | CompletionRequest) -> bool:
    """Whether the client leaves the output to the model: a constraint is then the format's own habit."""
    return (
        isinstance(request, ChatCompletionRequest)
        and request.tool_choice == "auto"
        and request.parallel_tool_calls is not False
        and not any(tool.function.strict for tool in request.tools or ())
        and request.structured_outputs is None
        and (request.response_format is None or request.response_format.type == "text")
    )


def require_no_echo(request: Any) -> None:
    """Raises BadRequest for `echo`."""
    if request.echo:
        raise BadRequest(NO_ECHO, param="echo")
