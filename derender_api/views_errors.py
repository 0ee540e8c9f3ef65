"""Answers for what never reaches a REST framework view: unknown paths, refused hosts, failures outside the views.

Django answers these in HTML; a client of the API gets the OpenAI error object instead (protocol 9).
"""

import logging

from django.http import HttpRequest, HttpResponse

from derender_api.exceptions import error_body

logger = logging.getLogger(__name__)


def error_response(*, status: int, kind: str, message: str) -> HttpResponse:
    """A complete OpenAI error answer, `{"error": {"message", "type", "param", "code"}}`."""
    body = error_body(message=message, kind=kind, param=None, status=status)
    return HttpResponse(body, status=status, content_type="application/json")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A request that Django itself refuses, such as one with an unknown Host header."""
    return error_response(status=400, kind="BadRequestError", message=str(exception) or "Bad request")


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A request without permission."""
    return error_response(status=403, kind="PermissionDeniedError", message="Permission denied")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """An unknown path."""
    return error_response(status=404, kind="NotFoundError", message="Not Found")


def server_error(request: HttpRequest) -> HttpResponse:
    """A failure outside the views; Django has logged it already."""
    return error_response(status=500, kind="InternalServerError", message="Internal server error")
