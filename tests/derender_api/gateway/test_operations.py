"""What those who run the service see of the gateway's streams: load, limits, metrics, request IDs, keys."""

import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from derender_api.model_sources import DEMO_FOLDER
from tests.replay_engine import Output, Script, replaying
from tests.servers import MANAGE, Server, migrate, serving

pytestmark = pytest.mark.live

ENDLESS = Script(outputs=[Output(token_ids=[2541] * 100_000)], pause=0.01)
PATH = "/v1/chat/completions"
COUNTED = f'derender_requests_total{{path="{PATH}",status="200"}} 1.0'


def asked(model: str = "demo") -> dict[str, Any]:
    """A request for a stream."""
    return {"model": model, "messages": [{"role": "user", "content": "hi"}], "stream": True}


@pytest.fixture(scope="module")
def key_and_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Server]]:
    """A server that takes on two requests, with an engine that never ends, and a key for the model."""
    folder = tmp_path_factory.mktemp("operations")
    migrate(folder)
    made = [*MANAGE, "create_api_key", "a", "--models", "demo"]
    key = subprocess.run(made, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()
    flags = [str(DEMO_FOLDER), "--served-model-name", "demo", "--workers", "1", "--max-concurrent-requests", "2"]
    with replaying(ENDLESS) as engine, serving(folder, *flags, "--engine-url", engine.url) as server:
        yield key, server


@pytest.fixture
def client(key_and_server: tuple[str, Server]) -> Iterator[httpx.Client]:
    """A client that bears the key."""
    key, server = key_and_server
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {key}"}, timeout=30) as client:
        yield client


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until `condition` holds."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_stream_counts_until_its_client_leaves(client: httpx.Client) -> None:
    def load() -> int:
        return int(client.get("/load").json()["server_load"])

    with client.stream("POST", PATH, json=asked(), headers={"X-Request-Id": "mine"}) as one:
        parts = one.iter_bytes()
        next(parts)
        assert (one.status_code, one.headers["x-request-id"], load()) == (200, "mine", 1)
        assert COUNTED not in client.get("/metrics").text
        with client.stream("POST", PATH, json=asked()) as two:
            others = two.iter_bytes()
            next(others)
            refused = client.post(PATH, json=asked())
            assert (load(), refused.status_code, refused.headers["retry-after"]) == (2, 503, "1")
    eventually(lambda: load() == 0)
    eventually(lambda: COUNTED.replace(" 1.0", " 2.0") in client.get("/metrics").text)


def test_keys_are_demanded_and_are_for_their_models(client: httpx.Client) -> None:
    url = str(client.base_url.join(PATH))

    assert httpx.post(url, json=asked()).status_code == 401
    assert client.post(PATH, json=asked("other")).status_code == 404
