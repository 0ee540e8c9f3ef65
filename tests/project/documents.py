"""Reads README.md: its shell blocks, and the answers it promises."""

import json
import re
import subprocess
from dataclasses import dataclass
from typing import Any

from tests.servers import REPOSITORY

TEXT = (REPOSITORY / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ADDRESS = "http://localhost:8000"
CHANGING = re.compile(r'"created":\s*\d+|chatcmpl-tool-[0-9a-f]{16}|modelperm-[0-9a-f]{16}')
"""What differs from call to call."""


@dataclass(frozen=True, slots=True)
class Example:
    """A shell block, and the JSON block that follows it, if any."""

    commands: str
    answer: str | None


def examples() -> list[Example]:
    """Every shell block of the README in order."""
    blocks = BLOCK.findall(TEXT)
    following = [*blocks[1:], ("", "")]
    return [
        Example(text, after[1] if after[0] == "json" else None)
        for (language, text), after in zip(blocks, following, strict=True)
        if language == "bash"
    ]


def curl_examples() -> list[Example]:
    """The shell blocks that talk to a server."""
    return [example for example in examples() if example.commands.startswith("curl")]


def run(commands: str, *, url: str) -> str:
    """What the commands print when the server listens at `url`."""
    script = commands.replace(ADDRESS, url).replace("curl ", "curl --silent --show-error ")
    return subprocess.run(["bash", "-ec", script], capture_output=True, text=True, check=True).stdout


def comparable(text: str) -> Any:
    """Parsed JSON without what differs from call to call."""
    return json.loads(CHANGING.sub(lambda match: re.sub(r"[0-9a-f]+$", "0", match[0]), text))
