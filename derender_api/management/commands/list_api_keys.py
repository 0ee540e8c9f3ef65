"""`manage.py list_api_keys`: every API key, without the keys themselves."""

from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand

from derender_api.models import ApiKey

HEADINGS = ("NAME", "BEGINS", "STATE", "EXPIRES", "LAST USED", "PER MINUTE", "MODELS")


class Command(BaseCommand):
    """List the keys."""

    help = "List the API keys: how they begin, whether they hold, what they may be used for."

    def handle(self, *args: Any, **options: Any) -> None:
        """Print a table."""
        rows = [HEADINGS, *(_cells(key) for key in ApiKey.objects.all())]
        widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
        for row in rows:
            self.stdout.write("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _cells(key: ApiKey) -> tuple[str, ...]:
    models = ", ".join(key.allowed_models) or "all"
    limit = str(key.requests_per_minute or "no limit")
    return key.name, key.beginning, key.state, _shown(key.expires), _shown(key.last_used), limit, models


def _shown(moment: datetime | None) -> str:
    return moment.isoformat(timespec="seconds") if moment else "never"
