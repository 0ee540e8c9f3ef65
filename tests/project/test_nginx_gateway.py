"""Answers of engines through deploy/nginx.conf, with a real nginx in front of a real server."""

import json
import re
from collections.abc import Iterator

import httpx
import pytest

from derender_api.model_sources import DEMO_FOLDER
from derender_project.environment import Environment
from tests.project.nginx import CONFIGURATION, nginx_in_front_of
from tests.replay_engine import Output, ReplayEngine, Script, replaying, until
from tests.servers import Server, serving

pytestmark = pytest.mark.live


BODY = {"model": "demo", "messages": [{"role": "user", "content": "hi"}], "stream": True}
WORDS = [Output(token_ids=[2541, 3048, 2541, 4002])]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ReplayEngine, Server]]:
    """An engine, and nginx in front of the server that asks it."""
    folder = tmp_path_factory.mktemp("gateway")
    flags = (str(DEMO_FOLDER), "--served-model-name", "demo", "--engine-url")
    with (
        replaying(Script()) as engine,
        serving(folder, *flags, engine.url) as behind,
        nginx_in_front_of(behind, folder / "nginx") as front,
    ):
        yield engine, front


@pytest.mark.parametrize(
    ("path", "prompt"), [("/v1/chat/completions", {}), ("/v1/completions", {"prompt": "a", "messages": None})]
)
def test_events_arrive_one_by_one(gateway: tuple[ReplayEngine, Server], path: str, prompt: dict[str, str]) -> None:
    engine, front = gateway
    engine.asked.clear()
    engine.script = Script(outputs=WORDS, hangs_at=2)
    with httpx.stream("POST", front.url + path, json={**BODY, **prompt}) as answer:
        lines = (line for line in answer.iter_lines() if line)
        events = [json.loads(next(lines).removeprefix("data: ")) for _ in range(2)]

    assert [event["object"] for event in events] == [events[0]["object"]] * 2
    until(lambda: engine.only.was_aborted)


def test_whole_streams_and_answers(gateway: tuple[ReplayEngine, Server]) -> None:
    engine, front = gateway
    engine.script = Script(outputs=WORDS)
    stream = httpx.post(front.url + "/v1/chat/completions", json=BODY)
    whole = httpx.post(front.url + "/v1/chat/completions", json={**BODY, "stream": False})

    assert stream.headers["content-type"].startswith("text/event-stream")
    assert stream.text.endswith("data: [DONE]\n\n")
    assert whole.json()["choices"][0]["message"]["content"] == "Hello worldHello"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_an_engine_that_hangs_is_answered_for_by_the_server(path: str) -> None:
    longest = Environment.model_fields["engine_read_seconds"].default
    section = CONFIGURATION.read_text().partition(f"location = {path} {{")[2].partition("}")[0]

    assert int(re.findall(r"proxy_read_timeout (\d+)s", section)[0]) > longest
