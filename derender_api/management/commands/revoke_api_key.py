"""`manage.py revoke_api_key NAME`: an API key is refused from now on."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from derender_api.models import ApiKey


class Command(BaseCommand):
    """Revoke a key."""

    help = "Revoke an API key by its name; all workers refuse it within seconds."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the flags."""
        parser.add_argument("name", metavar="NAME")

    def handle(self, *args: Any, **options: Any) -> None:
        """Revoke it; one that is revoked already stays as it is."""
        key = ApiKey.objects.filter(name=options["name"]).first()
        if key is None:
            known = ", ".join(ApiKey.objects.values_list("name", flat=True)) or "none"
            raise CommandError(f"There is no API key {options['name']!r}; known: {known}.")
        key.revoke()
        self.stdout.write(f"API key {key.name!r} is revoked.")
