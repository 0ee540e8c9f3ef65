"""`manage.py create_api_key NAME`: makes an API key and prints it, once."""

from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from derender_api.models import ApiKey


class Command(BaseCommand):
    """Make a key."""

    help = "Make an API key and print it; it cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the flags."""
        parser.add_argument("name", metavar="NAME", help="who uses the key")
        ending = parser.add_mutually_exclusive_group()
        ending.add_argument("--days", type=float, help="days until the key expires (default: never)")
        ending.add_argument("--expires", metavar="TIME", help="when it expires: 2030-01-31T12:00:00+00:00")
        parser.add_argument("--requests-per-minute", type=int, metavar="N", help="default: no limit")
        parser.add_argument("--models", nargs="+", default=[], metavar="MODEL", help="models it may use (default: all)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the key alone, so that a script can take it."""
        try:
            row, key = ApiKey.make(
                name=options["name"],
                expires=_ending(options),
                requests_per_minute=options["requests_per_minute"],
                allowed_models=options["models"],
            )
        except ValidationError as exc:
            problems = [f"{field}: {' '.join(texts)}" for field, texts in exc.message_dict.items()]
            raise CommandError(" ".join(problems)) from exc
        self.stdout.write(key)
        self.stderr.write(f"API key {row.name!r}: keep it now, only its digest is stored.")


def _ending(options: dict[str, Any]) -> Any:
    if options["days"] is not None:
        return timezone.now() + timedelta(days=options["days"])
    if options["expires"] is None:
        return None
    try:
        moment = parse_datetime(options["expires"])
    except ValueError:
        moment = None
    if moment is None:
        raise CommandError(f"--expires {options['expires']}: not a time such as 2030-01-31T12:00:00+00:00.")
    return moment if timezone.is_aware(moment) else timezone.make_aware(moment)
