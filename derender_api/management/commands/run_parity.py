"""`manage.py run_parity`: does this service answer what vLLM answered? Recorded suites, rule by rule."""

import json
import logging
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError
from tqdm import tqdm

from derender_api.parity import report
from derender_api.parity.divergences import DivergenceError
from derender_api.parity.options import Options
from derender_api.parity.results import RunResult
from derender_api.parity.runner import Progress, run
from derender_api.parity.suite import SuiteError, find_suites

DEFAULT_PATH = Path("tests") / "data" / "parity"


class Command(BaseCommand):
    """Runs recorded suites through the application and counts, per profile, the cases that hold under each rule."""

    help = __doc__ or ""
    requires_system_checks: list[str] = []

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """The parser; `-v` is this command's own and takes no value (`--verbosity` remains)."""
        return super().create_parser(prog_name, subcommand, conflict_handler="resolve", **kwargs)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Paths and options."""
        parser.add_argument("paths", nargs="*", type=Path, help="suite folders, or folders of suites")
        parser.add_argument("--root", type=Path, help="folder that the profiles' tokenizer paths start from")
        parser.add_argument("--profile", help="run this profile only")
        parser.add_argument("--only", metavar="TEXT", help="run the cases whose suite/profile/id contains TEXT")
        parser.add_argument("--format", choices=["text", "json", "junit"], default="text")
        parser.add_argument("--fail-on-diff", action="store_true", help="exit with 1 where a rule is broken")
        parser.add_argument("-v", "--verbose", action="store_true", help="show the first difference side by side")
        parser.add_argument("--url", help="drive the server at this URL, which serves --profile's model")
        parser.add_argument("--every-split", action="store_true", help="rule self: every two-way split of each output")
        parser.add_argument(
            "--fast", action="store_true", help="recorded streams through the parser core, a sample over HTTP"
        )
        parser.add_argument("--through-http", action="store_true", help="rule self over HTTP too (slow)")
        parser.add_argument("--compact", action="store_true", help="streams over HTTP in the compact form of the state")
        parser.add_argument("--save", action="store_true", help="keep the figures for the admin page's parity runs")
        parser.add_argument("--label", default="", help="with --save: what was run, a sentence for people")
        parser.add_argument("--processes", type=int, help="worker processes (default: one per core)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run, report, and fail if asked to."""
        logging.disable(logging.CRITICAL)
        try:
            result = self._run(options)
        finally:
            logging.disable(logging.NOTSET)
        match options["format"]:
            case "json":
                self.stdout.write(json.dumps(report.as_json(result), ensure_ascii=False))
            case "junit":
                self.stdout.write(report.as_junit(result))
            case _:
                self.stdout.write(report.as_text(result, verbose=options["verbose"]))
        if options["save"]:
            self._save(result, options)
        if options["fail_on_diff"] and result.broken:
            raise CommandError("The rules do not hold.")

    def _run(self, options: dict[str, Any]) -> RunResult:
        if options["label"] and not options["save"]:
            raise CommandError("--label describes a run that is kept; add --save.")
        paths = _paths(options)
        if options["url"] and len(paths) == 1 and not options["profile"]:
            raise CommandError("--url needs --profile: the server serves one profile's model.")
        try:
            return run(
                _folders(options),
                options=Options(
                    root=options["root"],
                    profile=options["profile"],
                    only=options["only"],
                    every_split=options["every_split"],
                    fast=options["fast"],
                    http_streams=options["through_http"],
                    compact=options["compact"],
                    url=options["url"],
                    processes=options["processes"],
                ),
                total=_progress_bar,
            )
        except (SuiteError, DivergenceError) as error:
            raise CommandError(str(error)) from error

    def _save(self, result: RunResult, options: dict[str, Any]) -> None:
        """Into the tables, for the admin page."""
        from derender_api.workbench.parity.store import save_run

        try:
            run = save_run(result, _folders(options), label=options["label"])
        except DatabaseError as error:
            raise CommandError(f"The run cannot be saved (`manage.py migrate` creates the tables): {error}") from error
        self.stderr.write(f"Saved as run {run.pk}.")


def _paths(options: dict[str, Any]) -> list[Path]:
    return options["paths"] or [Path(settings.BASE_DIR) / DEFAULT_PATH]


def _folders(options: dict[str, Any]) -> list[Path]:
    """The suite folders at or below the paths. Raises SuiteError."""
    return [folder for path in _paths(options) for folder in find_suites(path)]


def _progress_bar(total: int) -> Progress:
    """A progress bar on a terminal's error stream, nothing elsewhere."""
    bar = tqdm(total=total, unit="case", disable=not sys.stderr.isatty(), leave=False, file=sys.stderr)
    return bar.update
