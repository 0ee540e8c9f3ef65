"""Django app of the parsers: the ServedModel table and the system checks of the configuration."""

from django.apps import AppConfig


class ParsersConfig(AppConfig):
    """Registers the table of served models."""

    name = "parsers"
    verbose_name = "Served models"
    default_auto_field = "django.db.models.BigAutoField"
