"""Admin page of the served models."""

from typing import ClassVar

from django.contrib import admin

from parsers.models import ServedModel


@admin.register(ServedModel)
class ServedModelAdmin(admin.ModelAdmin):
    """Saving validates as a server's start does (ServedModel.clean)."""

    list_display = ("name", "model", "tool_call_parser", "reasoning_parser", "enabled", "position")
    list_filter = ("enabled", "tool_call_parser", "reasoning_parser")
    search_fields: ClassVar[tuple[str, ...]] = ("name", "model")
