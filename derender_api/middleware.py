"""What is decided before a view runs: the API key, the size of the body, the count of requests in flight.

Plain Django middleware, so that unknown paths and every view are covered alike.
"""

from collections.abc import Callable
from hmac import compare_digest
from io import BytesIO

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from derender_api.conf import conf
from derender_api.exceptions import BadRequest, PayloadTooLarge, Unauthorized
from derender_api.load import requests_in_flight
from derender_api.views_errors import error_response

GetResponse = Callable[[HttpRequest], HttpResponseBase]

PROTECTED = ("/v1", "/v2", "/inference", "/cohere")
"""Path prefixes that need the API key (protocol 1)."""


class LoadMiddleware:
    """Counts the requests below /v1 while they are being answered; `GET /load` tells."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith("/v1/"):
            return self.get_response(request)
        with requests_in_flight.counted():
            return self.get_response(request)


class ApiKeyMiddleware:
    """Demands `Authorization: Bearer <key>` where a key is set; OPTIONS is exempt (protocol 1)."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        key = conf.api_key
        if key and request.method != "OPTIONS" and request.path_info.startswith(PROTECTED) and not _bears(request, key):
            response = error_response(Unauthorized("Unauthorized"))
            response["WWW-Authenticate"] = "Bearer"
            return response
        return self.get_response(request)


def _bears(request: HttpRequest, key: str) -> bool:
    scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    # WSGI hands headers over as Latin-1; both sides are compared as bytes because compare_digest refuses other text.
    return scheme.lower() == "bearer" and compare_digest(token.strip().encode("latin-1", "replace"), key.encode())


class BodyLimitMiddleware:
    """Refuses bodies above `MAX_BODY_BYTES` with 413, and reads bodies sent without a length.

    Django reads exactly Content-Length bytes, hence nothing of a chunked body.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        limit = conf.max_body_bytes
        length = request.META.get("CONTENT_LENGTH") or ""
        if length:
            if not length.isascii() or not length.isdigit():
                return error_response(BadRequest("Content-Length is not a number"))
            return self._too_large(limit) if int(length) > limit else self.get_response(request)
        stream = request.META.get("wsgi.input")
        if stream is not None and "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower():
            body = stream.read(limit + 1)
            if len(body) > limit:
                return self._too_large(limit)
            request.META["CONTENT_LENGTH"] = str(len(body))
            request._stream = BytesIO(body)
        return self.get_response(request)

    def _too_large(self, limit: int) -> HttpResponse:
        return error_response(PayloadTooLarge(f"The request body exceeds the limit of {limit} bytes."))
