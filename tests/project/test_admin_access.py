"""Nobody sees a page of the admin without logging in, and nobody is let in who is no member of the staff."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

pytestmark = pytest.mark.django_db

OPEN = ("/admin/login/", "/admin/logout/", "/admin/jsi18n/")
VALUES = {"object_id": "1", "pk": "1", "content_type_id": "1", "app_label": "parsers", "url": "x", "id": "1"}


def routes(patterns: list[Any], prefix: str = "/") -> Iterator[str]:
    """Every path below `patterns`, its parameters filled in."""
    for pattern in patterns:
        path = prefix + example(pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, path)
        elif isinstance(pattern, URLPattern):
            yield path


def example(pattern: Any) -> str:
    """A path that `pattern` matches; one with an expression in it is left out below."""
    route = str(pattern.pattern)
    for name in getattr(pattern.pattern, "converters", {}):
        for shown in (
            f"<path:{name}>",
            f"<int:{name}>",
            f"<str:{name}>",
            f"<uuid:{name}>",
            f"<slug:{name}>",
            f"<{name}>",
        ):
            route = route.replace(shown, VALUES.get(name, "1"))
    return route


PATHS = sorted(
    {path for path in routes(get_resolver().url_patterns) if path.startswith("/admin/") and "(" not in path} - set(OPEN)
)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("who", ["a stranger", "a user who is no staff"])
def test_a_page_asks_for_a_login(client: Client, path: str, method: str, who: str, settings: Any) -> None:
    settings.DERENDER = {**settings.DERENDER, "API_KEY": "k"}
    if who != "a stranger":
        client.force_login(User.objects.create_user("u"))

    answer = getattr(client, method)(path, headers={"Authorization": "Bearer k"})

    assert answer.status_code in (302, 403, 404, 405), answer.content[:200]
    if answer.status_code == 302:
        assert answer["Location"].startswith("/admin/login/")


def test_all_pages_are_meant() -> None:
    assert len(PATHS) > 20
    assert "/admin/derender_api/apikey/" in PATHS
    assert "/admin/parsers/servedmodel/1/change/" in PATHS
