"""What all middleware of the service shares: it runs under WSGI and ASGI, and answers the errors that it raises."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from derender_api.exceptions import ApiError
from derender_api.views_errors import error_response

GetResponse = Callable[[HttpRequest], Any]


class Layer(ABC):
    """A middleware for both worlds: `sync` answers under WSGI, `asynchronous` under ASGI. ApiErrors are answered."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if self.is_async:
            return self._answered(request)
        try:
            return self.sync(request)
        except ApiError as error:
            return error_response(error)

    async def _answered(self, request: HttpRequest) -> HttpResponseBase:
        try:
            return await self.asynchronous(request)
        except ApiError as error:
            return error_response(error)

    @abstractmethod
    def sync(self, request: HttpRequest) -> HttpResponseBase:
        """The answer; calls `get_response`."""

    @abstractmethod
    async def asynchronous(self, request: HttpRequest) -> HttpResponseBase:
        """The answer; awaits `get_response`."""


def when_sent(response: HttpResponseBase, action: Callable[[], None]) -> None:
    """Call `action` once the answer is complete: at once, or for a streamed one when the server closes it."""
    if not response.streaming:
        action()
        return
    close = response.close

    def closed() -> None:
        # Else the answer, which holds this, would wait for the garbage collector.
        vars(response).pop("close", None)
        try:
            close()
        finally:
            action()

    response.close = closed  # type: ignore[method-assign]
