"""Which browser the tests drive: the machine's own Chromium, else the one that Playwright has installed."""

import os
import shutil
from pathlib import Path

REQUIRED = "DERENDER_TEST_BROWSER"
"""Set where a browser must be tested (in continuous integration): a machine without one is an error then."""
NAMES = ("chromium", "chromium-browser", "google-chrome")
DOWNLOADS = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH", Path.home() / ".cache" / "ms-playwright"))


def installed() -> str | None:
    """Path of the machine's own browser."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def is_tested() -> bool:
    """Whether the tests that need a browser run: where there is one, or has to be."""
    return bool(installed() or any(DOWNLOADS.glob("chromium*")) or os.environ.get(REQUIRED))
