"""Settings come typed from the environment."""

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any, ClassVar

import pytest
from django.core.management import CommandError, call_command
from pydantic import ValidationError

from derender_api.management.commands import list_settings
from derender_project.environment import Environment, problems_of
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


def command(tmp_path: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What a management command does in an environment of only these variables."""
    return subprocess.run([*MANAGE, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("DERENDER_MAX_BODY_BYTES", "a lot", "Input should be a valid integer"),
        ("DERENDER_MAX_BODY_BYTES", "0", "Input should be greater than or equal to 1"),
        ("DERENDER_MAX_CONCURRENT_REQUESTS", "-1", "Input should be greater than or equal to 0"),
        ("DERENDER_MODELS_REFRESH_SECONDS", "4000", "Input should be less than or equal to 3600"),
        ("DERENDER_DEBUG", "perhaps", "Input should be a valid boolean"),
        ("DERENDER_LOG_LEVEL", "loud", "Input should be 'DEBUG', 'INFO'"),
        ("DERENDER_LOG_FORMAT", "xml", "Input should be 'json' or 'text'"),
        ("DERENDER_CACHE_URL", "memcached://x", "String should match pattern"),
        ("DERENDER_ALLOWED_HOSTS", "[", "not a JSON list"),
        ("DERENDER_DATABASE_URL", "nonsense", "not the URL of a database"),
        ("DATABASE_URL", "gopher://x", "not the URL of a database"),
    ],
)
def test_what_makes_no_sense_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, problem: str
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(ValidationError) as raised:
        Environment()
    (text,) = problems_of(raised.value)

    assert text.startswith(f"DERENDER_{name.removeprefix('DERENDER_')}: {problem}")


@pytest.mark.parametrize("arguments", [["check"], ["serve"], ["migrate"]])
def test_it_stops_the_start_in_plain_words(tmp_path: Path, arguments: list[str]) -> None:
    stopped = command(tmp_path, *arguments, DERENDER_MAX_BODY_BYTES="0", DERENDER_DEBUG="perhaps")

    assert stopped.returncode == 1
    assert stopped.stderr.startswith(
        "derender is not configured properly:\nDERENDER_DEBUG: Input should be a valid boo"
    )
    assert "\nDERENDER_MAX_BODY_BYTES: Input should be greater than" in stopped.stderr
    assert "Traceback" not in stopped.stderr


@pytest.mark.parametrize("text", ['["a.example", "b.example"]', "a.example,b.example", " a.example , b.example, "])
def test_lists_are_json_or_have_commas(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("DERENDER_ALLOWED_HOSTS", text)

    assert Environment().allowed_hosts == ["a.example", "b.example"]


@pytest.mark.parametrize(
    ("variables", "url"),
    [
        ({"DATABASE_URL": "postgresql://a/b"}, "postgresql://a/b"),
        ({"DATABASE_URL": "postgresql://a/b", "DERENDER_DATABASE_URL": "sqlite:///x"}, "sqlite:///x"),
        ({"DERENDER_DATABASE_URL": ""}, None),
    ],
)
def test_the_usual_name_of_the_database_is_read(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], url: str | None
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert Environment().database_url == url


class TestProduction:
    """DERENDER_PRODUCTION=1."""

    VARIABLES: ClassVar = {"DERENDER_PRODUCTION": "1", "DERENDER_SECRET_KEY": "aB3$x" * 11, "DERENDER_API_KEY": "k"}

    @pytest.mark.parametrize("key", ["", "short"])
    def test_demands_a_secret_key(self, tmp_path: Path, key: str) -> None:
        stopped = command(tmp_path, "check", DERENDER_PRODUCTION="1", DERENDER_SECRET_KEY=key)

        assert stopped.returncode == 1
        assert (
            "DERENDER_PRODUCTION needs DERENDER_SECRET_KEY, at least 50 random characters: python -c" in stopped.stderr
        )

    def test_excludes_debug_mode(self, tmp_path: Path) -> None:
        stopped = command(tmp_path, "check", **self.VARIABLES, DERENDER_DEBUG="1")

        assert "DERENDER_DEBUG and DERENDER_PRODUCTION exclude each other" in stopped.stderr

    def test_passes_the_deployment_checks(self, tmp_path: Path) -> None:
        checked = command(tmp_path, "check", "--deploy", "--fail-level", "INFO", **self.VARIABLES)

        assert (checked.returncode, checked.stderr) == (0, "")
        assert "no issues" in checked.stdout

    def test_pages_are_secured(self, tmp_path: Path) -> None:
        code = (
            "from django.test import Client; c = Client();"
            "a = c.get('/admin/login/', headers={'X-Forwarded-Proto': 'https'});"
            "b = c.get('/admin/login/'); d = c.get('/health');"
            "print(a.status_code, a['Strict-Transport-Security'], a['X-Frame-Options'], a['X-Content-Type-Options'],"
            " a.cookies['csrftoken']['secure'], b.status_code, b['Location'], d.status_code)"
        )
        variables = {**self.VARIABLES, "DERENDER_BEHIND_PROXY": "1"}
        told = command(tmp_path, "shell", "-v", "0", "-c", code, **variables).stdout

        assert told.split() == [
            *("200", "max-age=3600", "DENY", "nosniff", "True"),
            *("301", "https://testserver/admin/login/", "200"),
        ]

    def test_logs_are_json_lines(self, tmp_path: Path) -> None:
        code = "import logging; logging.getLogger('x').warning('y')"
        line = command(tmp_path, "shell", "-v", "0", "-c", code, **self.VARIABLES).stderr

        assert {key: json.loads(line)[key] for key in ("level", "logger", "message")} == {
            "level": "WARNING",
            "logger": "x",
            "message": "y",
        }


class TestPage:
    """docs/configuration.md."""

    def test_is_up_to_date(self) -> None:
        call_command("list_settings", check=True)

    def test_an_outdated_page_is_an_error(self, settings: Any, tmp_path: Path) -> None:
        settings.BASE_DIR = tmp_path
        (tmp_path / list_settings.PAGE).parent.mkdir()
        with pytest.raises(CommandError, match="out of date"):
            call_command("list_settings", check=True)
        call_command("list_settings", markdown=True)
        call_command("list_settings", check=True)

    def test_the_command_lists_every_variable(self) -> None:
        out = StringIO()
        call_command("list_settings", stdout=out)

        assert {line.split()[0] for line in out.getvalue().splitlines()} == Environment.variables() - {"DATABASE_URL"}

    @pytest.mark.parametrize("name", Environment.model_fields)
    def test_every_setting_is_described(self, name: str) -> None:
        field = Environment.model_fields[name]

        assert field.description
        assert isinstance(field.json_schema_extra, dict)
        assert field.json_schema_extra["section"]


def test_migrations_are_complete(tmp_path: Path) -> None:
    subprocess.run([*MANAGE, "makemigrations", "--check", "--dry-run"], cwd=tmp_path, check=True)


def test_sqlite_lets_workers_read_while_the_admin_writes(tmp_path: Path) -> None:
    subprocess.run([*MANAGE, "migrate", "--verbosity", "0"], cwd=tmp_path, check=True)
    code = (
        "from django.db import connection as c; k = c.cursor(); print(k.execute('PRAGMA journal_mode').fetchone()[0])"
    )
    answer = subprocess.run([*MANAGE, "shell", "-v", "0", "-c", code], cwd=tmp_path, capture_output=True, check=True)

    assert answer.stdout.decode().strip() == "wal"
