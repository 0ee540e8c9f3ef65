"""Lines of the log: JSON objects or text, with the ID of the request, without texts of clients and models.

The message of an exception may quote what a client sent or a model wrote. It is left out of tracebacks unless
`LOG_CONTENT` is on; messages about configuration, files and the database are shown.
"""

import logging
import traceback
from collections.abc import Iterator
from copy import copy
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import Error as DatabaseFailure
from pythonjsonlogger.json import JsonFormatter

from derender_api.conf import conf
from derender_api.request_id import request_id
from parsers.configuration import ModelConfigurationError

SHOWN = (ModelConfigurationError, ImproperlyConfigured, DatabaseFailure, OSError)
"""Exceptions whose messages hold nothing of a request."""

ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def described(exception: BaseException) -> str:
    """Type of an exception, and its message where that may be shown."""
    name = type(exception).__name__
    text = str(exception) if conf.log_content or isinstance(exception, SHOWN) else ""
    return f"{name}: {text}" if text else name


def shown_content(**content: Any) -> str:
    """Texts of clients or models for the end of a message, "" unless they may be shown."""
    return "".join(f" {name}={value!r}" for name, value in content.items()) if conf.log_content else ""


class _Discreet(logging.Formatter):
    """Tracebacks without the messages of exceptions."""

    def formatException(self, ei: ExceptionInfo) -> str:
        """The frames, oldest cause first, each exception as `described`."""
        if ei[1] is None:
            return ""
        return "\n".join(reversed(list(_parts(ei[1]))))


def _parts(exception: BaseException | None) -> Iterator[str]:
    seen: set[int] = set()
    while exception is not None and id(exception) not in seen:
        seen.add(id(exception))
        frames = "".join(traceback.format_tb(exception.__traceback__))
        yield f"Traceback (most recent call last):\n{frames}{described(exception)}"
        suppressed = exception.__suppress_context__
        exception = exception.__cause__ or (None if suppressed else exception.__context__)


class JsonLines(_Discreet, JsonFormatter):
    """One JSON object per line: time, level, logger, message, request_id, and whatever the call adds."""

    def add_fields(self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]) -> None:
        """Put the fixed fields first."""
        log_data["time"] = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        log_data["level"] = record.levelname
        log_data["logger"] = record.name
        log_data["message"] = record.getMessage()
        if current := request_id.get():
            log_data["request_id"] = current
        super().add_fields(log_data, record, message_dict)


class TextLines(_Discreet):
    """One line of text, with the ID of the request where there is one, and what the call adds in the end."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, and the traceback below it."""
        current = request_id.get()
        # Other formatters see the record, too.
        record = copy(record)
        record.request = f" [{current}]" if current else ""
        return super().format(record)
