"""What is decided before a view runs: the API key, the size of the body, how many requests are worked on at once.

Plain Django middleware, so that unknown paths and every view are covered alike; each runs under WSGI and ASGI.
"""

from io import BytesIO
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, UnreadablePostError
from django.http.response import HttpResponseBase

from derender_api.admission import BodyBudget, admit
from derender_api.api_keys import KnownKey, key_store
from derender_api.authorization import allowed_models, authorize, needs_key
from derender_api.conf import conf
from derender_api.exceptions import BadRequest, PayloadTooLarge
from derender_api.layer import GetResponse, Layer, when_sent
from derender_api.observation import KEY_NAME

UNCOUNTED = ("/admin", "/docs", "/static/")
"""Path prefixes of pages for people, which are answered even where the API has no place left."""
REFUSED = "derender.refused"
"""Where `request.META` has the error of a server that could not read the body."""
ADMITTED = "derender.admitted"
"""In `request.META` where the server has counted the request already."""


class ApiKeyMiddleware(Layer):
    """Demands an API key where there are any, and notes which models the key may use (authorization.py)."""

    def sync(self, request: HttpRequest) -> HttpResponseBase:
        key = authorize(request) if needs_key(request) else None
        if key is None:
            return self.get_response(request)
        before = _allow(request, key)
        try:
            return self.get_response(request)
        finally:
            allowed_models.reset(before)

    async def asynchronous(self, request: HttpRequest) -> HttpResponseBase:
        key = await self._key(request) if needs_key(request) else None
        if key is None:
            return await self.get_response(request)
        # A streamed answer goes on in this context after the view has returned: nothing is reset.
        _allow(request, key)
        return await self.get_response(request)

    async def _key(self, request: HttpRequest) -> KnownKey | None:
        """The database and a shared cache of counts are asked in a thread; what is known needs none."""
        if not key_store.is_fresh:
            await sync_to_async(key_store.current)()
        keys = key_store.current() if key_store.is_fresh else None
        if keys is None or keys.any_is_limited:
            return await sync_to_async(authorize)(request)
        return authorize(request)


def _allow(request: HttpRequest, key: KnownKey) -> Any:
    request.META[KEY_NAME] = key.name
    return allowed_models.set(key.models)


class BodyLimitMiddleware(Layer):
    """Refuses bodies above `MAX_BODY_BYTES` with 413, and reads bodies sent without a length, unless bodies.py has.

    Django reads exactly Content-Length bytes, hence nothing of a chunked body. Bodies are read here: a slow client that
    sends one is not counted among the requests that are worked on.
    """

    def __init__(self, get_response: GetResponse) -> None:
        super().__init__(get_response)
        self._budget = BodyBudget()

    def sync(self, request: HttpRequest) -> HttpResponseBase:
        if refused := request.META.get(REFUSED):
            raise refused
        if hasattr(request, "_body"):
            return self.get_response(request)
        limit = conf.max_body_bytes
        length = announced_length(request, limit=limit)
        if length == 0:
            return self.get_response(request)
        with self._budget.reserved(limit if length is None else length, largest=limit):
            if length is None:
                _read_chunked(request, limit=limit)
            try:
                _ = request.body
            except UnreadablePostError as error:
                raise BadRequest("The request could not be read.") from error
            return self.get_response(request)

    async def asynchronous(self, request: HttpRequest) -> HttpResponseBase:
        limit = conf.max_body_bytes
        if announced_length(request, limit=limit) is None and len(request.body) > limit:
            raise PayloadTooLarge.of(limit)
        return await self.get_response(request)


def announced_length(request: HttpRequest, *, limit: int) -> int | None:
    """Length of the body that the headers announce, None for a chunked body. Raises BadRequest, PayloadTooLarge."""
    length = request.META.get("CONTENT_LENGTH") or ""
    if not length:
        return None if "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower() else 0
    if not length.isascii() or not length.isdigit():
        raise BadRequest("Content-Length is not a number")
    if int(length) > limit:
        raise PayloadTooLarge.of(limit)
    return int(length)


def _read_chunked(request: HttpRequest, *, limit: int) -> None:
    body = request.META["wsgi.input"].read(limit + 1)
    if len(body) > limit:
        raise PayloadTooLarge.of(limit)
    request.META["CONTENT_LENGTH"] = str(len(body))
    request._stream = BytesIO(body)


class AdmissionMiddleware(Layer):
    """Counts the requests that are worked on, which `GET /load` tells, and bounds them (admission.py)."""

    def sync(self, request: HttpRequest) -> HttpResponseBase:
        if ADMITTED in request.META or not takes_place(request.method, request.path_info):
            return self.get_response(request)
        leave = admit()
        try:
            return self.get_response(request)
        finally:
            leave()

    async def asynchronous(self, request: HttpRequest) -> HttpResponseBase:
        if not takes_place(request.method, request.path_info):
            return await self.get_response(request)
        leave = admit()
        try:
            response: HttpResponseBase = await self.get_response(request)
        except BaseException:
            leave()
            raise
        when_sent(response, leave)
        return response


def takes_place(method: str | None, path: str) -> bool:
    """Whether the request is work: what is asked below /v1, and every other POST to the API."""
    return path.startswith("/v1/") or (method == "POST" and not path.startswith(UNCOUNTED))
