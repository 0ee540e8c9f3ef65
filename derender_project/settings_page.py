"""The page about settings, docs/configuration.md, made from the environment's own description."""

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from derender_api.metrics import COUNTERS, IN_FLIGHT, REQUEST_SECONDS
from derender_project.environment import MEBIBYTE, Environment, variables_of

HEAD = """# Configuration

<!-- Made by `manage.py list_settings --markdown` from derender_project/environment.py. -->

All settings are environment variables. They are read and checked once, when a process starts; what makes no sense
stops it and names the variable. Switches are `1` or `0`; lists are JSON (`["a", "b"]`) or have commas (`a,b`). A
`DERENDER_` variable that is none of these is reported by `manage.py check`. Flags of `manage.py serve` (`manage.py
serve --help`) win over variables.
"""
METRICS = """
## Metrics

`GET /metrics` has these in Prometheus' text format; `deploy/grafana-dashboard.json` shows all of them.

| metric | labels | |
|---|---|---|
"""
TAIL = """
## Notes

- **API keys**: `manage.py create_api_key NAME` (`--days`, `--requests-per-minute`, `--models`), `list_api_keys`,
  `revoke_api_key NAME`, or the admin page. A change reaches all workers within `DERENDER_MODELS_REFRESH_SECONDS`.
  While any key is listed, everything below `/v1` needs one. Requests per minute are counted by each worker unless
  `DERENDER_CACHE_URL` is set. Revoked keys stay listed; a table without any key lets everyone in, unless
  `DERENDER_REQUIRE_API_KEYS` is on. What is not below `/v1` (`/tokenize`, `/metrics`, `/docs`, ...) needs no key, as
  in vLLM: restrict it in the proxy.
- **Production mode**: `manage.py check --deploy` says what else an installation should have. Pages are redirected to
  HTTPS; behind a proxy that ends TLS set `DERENDER_BEHIND_PROXY=1`, or the redirect never ends.
- **Database**: models and keys are read every few seconds. While the database is gone, the last reading is served;
  `GET /ready` says `"database": "lost"` and `"status": "degraded"`, with status 200. `GET /health` stays an empty
  200, as vLLM's.
- **Metrics**: `GET /metrics` adds up the workers of one server, in a folder that `manage.py serve` makes and removes.
  Under another WSGI server set `PROMETHEUS_MULTIPROC_DIR` to an empty folder.
- **Logs**: every line has the ID of its request, which the client may choose with `X-Request-Id` and finds in the
  answer. Tokens, prompts and texts of models never reach the log, unless `DERENDER_LOG_CONTENT` is on.
"""


def markdown() -> str:
    """The page."""
    sections: dict[str, list[str]] = {}
    for name, field in Environment.model_fields.items():
        sections.setdefault(_section(field), []).append(_row(name, field))
    tables = (f"\n## {title}\n\n| variable | type | default | |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"
              for title, rows in sections.items())  # fmt: skip
    return HEAD + "".join(tables) + METRICS + "\n".join(_metric_rows()) + "\n" + TAIL


def _metric_rows() -> Iterator[str]:
    for name, (labels, text) in COUNTERS.items():
        yield f"| `{name}_total` | {', '.join(f'`{label}`' for label in labels)} | {text} |"
    yield f"| `{REQUEST_SECONDS}` | `path` | Time to answer, a histogram. |"
    yield f"| `{IN_FLIGHT}` | | Requests that are being answered now, in all workers. |"


def rows() -> Iterator[tuple[str, str, str]]:
    """Variable, type and default of each setting, for a terminal."""
    for name, field in Environment.model_fields.items():
        yield variables_of(name)[0], _type(field), _default(field)


def _section(field: FieldInfo) -> str:
    extra = field.json_schema_extra
    return str(extra["section"]) if isinstance(extra, dict) else "Others"


def _row(name: str, field: FieldInfo) -> str:
    meaning = (field.description or "").replace("|", "\\|")
    return f"| `{variables_of(name)[0]}` | {_type(field)} | {_default(field)} | {meaning} |"


def _default(field: FieldInfo) -> str:
    match field.default:
        case None | []:
            return ""
        case bool():
            return "on" if field.default else "off"
        case list():
            return f"`{','.join(field.default)}`"
        case int() if field.default >= MEBIBYTE and field.default % MEBIBYTE == 0:
            return f"`{field.default}` ({field.default // MEBIBYTE} MiB)"
        case _:
            return f"`{field.default}`"


def _type(field: FieldInfo) -> str:
    limits = [f"{sign} {bound:g}" for sign, bound in _bounds(field)]
    return " ".join([_named(field.annotation), *limits])


def _bounds(field: FieldInfo) -> Iterator[tuple[str, float]]:
    for constraint in field.metadata:
        for attribute, sign in (("ge", "≥"), ("gt", ">"), ("le", "≤"), ("lt", "<")):
            if (bound := getattr(constraint, attribute, None)) is not None:
                yield sign, bound


def _named(annotation: Any) -> str:
    """The type in words; None in a union only says that the variable may be missing."""
    if get_origin(annotation) in (Union, types.UnionType):
        (annotation,) = (each for each in get_args(annotation) if each is not type(None))
    if get_origin(annotation) is Literal:
        return "word"
    if get_origin(annotation) is list:
        return "list"
    return {bool: "switch", int: "integer", float: "number", Path: "file", str: "text"}.get(annotation, "text")
