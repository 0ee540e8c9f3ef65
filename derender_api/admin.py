"""Admin page of the API keys: a key is shown once, when it is made, and revoked rather than deleted."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import JSONField, QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from derender_api.models import ApiKey
from parsers.widgets import JsonEditor


@admin.register(ApiKey)
class ApiKeyAdmin(ModelAdmin):
    """Keys stay listed when they are revoked: while any is listed, nobody is let in without one."""

    list_display = ("name", "beginning", "state", "expires", "last_used", "requests_per_minute", "created")
    search_fields = ("name", "beginning")
    fields = ("name", "expires", "requests_per_minute", "allowed_models", "beginning", "state", "created", "last_used")
    readonly_fields = ("beginning", "state", "created", "last_used")
    actions = ("revoke",)
    formfield_overrides: ClassVar = {JSONField: {"widget": JsonEditor({"rows": 3}, expected="list")}}

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        """A key that is being made has nothing to look at yet."""
        return self.fields if obj else self.fields[:4]

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        """Make the key of a new row and show it, this once."""
        key = None if change else obj.give_key()
        super().save_model(request, obj, form, change)
        if key is not None:
            messages.warning(request, f"The key is {key} - keep it now, it cannot be shown again.")

    @admin.action(description="Revoke selected API keys")
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        """Refuse them from now on."""
        for key in queryset:
            key.revoke()
        messages.success(request, f"Revoked: {', '.join(key.name for key in queryset)}.")

    def has_delete_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        """Never: deleting the last key would let everyone in."""
        return False
