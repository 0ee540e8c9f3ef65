"""Pages of a parity run: its heat map with the differing cases, and one difference side by side."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from derender_api.parity.rules import Rule
from derender_api.workbench.models import Difference, ParityRun
from derender_api.workbench.parity.heat_map import cells_of, rows_of
from derender_api.workbench.parity.history import SHOWN, plot_of
from derender_api.workbench.parity.side_by_side import rows_of as side_by_side

DIFFERENCES_A_PAGE = 100


@require_safe
def run(request: HttpRequest, pk: int) -> HttpResponse:
    """The heat map of a run, and its differing cases, of all profiles and rules or of those asked for."""
    _require(request)
    found = get_object_or_404(ParityRun, pk=pk)
    profiles = list(found.profiles.all())
    differences = Difference.objects.filter(figures__run=found).select_related("figures")
    wanted = {"rule": request.GET.get("rule", ""), "profile": request.GET.get("profile", "")}
    if wanted["rule"]:
        differences = differences.filter(rule=wanted["rule"])
    if wanted["profile"].isdecimal():
        differences = differences.filter(figures_id=int(wanted["profile"][:18]))
    earlier = ParityRun.objects.filter(created__lte=found.created)[:SHOWN]
    return _page(
        request,
        "workbench/parity_run.html",
        title=str(found),
        run=found,
        rules=[rule.value for rule in Rule],
        total=cells_of(found.rules),
        rows=rows_of(profile for profile in profiles if not profile.problem),
        problems=[profile for profile in profiles if profile.problem],
        differences=Paginator(differences, DIFFERENCES_A_PAGE).get_page(request.GET.get("page")),
        wanted=wanted,
        wanted_profile=next((each for each in profiles if str(each.pk) == wanted["profile"]), None),
        plot=plot_of(list(earlier)[::-1]),
    )


@require_safe
def difference(request: HttpRequest, pk: int) -> HttpResponse:
    """One differing answer: expected and got, the first difference marked."""
    _require(request)
    found = get_object_or_404(Difference.objects.select_related("figures__run"), pk=pk)
    siblings = list(Difference.objects.filter(figures__run=found.figures.run).values_list("pk", flat=True))
    place = siblings.index(found.pk)
    return _page(
        request,
        "workbench/parity_difference.html",
        title=str(found),
        difference=found,
        run=found.figures.run,
        rows=side_by_side(found.expected, found.got),
        place=place + 1,
        count=len(siblings),
        previous=siblings[place - 1] if place else None,
        next=siblings[place + 1] if place + 1 < len(siblings) else None,
    )


def _require(request: HttpRequest) -> None:
    if not request.user.has_perm("workbench.view_parityrun"):
        raise PermissionDenied


def _page(request: HttpRequest, template: str, **context: Any) -> HttpResponse:
    return TemplateResponse(request, template, {**admin.site.each_context(request), **context})
