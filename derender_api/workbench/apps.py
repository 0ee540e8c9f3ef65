"""Django app of the workbench."""

from django.apps import AppConfig


class WorkbenchConfig(AppConfig):
    """Has tables of its own, which the API never reads."""

    name = "derender_api.workbench"
    label = "workbench"
    verbose_name = "Workbench"
