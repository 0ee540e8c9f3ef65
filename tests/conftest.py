"""Fixtures for all tests."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection
from hypothesis import settings

from derender_api.api_keys import key_store
from tests import browsers, postgresql

REPRODUCIBLE = "DERENDER_TEST_REPRODUCIBLE"
"""Set where a tree must give the same result each time (continuous integration); elsewhere examples are new."""

if os.environ.get(REPRODUCIBLE):
    settings.register_profile("reproducible", derandomize=True)
    settings.load_profile("reproducible")


def pytest_report_header() -> list[str]:
    """Which databases and browsers are tested, so that a machine without PostgreSQL or Chromium shows."""
    used = connection.vendor
    others = "with" if postgresql.is_tested() else "without (not installed)"
    browser = "with" if browsers.is_tested() else "without (not installed)"
    return [f"database: {used}", f"tests of servers: sqlite, {others} postgresql, {browser} browser"]


@pytest.fixture(autouse=True)
def _no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reaches the network: hub ids that are not cached fail at once."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(autouse=True)
def _no_api_keys() -> Iterator[None]:
    """No test reads the table of API keys unless it is about it."""
    with key_store.override(()):
        yield


PARSERS = Path(__file__).parent / "parsers"


@pytest.fixture(autouse=True)
def _no_garbage_collection_while_work_is_measured(request: pytest.FixtureRequest) -> Iterator[None]:
    """A collection walks through all that the test process holds, which is no work of what a test measures.

    Most tests that measure are those of parsers; elsewhere their names say "linear".
    """
    measures = PARSERS in request.node.path.parents or "linear" in request.node.name
    if measures:
        gc.disable()
    yield
    if measures:
        gc.enable()
