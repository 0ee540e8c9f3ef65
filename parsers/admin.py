"""Admin page of the served models: their state in the list, grouped fields, a check, and a history with values."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from unfold.admin import ModelAdmin
from unfold.decorators import action, display

from parsers.configuration import ModelConfigurationError
from parsers.forms import FIELDSETS, ServedModelForm
from parsers.inspection import ModelState, Status, inspector
from parsers.models import ServedModel

LONGEST_VALUE = 200
"""Code points of a value that the history shows."""
LABELS = {
    Status.LOADED.value: "success",
    Status.WAITING.value: "info",
    Status.FAILED.value: "danger",
    Status.SHADOWED.value: "warning",
    Status.PENDING.value: "info",
    Status.DISABLED.value: "",
}


@admin.register(ServedModel)
class ServedModelAdmin(ModelAdmin):
    """Saving validates as a server's start does (ServedModel.clean)."""

    form = ServedModelForm
    fieldsets = FIELDSETS
    list_display = ("title", "state", "detail", "parsers")
    list_fullwidth = True
    list_filter = ("enabled", "tool_call_parser", "reasoning_parser")
    search_fields: ClassVar[tuple[str, ...]] = ("name", "model", "tool_call_parser", "reasoning_parser")
    list_before_template = "parsers/served_elsewhere.html"
    actions = ("check_models",)
    actions_detail = ("check_model", "try_model")
    actions_row = ("check_model", "try_model")
    warn_unsaved_form = True
    compressed_fields = False

    class Media:
        """Styles of the list."""

        css: ClassVar[dict[str, tuple[str, ...]]] = {"all": ("parsers/forms.css",)}

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """With the models that are served from elsewhere above the list."""
        return super().changelist_view(request, {"elsewhere": inspector().elsewhere(), **(extra_context or {})})

    @display(description="Name", header=True, ordering="name")
    def title(self, row: ServedModel) -> list[str]:
        """Name and place."""
        return [row.name, row.tokenizer or row.model]

    @display(description="State", label=LABELS)
    def state(self, row: ServedModel) -> str:
        """How it stands in the worker that answers."""
        return self._state(row).status.value

    @display(description="What was found")
    def detail(self, row: ServedModel) -> str:
        """What is loaded, or the last error."""
        return self._state(row).detail

    @display(description="Tool and reasoning parser", header=True)
    def parsers(self, row: ServedModel) -> list[str]:
        """The parsers; the tool parser is off without automatic tool choice."""
        off = " (off)" if row.tool_call_parser and not row.enable_auto_tool_choice else ""
        return [f"{row.tool_call_parser or 'none'}{off}", row.reasoning_parser or "none"]

    def _state(self, row: ServedModel) -> ModelState:
        if not row.enabled:
            return ModelState(Status.DISABLED)
        try:
            return inspector().state(row.configuration())
        except ModelConfigurationError as error:
            return ModelState(Status.FAILED, str(error))

    # --- checks ---------------------------------------------------------------------------------------------------

    @admin.action(description="Check the selected models", permissions=["view"])
    def check_models(self, request: HttpRequest, queryset: QuerySet[ServedModel]) -> None:
        """Load each as a start would."""
        for row in queryset:
            self._check(request, row)

    @action(description="Check this model", permissions=["view"], icon="stethoscope")
    def check_model(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Load it as a start would, and say what was found."""
        row = self._row(request, object_id)
        self._check(request, row)
        return HttpResponseRedirect(self._back(request, row))

    @action(description="Try it in the playground", permissions=["view"], icon="science")
    def try_model(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The playground with this model."""
        row = self._row(request, object_id)
        return HttpResponseRedirect(inspector().playground(row.name))

    def _row(self, request: HttpRequest, object_id: str) -> ServedModel:
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        return row

    def _check(self, request: HttpRequest, row: ServedModel) -> None:
        try:
            found = inspector().check(row.configuration())
        except ModelConfigurationError as error:
            self.message_user(request, f"{row.name} cannot be served: {error}", messages.ERROR)
        else:
            self.message_user(request, f"{row.name} can be served: {found}.", messages.SUCCESS)

    def _back(self, request: HttpRequest, row: ServedModel) -> str:
        """Where the check was asked for: the list, or the form."""
        listed = reverse("admin:parsers_servedmodel_changelist")
        if request.headers.get("Referer", "").partition("?")[0].endswith(listed):
            context = {"preserved_filters": self.get_preserved_filters(request), "opts": self.opts}
            return add_preserved_filters(context, listed)
        return reverse("admin:parsers_servedmodel_change", args=[row.pk])

    # --- history --------------------------------------------------------------------------------------------------

    def construct_change_message(self, request: HttpRequest, form: ModelForm, formsets: Any, add: bool = False) -> Any:
        """What the history says: each changed field with its old and new value."""
        if add or not form.changed_data:
            return super().construct_change_message(request, form, formsets, add)
        changes = [
            f"{name}: {_shown(form.initial.get(name))} → {_shown(form.cleaned_data.get(name))}"
            for name in form.changed_data
        ]
        return "Changed " + "; ".join(changes) + "."


def _shown(value: Any) -> str:
    text = "empty" if value is None or value == "" else str(value)
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "…"
