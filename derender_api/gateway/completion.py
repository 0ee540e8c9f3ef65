"""Text completions through an engine: render, generate, derender. Each prompt is a call of its own."""

from collections.abc import Sequence

from derender_api.gateway.engine_request import in_thread, require_no_echo
from derender_api.gateway.engine_stream import EngineStream
from derender_api.gateway.errors import engine_to_blame
from derender_api.gateway.merge import all_of
from derender_api.gateway.stream import AnswerStream, open_streams
from derender_api.gateway.whole import whole_response
from derender_api.loaded_model import LoadedModel
from derender_api.protocol.derender import CompletionStreamRequest, DerenderCompletionRequest
from derender_api.protocol.generate import GenerateTokensStreamResponse
from derender_api.protocol.render import CompletionRenderRequest
from derender_api.services.common import Json
from derender_api.services.completion import completion_chunk, derender_completion
from derender_api.services.render import Rendering, render_completion
from derender_api.stream_state import Carried


async def rendered_completion(
    request: CompletionRenderRequest, model: LoadedModel, *, request_id: str | None = None
) -> Rendering[list[Json]]:
    """One engine request per prompt. Raises ApiError."""
    require_no_echo(request)
    return await in_thread(render_completion, request, model, request_id=request_id)


async def completion(request: CompletionRenderRequest, model: LoadedModel, rendered: Sequence[Json]) -> Json:
    """The whole answer. Raises ApiError; where one prompt fails, the calls for the others are ended."""
    responses = await all_of(whole_response(request, model, each, keeps_special=False) for each in rendered)
    responses[0].request_id = _identity(rendered)
    derender = DerenderCompletionRequest.model_construct(
        model=request.model,
        generate_responses=responses,
        prompt_tokens=[len(each["token_ids"]) for each in rendered],
        completion_request=request,
    )
    with engine_to_blame():
        return await in_thread(derender_completion, derender)


async def open_completion_stream(
    request: CompletionRenderRequest, model: LoadedModel, rendered: Sequence[Json]
) -> "CompletionStream":
    """A streamed answer; the engines have begun. Raises ApiError."""
    return CompletionStream(await open_streams(request, model, rendered), request, model, rendered)


class CompletionStream(AnswerStream):
    """Text completion chunks."""

    kind = "text_completion"
    content = "text"

    def __init__(
        self,
        streams: list[EngineStream],
        request: CompletionRenderRequest,
        model: LoadedModel,
        rendered: Sequence[Json],
    ) -> None:
        prompts = [each["token_ids"] for each in rendered]
        super().__init__(streams, request, model, request_id=_identity(rendered), prompts=prompts)
        self._requests = [
            CompletionStreamRequest.model_construct(
                stream=True, model=request.model, prompt_token_ids=prompt, completion_request=request
            )
            for prompt in prompts
        ]

    def derendered(self, prompt: int, chunk: GenerateTokensStreamResponse, carried: Carried) -> Json:
        return completion_chunk(chunk, self._requests[prompt], self._model, carried)


def _identity(rendered: Sequence[Json]) -> str:
    """The ID of the answer: that of the only engine request, or what those of several begin with."""
    request_id: str = rendered[0]["request_id"]
    return request_id if len(rendered) == 1 else request_id.removesuffix("-0")
