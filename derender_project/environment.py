"""The environment variables that the settings read, each with its type and default.

All start with `DERENDER_` (`DERENDER_DEBUG=1`, `DERENDER_MAX_BODY_BYTES=1048576`).
"""

from pathlib import Path

from pydantic_settings import BaseSettings, SettingsConfigDict

MEBIBYTE = 1024 * 1024


class Environment(BaseSettings):
    """Typed view of the process environment; a value of the wrong type stops the start-up."""

    model_config = SettingsConfigDict(env_prefix="DERENDER_", frozen=True)

    debug: bool = False
    secret_key: str | None = None
    secret_key_fallbacks: list[str] = []
    allowed_hosts: list[str] = ["*"]
    csrf_trusted_origins: list[str] = []
    database_url: str | None = None
    log_level: str = "INFO"

    config: Path | None = None
    """JSON or TOML file with the served models, as for `manage.py serve --config`."""
    api_key: str | None = None
    require_api_keys: bool = False
    max_concurrent_requests: int = 0
    max_body_bytes: int = 64 * MEBIBYTE
    max_n_sequences: int = 16384
    max_stop_strings: int = 4
    max_completion_prompts: int = 1024
    models_refresh_seconds: float = 2.0
    parser_cache_entries: int = 4096
    parser_cache_bytes: int = 64 * MEBIBYTE
    parser_cache_seconds: float = 600.0
    context_cache_seconds: float = 3600.0
    cache_url: str | None = None
