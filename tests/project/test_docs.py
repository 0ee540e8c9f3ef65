"""README.md and docs/: what they show is so."""

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from derender_project.environment import Environment
from tests.project.command_lines import problems_of
from tests.project.documents import (
    DOCS,
    HEADING,
    LINK,
    PAGES,
    READMES,
    Block,
    all_blocks,
    anchors,
    blocks,
    comparable,
    curl_blocks,
    prose,
    run,
    run_python,
)
from tests.project.nginx import nginx_in_front_of
from tests.replay_engine import Output, Script, replaying
from tests.servers import REPOSITORY, Server, serving

TOKENS = [
    *(4003, 198, 2320, 88, 781, 74, 555, 303, 478, 516, 4004, 198, 198, 43, 1784, 436, 2280, 516, 4005, 198, 264, 280),
    *(258, 259, 554, 62, 606, 274, 259, 285, 258, 290, 710, 258, 259, 1076, 542, 4006, 4002),
]
"""What the engine behind the demo model generates: thoughts, a sentence, and a call."""
EXAMPLES = "\n".join(path.read_text() for path in sorted((DOCS / "examples").rglob("*.*")) if path.suffix != ".pyc")
LANGUAGES = {"bash", "console", "python", "json", "yaml", "toml", "ini", "nginx", "text"}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """The demo model with an engine, alone and behind nginx."""
    folder = tmp_path_factory.mktemp("docs")
    demo = {
        "name": "demo",
        "model": str(REPOSITORY / "derender_api" / "demo_model"),
        "tool_call_parser": "hermes",
        "reasoning_parser": "qwen3",
        "enable_auto_tool_choice": True,
    }
    with replaying(Script(outputs=[Output(token_ids=TOKENS)])) as engine:
        models = folder / "models.json"
        models.write_text(json.dumps({"models": [{**demo, "engine_urls": [engine.url]}]}))
        with serving(folder, "--config", str(models)) as server, nginx_in_front_of(server, folder / "nginx") as front:
            yield server, front


@pytest.mark.live
@pytest.mark.parametrize("place", [0, 1], ids=["direct", "nginx"])
@pytest.mark.parametrize("block", curl_blocks(), ids=lambda block: block.name)
def test_curl_lines_answer_as_shown(servers: tuple[Server, Server], place: int, block: Block) -> None:
    printed = run(block.text, url=servers[place].url)

    if block.answer is None:
        assert '{"error"' not in printed
    else:
        assert comparable(printed) == comparable(block.answer)
        assert list(json.loads(printed)) == list(json.loads(block.answer))


@pytest.mark.live
@pytest.mark.parametrize(
    "block", [block for block in all_blocks("python") if block.text not in EXAMPLES], ids=lambda block: block.name
)
def test_python_blocks_run(servers: tuple[Server, Server], block: Block, tmp_path: Path) -> None:
    printed = run_python(block.text, url=servers[0].url, folder=tmp_path)

    if block.following is not None and block.following.language == "text":
        assert printed == block.following.text


@pytest.mark.parametrize("block", all_blocks("bash", "console"), ids=lambda block: block.name)
def test_commands_and_flags_exist(block: Block) -> None:
    targets = [target for line in block.lines for target in re.findall(r"^make (\w+)", line)]

    assert [problem for line in block.lines for problem in problems_of(line)] == []
    for target in targets:
        subprocess.run(["make", "--dry-run", target], cwd=REPOSITORY, check=True, capture_output=True)


@pytest.mark.parametrize("block", all_blocks("json", "yaml", "toml"), ids=lambda block: block.name)
def test_data_blocks_are_well_formed(block: Block) -> None:
    read = {"json": json.loads, "yaml": yaml.safe_load, "toml": tomllib.loads}[block.language]

    assert read(block.text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_says_what_it_is(page: Path) -> None:
    assert {block.language for block in blocks(page)} <= LANGUAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_settings_exist(page: Path) -> None:
    named = set(re.findall(r"`(DERENDER_\w+)`", page.read_text(encoding="utf-8")))

    assert named <= Environment.variables() | {"DERENDER_SCREENSHOTS"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        target, _, anchor = link.partition("#")
        if "://" in target:
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), link
        assert not anchor or anchor in anchors(file), link


def test_the_index_names_every_page() -> None:
    linked = set(LINK.findall((DOCS / "README.md").read_text(encoding="utf-8")))

    assert {page.name for page in PAGES if page.parent == DOCS and page.name != "README.md"} <= linked


class TestTranslation:
    """README.ko.md says what README.md says."""

    def test_headings_have_the_same_levels(self) -> None:
        one, other = ([level for level, _ in HEADING.findall(prose(page))] for page in READMES)

        assert one == other

    def test_blocks_are_the_same(self) -> None:
        one, other = ([(block.language, block.text) for block in blocks(page)] for page in READMES)

        assert one == other

    def test_links_lead_to_the_same_places(self) -> None:
        names = {page.name for page in READMES}
        one, other = ([link for link in LINK.findall(prose(page)) if link not in names] for page in READMES)

        assert one == other

    def test_each_leads_to_the_other(self) -> None:
        for page, other in zip(READMES, reversed(READMES), strict=True):
            assert other.name in LINK.findall(prose(page))

    def test_tables_have_the_same_rows(self) -> None:
        rows = re.compile(r"^\| (`[^|]+`|---) \|", re.MULTILINE)
        one, other = (rows.findall(prose(page)) for page in READMES)

        assert one == other
