"""No page below /admin/ is reached without a login."""

from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

OPEN = {"/admin/login/", "/admin/logout/"}
ARGUMENTS = {"<int:pk>": "1", "<path:object_id>": "1", "<id>": "1", "<path:content_type_id>": "1", "<path:url>": "x"}


def addresses(patterns: list[URLPattern | URLResolver], prefix: str = "/") -> Iterator[str]:
    """The address of every URL below /admin/, with some value for each argument."""
    for pattern in patterns:
        text = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern.url_patterns, text)
        elif text.startswith("/admin/") and "(?P" not in text:
            for name, value in ARGUMENTS.items():
                text = text.replace(name, value)
            yield text


ADDRESSES = sorted(set(addresses(get_resolver().url_patterns)) - OPEN)


def test_the_addresses_are_found() -> None:
    assert {"/admin/", "/admin/playground/", "/admin/parity/1/", "/admin/parsers/servedmodel/1/check_model/"} <= set(
        ADDRESSES
    )
    assert [address for address in ADDRESSES if "<" in address] == []


@pytest.mark.django_db
@pytest.mark.parametrize("address", ADDRESSES)
def test_a_stranger_is_sent_to_the_login(address: str) -> None:
    for answer in (Client().get(address), Client().post(address)):
        assert answer.status_code == 302
        assert answer["Location"].startswith("/admin/login/")
