"""docs/examples/acme_formats, the package that docs/writing-a-format.md walks through."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.documents import DOCS, blocks
from tests.servers import MANAGE, REPOSITORY

PAGE = DOCS / "writing-a-format.md"
PACKAGE = DOCS / "examples" / "acme_formats"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the package is installed."""
    folder = tmp_path_factory.mktemp("acme")
    source, target = folder / "source", folder / "site"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__"))
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(source)]
    subprocess.run(install, check=True, capture_output=True)
    return {**os.environ, "PYTHONPATH": f"{target}{os.pathsep}{REPOSITORY}"}


def test_its_tests_pass(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(PACKAGE)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=REPOSITORY)

    assert ran.returncode == 0, ran.stdout
    assert "passed" in ran.stdout


def test_the_commands_know_its_parsers(environment: dict[str, str], tmp_path: Path) -> None:
    ran = subprocess.run(
        [*MANAGE, "list_formats"], env=environment, capture_output=True, text=True, cwd=tmp_path, check=True
    )

    assert {"acme", "acme_lines"} <= set(ran.stdout.split())


def test_the_page_shows_what_the_package_holds() -> None:
    files = [path.read_text() for path in (*PACKAGE.glob("*.py"), PACKAGE / "pyproject.toml")]
    shown = [block.text for block in blocks(PAGE) if block.language in ("python", "toml")]

    assert len(shown) > 5
    assert [text for text in shown if not any(text in file for file in files)] == []
