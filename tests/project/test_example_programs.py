"""Two client programs written for vLLM's render server run against this one as they are, but for the addresses."""

import ast
import subprocess
import sys
from collections.abc import Iterator

import pytest

from derender_api.catalog import catalog
from parsers.configuration import ModelConfiguration
from tests.replay_engine import Output, Script, replaying
from tests.servers import REPOSITORY, serving

pytestmark = pytest.mark.live

PROGRAMS = REPOSITORY / "tests" / "data" / "examples"
TOKENIZER = REPOSITORY / "tests" / "data" / "tokenizers" / "llama32"
MODEL = "meta-llama/Llama-3.2-1B-Instruct"
ADDRESSES = ("http://localhost:8100", "http://localhost:8200")
TEXT = "2 + 2 is 4, or four, or 四 🍀."


@pytest.fixture(
    scope="module",
    params=[(), ("--tool-call-parser", "llama3_json", "--enable-auto-tool-choice")],
    ids=["plain", "with a parser"],
)
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Addresses of the server and of an engine that says TEXT."""
    with catalog.override([ModelConfiguration(model=str(TOKENIZER))]):
        tokenizer = catalog.resolve(None).tokenizer
        assert tokenizer.eos_id is not None
        token_ids = [*tokenizer.encode(TEXT), tokenizer.eos_id]
    folder = tmp_path_factory.mktemp("examples")
    with (
        replaying(Script(outputs=[Output(token_ids=token_ids)])) as engine,
        serving(folder, str(TOKENIZER), "--served-model-name", MODEL, *request.param) as server,
    ):
        yield [server.url, engine.url, str(len(token_ids))]


def test_one_shot(servers: list[str]) -> None:
    assert printed("one_shot.py", servers) == f"{TEXT}\n"


def test_streaming(servers: list[str]) -> None:
    text, usage, rest = printed("streaming.py", servers).split("\n")

    assert (text, rest) == (TEXT, "")
    counts = ast.literal_eval(usage)
    assert counts["completion_tokens"] == int(servers[2])
    assert counts["total_tokens"] == counts["prompt_tokens"] + counts["completion_tokens"]


def printed(name: str, urls: list[str]) -> str:
    """What a program prints when render server and engine are at these addresses."""
    program = (PROGRAMS / name).read_text(encoding="utf-8")
    for declared, used in zip(ADDRESSES, urls, strict=False):
        assert program.count(declared) == 1
        program = program.replace(declared, used)
    return subprocess.run(
        [sys.executable, "-X", "utf8", "-c", program], capture_output=True, encoding="utf-8", check=True
    ).stdout
