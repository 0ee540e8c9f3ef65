"""The admin's first page: how the served models stand, the last parity run, and where to go on."""

from typing import Any

from django.contrib.admin.models import LogEntry
from django.http import HttpRequest

from derender_api.workbench.models import ParityRun
from derender_api.workbench.parity.heat_map import cells_of
from parsers.configuration import ModelConfigurationError
from parsers.inspection import ModelState, Status, inspector
from parsers.models import ServedModel

MODELS_SHOWN = 20
CHANGES_SHOWN = 6


def overview(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Context of the first page; each part for those who may see it. Called by the theme."""
    if request.user.has_perm("parsers.view_servedmodel"):
        rows = list(ServedModel.objects.all()[:MODELS_SHOWN])
        context |= {
            "models": [(row, _state(row)) for row in rows],
            "elsewhere": inspector().elsewhere(),
            "more_models": max(ServedModel.objects.count() - len(rows), 0),
            "changes": LogEntry.objects.select_related("user", "content_type").filter(
                content_type__app_label="parsers"
            )[:CHANGES_SHOWN],
        }
    if request.user.has_perm("workbench.view_parityrun"):
        run = ParityRun.objects.first()
        context |= {"sees_runs": True, "run": run, "cells": cells_of(run.rules) if run else ()}
    return context


def _state(row: ServedModel) -> ModelState:
    if not row.enabled:
        return ModelState(Status.DISABLED)
    try:
        return inspector().state(row.configuration())
    except ModelConfigurationError as error:
        return ModelState(Status.FAILED, str(error))
