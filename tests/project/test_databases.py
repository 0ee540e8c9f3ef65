"""Everything that uses a database, on SQLite and on PostgreSQL where it is installed (tests/postgresql.py).

SQLite is what all other tests run on; here the same tests run on PostgreSQL, and servers lose their database.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from derender_api.model_sources import DEMO_FOLDER
from tests import postgresql
from tests.servers import MANAGE, REPOSITORY, Server, serving

pytestmark = pytest.mark.live

DATABASES = ["sqlite", *(["postgresql"] if postgresql.is_tested() else [])]
ROW = f"from parsers.models import ServedModel as S; S.objects.create(name='row', model={str(DEMO_FOLDER)!r})"
DERENDER = {"model": "row", "generate_response": {"request_id": "r", "choices": [{"index": 0, "token_ids": [2541]}]}}


@pytest.fixture(scope="module")
def cluster() -> Iterator[postgresql.Cluster]:
    """One PostgreSQL server for this module."""
    with postgresql.cluster() as cluster:
        yield cluster


class Database:
    """A database that a server uses, and that can be lost."""

    def __init__(self, name: str, folder: Path, cluster: postgresql.Cluster | None) -> None:
        self.file = folder / "own.sqlite3"
        self.cluster = cluster if name == "postgresql" else None
        self.url = self.cluster.url if self.cluster else f"sqlite:///{self.file}"

    @contextmanager
    def lost(self) -> Iterator[None]:
        """Out of reach within the block."""
        if self.cluster:
            self.cluster.stop()
            try:
                yield
            finally:
                self.cluster.start()
            return
        kept = {path: path.read_bytes() for path in self.file.parent.glob("own.sqlite3*")}
        for path in kept:
            path.write_bytes(b"no database at all" * 300)
        try:
            yield
        finally:
            for path, content in kept.items():
                path.write_bytes(content)


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """Each database that is available, with the tables made."""
    cluster = request.getfixturevalue("cluster") if request.param == "postgresql" else None
    database = Database(request.param, tmp_path, cluster)
    manage(database, tmp_path, "migrate", "--verbosity", "0")
    return database


def manage(database: Database, folder: Path, *arguments: str) -> str:
    """Run a management command on `database` and give what it prints."""
    environ = {**os.environ, "DERENDER_DATABASE_URL": database.url}
    command = [*MANAGE, *arguments]
    return subprocess.run(command, cwd=folder, env=environ, check=True, capture_output=True, text=True).stdout.strip()


def eventually(condition: Callable[[], bool], server: Server) -> None:
    """Wait until `condition` holds."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, server.log()
        time.sleep(0.1)


@pytest.mark.parametrize("name", [name for name in DATABASES if name != "sqlite"])
def test_all_tests_of_the_database_pass(name: str, cluster: postgresql.Cluster) -> None:
    environ = {**os.environ, "DATABASE_URL": cluster.url}
    selection = ["-m", "django_db and not live and not parity", "tests/parsers", "tests/derender_api"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *selection]
    ran = subprocess.run(command, cwd=REPOSITORY, env=environ, capture_output=True, text=True, timeout=300)

    assert ran.returncode == 0, ran.stdout[-5000:]
    assert "database: postgresql" in ran.stdout
    assert " passed" in ran.stdout


def test_serving_goes_on_without_the_database(database: Database, tmp_path: Path) -> None:
    key = manage(database, tmp_path, "create_api_key", "a")
    manage(database, tmp_path, "shell", "-v", "0", "-c", ROW)
    environment = {"DERENDER_DATABASE_URL": database.url, "DERENDER_MODELS_REFRESH_SECONDS": "0.2"}
    with serving(tmp_path, "--workers", "2", environment=environment) as server:
        url = server.url + "/v1/chat/completions/derender"

        def ask() -> list[int]:
            """Statuses without a key, with it, and of the health, over connections of their own."""
            statuses = []
            for _ in range(4):
                for headers in ({}, {"Authorization": f"Bearer {key}"}):
                    statuses.append(httpx.post(url, json=DERENDER, headers=headers, timeout=30).status_code)
                statuses.append(httpx.get(server.url + "/health").status_code)
            return statuses

        def ready() -> tuple[int, str, str]:
            answer = httpx.get(server.url + "/ready", timeout=30)
            return answer.status_code, answer.json()["status"], answer.json()["database"]

        assert ask() == [401, 200, 200] * 4
        assert ready() == (200, "ready", "ok")
        with database.lost():
            eventually(lambda: ready() == (200, "degraded", "lost"), server)
            assert ask() == [401, 200, 200] * 4
            time.sleep(0.5)
            assert ask() == [401, 200, 200] * 4
        eventually(lambda: {ready() for _ in range(4)} == {(200, "ready", "ok")}, server)
        manage(database, tmp_path, "revoke_api_key", "a")
        eventually(lambda: ask() == [401, 401, 200] * 4, server)


def test_a_server_that_starts_without_the_database_lets_nobody_in_until_it_is_there(
    database: Database, tmp_path: Path
) -> None:
    key = manage(database, tmp_path, "create_api_key", "b" + tmp_path.name)
    environment = {"DERENDER_DATABASE_URL": database.url, "DERENDER_MODELS_REFRESH_SECONDS": "0.2"}

    def asked(server: Server, headers: dict[str, str]) -> int:
        return httpx.get(server.url + "/v1/models", headers=headers, timeout=30).status_code

    right = {"Authorization": f"Bearer {key}"}
    with database.lost():
        context = serving(tmp_path, "--workers", "1", environment=environment)
        server = context.__enter__()
        try:
            assert (asked(server, right), asked(server, {})) == (503, 503)
            assert httpx.get(server.url + "/health").status_code == 200
        except BaseException:
            context.__exit__(None, None, None)
            raise
    try:
        eventually(lambda: (asked(server, right), asked(server, {})) == (200, 401), server)
    finally:
        context.__exit__(None, None, None)
