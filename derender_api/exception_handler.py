"""The one place where exceptions become answers: whatever a view raises leaves as an OpenAI error body (protocol 9)."""

import logging
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.http import Http404, UnreadablePostError
from rest_framework import exceptions as framework
from rest_framework.response import Response

from derender_api.exceptions import (
    ApiError,
    BadRequest,
    MethodNotAllowed,
    NotFound,
    PayloadTooLarge,
    ServiceUnavailable,
    error_content,
)
from derender_api.gateway.errors import EngineError
from derender_api.log_format import described
from derender_api.metrics import count_error
from derender_api.tokenization.handle import TokenIdOutOfRange
from parsers.configuration import ModelConfigurationError

logger = logging.getLogger(__name__)


def exception_handler(exception: Exception, context: Mapping[str, Any]) -> Response:
    """The answer to any exception."""
    error = noted_error(exception)
    response = Response(error_content(error), status=error.status, headers=error.headers)
    if isinstance(exception, framework.MethodNotAllowed):
        response["Allow"] = ", ".join(context["view"].allowed_methods)
    return response


def noted_error(exception: Exception) -> ApiError:
    """`exception` as an error of the API, counted. One that is nobody's declared fault is logged and a plain 500."""
    error = api_error(exception)
    if error.status >= 500 and not isinstance(error, EngineError):
        logger.error("%s", described(exception), exc_info=exception)
    count_error(error.type, error.code or error.status)
    return error


def api_error(exception: Exception) -> ApiError:
    """`exception` as an error of the API."""
    match exception:
        case ApiError():
            return exception
        case framework.MethodNotAllowed():
            return MethodNotAllowed("Method Not Allowed")
        case TokenIdOutOfRange():
            return BadRequest(str(exception))
        case Http404() | framework.NotFound():
            return NotFound("Not Found")
        case RequestDataTooBig():
            return PayloadTooLarge("The request body exceeds the server's limit.")
        case UnreadablePostError() | SuspiciousOperation():
            return BadRequest("The request could not be read.")
        case framework.APIException() if exception.status_code < 500:
            return _of_framework(exception)
        case PermissionDenied():
            return _of_framework(framework.PermissionDenied())
        case ModelConfigurationError():
            return ServiceUnavailable("The model cannot be loaded; the server's log says why.")
        case _:
            return ApiError("Internal server error")


def _of_framework(exception: framework.APIException) -> ApiError:
    error = ApiError(str(exception.detail))
    error.status = exception.status_code  # type: ignore[misc]
    error.type = f"{type(exception).__name__}Error"  # type: ignore[misc]
    return error
