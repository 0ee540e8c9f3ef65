"""README.md in particular: the commands, the endpoints, the map of the code. (Its blocks and links: test_docs.py.)"""

import re

from django.core.management import get_commands

from derender_api.urls import urlpatterns
from tests.project.documents import READMES, blocks
from tests.servers import REPOSITORY

TEXT = READMES[0].read_text(encoding="utf-8")
LONGEST = 160
"""Lines. What needs more room stands in docs/."""


def test_every_endpoint_has_a_curl_line() -> None:
    asked = set(re.findall(r"curl http://localhost:8000/(\S*)", TEXT))
    routes = {str(each.pattern) for each in urlpatterns} - {"docs", "kv_event_sources"}

    assert asked == routes


def test_make_targets_are_shown() -> None:
    commands = "\n".join(block.text for block in blocks(READMES[0]))

    assert set(re.findall(r"^make (\w+)", commands, re.MULTILINE)) >= {"serve", "test", "check", "parity", "bench"}


def test_management_commands_exist() -> None:
    named = set(re.findall(r"manage\.py (\w+)", TEXT))

    assert named >= {"serve", "run_parity"}
    assert named <= set(get_commands())


def test_the_map_names_what_exists() -> None:
    places = re.findall(r"^\| `([\w/.]+)` \|", TEXT.partition("## Find your way")[2], re.MULTILINE)

    assert len(places) > 8
    assert [place for place in places if not (REPOSITORY / place).exists()] == []


def test_it_is_short() -> None:
    assert len(TEXT.splitlines()) <= LONGEST
