"""Typed, lazy view of `settings.DERENDER`: one property per key, each with its default.

Settings are read at every access, so tests may override them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings

MEBIBYTE = 1024 * 1024


class DerenderSettings:
    """`settings.DERENDER` with defaults; checked at start by checks.py."""

    def _get(self, key: str, default: Any) -> Any:
        return getattr(settings, "DERENDER", {}).get(key, default)

    @property
    def models(self) -> Sequence[Mapping[str, Any]]:
        """Served models, each a mapping with the keys of ModelConfiguration."""
        return self._get("MODELS", ())

    @property
    def config(self) -> Path | None:
        """JSON or TOML file with more served models (`{"models": [...]}`)."""
        return self._get("CONFIG", None)

    @property
    def formats(self) -> Sequence[str]:
        """Dotted paths of further format classes; parsers.registry reads them."""
        return self._get("FORMATS", ())

    @property
    def api_key(self) -> Sequence[str]:
        """Keys (one, or a list) of which each path below /v1 demands one, besides those of the table of keys."""
        given = self._get("API_KEY", None) or ()
        return [key for key in ([given] if isinstance(given, str) else given) if key]

    @property
    def require_api_keys(self) -> bool:
        """Demand a key below /v1 even while there is none that could be given."""
        return self._get("REQUIRE_API_KEYS", False)

    @property
    def max_concurrent_requests(self) -> int:
        """Most requests that all workers together work on or let wait; 0: no limit."""
        return self._get("MAX_CONCURRENT_REQUESTS", 0)

    @property
    def max_body_bytes(self) -> int:
        """Largest request body accepted; a larger one is answered with 413."""
        return self._get("MAX_BODY_BYTES", 64 * MEBIBYTE)

    @property
    def max_body_seconds(self) -> float:
        """Longest time for a body to arrive; a slower one is answered with 408."""
        return self._get("MAX_BODY_SECONDS", 60.0)

    @property
    def max_n_sequences(self) -> int:
        """Most choices (or responses) of one request: VLLM_MAX_N_SEQUENCES (protocol 6)."""
        return self._get("MAX_N_SEQUENCES", 16384)

    @property
    def max_stop_strings(self) -> int:
        """Most stop strings of one request: VLLM_MAX_STOP_STRINGS (protocol 6)."""
        return self._get("MAX_STOP_STRINGS", 4)

    @property
    def max_completion_prompts(self) -> int:
        """Most prompts of a completion request: VLLM_MAX_COMPLETION_PROMPTS (protocol 6)."""
        return self._get("MAX_COMPLETION_PROMPTS", 1024)

    @property
    def models_refresh_seconds(self) -> float:
        """Longest time until a change in the ServedModel table reaches a worker."""
        return self._get("MODELS_REFRESH_SECONDS", 2.0)

    @property
    def parser_cache_entries(self) -> int:
        """Most replayed parsers that a worker remembers; 0 remembers none."""
        return self._get("PARSER_CACHE_ENTRIES", 4096)

    @property
    def parser_cache_bytes(self) -> int:
        """Most bytes of replayed parsers that a worker remembers."""
        return self._get("PARSER_CACHE_BYTES", 64 * MEBIBYTE)

    @property
    def parser_cache_seconds(self) -> float:
        """How long a replayed parser is remembered."""
        return self._get("PARSER_CACHE_SECONDS", 600.0)

    @property
    def context_cache_seconds(self) -> float:
        """How long a chat request is remembered for clients that do not send it again."""
        return self._get("CONTEXT_CACHE_SECONDS", 3600.0)

    @property
    def engine_api_key(self) -> str | None:
        """Bearer token for engines."""
        return self._get("ENGINE_API_KEY", None)

    @property
    def engine_connect_seconds(self) -> float:
        """Longest wait for a connection to an engine."""
        return self._get("ENGINE_CONNECT_SECONDS", 5.0)

    @property
    def engine_read_seconds(self) -> float:
        """Longest silence of an engine."""
        return self._get("ENGINE_READ_SECONDS", 300.0)

    @property
    def log_content(self) -> bool:
        """Let texts of clients and models into the log."""
        return self._get("LOG_CONTENT", False)

    @property
    def request_template_seconds(self) -> float:
        """How long a chat template of a request may take."""
        return self._get("REQUEST_TEMPLATE_SECONDS", 2.0)

    @property
    def request_template_characters(self) -> int:
        """How long a text a chat template of a request may give."""
        return self._get("REQUEST_TEMPLATE_CHARACTERS", 8 * MEBIBYTE)

    @property
    def system_start_date(self) -> str | None:
        """Date that Harmony prompts name, as YYYY-MM-DD; None: today's."""
        return self._get("SYSTEM_START_DATE", None)


conf = DerenderSettings()
