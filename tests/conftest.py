"""Fixtures for all tests."""

import pytest


@pytest.fixture(autouse=True)
def _no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reaches the network: hub ids that are not cached fail at once."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
