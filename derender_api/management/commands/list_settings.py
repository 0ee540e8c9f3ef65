"""`manage.py list_settings`: the environment variables that are read; writes the page about them."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.module_loading import import_string

PAGE = Path("docs/configuration.md")


class Command(BaseCommand):
    """List the settings."""

    help = "List the environment variables that derender reads, with types and defaults."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the flags."""
        parser.add_argument("--markdown", action="store_true", help=f"write {PAGE}")
        parser.add_argument("--check", action="store_true", help=f"exit with 1 if {PAGE} is not what would be written")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print, write or compare."""
        page = Path(settings.BASE_DIR) / PAGE
        wanted: str = import_string("derender_project.settings_page.markdown")()
        if options["check"] and (not page.exists() or page.read_text("utf-8") != wanted):
            raise CommandError(f"{PAGE} is out of date; run manage.py list_settings --markdown")
        if options["markdown"]:
            page.write_text(wanted, "utf-8")
        if not options["markdown"] and not options["check"]:
            for name, kind, default in import_string("derender_project.settings_page.rows")():
                self.stdout.write(f"{name:36} {kind:20} {default}".rstrip())
