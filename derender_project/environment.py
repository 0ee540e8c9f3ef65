"""The environment variables that the settings read, each with its type, range, default and meaning.

All start with `DERENDER_` (`DERENDER_DEBUG=1`, `DERENDER_MAX_BODY_BYTES=1048576`). docs/configuration.md is made from
this module by `manage.py list_settings --markdown`.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import dj_database_url
import orjson
from pydantic import AliasChoices, BeforeValidator, Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

PREFIX = "DERENDER_"
MEBIBYTE = 1024 * 1024
SECRET_KEY_LENGTH = 50
MAKE_SECRET_KEY = "python -c 'import secrets; print(secrets.token_urlsafe(50))'"


def _listed(value: Any) -> Any:
    """A list as JSON, or its items with commas between them."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        try:
            return orjson.loads(value)
        except ValueError as error:
            raise ValueError(f"not a JSON list: {error}") from error
    return [item.strip() for item in value.split(",") if item.strip()]


Names = Annotated[list[str], NoDecode, BeforeValidator(_listed)]
LogLevel = Annotated[
    Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"],
    BeforeValidator(lambda value: value.upper() if isinstance(value, str) else value),
]


def _of(section: str, default: Any, meaning: str, **limits: Any) -> Any:
    return Field(default, description=meaning, json_schema_extra={"section": section}, **limits)


class Environment(BaseSettings):
    """Typed view of the process environment; a value that makes no sense stops the start-up."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True)

    production: bool = _of(
        "Mode", False, "production mode: demands a secret key, marks cookies of the pages as secure, logs JSON lines"
    )
    debug: bool = _of("Mode", False, "Django's debug mode; excludes production mode")

    secret_key: str | None = _of(
        "Secrets and browsers",
        None,
        "signs stream states and admin sessions; set it where several servers share the traffic. Without one a server "
        "makes one up at every start",
    )
    secret_key_fallbacks: Names = _of(
        "Secrets and browsers", [], "earlier keys, a list; what they signed stays valid, so that keys can be changed"
    )
    allowed_hosts: Names = _of("Secrets and browsers", ["*"], "a list of the `Host` headers that are answered")
    csrf_trusted_origins: Names = _of(
        "Secrets and browsers", [], "a list of origins (`https://derender.example`) whose forms the admin page takes"
    )
    behind_proxy: bool = _of(
        "Secrets and browsers", False, "believe `X-Forwarded-Proto`; set it where a proxy that sets it ends TLS"
    )
    hsts_seconds: int = _of(
        "Secrets and browsers",
        3600,
        "production mode: for how long browsers are told to use HTTPS only (`Strict-Transport-Security`)",
        ge=1,
    )

    api_key: str | None = _of(
        "Access", None, "everything below `/v1` needs `Authorization: Bearer <key>`, this one or one of the table"
    )
    require_api_keys: bool = _of("Access", False, "demand a key even while there is none that could be given")

    config: Path | None = _of("Models", None, "JSON or TOML file with the served models, as for `serve --config`")
    models_refresh_seconds: float = _of(
        "Models", 2.0, "longest time until a change in the tables of models and keys takes effect", ge=0, le=3600
    )

    database_url: str | None = _of(
        "Database and cache",
        None,
        "tables of models and keys: `sqlite:///derender.sqlite3` in the working directory by default, or "
        "`postgresql://user:password@host/name` with the extra `postgresql`. `DATABASE_URL` is read, too",
        validation_alias=AliasChoices(f"{PREFIX}DATABASE_URL", "DATABASE_URL"),
    )
    cache_url: str | None = _of(
        "Database and cache",
        None,
        "`redis://...` with the extra `redis`: workers and servers share what they remember of chat requests, and the "
        "requests per minute of API keys",
        pattern=r"^(rediss?|unix)://",
    )

    max_body_bytes: int = _of("Limits", 64 * MEBIBYTE, "larger bodies are answered with 413", ge=1)
    max_body_seconds: float = _of("Limits", 60.0, "bodies that take longer to arrive are answered with 408", ge=1)
    max_concurrent_requests: int = _of(
        "Limits",
        0,
        "most requests that all workers of a server answer or let wait at once; further ones get 503 with "
        "`Retry-After`. 0: no limit",
        ge=0,
    )
    max_n_sequences: int = _of("Limits", 16384, "most choices of one request", ge=1)
    max_stop_strings: int = _of("Limits", 4, "most stop strings of one request", ge=1)
    max_completion_prompts: int = _of("Limits", 1024, "most prompts of one completion request", ge=1)

    parser_cache_entries: int = _of(
        "Streams", 4096, "parsers of streams that a worker remembers, so that it need not replay; 0: none", ge=0
    )
    parser_cache_bytes: int = _of("Streams", 64 * MEBIBYTE, "memory of a worker for them", ge=0)
    parser_cache_seconds: float = _of("Streams", 600.0, "how long one is kept unused", gt=0)
    context_cache_seconds: float = _of(
        "Streams", 3600.0, "how long a chat request is remembered for clients that do not send it again", gt=0
    )

    request_template_seconds: float = _of(
        "Rendering", 2.0, "how long a chat template that a request brings may take", gt=0
    )
    request_template_characters: int = _of(
        "Rendering", 8 * MEBIBYTE, "how long a text a chat template that a request brings may give", ge=1
    )
    system_start_date: str | None = _of(
        "Rendering",
        None,
        "date that Harmony prompts name, `YYYY-MM-DD`; today's by default",
        pattern=r"^\d{4}-\d\d-\d\d$",
    )

    engine_api_key: str | None = _of("Engines", None, "sent to engines as `Authorization: Bearer <key>`")
    engine_connect_seconds: float = _of("Engines", 5.0, "longest wait for a connection to an engine", gt=0)
    engine_read_seconds: float = _of(
        "Engines",
        300.0,
        "longest silence of an engine: before its first token, between two, or for a whole answer",
        gt=0,
    )

    log_level: LogLevel = _of("Logs", "INFO", "`DEBUG`, `INFO`, `WARNING`, `ERROR` or `CRITICAL`")
    log_format: Literal["json", "text"] | None = _of(
        "Logs", None, "`json`: one object per line; `text`. Default: `json` in production mode, else `text`"
    )
    access_log: bool = _of("Logs", False, "one line per request")
    log_content: bool = _of(
        "Logs", False, "let texts of clients and models into the log: messages of failures, output a parser failed on"
    )

    @field_validator("database_url")
    @classmethod
    def _database_can_be_used(cls, url: str | None) -> str | None:
        if not url:
            return None
        try:
            engine = dj_database_url.parse(url)["ENGINE"]
        except ValueError as error:
            raise ValueError(f"not the URL of a database: {error}") from error
        if engine.endswith("postgresql") and find_spec("psycopg") is None:
            raise ValueError("PostgreSQL needs an extra: pip install 'derender[postgresql]'")
        return url

    @model_validator(mode="after")
    def _production_is_safe(self) -> "Environment":
        if not self.production:
            return self
        if self.debug:
            raise ValueError(f"{PREFIX}DEBUG and {PREFIX}PRODUCTION exclude each other")
        if len(self.secret_key or "") < SECRET_KEY_LENGTH:
            raise ValueError(
                f"{PREFIX}PRODUCTION needs {PREFIX}SECRET_KEY, at least {SECRET_KEY_LENGTH} random characters: "
                f"{MAKE_SECRET_KEY}"
            )
        return self

    @classmethod
    def variables(cls) -> set[str]:
        """Names of all variables that are read."""
        return {name for field in cls.model_fields for name in variables_of(field)}

    @property
    def logs_json(self) -> bool:
        """Whether log lines are JSON objects."""
        return self.log_format == "json" or (self.log_format is None and self.production)


def variables_of(field: str) -> list[str]:
    """Names of the environment variables of a setting, the preferred one first."""
    alias = Environment.model_fields[field].validation_alias
    if isinstance(alias, AliasChoices):
        return [str(choice) for choice in alias.choices]
    return [PREFIX + field.upper()]


def problems_of(error: ValidationError) -> Iterator[str]:
    """One line for each problem of the environment: the variable and what is wrong with it."""
    for problem in error.errors(include_url=False):
        place = str(problem["loc"][0]) if problem["loc"] else ""
        name = variables_of(place)[0] if place in Environment.model_fields else place
        text = problem["msg"].removeprefix("Value error, ")
        yield f"{name}: {text}" if name else text
