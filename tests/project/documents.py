"""Reads README.md and the pages of docs/: blocks, links, commands, and the answers that they promise."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.servers import REPOSITORY

DOCS = REPOSITORY / "docs"
READMES = [REPOSITORY / "README.md", REPOSITORY / "README.ko.md"]
PAGES = [*READMES, *sorted(DOCS.glob("*.md"))]
GENERATED = DOCS / "formats.md"
"""Its samples are outputs of models, which hold fences of their own."""
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(#+) (.*)$", re.MULTILINE)
LINK = re.compile(r"(?<!`)!?\[[^\]]*\]\(([^)\s]+)\)")
ADDRESS = "http://localhost:8000"
CHANGING = re.compile(
    r'"created":\s*\d+|chatcmpl-tool-[0-9a-f]{16}|modelperm-[0-9a-f]{16}|(?:chatcmpl|cmpl)-[0-9a-f]{16}'
)
"""What differs from call to call."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page, and the one that follows it."""

    page: Path
    language: str
    text: str
    following: "Block | None" = None

    @property
    def answer(self) -> str | None:
        """The JSON that the block's command answers, if the page shows it."""
        return self.following.text if self.following is not None and self.following.language == "json" else None

    @property
    def name(self) -> str:
        """Page and first line, for the names of tests."""
        return f"{self.page.name}: {self.text.splitlines()[0][:60]}"

    @property
    def lines(self) -> list[str]:
        """Command lines, continued ones joined, each command of a pipe on its own."""
        joined = re.sub(r"\\\n\s*", " ", self.text)
        lines = [line.removeprefix("$ ") for line in joined.splitlines()]
        return [part.strip() for line in lines for part in re.split(r"&&|\|\||[|;]", line) if part.strip()]


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page in order."""
    if page == GENERATED:
        return []
    found: list[Block] = []
    following = None
    for language, text in reversed(BLOCK.findall(page.read_text(encoding="utf-8"))):
        following = Block(page, language, text, following)
        found.append(following)
    return found[::-1]


def all_blocks(*languages: str) -> list[Block]:
    """The blocks of all pages in these languages; those of the translated README are the original's."""
    return [
        block
        for page in PAGES
        if page != READMES[1]
        for block in blocks(page)
        if not languages or block.language in languages
    ]


def curl_blocks() -> list[Block]:
    """The shell blocks that talk to a server."""
    return [block for block in all_blocks("bash") if block.text.startswith("curl")]


def prose(page: Path) -> str:
    """A page without its blocks."""
    return BLOCK.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = [title for _, title in HEADING.findall(prose(page))]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def run(commands: str, *, url: str) -> str:
    """What the commands print when the server listens at `url`."""
    script = commands.replace(ADDRESS, url).replace("curl ", "curl --silent --show-error ")
    return subprocess.run(["bash", "-ec", script], capture_output=True, text=True, check=True).stdout


def run_python(text: str, *, url: str, folder: Path) -> str:
    """What a Python block prints when the server listens at `url`."""
    command = [sys.executable, "-c", text.replace(ADDRESS, url)]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout


def comparable(text: str) -> Any:
    """Parsed JSON without what differs from call to call."""
    return json.loads(CHANGING.sub(lambda match: re.sub(r"[0-9a-f]+$", "0", match[0]), text))
