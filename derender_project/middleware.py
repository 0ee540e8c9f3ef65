"""Django's middleware for browsers, left out where no browser is served.

Sessions, CSRF tokens, messages and security headers serve the admin page and the interactive documentation. On the API
they would be a third of the framework's time for a small request.
"""

from collections.abc import Callable
from typing import Any

from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.security import SecurityMiddleware
from whitenoise.middleware import WhiteNoiseMiddleware

PAGES = ("/admin", "/docs", "/static/")


class PagesOnly:
    """Passes requests for anything but pages straight on. Mixed into a middleware class."""

    get_response: Callable[[HttpRequest], Any]

    def __call__(self, request: HttpRequest) -> Any:
        if request.path_info.startswith(PAGES):
            return super().__call__(request)  # type: ignore[misc]
        return self.get_response(request)


class PagesSecurity(PagesOnly, SecurityMiddleware):
    """Security headers."""


class PagesStatic(PagesOnly, WhiteNoiseMiddleware):
    """Static files: the assets of the admin page and of the documentation."""


class PagesSession(PagesOnly, SessionMiddleware):
    """Sessions of the admin page."""


class PagesCsrf(PagesOnly, CsrfViewMiddleware):
    """CSRF protection of the admin page's forms."""


class PagesAuthentication(PagesOnly, AuthenticationMiddleware):
    """`request.user` of the admin page."""


class PagesMessages(PagesOnly, MessageMiddleware):
    """Messages of the admin page."""
