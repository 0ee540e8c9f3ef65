"""Helpers for the OpenAPI document (drf-spectacular)."""

from typing import Any, cast

from drf_spectacular.utils import PolymorphicProxySerializer
from pydantic import BaseModel


def either(name: str, *models: type[BaseModel]) -> PolymorphicProxySerializer:
    """A body that is one of several wire models; drf-spectacular takes pydantic models for serializers."""
    return PolymorphicProxySerializer(
        component_name=name, serializers=cast(Any, list(models)), resource_type_field_name=None
    )
