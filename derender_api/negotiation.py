"""Content negotiation of the API: every answer is JSON, whatever the client says it accepts.

Clients of streaming endpoints send `Accept: text/event-stream` alone; the framework's default would refuse them
with 406.
"""

from collections.abc import Iterable

from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request


class JsonAlways(BaseContentNegotiation):
    """Picks the first parser and the first renderer of the view."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser:
        """The view's parser; the content type is judged by the parser itself (protocol 2)."""
        return next(iter(parsers))

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """The view's renderer and its media type."""
        renderer = next(iter(renderers))
        return renderer, renderer.media_type
