"""Admin pages of the workbench's tables: parity runs with their history, and saved cases."""

from typing import Any, ClassVar
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from unfold.admin import ModelAdmin
from unfold.decorators import action, display

from derender_api.workbench import accounts as accounts
from derender_api.workbench.models import ParityRun, SavedCase
from derender_api.workbench.parity.heat_map import cells_of
from derender_api.workbench.parity.history import SHOWN, plot_of
from derender_api.workbench.playground.cases import suite_archive

STYLES: dict[str, tuple[str, ...]] = {"all": ("workbench/workbench.css", "workbench/parity.css")}


@admin.register(ParityRun)
class ParityRunAdmin(ModelAdmin):
    """Runs are made by `manage.py run_parity --save`; here they are read, and deleted."""

    list_display = ("title", "made", "outcome", "held", "cases", "failing", "duration")
    list_before_template = "workbench/parity_history.html"
    search_fields: ClassVar[tuple[str, ...]] = ("label",)
    date_hierarchy = None

    class Media:
        """Styles of the plot."""

        css: ClassVar = STYLES

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """With the history above the list."""
        plot = plot_of(list(ParityRun.objects.all()[:SHOWN])[::-1])
        return super().changelist_view(request, {"plot": plot, **(extra_context or {})})

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        """The run's own page."""
        if self.get_object(request, object_id) is None:
            return super().change_view(request, object_id, *args, **kwargs)
        return redirect(reverse("workbench:run", args=[object_id]))

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody: a run is made by the command."""
        return False

    @display(description="Run", ordering="id")
    def title(self, run: ParityRun) -> str:
        """Number and label."""
        return str(run)

    @display(description="Made (UTC)", ordering="created")
    def made(self, run: ParityRun) -> str:
        """To the minute."""
        return f"{run.created:%Y-%m-%d %H:%M}"

    @display(description="Outcome", label={"holds": "success", "differs": "danger"})
    def outcome(self, run: ParityRun) -> str:
        """Whether every rule holds."""
        return "differs" if run.failing else "holds"

    @display(description="Cases that hold, by rule")
    def held(self, run: ParityRun) -> str:
        """Shares by rule, where they are not complete."""
        cells = [cell for cell in cells_of(run.rules) if cell.fails]
        return ", ".join(f"{cell.rule} {cell.percent}" for cell in cells) or "all"

    @display(description="Took", ordering="seconds")
    def duration(self, run: ParityRun) -> str:
        """Seconds."""
        return f"{run.seconds:.1f} s"


@admin.register(SavedCase)
class SavedCaseAdmin(ModelAdmin):
    """Cases are saved in the playground; here they are described, tried again, and downloaded as a suite."""

    list_display = ("case_id", "profile_name", "tokens", "note", "created", "created_by")
    search_fields: ClassVar[tuple[str, ...]] = ("case_id", "note")
    list_filter = ("created_by",)
    fields = ("case_id", "note", "profile", "answer", "line", "created", "created_by")
    readonly_fields = ("case_id", "profile", "answer", "line", "created", "created_by")
    actions = ("download_suite",)
    actions_detail = ("try_case",)
    actions_row = ("try_case",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody: a case is saved in the playground."""
        return False

    @display(description="Profile")
    def profile_name(self, saved: SavedCase) -> str:
        """Parsers and tokenizer."""
        return saved.profile["name"]

    @display(description="Tokens")
    def tokens(self, saved: SavedCase) -> int:
        """Length of the output."""
        return len(saved.case["output_token_ids"])

    @display(description="Answer")
    def answer(self, saved: SavedCase) -> str:
        """The message that was given when the case was saved."""
        oneshot = saved.case["oneshot"]
        message = oneshot.get("message") or oneshot
        rows = [(key, value) for key, value in message.items() if value not in (None, [], "assistant")]
        return format_html("{}", "; ".join(f"{key}: {value}" for key, value in rows) or "empty")

    @admin.action(description="Download the selected cases as a suite (ZIP)", permissions=["view"])
    def download_suite(self, request: HttpRequest, queryset: QuerySet[SavedCase]) -> HttpResponse:
        """A suite folder in a ZIP file, for `run_parity` and `record_parity`."""
        response = HttpResponse(suite_archive(queryset, name="playground"), content_type="application/zip")
        response["Content-Disposition"] = 'attachment; filename="playground.zip"'
        return response

    @action(description="Try it in the playground", permissions=["view"], icon="science")
    def try_case(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The playground with this case."""
        return redirect(f"{reverse('workbench:playground')}?{urlencode({'case': object_id})}")
