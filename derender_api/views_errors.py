"""Answers for what never reaches a REST framework view: unknown paths, refused hosts, failures outside the views.

Django answers these in HTML; a client of the API gets the OpenAI error object instead (protocol 9).
"""

import orjson
from django.http import HttpRequest, HttpResponse
from django.urls import is_valid_path

from derender_api.exceptions import ApiError, BadRequest, Forbidden, NotFound, error_content
from derender_api.metrics import count_error


def error_response(error: ApiError) -> HttpResponse:
    """The answer to an error outside the views."""
    count_error(error.type, error.code or error.status)
    body = orjson.dumps(error_content(error))
    return HttpResponse(body, status=error.status, content_type="application/json", headers=error.headers)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A request that Django itself refuses, such as one with an unknown Host header."""
    return error_response(BadRequest(str(exception) or "Bad Request"))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A request without permission."""
    return error_response(Forbidden("Permission denied"))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """An unknown path; a known one with a trailing slash is redirected, with its method and body (protocol 1).

    Not so where the path is known as it is, and its view finds nothing.
    """
    bare = request.path_info.rstrip("/")
    if bare not in (request.path_info, "") and is_valid_path(bare) and not is_valid_path(request.path_info):
        query = request.META.get("QUERY_STRING")
        # Relative, so that it also holds behind a proxy that ends TLS.
        return HttpResponse(status=307, headers={"Location": f"{bare}?{query}" if query else bare})
    return error_response(NotFound("Not Found"))


def server_error(request: HttpRequest) -> HttpResponse:
    """A failure outside the views; Django has logged it already."""
    return error_response(ApiError("Internal server error"))
