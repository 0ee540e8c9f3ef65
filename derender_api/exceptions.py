"""Errors of the API. Each class says whose fault it is and what the client gets: status, type, param (protocol 9)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

SHOWN_ERRORS = 10
SHOWN_INPUT = 200
UNION_BRANCH = re.compile(r"[\[(]|^(?:str|int|float|bool|list|dict|constrained-\w+|literal|NamedTool)$")
HEX_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>")
TRACEBACK_LINE = re.compile(r'File "[^"]*", line \d+, in \S+')
SYSTEM_PATH = re.compile(
    r"(?<![\w/])/(?:home|usr|opt|var|tmp|root|lib|mnt|srv)(?:/[\w.\-]+)+"
    r"|(?<![\w/])(?:/[\w.\-]+)+/[\w\-]+\.\w+"
)


class ApiError(Exception):
    """An error that a client of the API sees.

    `status` is the HTTP status, and the body's `code` unless it has its own.
    """

    status: ClassVar[int] = 500
    type: ClassVar[str] = "InternalServerError"
    code: ClassVar[str | None] = None

    def __init__(self, message: str, *, param: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.retry_after = retry_after

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer; `retry_after` is in seconds."""
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}


class BadRequest(ApiError):
    """The client's fault: a request that is well-formed but cannot be served."""

    status = 400
    type = "BadRequestError"


class ModelNotFound(ApiError):
    """The client's fault: it names a model that is not served."""

    status = 404
    type = "NotFoundError"

    def __init__(self, name: str | None, served: Iterable[str]) -> None:
        super().__init__(f"The model `{name}` does not exist. Valid aliases: {', '.join(served)}.", param="model")


class Unauthorized(ApiError):
    """The client's fault: no API key, or a wrong one."""

    status = 401
    type = "AuthenticationError"

    @property
    def headers(self) -> dict[str, str]:
        """A 401 says how to authenticate."""
        return {"WWW-Authenticate": "Bearer"}


class Forbidden(ApiError):
    """The client's fault: it may not do this."""

    status = 403
    type = "PermissionDeniedError"


class NotFound(ApiError):
    """The client's fault: an unknown path."""

    status = 404
    type = "NotFoundError"


class MethodNotAllowed(ApiError):
    """The client's fault: a method that the path does not have."""

    status = 405
    type = "MethodNotAllowedError"


class PayloadTooLarge(ApiError):
    """The client's fault: a body above the limit."""

    status = 413
    type = "RequestEntityTooLargeError"

    @classmethod
    def of(cls, limit: int) -> Self:
        """The error for a body of more than `limit` bytes."""
        return cls(f"The request body exceeds the limit of {limit} bytes.")


class HeadersTooLarge(ApiError):
    """The client's fault: the headers of the request do not end."""

    status = 431
    type = "RequestHeaderFieldsTooLargeError"

    def __init__(self) -> None:
        super().__init__("The headers of the request are too large.")


class RequestTimeout(ApiError):
    """The client's fault: its body took too long to arrive."""

    status = 408
    type = "RequestTimeoutError"

    def __init__(self) -> None:
        super().__init__("The request body took too long to arrive.")


class ServiceUnavailable(ApiError):
    """The operator's fault: the model is configured but cannot be loaded; details are in the log."""

    status = 503
    type = "ServiceUnavailableError"


class RateLimited(ApiError):
    """The client's fault: more requests in a minute than its API key allows."""

    status = 429
    type = "RateLimitError"

    def __init__(self, limit: int, *, retry_after: int) -> None:
        super().__init__(f"The API key's limit of {limit} requests per minute is reached.", retry_after=retry_after)


class Overloaded(ApiError):
    """Nobody's fault: as many requests as the server may work on are being answered."""

    status = 503
    type = "ServiceUnavailableError"

    def __init__(self) -> None:
        super().__init__("The server is answering as many requests as it may.", retry_after=1)


class KeysUnreadable(ApiError):
    """The operator's fault: the table of API keys has not been readable since the start, so nobody can be let in."""

    status = 503
    type = "ServiceUnavailableError"

    def __init__(self) -> None:
        super().__init__("The API keys cannot be read at present.", retry_after=5)


class RequestRuleViolation(BadRequest):
    """The client's fault: a `chat_request` or `completion_request` that breaks a rule of vLLM's (protocol 9.3)."""

    def __init__(self, text: str, *, param: str | None = None, value: Any = None) -> None:
        shown = f", value={value}" if value is not None else ""
        super().__init__(f"{text} (parameter={param}{shown})" if param else text, param=param)


class InvalidStreamState(BadRequest):
    """The client's fault: a stream state that this chunk cannot go on from."""

    def __init__(self, problem: str = "derender failed") -> None:
        super().__init__(f"invalid stream_state: {problem}")


class TamperedStreamState(InvalidStreamState):
    """The client's fault: a compact stream state that this service, or its present key, did not sign."""

    code = "stream_state_tampered"


class OutdatedStreamState(InvalidStreamState):
    """Nobody's fault: a compact stream state of another version of this service; the stream must begin anew."""

    code = "stream_state_outdated"


class ForeignStreamState(InvalidStreamState):
    """The client's fault: a compact stream state of another model, endpoint or parser."""

    code = "stream_state_foreign"


class ContextRequired(ApiError):
    """Nobody's fault: the chat request that a compact stream state refers to is not remembered here (any more)."""

    status = 409
    type = "ContextRequiredError"
    code = "context_required"

    def __init__(self) -> None:
        super().__init__("chat_request of this stream is not remembered; send it again.", param="chat_request")


class InvalidBody(ApiError):
    """The client's fault: a body that is not a request. `type` is vLLM's, with a blank (protocol 9.2)."""

    status = 400
    type = "Bad Request"


class UnsupportedContentType(InvalidBody):
    """The client's fault: the content type is not application/json."""

    def __init__(self) -> None:
        super().__init__("1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed")


class InvalidJson(InvalidBody):
    """The client's fault: the body is not JSON. `position` is the character where reading stopped."""

    def __init__(self, problem: str, *, position: int | None = None) -> None:
        where = "" if position is None else f" at character {position}"
        super().__init__(
            f"1 validation error:\n  body: JSON decode error{where}: {problem}",
            param="body" if position is None else f"body.{position}",
        )


class SchemaViolation(InvalidBody):
    """The client's fault: the body is JSON, but not of the schema that its `stream` selects."""

    @classmethod
    def from_errors(cls, errors: Sequence[Mapping[str, Any]], *, label: str = "") -> Self:
        """One line for each of pydantic's errors; `param` is the place of the first, with vLLM's name of the shape."""
        places = [_place(error["loc"]) for error in errors]
        count = len(errors)
        lines = [f"{count} validation error{'' if count == 1 else 's'}:"]
        for place, error in list(zip(places, errors, strict=True))[:SHOWN_ERRORS]:
            lines.append(f"{'.'.join(['body', *place])}: {error['msg']}{_got(error)}")
        if count > SHOWN_ERRORS:
            lines.append(f"...and {count - SHOWN_ERRORS} more errors")
        param = ".".join(["body", *([label] if label else []), *places[0]])
        return cls("\n  ".join(lines), param=param)


def _place(loc: Iterable[str | int]) -> list[str]:
    """The path of an error without pydantic's names of union branches."""
    return [str(part) for part in loc if isinstance(part, int) or not UNION_BRANCH.search(part)]


def _got(error: Mapping[str, Any]) -> str:
    if error["type"] in ("missing", "value_error"):
        return ""
    value = error.get("input")
    if isinstance(value, (dict, list)):
        kind = "object" if isinstance(value, dict) else "array"
        return f", got an {kind} of {len(value)} item{'' if len(value) == 1 else 's'}"
    shown = str(value)
    return f", got {shown[:SHOWN_INPUT] + '...[truncated]' if len(shown) > SHOWN_INPUT else shown}"


def error_content(error: ApiError) -> dict[str, Any]:
    """The body of an error: `{"error": {"message", "type", "param", "code"}}`."""
    return {
        "error": {
            "message": sanitized(error.message),
            "type": error.type,
            "param": error.param,
            "code": error.code or error.status,
        }
    }


def sanitized(message: str) -> str:
    """`message` without what tells about the server: addresses, lines of tracebacks, absolute paths (protocol 9)."""
    message = HEX_ADDRESS.sub(">", message)
    message = TRACEBACK_LINE.sub("", message)
    return SYSTEM_PATH.sub("<path>", message).strip()
