"""The README's commands do what it says."""

import json
import re
import subprocess
from collections.abc import Iterator

import pytest
from django.core.management import get_commands

from derender_project.environment import Environment
from tests.project.nginx import nginx_in_front_of
from tests.project.readme import TEXT, Example, comparable, curl_examples, examples, run
from tests.servers import REPOSITORY, Server, serving


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """The demo server, alone and behind nginx."""
    folder = tmp_path_factory.mktemp("readme")
    with serving(folder) as server, nginx_in_front_of(server, folder / "nginx") as front:
        yield server, front


@pytest.mark.live
@pytest.mark.parametrize("place", [0, 1], ids=["direct", "nginx"])
@pytest.mark.parametrize("example", curl_examples(), ids=lambda example: example.commands.splitlines()[0][5:60])
def test_curl_lines_answer_as_shown(servers: tuple[Server, Server], place: int, example: Example) -> None:
    printed = run(example.commands, url=servers[place].url)

    if example.answer is None:
        assert '{"error"' not in printed
    else:
        assert comparable(printed) == comparable(example.answer)
        assert list(json.loads(printed)) == list(json.loads(example.answer))


def test_every_endpoint_has_a_curl_line() -> None:
    asked = set(re.findall(r"curl http://localhost:8000(\S*)", TEXT))

    assert asked >= {
        "/v1/chat/completions/derender",
        "/v1/completions/derender",
        "/tokenize",
        "/detokenize",
        "/v1/models",
        "/health",
        "/ping",
        "/version",
        "/load",
        "/ready",
        "/metrics",
        "/openapi.json",
    }


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^make (\w+)", "\n".join(example.commands for example in examples()), re.MULTILINE))

    assert targets == {"serve", "admin", "test", "check", "parity", "bench"}
    for target in targets:
        subprocess.run(["make", "--dry-run", target], cwd=REPOSITORY, check=True, capture_output=True)


def test_management_commands_exist() -> None:
    named = set(re.findall(r"manage\.py (\w+)", TEXT))

    assert named >= {"serve", "run_parity"}
    assert named <= set(get_commands())


def test_named_settings_exist() -> None:
    assert set(re.findall(r"`(DERENDER_\w+)`", TEXT)) <= Environment.variables()


def test_the_map_names_what_exists() -> None:
    places = re.findall(r"^\| `([\w/.]+)` \|", TEXT.partition("## Find your way")[2], re.MULTILINE)

    assert len(places) > 8
    assert [place for place in places if not (REPOSITORY / place).exists()] == []
