"""Two servers that share a database and a Redis, and what they do while Redis is gone."""

import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from derender_api.model_sources import DEMO_FOLDER
from tests.derender_api.support import CHAT, HELLO, MESSAGES, TOOLS, WORLD, chunk
from tests.redis_servers import Redis, redis
from tests.servers import MANAGE, Server, migrate, serving

pytestmark = pytest.mark.live

FLAGS = (str(DEMO_FOLDER), "--served-model-name", "demo", "--workers", "1")
REQUEST = {"messages": MESSAGES, "tools": TOOLS}
LIMIT = 10
WINDOW_SECONDS = 60


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a database that both servers use."""
    folder = tmp_path_factory.mktemp("database")
    migrate(folder)
    return folder


@pytest.fixture(scope="module")
def key(database: Path) -> str:
    """A key for so many requests per minute."""
    command = [*MANAGE, "create_api_key", "tests", "--requests-per-minute", str(LIMIT)]
    return subprocess.run(command, cwd=database, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def cache() -> Iterator[Redis]:
    """The Redis that both servers use."""
    with redis() as server:
        yield server


@pytest.fixture(scope="module")
def servers(
    tmp_path_factory: pytest.TempPathFactory, database: Path, key: str, cache: Redis
) -> Iterator[tuple[Server, Server]]:
    """Two servers of one worker each, with a key of their own that has no limit."""
    environment = {
        "DERENDER_CACHE_URL": cache.url,
        "DERENDER_DATABASE_URL": f"sqlite:///{database / 'derender.sqlite3'}",
        "DERENDER_SECRET_KEY": "the same for both, and long enough for every check that there is",
        "DERENDER_API_KEY": "unlimited",
    }
    one, two = (tmp_path_factory.mktemp(name) for name in ("one", "two"))
    with (
        serving(one, *FLAGS, environment=environment) as first,
        serving(two, *FLAGS, environment=environment) as second,
    ):
        yield first, second


def post(server: Server, body: Any, *, key: str = "unlimited") -> httpx.Response:
    """The answer to a derender call."""
    return httpx.post(server.url + CHAT, json=body, headers={"Authorization": f"Bearer {key}"}, timeout=30)


def begun(server: Server, **fields: Any) -> Any:
    """The state of a compact stream that begins at `server`."""
    body = chunk([HELLO], chat_request=REQUEST, prompt_token_ids=[1], stream_state_format="compact", **fields)
    answer = post(server, body)
    assert answer.status_code == 200, answer.text
    return answer.json()["stream_state"]


def test_a_chat_request_that_one_server_was_sent_is_known_to_the_other(servers: tuple[Server, Server]) -> None:
    state = begun(servers[0])
    answers = [post(server, chunk([WORLD], stream_state=state)) for server in servers]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json()["chunk"]["choices"] == answers[1].json()["chunk"]["choices"]


def test_requests_of_a_key_are_counted_over_all_servers(servers: tuple[Server, Server], key: str) -> None:
    if (left := WINDOW_SECONDS - time.time() % WINDOW_SECONDS) < 15:  # all calls in one minute of the clock
        time.sleep(left + 0.1)
    body = {"generate_response": {"request_id": "r", "choices": [{"index": 0, "token_ids": [HELLO]}]}}
    answers = [post(servers[number % 2], {**body, "chat_request": REQUEST}, key=key) for number in range(2 * LIMIT)]

    assert Counter(answer.status_code for answer in answers) == {200: LIMIT, 429: LIMIT}
    assert all(0 < int(answer.headers["retry-after"]) <= WINDOW_SECONDS for answer in answers[LIMIT:])


def test_without_redis_serving_goes_on(servers: tuple[Server, Server], cache: Redis, key: str) -> None:
    state = begun(servers[0])
    cache.stop()
    try:
        alone = post(servers[1], chunk([WORLD], stream_state=state))
        told = post(servers[1], chunk([WORLD], stream_state=state, chat_request=REQUEST))
        first = chunk([HELLO], chat_request=REQUEST, prompt_token_ids=[1])
        unlimited = [post(servers[0], first, key=key) for _ in range(2 * LIMIT)]
        health = httpx.get(servers[0].url + "/health").status_code
    finally:
        cache.start()
    again = post(servers[1], chunk([WORLD], stream_state=begun(servers[0])))

    assert (alone.status_code, alone.json()["error"]["code"]) == (409, "context_required")
    assert told.status_code == 200
    assert {answer.status_code for answer in unlimited} == {200}
    assert (health, again.status_code) == (200, 200)
    assert servers[1].log().count("Chat requests are not remembered: the cache does not answer") == 1
    assert "The cache answers again" in servers[1].log()
