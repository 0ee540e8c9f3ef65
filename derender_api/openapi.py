"""Helpers for the OpenAPI document (drf-spectacular)."""

from typing import Any, cast

from drf_spectacular.utils import PolymorphicProxySerializer
from pydantic import BaseModel

from derender_api.protocol.answer import ErrorAnswer

ERRORS = ("400", "401", "403", "404", "408", "413", "429", "503")
"""What every endpoint may answer instead: wrong requests, API keys and their limits, bodies, overload."""


def either(name: str, *models: type[BaseModel]) -> PolymorphicProxySerializer:
    """A body that is one of several wire models; drf-spectacular takes pydantic models for serializers."""
    return PolymorphicProxySerializer(
        component_name=name, serializers=cast(Any, list(models)), resource_type_field_name=None
    )


def answers(answer: Any) -> dict[str, Any]:
    """The answers of an endpoint: `answer`, or an error."""
    return {"200": answer, **dict.fromkeys(ERRORS, ErrorAnswer)}
