"""Fixtures of the gateway's tests."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.servers import free_port


@pytest.fixture
def nobody() -> str:
    """A URL where nothing listens."""
    return f"http://127.0.0.1:{free_port()}"


@pytest.fixture
def settings_of_engines(settings: Any) -> Callable[..., None]:
    """Changes settings of the project."""

    def change(**values: Any) -> None:
        settings.DERENDER = {**settings.DERENDER, **values}

    return change
