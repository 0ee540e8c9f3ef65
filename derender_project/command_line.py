"""Entry point of `manage.py` and of the `derender` console script.

Both run Django's management commands with this project's settings.
"""

import os
import sys


def main() -> None:
    """Run the management command named on the command line; a wrong configuration ends it in plain words."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "derender_project.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"derender is not configured properly:\n{error}")
