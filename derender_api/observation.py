"""The outermost middleware: gives each request its ID, counts and times the answer, writes the access log."""

import logging
from time import perf_counter

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from derender_api.layer import Layer, when_sent
from derender_api.metrics import count_request, path_label
from derender_api.request_id import HEADER, id_for, request_id

access_log = logging.getLogger("derender.access")
KEY_NAME = "derender.key"
"""Where the name of the request's API key stands in `request.META`."""


class ObservationMiddleware(Layer):
    """Sees every request, refused ones included; a streamed answer counts when its end has been sent."""

    def sync(self, request: HttpRequest) -> HttpResponseBase:
        before = request_id.set(id_for(request.META.get("HTTP_X_REQUEST_ID")))
        started = perf_counter()
        try:
            return self._observed(request, self.get_response(request), started)
        finally:
            request_id.reset(before)

    async def asynchronous(self, request: HttpRequest) -> HttpResponseBase:
        # A streamed answer goes on in this context after the view has returned: nothing is reset.
        request_id.set(id_for(request.META.get("HTTP_X_REQUEST_ID")))
        started = perf_counter()
        response = await self.get_response(request)
        if not response.streaming:
            # Else the server would send it in chunks.
            response.headers["Content-Length"] = str(len(response.content))
        return self._observed(request, response, started)

    def _observed(self, request: HttpRequest, response: HttpResponseBase, started: float) -> HttpResponseBase:
        response.headers[HEADER] = request_id.get()
        if response.streaming:
            when_sent(response, lambda: _note(request, response, started))
        else:
            _note(request, response, started)
        return response


def _note(request: HttpRequest, response: HttpResponseBase, started: float) -> None:
    seconds = perf_counter() - started
    count_request(path_label(request), response.status_code, seconds)
    if access_log.isEnabledFor(logging.INFO):
        facts = {
            "method": request.method,
            "path": request.path_info,
            "status": response.status_code,
            "milliseconds": round(1000 * seconds, 2),
            "key": request.META.get(KEY_NAME),
        }
        access_log.info("%s %s %d %.2f ms", *list(facts.values())[:4], extra=facts)
