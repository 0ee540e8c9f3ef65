"""DRF serializers that carry the pydantic wire models: body bytes in, a validated model out.

Errors stay those of the wire models (`derender_api.exceptions`), with the place that each is about.
"""

from abc import ABC, abstractmethod
from functools import cache
from typing import Any, Self

from django.http import HttpRequest
from pydantic import BaseModel
from rest_framework.request import Request
from rest_framework.serializers import BaseSerializer

from derender_api.exceptions import UnsupportedContentType
from derender_api.protocol.decoding import decode_one_of, decode_shaped, read_json
from derender_api.protocol.derender import CHAT_SHAPES, COMPLETION_SHAPES
from derender_api.protocol.render import ChatRenderRequest, CompletionRenderRequest
from derender_api.protocol.tokenize import DetokenizeRequest, TokenizeChatRequest, TokenizePromptRequest

JSON_TYPE = "application/json"


class BodySerializer(BaseSerializer[Any], ABC):
    """Validates a body's bytes."""

    def to_internal_value(self, data: bytes) -> Any:
        """The wire model in `data`."""
        return self.decode(data)

    @abstractmethod
    def decode(self, body: bytes) -> BaseModel:
        """The wire model in `body`; raises an ApiError."""

    @classmethod
    def validated(cls, request: Request) -> Any:
        """The wire model in the body of `request`; raises InvalidBody or RequestRuleViolation."""
        return cls._shared().run_validation(read_body(request._request))

    @classmethod
    @cache
    def _shared(cls) -> Self:
        """One for all requests: it keeps nothing of them, and making one costs more than all else that it does."""
        return cls()


class ChatDerenderSerializer(BodySerializer):
    """DerenderChatRequest or DerenderChatStreamRequest."""

    def decode(self, body: bytes) -> BaseModel:
        return decode_shaped(body, CHAT_SHAPES)


class CompletionDerenderSerializer(BodySerializer):
    """DerenderCompletionRequest or DerenderCompletionStreamRequest."""

    def decode(self, body: bytes) -> BaseModel:
        return decode_shaped(body, COMPLETION_SHAPES)


class ChatRenderSerializer(BodySerializer):
    """ChatRenderRequest."""

    def decode(self, body: bytes) -> BaseModel:
        return decode_one_of(body, ChatRenderRequest)


class CompletionRenderSerializer(BodySerializer):
    """CompletionRenderRequest."""

    def decode(self, body: bytes) -> BaseModel:
        return decode_one_of(body, CompletionRenderRequest)


class TokenizeSerializer(BodySerializer):
    """TokenizeChatRequest or TokenizePromptRequest."""

    def decode(self, body: bytes) -> BaseModel:
        return decode_one_of(body, TokenizePromptRequest, TokenizeChatRequest, key="messages")


class DetokenizeSerializer(BodySerializer):
    """DetokenizeRequest."""

    def decode(self, body: bytes) -> BaseModel:
        return decode_one_of(body, DetokenizeRequest)


def read_body(request: HttpRequest) -> bytes:
    """The body of a JSON request. Raises UnsupportedContentType, or InvalidJson where that comes first (protocol 2)."""
    content_type = request.META.get("CONTENT_TYPE", "").lower()
    media_type = content_type.partition(";")[0]
    if media_type == JSON_TYPE:
        return request.body
    kind, _, subtype = media_type.strip().partition("/")
    if kind == "application" and (subtype == "json" or subtype.endswith("+json")):
        read_json(request.body)
    raise UnsupportedContentType
