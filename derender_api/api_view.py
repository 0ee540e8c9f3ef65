"""The base of the API's views."""

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView


class ApiView(APIView):
    """A view whose request and answer are freed as soon as they are done with.

    The framework's view, request and rendered answer refer to each other, so that only the garbage collector would free
    them, bodies included: thousands of calls later, all in one pause.
    """

    format_kwarg = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Only what rendering needs: who is let in is decided before any view (middleware.py)."""
        request.accepted_renderer, request.accepted_media_type = self.perform_content_negotiation(request)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """The answer, rendered."""
        try:
            return rendered(super().dispatch(request, *args, **kwargs))
        finally:
            self.forget()

    def forget(self) -> None:
        """Let go of the request, and it of this view."""
        if isinstance(self.request, Request):
            self.request.parser_context.clear()
        vars(self).clear()


def rendered(response: HttpResponseBase) -> HttpResponseBase:
    """The answer, which needs neither view nor request any more."""
    if isinstance(response, Response):
        response.render()
        response.renderer_context.clear()  # type: ignore[attr-defined]
    return response
