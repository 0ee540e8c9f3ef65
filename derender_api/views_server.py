"""What clients and load balancers ask the server itself: models, health, version, load (protocol 10.3)."""

import secrets
import time
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from derender_api.api_view import ApiView
from derender_api.authorization import may_use
from derender_api.catalog import LoadedModel, catalog
from derender_api.load import requests_in_flight
from parsers.configuration import ModelConfigurationError

VLLM_VERSION = "0.33.0"
"""The vLLM release whose answers this server gives."""


class ServerView(ApiView):
    """Answers GET only: like vLLM, neither HEAD nor OPTIONS."""

    http_method_names = ["get"]


class ModelListView(ServerView):
    """GET /v1/models."""

    @extend_schema(summary="Names of the served models", responses=OpenApiTypes.OBJECT, tags=["server"])
    def get(self, request: Request) -> Response:
        """One entry per served name, aliases included, of the models that the API key may use."""
        now = int(time.time())
        models = [model for model in catalog.models() if may_use(model.names)]
        cards = [model_card(model, name, created=now) for model in models for name in model.names]
        return Response({"object": "list", "data": cards})


class HealthView(ServerView):
    """GET /health."""

    @extend_schema(summary="Is the server up?", responses={200: None}, tags=["server"])
    def get(self, request: Request) -> Response:
        """200 with an empty body."""
        return _empty()


class PingView(ApiView):
    """GET and POST /ping."""

    http_method_names = ["get", "post"]

    @extend_schema(summary="Is the server up?", responses={200: None}, tags=["server"], operation_id="ping")
    def get(self, request: Request) -> Response:
        """200 with an empty body."""
        return _empty()

    @extend_schema(summary="Is the server up?", request=None, responses={200: None}, tags=["server"])
    def post(self, request: Request) -> Response:
        """200 with an empty body."""
        return _empty()


class VersionView(ServerView):
    """GET /version."""

    @extend_schema(
        summary="The vLLM release this server is compatible with", responses=OpenApiTypes.OBJECT, tags=["server"]
    )
    def get(self, request: Request) -> Response:
        """`{"version"}`: the release that clients may expect the behaviour of."""
        return Response({"version": VLLM_VERSION})


class LoadView(ServerView):
    """GET /load."""

    @extend_schema(summary="Requests in flight", responses=OpenApiTypes.OBJECT, tags=["server"])
    def get(self, request: Request) -> Response:
        """`{"server_load"}`: requests below /v1 that are being answered now, in all workers."""
        return Response({"server_load": requests_in_flight.total()})


class KvEventSourcesView(ServerView):
    """GET /kv_event_sources."""

    @extend_schema(summary="Always empty: no engine runs here", responses=OpenApiTypes.OBJECT, tags=["server"])
    def get(self, request: Request) -> Response:
        """`{}`, as a render-only vLLM answers."""
        return Response({})


def model_card(model: LoadedModel, name: str, *, created: int) -> dict[str, Any]:
    """One entry of GET /v1/models; `created` in seconds since the epoch."""
    return {
        "id": name,
        "object": "model",
        "created": created,
        "owned_by": "vllm",
        "root": model.configuration.model,
        "parent": None,
        "max_model_len": _shown_max_model_len(model),
        "permission": [
            {
                "id": f"modelperm-{secrets.token_hex(8)}",
                "object": "model_permission",
                "created": created,
                "allow_create_engine": False,
                "allow_sampling": True,
                "allow_logprobs": True,
                "allow_search_indices": False,
                "allow_view": True,
                "allow_fine_tuning": False,
                "organization": "*",
                "group": None,
                "is_blocking": False,
            }
        ],
    }


def _shown_max_model_len(model: LoadedModel) -> int | None:
    """None for a model of the hub that is not loaded yet (a listing must not load every tokenizer), or a broken one."""
    try:
        return vars(model).get("max_model_len") or model.known_max_model_len()
    except ModelConfigurationError:
        return None


def _empty() -> Response:
    response = Response()
    # The framework names a content type even for an empty body; vLLM does not.
    response.headers.pop("Content-Type", None)
    return response
