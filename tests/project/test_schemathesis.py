"""Requests made from the OpenAPI document, right and wrong ones: no answer is a failure of the server's."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from derender_api.urls import urlpatterns
from tests.derender_api.support import parsed_model

EXAMPLES = max(3, int(os.environ.get("DERENDER_TEST_FUZZ_REQUESTS", "0")) // 300)
"""Requests per operation; continuous integration makes more (test_fuzz.py)."""

PATHS = sorted({f"/{route.pattern}" for route in urlpatterns} - {"/openapi.json", "/docs"})


@pytest.fixture(scope="module", autouse=True)
def _model() -> Iterator[None]:
    """A served model, and requests that leave the database alone, as those of Django's own test client do."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    with parsed_model():
        yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture(scope="module")
def document() -> Any:
    """The document, as this server gives it, and the server to ask."""
    return schemathesis.openapi.from_wsgi("/openapi.json", WSGIHandler())


@pytest.mark.parametrize("path", PATHS)
def test_no_answer_is_a_failure(document: Any, path: str) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=st.one_of([document[path][method].as_strategy() for method in document[path]]))
    def ask(case: Any) -> None:
        answer = case.call()

        assert answer.status_code < 500 or answer.status_code == 503, answer.text
        if answer.status_code >= 400:
            assert list(answer.json()["error"]) == ["message", "type", "param", "code"]

    ask()


def test_every_path_of_the_document_is_asked(document: Any) -> None:
    assert set(document) == set(PATHS)
