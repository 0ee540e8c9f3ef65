"""Views of the render endpoints (protocol 10): the body to a wire model, the service's answer to a response."""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from derender_api.catalog import catalog
from derender_api.openapi import answers
from derender_api.protocol.render import (
    ChatRenderRequest,
    CompletionRenderRequest,
    GenerateRequestAnswer,
    GenerateRequestsAnswer,
)
from derender_api.serializers import ChatRenderSerializer, CompletionRenderSerializer
from derender_api.services.render import Rendering, render_chat, render_completion
from derender_api.views import PostView, json_response

REQUEST_ID = "x-request-id"
WARNING = "X-Derender-Warning"


class ChatRenderView(PostView):
    """POST /v1/chat/completions/render."""

    @extend_schema(
        summary="A chat to the request for a token-in, token-out engine",
        request=ChatRenderRequest,
        responses=answers(GenerateRequestAnswer),
        tags=["render"],
    )
    def post(self, request: Request) -> HttpResponse:
        """The engine request: token IDs, sampling parameters, and the context that parsers need."""
        body = ChatRenderSerializer.validated(request)
        model = catalog.resolve(body.model or None)
        return _response(render_chat(body, model, request_id=request.headers.get(REQUEST_ID)))


class CompletionRenderView(PostView):
    """POST /v1/completions/render."""

    @extend_schema(
        summary="Completion prompts to requests for a token-in, token-out engine",
        request=CompletionRenderRequest,
        responses=answers(GenerateRequestsAnswer),
        tags=["render"],
    )
    def post(self, request: Request) -> HttpResponse:
        """One engine request per prompt."""
        body = CompletionRenderSerializer.validated(request)
        model = catalog.resolve(body.model or None)
        return _response(render_completion(body, model, request_id=request.headers.get(REQUEST_ID)))


def _response(rendering: Rendering[Any]) -> HttpResponse:
    """The answer, with warnings in a header."""
    response = json_response(rendering.answer)
    if rendering.warnings:
        response[WARNING] = "; ".join(rendering.warnings)
    return response
