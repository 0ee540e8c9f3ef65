"""Django app of the HTTP layer."""

from django.apps import AppConfig


class DerenderApiConfig(AppConfig):
    """Registers the system checks of the settings."""

    name = "derender_api"
    verbose_name = "Derender API"

    def ready(self) -> None:
        """Register the checks."""
        from derender_api import checks  # noqa: F401
