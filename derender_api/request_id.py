"""The ID of the request that is being answered: the client's `X-Request-Id` where it is sane, else a new one."""

import re
from contextvars import ContextVar

from derender_api.random_bytes import random_bytes

HEADER = "X-Request-Id"
SANE = re.compile(r"[A-Za-z0-9._:@/+=\-]{1,128}").fullmatch

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Empty outside of requests. Every line of the log has it."""


def id_for(given: str | None) -> str:
    """`given`, unless it is missing, too long, or holds what could confuse a log."""
    return given if given and SANE(given) else random_bytes(16).hex()
