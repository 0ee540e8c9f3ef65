"""docs/examples/streaming_client.py against a real server and an engine that replays."""

import asyncio
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from derender_api.exceptions import ContextRequired
from tests.replay_engine import Output, ReplayEngine, Script, replaying
from tests.servers import REPOSITORY, Server, serving

pytestmark = pytest.mark.live

FILE = REPOSITORY / "docs" / "examples" / "streaming_client.py"
TOKENS = [
    *(4003, 198, 2320, 88, 781, 74, 555, 303, 478, 516, 4004, 198, 198, 43, 1784, 436, 2280, 516, 4005, 198, 264, 280),
    *(258, 259, 554, 62, 606, 274, 259, 285, 258, 290, 710, 258, 259, 1076, 542, 4006, 4002),
]
"""The demo model: thoughts, a sentence, and a call."""
REQUEST = {
    "model": "demo",
    "messages": [{"role": "user", "content": "Weather in Paris?"}],
    "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}],
    "stream": True,
    "stream_options": {"include_usage": True},
}
WHOLE = ("\nThey ask for the weather.\n", "\n\nLet me look.\n", [["get_weather", '{"city": "Paris"}']], "tool_calls")


def client() -> Any:
    """The example as a module."""
    specification = importlib.util.spec_from_file_location("streaming_client", FILE)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The demo server."""
    with serving(tmp_path_factory.mktemp("client")) as server:
        yield server


@pytest.fixture(scope="module")
def engine() -> Iterator[ReplayEngine]:
    """An engine that calls the tool."""
    with replaying(Script(outputs=[Output(token_ids=TOKENS)])) as engine:
        yield engine


class Troubled(httpx.AsyncBaseTransport):
    """Answers every other call to the derender endpoint with one of `troubles`; counts the calls that passed."""

    def __init__(self, *troubles: httpx.Response | Exception) -> None:
        self._real = httpx.AsyncHTTPTransport()
        self._troubles = list(troubles)
        self._is_next = True
        self.passed: list[bytes] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/derender"):
            self._is_next = not self._is_next
            if self._is_next and self._troubles:
                trouble = self._troubles.pop()
                if isinstance(trouble, Exception):
                    raise trouble
                return trouble
            self.passed.append(request.content)
        return await self._real.handle_async_request(request)


def chunks_of(
    server: Server, engine: ReplayEngine, transport: httpx.AsyncBaseTransport | None = None, **options: Any
) -> list[dict[str, Any]]:
    """What the client gives for the request; options of the request, and `compact`."""
    compact = options.pop("compact", True)

    async def run() -> list[dict[str, Any]]:
        async with (
            httpx.AsyncClient(base_url=server.url, timeout=60, transport=transport) as derender,
            httpx.AsyncClient(base_url=engine.url, timeout=60) as generate,
        ):
            stream = client().stream_chat(derender, generate, {**REQUEST, **options}, compact=compact)
            return [chunk async for chunk in stream]

    return asyncio.run(run())


def folded(chunks: list[dict[str, Any]], index: int = 0) -> tuple[str, str, list[list[str]], str]:
    """The sum of a choice's deltas."""
    reasoning = content = reason = ""
    calls: dict[int, list[str]] = {}
    for choice in (each for chunk in chunks for each in chunk["choices"] if each["index"] == index):
        reasoning += choice["delta"].get("reasoning") or ""
        content += choice["delta"].get("content") or ""
        reason += choice["finish_reason"] or ""
        for call in choice["delta"].get("tool_calls") or []:
            entry = calls.setdefault(call["index"], ["", ""])
            entry[0] += call["function"]["name"] or ""
            entry[1] += call["function"]["arguments"] or ""
    return reasoning, content, list(calls.values()), reason


@pytest.mark.parametrize("compact", [True, False])
def test_a_stream_adds_up_and_ends_with_the_usage(server: Server, engine: ReplayEngine, compact: bool) -> None:
    chunks = chunks_of(server, engine, compact=compact)

    assert folded(chunks) == WHOLE
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == len(TOKENS)
    assert [chunk["usage"] for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)


@pytest.mark.parametrize("compact", [True, False])
def test_choices_have_states_of_their_own(server: Server, engine: ReplayEngine, compact: bool) -> None:
    chunks = chunks_of(server, engine, n=3, compact=compact)

    assert [folded(chunks, index) for index in range(3)] == [WHOLE] * 3


def test_calls_are_made_again(server: Server, engine: ReplayEngine) -> None:
    troubles = Troubled(
        httpx.Response(503, headers={"Retry-After": "0"}, json={"error": {}}),
        httpx.ConnectError("refused"),
        httpx.Response(429, headers={"Retry-After": "0"}, json={"error": {}}),
    )

    assert folded(chunks_of(server, engine, troubles, compact=False)) == WHOLE


def test_a_forgotten_chat_request_is_said_again(engine: ReplayEngine, tmp_path: Path) -> None:
    transport = Troubled()
    slow = Script(outputs=[Output(token_ids=TOKENS, chunk=8)], pause=0.05)
    with (
        replaying(slow) as slow_engine,
        serving(tmp_path, environment={"DERENDER_CONTEXT_CACHE_SECONDS": "0.01"}) as forgetful,
    ):
        chunks = chunks_of(forgetful, slow_engine, transport)

    assert folded(chunks) == WHOLE
    assert ContextRequired.status == 409
    said = [b'"chat_request"' in content for content in transport.passed]
    assert False in said[1:]
    assert True in said[1:]


def test_an_error_that_stays_is_raised(server: Server, engine: ReplayEngine) -> None:
    transport = Troubled()
    with pytest.raises(Exception, match="max_model_len") as raised:
        asyncio.run(_too_long(server, transport))

    assert type(raised.value).__name__ == "DerenderError"
    assert len(transport.passed) == 1


async def _too_long(server: Server, transport: httpx.AsyncBaseTransport) -> None:
    async with httpx.AsyncClient(base_url=server.url, transport=transport) as http:
        derenderer = client().ChatDerenderer(http, chat_request=REQUEST, prompt_token_ids=[1] * 131_073)
        await derenderer.derender([{"request_id": "r", "choices": [{"index": 0, "token_ids": [1]}]}])


def test_it_runs_as_a_command(server: Server, engine: ReplayEngine) -> None:
    command = [sys.executable, str(FILE), "--derender", server.url, "--engine", engine.url, "--model", "demo", "Hi"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)

    assert "They ask for the weather." in ran.stdout
    assert ran.stdout.endswith(f"\n{len(TOKENS)} tokens\n")
