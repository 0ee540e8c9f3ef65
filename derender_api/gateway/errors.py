"""What can go wrong between this server and an engine, as errors of the API."""

import errno
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import aiohttp
import orjson
from pydantic import ValidationError

from derender_api.exceptions import ApiError, BadRequest, InvalidStreamState
from derender_api.tokenization.handle import TokenIdOutOfRange

logger = logging.getLogger(__name__)

SHOWN_TEXT = 500
PASSED_ON = frozenset({400, 413, 422, 429})
"""Statuses of an engine that are about the client's request; others are about the installation."""


class EngineError(ApiError):
    """The operator's fault, or the engine's. It is logged where the engine's URL is known."""

    status = 502
    type = "EngineError"


class EngineUnreachable(EngineError):
    """No engine of the model could be reached."""

    code = "engine_unreachable"


class EngineTimeout(EngineError):
    """The engine sent nothing for too long."""

    status = 504
    code = "engine_timeout"


class EngineFailed(EngineError):
    """The engine answered with an error of its own, with something unreadable, or broke off."""

    code = "engine_failed"


class EngineRefused(ApiError):
    """The client's fault: the engine refused the request, in the engine's own words."""

    def __init__(self, message: str, *, status: int, type: str, param: str | None, retry_after: int | None) -> None:
        super().__init__(message, param=param, retry_after=retry_after)
        self.status = status  # type: ignore[misc]
        self.type = type  # type: ignore[misc]


@contextmanager
def engine_to_blame() -> Iterator[None]:
    """What cannot be derendered in the block is not what the client sent. Raises EngineFailed."""
    try:
        yield
    except (BadRequest, TokenIdOutOfRange) as error:
        # Streams hide what fails in them behind the client's state, of which there is none here.
        failure = error.__cause__ if isinstance(error, InvalidStreamState) and error.__cause__ else error
        if not isinstance(failure, (BadRequest, TokenIdOutOfRange)):
            raise failure from None
        logger.exception("The output of an engine cannot be read")
        raise EngineFailed(f"The engine's output cannot be read: {failure}") from failure


def error_of_status(status: int, body: bytes, *, retry_after: str | None = None) -> ApiError:
    """The error for an answer of the engine that is not 200. `retry_after` is the header of that name."""
    said = _error_object(body)
    message = str(said.get("message") or body[:SHOWN_TEXT].decode(errors="replace").strip() or "no explanation")
    if status not in PASSED_ON:
        return EngineFailed(f"The engine answered {status}: {message}")
    return EngineRefused(
        message,
        status=status,
        type=str(said.get("type") or "BadRequestError"),
        param=said.get("param") if isinstance(said.get("param"), str) else None,
        retry_after=int(retry_after) if retry_after and retry_after.isdecimal() else None,
    )


def error_of_event(data: bytes) -> EngineFailed | None:
    """The error that an event of the engine's stream reports, None where it is a chunk."""
    if b'"error"' not in data:
        return None
    said = _error_object(data)
    return EngineFailed(f"The engine failed: {said.get('message') or 'no explanation'}") if said else None


def first_problem(error: ValidationError) -> str:
    """Where something does not fit its schema, and why, without what was sent."""
    problem = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"


def name_of(error: BaseException) -> str:
    """What is known of a failed connection, without the addresses that texts of the event loop hold."""
    if not isinstance(error, OSError) or isinstance(error, aiohttp.ClientSSLError):
        return type(error).__name__
    if error.errno is not None and error.errno in errno.errorcode:
        return os.strerror(error.errno)
    return error.strerror or type(error).__name__


def _error_object(body: bytes) -> Mapping[str, Any]:
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    error = content.get("error") if isinstance(content, dict) else None
    return error if isinstance(error, dict) else {}
