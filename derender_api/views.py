"""Views of the API: the body to a wire model, the service's answer to a response. Errors are raised."""

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from derender_api.answers import Json, encoded
from derender_api.api_view import ApiView
from derender_api.openapi import answers, either
from derender_api.protocol.answer import DetokenizeAnswer, TokenizeAnswer
from derender_api.protocol.chat_answer import ChatChunkAnswer, ChatCompletionAnswer
from derender_api.protocol.completion_answer import CompletionAnswer, CompletionChunkAnswer
from derender_api.protocol.derender import (
    DerenderChatBulkRequest,
    DerenderChatRequest,
    DerenderChatStreamRequest,
    DerenderCompletionBulkRequest,
    DerenderCompletionRequest,
    DerenderCompletionStreamRequest,
)
from derender_api.protocol.tokenize import DetokenizeRequest, TokenizeChatRequest, TokenizePromptRequest
from derender_api.serializers import (
    ChatDerenderSerializer,
    CompletionDerenderSerializer,
    DetokenizeSerializer,
    TokenizeSerializer,
)
from derender_api.services import (
    derender_chat,
    derender_chat_chunk,
    derender_chat_chunks,
    derender_completion,
    derender_completion_chunk,
    derender_completion_chunks,
)
from derender_api.token_services import detokenize, tokenize


def json_response(answer: Json) -> HttpResponse:
    """An answer that needs no renderer, whose choice costs a tenth of a small call."""
    return HttpResponse(encoded(answer), content_type="application/json")


class PostView(ApiView):
    """Answers POST only."""

    http_method_names = ["post"]


class ChatDerenderView(PostView):
    """POST /v1/chat/completions/derender."""

    @extend_schema(
        summary="Token IDs of a chat to a chat completion, whole or chunk by chunk",
        request=either("ChatDerenderBody", DerenderChatRequest, DerenderChatStreamRequest, DerenderChatBulkRequest),
        responses=answers(either("ChatDerenderAnswer", ChatCompletionAnswer, ChatChunkAnswer)),
        tags=["derender"],
    )
    def post(self, request: Request) -> HttpResponse:
        """A chat completion, or with `stream` true `{"chunk", "stream_state"}` (`chunks` for several)."""
        body = ChatDerenderSerializer.validated(request)
        match body:
            case DerenderChatStreamRequest():
                answer = derender_chat_chunk(body)
            case DerenderChatBulkRequest():
                answer = derender_chat_chunks(body)
            case _:
                answer = derender_chat(body)
        return json_response(answer)


class CompletionDerenderView(PostView):
    """POST /v1/completions/derender."""

    @extend_schema(
        summary="Token IDs of completions to a text completion, whole or chunk by chunk",
        request=either(
            "CompletionDerenderBody",
            DerenderCompletionRequest,
            DerenderCompletionStreamRequest,
            DerenderCompletionBulkRequest,
        ),
        responses=answers(either("CompletionDerenderAnswer", CompletionAnswer, CompletionChunkAnswer)),
        tags=["derender"],
    )
    def post(self, request: Request) -> HttpResponse:
        """A text completion, or with `stream` true `{"chunk", "stream_state"}` (`chunks` for several)."""
        body = CompletionDerenderSerializer.validated(request)
        match body:
            case DerenderCompletionStreamRequest():
                answer = derender_completion_chunk(body)
            case DerenderCompletionBulkRequest():
                answer = derender_completion_chunks(body)
            case _:
                answer = derender_completion(body)
        return json_response(answer)


class TokenizeView(PostView):
    """POST /tokenize."""

    @extend_schema(
        summary="A text, or a conversation in the model's chat template, to token IDs",
        request=either("TokenizeBody", TokenizePromptRequest, TokenizeChatRequest),
        responses=answers(TokenizeAnswer),
        tags=["tokens"],
    )
    def post(self, request: Request) -> HttpResponse:
        """`{"count", "max_model_len", "tokens", "token_strs"}`."""
        return json_response(tokenize(TokenizeSerializer.validated(request)))


class DetokenizeView(PostView):
    """POST /detokenize."""

    @extend_schema(
        summary="Token IDs to text", request=DetokenizeRequest, responses=answers(DetokenizeAnswer), tags=["tokens"]
    )
    def post(self, request: Request) -> HttpResponse:
        """`{"prompt"}`: the text, special tokens kept."""
        return json_response(detokenize(DetokenizeSerializer.validated(request)))
