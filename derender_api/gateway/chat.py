"""Chat completions through an engine: render, generate, derender."""

from derender_api.gateway.engine_request import in_thread, require_no_echo
from derender_api.gateway.engine_stream import EngineStream
from derender_api.gateway.errors import engine_to_blame
from derender_api.gateway.stream import AnswerStream, open_streams
from derender_api.gateway.whole import whole_response
from derender_api.loaded_model import LoadedModel
from derender_api.protocol.derender import ChatStreamRequest, DerenderChatRequest
from derender_api.protocol.generate import GenerateTokensStreamResponse
from derender_api.protocol.render import ChatRenderRequest
from derender_api.services.chat import chat_chunk, derender_chat
from derender_api.services.common import Json
from derender_api.services.render import Rendering, render_chat
from derender_api.stream_state import Carried


async def rendered_chat(
    request: ChatRenderRequest, model: LoadedModel, *, request_id: str | None = None
) -> Rendering[Json]:
    """The engine request. Raises ApiError."""
    require_no_echo(request)
    return await in_thread(render_chat, request, model, request_id=request_id)


async def chat(request: ChatRenderRequest, model: LoadedModel, rendered: Json) -> Json:
    """The whole answer. Raises ApiError."""
    response = await whole_response(request, model, rendered, keeps_special=model.plan is not None)
    response.request_id = rendered["request_id"]
    derender = DerenderChatRequest.model_construct(
        model=request.model,
        generate_response=response,
        prompt_tokens=len(rendered["token_ids"]),
        chat_request=request,
    )
    with engine_to_blame():
        return await in_thread(derender_chat, derender, model=model)


async def open_chat_stream(request: ChatRenderRequest, model: LoadedModel, rendered: Json) -> "ChatStream":
    """A streamed answer; the engine has begun. Raises ApiError."""
    return ChatStream(await open_streams(request, model, [rendered]), request, model, rendered)


class ChatStream(AnswerStream):
    """Chat completion chunks."""

    kind = "chat.completion.chunk"
    content = "delta"

    def __init__(
        self, streams: list[EngineStream], request: ChatRenderRequest, model: LoadedModel, rendered: Json
    ) -> None:
        prompt = rendered["token_ids"]
        super().__init__(streams, request, model, request_id=rendered["request_id"], prompts=[prompt])
        self._request = ChatStreamRequest.model_construct(
            stream=True, model=request.model, prompt_token_ids=prompt, chat_request=request
        )

    def derendered(self, prompt: int, chunk: GenerateTokensStreamResponse, carried: Carried) -> Json:
        return chat_chunk(chunk, self._request, self._model, carried)
