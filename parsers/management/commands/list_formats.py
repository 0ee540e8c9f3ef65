"""Lists every format that can be named as a parser; writes the page about them."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from parsers import catalogue
from parsers.registry import reasoning_formats, tool_formats

PAGE = Path("docs/formats.md")
FIGURES = Path("docs/parity.json")
SUITES = Path("tests/data/parity")


class Command(BaseCommand):
    """`manage.py list_formats`"""

    help = "Lists the names of all tool and reasoning parsers."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--markdown", action="store_true", help=f"write {PAGE}")
        parser.add_argument("--check", action="store_true", help=f"exit with 1 if {PAGE} is not what would be written")
        parser.add_argument("--figures", type=Path, metavar="RUN", help="take parity figures from run_parity's JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        root = Path(settings.BASE_DIR)
        if options["figures"]:
            figures = catalogue.figures_of(json.loads(options["figures"].read_text("utf-8")), root / SUITES)
            (root / FIGURES).write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n", "utf-8")
        page = root / PAGE
        wanted = catalogue.markdown(catalogue.read_figures(root / FIGURES))
        if options["check"] and (not page.exists() or page.read_text("utf-8") != wanted):
            raise CommandError(f"{PAGE} is out of date; run manage.py list_formats --markdown")
        if options["markdown"]:
            page.write_text(wanted, "utf-8")
        if not options["markdown"] and not options["check"]:
            self._print_names()

    def _print_names(self) -> None:
        for role, formats in (("tool-call parsers", tool_formats()), ("reasoning parsers", reasoning_formats())):
            self.stdout.write(f"{len(formats)} {role}:")
            for name in sorted(formats):
                self.stdout.write(f"  {name:28} {formats[name].__module__}")
