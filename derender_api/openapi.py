"""Helpers for the OpenAPI document (drf-spectacular)."""

from typing import Any, cast

from drf_spectacular.utils import PolymorphicProxySerializer
from pydantic import BaseModel

from derender_api.protocol.answer import ErrorAnswer


def either(name: str, *models: type[BaseModel]) -> PolymorphicProxySerializer:
    """A body that is one of several wire models; drf-spectacular takes pydantic models for serializers."""
    return PolymorphicProxySerializer(
        component_name=name, serializers=cast(Any, list(models)), resource_type_field_name=None
    )


def answers(answer: Any) -> dict[str, Any]:
    """The answers of an endpoint: `answer`, or an error."""
    return {"200": answer, "400": ErrorAnswer, "404": ErrorAnswer}
