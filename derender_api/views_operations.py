"""What those who run the service ask it: metrics and readiness."""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from rest_framework.request import Request
from rest_framework.response import Response

from derender_api.api_keys import key_store
from derender_api.catalog import catalog
from derender_api.load import requests_in_flight
from derender_api.metrics import exposition
from derender_api.views_server import ServerView
from parsers.configuration import ModelConfigurationError


class MetricsView(ServerView):
    """GET /metrics."""

    @extend_schema(
        summary="Metrics in Prometheus' text format, over all workers",
        responses={(200, "text/plain"): OpenApiTypes.STR},
        tags=["server"],
    )
    def get(self, request: Request) -> HttpResponse:
        """The text format 0.0.4, which every Prometheus reads."""
        return HttpResponse(exposition(), content_type=CONTENT_TYPE_PLAIN_0_0_4)


class ReadyView(ServerView):
    """GET /ready."""

    @extend_schema(
        summary="Can the server answer, and what is wrong with it?",
        responses={200: OpenApiTypes.OBJECT, 503: OpenApiTypes.OBJECT},
        tags=["server"],
    )
    def get(self, request: Request) -> Response:
        """200 while requests can be answered, even without the database; 503 where the first model cannot be loaded.

        `{"status": "ready" | "degraded" | "unavailable", "database": "ok" | "lost", "models", "requests_in_flight"}`.
        """
        models = catalog.models()
        key_store.current()
        lost = key_store.is_table_lost
        status = "degraded" if lost else "ready"
        try:
            models[0].load()
        except ModelConfigurationError:
            status = "unavailable"
        answer: dict[str, Any] = {
            "status": status,
            "database": "lost" if lost else "ok",
            "models": len(models),
            "requests_in_flight": requests_in_flight.total(),
        }
        return Response(answer, status=503 if status == "unavailable" else 200)
