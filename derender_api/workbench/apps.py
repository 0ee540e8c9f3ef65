"""Django app of the workbench."""

from django.apps import AppConfig


class WorkbenchConfig(AppConfig):
    """Has tables of its own, which the API never reads."""

    name = "derender_api.workbench"
    label = "workbench"
    verbose_name = "Workbench"

    def ready(self) -> None:
        """Give the admin its first page; the theme has replaced the site by now."""
        from django.contrib import admin

        admin.site.index_template = "workbench/overview.html"
        admin.site.index_title = "Overview"
