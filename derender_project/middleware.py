"""Django's middleware for browsers, left out where no browser is served.

Sessions, CSRF tokens, messages and security headers serve the admin page and the interactive documentation. On the API
they would be a third of the framework's time for a small request.
"""

from collections.abc import Callable
from inspect import isawaitable
from typing import Any, ClassVar

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.security import SecurityMiddleware
from whitenoise.middleware import WhiteNoiseMiddleware

PAGES = ("/admin", "/docs", "/static/")


class PagesOnly:
    """Passes requests for anything but pages straight on. Mixed into a middleware class."""

    get_response: Callable[[HttpRequest], Any]

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        super().__init__(get_response)  # type: ignore[call-arg]
        self._behind_pages = _behind_pages(get_response)

    def __call__(self, request: HttpRequest) -> Any:
        if request.path_info.startswith(PAGES):
            return super().__call__(request)  # type: ignore[misc]
        return self._behind_pages(request)


def _behind_pages(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """What answers behind all middleware of pages that follows: Django wraps each in a handler of exceptions."""
    following = getattr(get_response, "__wrapped__", None)
    return following._behind_pages if isinstance(following, PagesOnly) else get_response


class PagesSecurity(PagesOnly, SecurityMiddleware):
    """Security headers."""


class PagesStatic(PagesOnly, WhiteNoiseMiddleware):
    """Static files: the assets of the admin page and of the documentation. Runs under ASGI, too."""

    sync_capable = True
    async_capable = True
    _found: ClassVar[dict[str, Any]] = {}

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        super().__init__(get_response)
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def add_files_from_finders(self) -> None:
        """Look for the files once in a process: its synchronous and its asynchronous side have the same ones."""
        if not self._found:
            super().add_files_from_finders()
            self._found.update(self.files)
        self.files.update(self._found)

    def __call__(self, request: HttpRequest) -> Any:
        answer = super().__call__(request)
        return _awaitable(answer) if self._is_async and not isawaitable(answer) else answer


async def _awaitable(answer: HttpResponseBase) -> HttpResponseBase:
    return answer


class PagesSession(PagesOnly, SessionMiddleware):
    """Sessions of the admin page."""


class PagesCsrf(PagesOnly, CsrfViewMiddleware):
    """CSRF protection of the admin page's forms."""


class PagesAuthentication(PagesOnly, AuthenticationMiddleware):
    """`request.user` of the admin page."""


class PagesMessages(PagesOnly, MessageMiddleware):
    """Messages of the admin page."""


class PagesFrames(PagesOnly, XFrameOptionsMiddleware):
    """No other site shows the admin page in a frame."""
