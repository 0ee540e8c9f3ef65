"""Views of the gateway. REST framework's views are synchronous; `EngineView` awaits their handlers."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.request import Request

from derender_api.api_view import rendered
from derender_api.gateway.chat import chat, open_chat_stream, rendered_chat
from derender_api.gateway.completion import completion, open_completion_stream, rendered_completion
from derender_api.gateway.engine_request import model_with_engine, require_engines
from derender_api.gateway.stream import AnswerStream
from derender_api.openapi import answers, either
from derender_api.protocol.chat_answer import ChatChunkAnswer, ChatCompletionAnswer
from derender_api.protocol.completion_answer import CompletionAnswer, CompletionChunkAnswer
from derender_api.protocol.render import ChatRenderRequest, CompletionRenderRequest
from derender_api.serializers import ChatRenderSerializer, CompletionRenderSerializer
from derender_api.views import PostView, json_response
from derender_api.views_render import REQUEST_ID, WARNING


class EngineView(PostView, ABC):
    """A view whose `post` is a coroutine; there is none where no model has engines."""

    async def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]
        """What the framework's own does, awaiting the handler."""
        self.args, self.kwargs = args, kwargs
        self.request = request = self.initialize_request(request, *args, **kwargs)
        self.headers = self.default_response_headers
        try:
            await require_engines()
            self.initial(request, *args, **kwargs)
            if request.method != "POST":
                raise MethodNotAllowed(request.method)
            response = await self.post(request)
        except Exception as error:
            response = self.handle_exception(error)
        try:
            return rendered(self.finalize_response(request, response, *args, **kwargs))  # type: ignore[arg-type]
        finally:
            self.forget()

    @abstractmethod
    async def post(self, request: Request) -> HttpResponseBase:
        """The answer."""


class ChatView(EngineView):
    """POST /v1/chat/completions."""

    @extend_schema(
        summary="A chat completion by an engine",
        request=ChatRenderRequest,
        responses=answers(either("ChatAnswer", ChatCompletionAnswer, ChatChunkAnswer)),
        tags=["gateway"],
    )
    async def post(self, request: Request) -> HttpResponseBase:
        """A chat completion, or with `stream` true its chunks as server-sent events. 404 where there are no engines."""
        body = ChatRenderSerializer.validated(request)
        model = model_with_engine(body.model)
        rendering = await rendered_chat(body, model, request_id=request.headers.get(REQUEST_ID))
        if body.stream:
            return _events(await open_chat_stream(body, model, rendering.answer), rendering.warnings)
        return _whole(await chat(body, model, rendering.answer), rendering.warnings)


class CompletionView(EngineView):
    """POST /v1/completions."""

    @extend_schema(
        summary="Text completions by an engine",
        request=CompletionRenderRequest,
        responses=answers(either("CompletionsAnswer", CompletionAnswer, CompletionChunkAnswer)),
        tags=["gateway"],
    )
    async def post(self, request: Request) -> HttpResponseBase:
        """A text completion, or with `stream` true its chunks as server-sent events. 404 where there are no engines."""
        body = CompletionRenderSerializer.validated(request)
        model = model_with_engine(body.model)
        rendering = await rendered_completion(body, model, request_id=request.headers.get(REQUEST_ID))
        if body.stream:
            return _events(await open_completion_stream(body, model, rendering.answer), rendering.warnings)
        return _whole(await completion(body, model, rendering.answer), rendering.warnings)


def _whole(answer: dict[str, Any], warnings: Sequence[str]) -> HttpResponse:
    return _warned(json_response(answer), warnings)


def _events(stream: AnswerStream, warnings: Sequence[str]) -> StreamingHttpResponse:
    response = StreamingHttpResponse(stream, content_type="text/event-stream; charset=utf-8")
    response["Cache-Control"] = "no-cache"
    # nginx would collect the events otherwise.
    response["X-Accel-Buffering"] = "no"
    return _warned(response, warnings)


def _warned(response: Any, warnings: Sequence[str]) -> Any:
    if warnings:
        response[WARNING] = "; ".join(warnings)
    return response
