"""docs/troubleshooting.md has a row for every error of the API, and only for those."""

import re
from collections.abc import Iterator

import pytest

from derender_api.exceptions import ApiError
from derender_api.gateway.errors import EngineRefused
from tests.project.documents import DOCS

ROW = re.compile(r"^\| (\d+) \| `([^`]+)` \| (?:`(\w+)`|(\d+)) \|", re.MULTILINE)
TEXT = (DOCS / "troubleshooting.md").read_text()


def classes(of: type[ApiError] = ApiError) -> Iterator[type[ApiError]]:
    """The errors of the API; those of an engine are in its own words."""
    yield of
    for child in of.__subclasses__():
        if child is not EngineRefused:
            yield from classes(child)


def rows() -> set[tuple[int, str, str]]:
    """(status, type, code) of the page's rows."""
    return {(int(status), type, word or number) for status, type, word, number in ROW.findall(TEXT)}


@pytest.mark.parametrize("error", [each for each in classes() if each.__name__ != "EngineError"])
def test_every_error_has_a_row(error: type[ApiError]) -> None:
    assert (error.status, error.type, error.code or str(error.status)) in rows()


def test_every_row_is_an_error() -> None:
    known = {(error.status, error.type, error.code or str(error.status)) for error in classes()}

    assert rows() <= known
