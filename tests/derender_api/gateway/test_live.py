"""A real server in front of replay engines: the `openai` client, curl, engines and workers that die."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import openai
import psutil
import pytest

from derender_api.model_sources import DEMO_FOLDER
from tests.derender_api.gateway.support import folded_chat
from tests.replay_engine import Output, ReplayEngine, Script, error_body, replaying, until
from tests.servers import Server, serving

pytestmark = pytest.mark.live

FLAGS = (
    *(str(DEMO_FOLDER), "--served-model-name", "demo", "--tool-call-parser", "hermes", "--reasoning-parser", "qwen3"),
    "--enable-auto-tool-choice",
)
CALL = [
    *(4003, 198, 2320, 88, 781, 74, 555, 303, 478, 516, 4004, 198, 198, 43, 1784, 436, 2280, 516, 4005, 198, 264, 280),
    *(258, 259, 554, 62, 606, 274, 259, 285, 258, 290, 710, 258, 259, 1076, 542, 4006, 4002),
]
"""Thoughts ("They ask for the weather."), a sentence ("Let me look.") and a call, in tokens of the demo model."""
HELLO = Script(outputs=[Output(token_ids=[4003, 4004, 2541, 3048, 4002])])
"""No thought, "Hello world"."""
ENDLESS = Script(outputs=[Output(token_ids=[4003, 4004, *[2541] * 100_000])], pause=0.01)
TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]
ASKED: Any = {"model": "demo", "messages": [{"role": "user", "content": "Weather in Paris?"}]}
ARGUMENTS = {"name": "get_weather", "arguments": '{"city": "Paris"}'}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ReplayEngine, Server]]:
    """An engine, and the server in front of it."""
    with (
        replaying(HELLO) as engine,
        serving(tmp_path_factory.mktemp("gateway"), *FLAGS, "--engine-url", engine.url) as server,
    ):
        yield engine, server


@pytest.fixture
def server(both: tuple[ReplayEngine, Server]) -> Server:
    """The server."""
    return both[1]


@pytest.fixture
def engine(both: tuple[ReplayEngine, Server]) -> ReplayEngine:
    """The engine, which thinks and calls."""
    both[0].script = Script(outputs=[Output(token_ids=CALL)])
    both[0].asked.clear()
    return both[0]


@pytest.fixture
def client(server: Server) -> Iterator[openai.OpenAI]:
    """The official client, without repeats of its own."""
    with openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0) as client:
        yield client


class TestOpenai:
    """The official client."""

    def test_a_chat_completion(self, engine: ReplayEngine, client: openai.OpenAI) -> None:
        answer = client.chat.completions.create(**ASKED, tools=TOOLS)
        (choice,) = answer.choices

        assert choice.finish_reason == "tool_calls"
        assert choice.message.content == "\n\nLet me look.\n"
        assert choice.message.model_extra
        assert choice.message.model_extra["reasoning"] == "\nThey ask for the weather.\n"
        assert [call.function.model_dump() for call in choice.message.tool_calls or ()] == [ARGUMENTS]  # type: ignore[union-attr]
        assert answer.usage
        assert answer.usage.completion_tokens == len(CALL)

    def test_a_stream(self, engine: ReplayEngine, client: openai.OpenAI) -> None:
        stream = client.chat.completions.create(
            **ASKED, tools=TOOLS, stream=True, stream_options={"include_usage": True}
        )
        chunks = list(stream)

        folded = folded_chat([chunk.model_dump(exclude_unset=True) for chunk in chunks])
        assert folded["message"]["tool_calls"] == [ARGUMENTS]
        assert folded["finish_reason"] == "tool_calls"
        assert chunks[-1].usage
        assert chunks[-1].usage.completion_tokens == len(CALL)

    def test_the_asynchronous_client(self, engine: ReplayEngine, server: Server) -> None:
        async def main() -> tuple[Any, list[Any]]:
            async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="none") as client:
                whole = await client.chat.completions.create(**ASKED, tools=TOOLS)
                stream = await client.chat.completions.create(**ASKED, tools=TOOLS, stream=True)
                return whole, [chunk async for chunk in stream]

        whole, chunks = asyncio.run(main())
        folded = folded_chat([chunk.model_dump(exclude_unset=True) for chunk in chunks])

        assert folded["message"]["content"] == whole.choices[0].message.content
        assert folded["message"]["tool_calls"] == [ARGUMENTS]

    def test_the_streaming_helper(self, engine: ReplayEngine, client: openai.OpenAI) -> None:
        with client.chat.completions.stream(**ASKED, tools=TOOLS) as stream:
            events = list(stream)
            final = stream.get_final_completion()

        kinds = {event.type for event in events}
        assert {"chunk", "content.delta", "content.done"} <= kinds
        assert {"tool_calls.function.arguments.delta", "tool_calls.function.arguments.done"} <= kinds
        message = final.choices[0].message
        assert message.content == "\n\nLet me look.\n"
        calls = [(call.function.name, call.function.arguments) for call in message.tool_calls or ()]
        assert calls == [("get_weather", '{"city": "Paris"}')]

    def test_a_raw_response(self, engine: ReplayEngine, client: openai.OpenAI) -> None:
        raw = client.chat.completions.with_raw_response.create(**ASKED, extra_headers={"X-Request-Id": "mine"})

        assert (raw.status_code, raw.headers["x-request-id"]) == (200, "mine")
        assert raw.parse().id == "chatcmpl-mine"
        with client.chat.completions.with_streaming_response.create(**ASKED, stream=True) as response:
            lines = [line for line in response.iter_lines() if line]
        assert lines[-1] == "data: [DONE]"

    def test_text_completions(self, engine: ReplayEngine, client: openai.OpenAI) -> None:
        engine.script = Script(outputs=[Output(token_ids=[2541, 3048, 4002])])
        whole = client.completions.create(model="demo", prompt=["a", "b"])
        stream = client.completions.create(model="demo", prompt="a", stream=True)

        assert [choice.text for choice in whole.choices] == ["Hello world"] * 2
        assert "".join(chunk.choices[0].text for chunk in stream) == "Hello world"

    def test_errors(self, engine: ReplayEngine, client: openai.OpenAI) -> None:
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(**{**ASKED, "model": "nobody"})
        with pytest.raises(openai.BadRequestError, match="echo"):
            client.completions.create(model="demo", prompt="a", echo=True)
        engine.script = Script(status=429, body=error_body("slowly", code=429))
        with pytest.raises(openai.RateLimitError, match="slowly"):
            client.chat.completions.create(**ASKED)
        engine.script = Script(status=500, body=error_body("out of memory", code=500))
        with pytest.raises(openai.InternalServerError, match="out of memory"):
            client.chat.completions.create(**ASKED, stream=True)

    def test_a_stream_that_fails(self, engine: ReplayEngine, client: openai.OpenAI) -> None:
        engine.script = Script(outputs=HELLO.outputs, breaks_at=4)
        seen: list[str] = []
        stream = client.chat.completions.create(**ASKED, stream=True)
        with pytest.raises(openai.APIError, match="broke off"):
            seen.extend(chunk.choices[0].delta.content or "" for chunk in stream)

        assert "".join(seen) == "Hello world"


class TestConnections:
    """Clients over real sockets."""

    def test_curl_prints_events_as_they_come(self, engine: ReplayEngine, server: Server) -> None:
        engine.script = Script(outputs=HELLO.outputs, hangs_at=3)
        command = ["curl", "-sN", server.url + "/v1/chat/completions", "-H", "Content-Type: application/json", "-d"]
        with subprocess.Popen([*command, json.dumps({**ASKED, "stream": True})], stdout=subprocess.PIPE) as curl:
            assert curl.stdout
            line = b""
            while b"Hello" not in line:
                line = curl.stdout.readline()
            curl.terminate()

        assert line.startswith(b"data: {")
        until(lambda: engine.only.was_aborted)

    def test_a_client_that_leaves_a_stream(self, engine: ReplayEngine, server: Server) -> None:
        engine.script = ENDLESS
        with httpx.stream("POST", server.url + "/v1/chat/completions", json={**ASKED, "stream": True}) as response:
            next(response.iter_lines())

        self.watch(engine, server)

    def test_a_client_that_waits_no_longer(self, engine: ReplayEngine, server: Server) -> None:
        engine.script = Script(outputs=HELLO.outputs, hangs_at=0)
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(server.url + "/v1/chat/completions", json=ASKED, timeout=0.5)

        self.watch(engine, server)

    def watch(self, engine: ReplayEngine, server: Server) -> None:
        """The engine's work is given up, and the request counts no more."""
        until(lambda: engine.only.was_aborted)
        until(lambda: httpx.get(server.url + "/load").json()["server_load"] == 0)

    def test_a_client_that_does_not_read_stalls_the_engine(self, engine: ReplayEngine, server: Server) -> None:
        engine.script = Script(outputs=[Output(token_ids=[4003, 4004, *[2541] * 120_000])])
        seen: list[int] = []

        def is_stalled() -> bool:
            seen.append(engine.only.sent)
            return len(seen) > 100 and seen[-1] == seen[-100] > 0

        with httpx.stream("POST", server.url + "/v1/chat/completions", json={**ASKED, "stream": True}) as response:
            next(response.iter_lines())
            until(is_stalled)
            worker_bytes = max(
                child.memory_info().rss for child in psutil.Process(server.process.pid).children(recursive=True)
            )

        assert engine.only.sent < 100_000
        assert worker_bytes < 400 * 2**20
        until(lambda: engine.only.was_aborted)

    def test_many_streams_at_once(self, engine: ReplayEngine, server: Server) -> None:
        engine.script = Script(outputs=[Output(token_ids=[4003, 4004, *[2541, 3048] * 30, 4002])], pause=0.001)

        def text(_: int) -> str:
            body = {**ASKED, "stream": True}
            with httpx.stream("POST", server.url + "/v1/chat/completions", json=body, timeout=60) as response:
                lines = [line.removeprefix("data: ") for line in response.iter_lines() if line]
            assert lines.pop() == "[DONE]"
            content: str = folded_chat([json.loads(line) for line in lines])["message"]["content"]
            return content

        with ThreadPoolExecutor(20) as pool:
            texts = list(pool.map(text, range(40)))

        assert texts == ["Hello world" * 30] * 40
        assert not any(asked.was_aborted for asked in engine.asked)


class TestDeaths:
    """Engines and workers that are killed."""

    def test_one_of_two_engines(self, tmp_path: Path) -> None:
        slow = Script(outputs=[Output(token_ids=[4003, 4004, *[2541] * 500, 4002])], pause=0.01)
        with (
            replaying(slow) as dying,
            replaying(HELLO) as left,
            serving(tmp_path, *FLAGS, "--engine-url", dying.url, left.url, "--workers", "1") as server,
            openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0) as client,
        ):
            self.watch(dying, left, client)

    def watch(self, dying: ReplayEngine, left: ReplayEngine, client: openai.OpenAI) -> None:
        """A stream of the dying engine ends with an error; whoever asks afterwards does not notice."""
        streams = [client.chat.completions.create(**ASKED, stream=True) for _ in range(2)]
        assert (len(dying.asked), len(left.asked)) == (1, 1)
        dying.kill()
        outcomes = []
        for stream in streams:
            try:
                outcomes.append("".join(chunk.choices[0].delta.content or "" for chunk in stream))
            except openai.APIError as error:
                outcomes.append(error.message)
        answers = [client.chat.completions.create(**ASKED).choices[0].message.content for _ in range(6)]

        assert sorted(outcomes)[0] == "Hello world"
        assert sorted(outcomes)[1].startswith("The engine broke off its stream")
        assert answers == ["Hello world"] * 6

    def test_a_worker(self, tmp_path: Path) -> None:
        with replaying(ENDLESS) as engine, serving(tmp_path, *FLAGS, "--engine-url", engine.url) as server:
            body = {**ASKED, "stream": True}
            with httpx.stream("POST", server.url + "/v1/chat/completions", json=body) as response:
                lines = response.iter_lines()
                next(lines)
                for child in psutil.Process(server.process.pid).children():
                    os.kill(child.pid, signal.SIGKILL)
                with pytest.raises(httpx.TransportError):
                    list(lines)
            until(lambda: engine.only.was_aborted)
            engine.script = HELLO
            until(lambda: self.answers(server))

    def answers(self, server: Server) -> bool:
        """Whether the server answers again."""
        try:
            answer = httpx.post(server.url + "/v1/chat/completions", json=ASKED, timeout=5)
        except httpx.TransportError:
            return False
        return bool(answer.json()["choices"][0]["message"]["content"] == "Hello world")

    def test_a_server_that_stops_lets_streams_finish(self, tmp_path: Path) -> None:
        script = Script(outputs=[Output(token_ids=[4003, 4004, *[2541] * 50, 4002])], pause=0.02)
        with replaying(script) as engine, serving(tmp_path, *FLAGS, "--engine-url", engine.url) as server:
            body = {**ASKED, "stream": True}
            with httpx.stream("POST", server.url + "/v1/chat/completions", json=body, timeout=30) as response:
                lines = response.iter_lines()
                next(lines)
                server.process.terminate()
                assert [line for line in lines if line][-1] == "data: [DONE]"
