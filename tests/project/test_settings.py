"""Settings come typed from the environment."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from derender_project.environment import Environment
from tests.servers import MANAGE, REPOSITORY

READ = (
    "import json; from django.conf import settings as s; d = s.DERENDER;"
    "print(json.dumps([s.DEBUG, s.SECRET_KEY, s.ALLOWED_HOSTS, s.DATABASES['default']['ENGINE'], d['API_KEY'],"
    "d['MAX_BODY_BYTES'], d['MODELS_REFRESH_SECONDS'], str(d['CONFIG'])]))"
)


def read(tmp_path: Path, **environment: str) -> list[object]:
    """What the settings hold in a process with this environment."""
    environ = {"PYTHONPATH": str(REPOSITORY), "DJANGO_SETTINGS_MODULE": "derender_project.settings", **environment}
    answer = subprocess.run([sys.executable, "-c", READ], cwd=tmp_path, env=environ, capture_output=True, check=True)
    values: list[object] = json.loads(answer.stdout)
    return values


def test_defaults(tmp_path: Path) -> None:
    debug, secret_key, *others = read(tmp_path)

    assert debug is False
    assert len(str(secret_key)) > 50
    assert others == [["*"], "django.db.backends.sqlite3", None, 64 * 1024 * 1024, 2.0, "None"]


def test_a_server_without_a_secret_key_makes_one_up(tmp_path: Path) -> None:
    assert read(tmp_path)[1] != read(tmp_path)[1]


def test_every_variable(tmp_path: Path) -> None:
    values = read(
        tmp_path,
        DERENDER_DEBUG="1",
        DERENDER_SECRET_KEY="s",
        DERENDER_ALLOWED_HOSTS='["a.example"]',
        DERENDER_DATABASE_URL="postgres://u:p@h/d",
        DERENDER_API_KEY="k",
        DERENDER_MAX_BODY_BYTES="17",
        DERENDER_MODELS_REFRESH_SECONDS="0.5",
        DERENDER_CONFIG="models.json",
    )

    assert values == [True, "s", ["a.example"], "django.db.backends.postgresql", "k", 17, 0.5, "models.json"]


@pytest.mark.parametrize(("name", "value"), [("DERENDER_MAX_BODY_BYTES", "a lot"), ("DERENDER_DEBUG", "perhaps")])
def test_a_value_of_the_wrong_type_stops_the_start(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(ValueError, match=name.removeprefix("DERENDER_").lower()):
        Environment()


def test_migrations_are_complete(tmp_path: Path) -> None:
    subprocess.run([*MANAGE, "makemigrations", "--check", "--dry-run"], cwd=tmp_path, check=True)


def test_sqlite_lets_workers_read_while_the_admin_writes(tmp_path: Path) -> None:
    subprocess.run([*MANAGE, "migrate", "--verbosity", "0"], cwd=tmp_path, check=True)
    code = (
        "from django.db import connection as c; k = c.cursor(); print(k.execute('PRAGMA journal_mode').fetchone()[0])"
    )
    answer = subprocess.run([*MANAGE, "shell", "-v", "0", "-c", code], cwd=tmp_path, capture_output=True, check=True)

    assert answer.stdout.decode().strip() == "wal"
