"""Renders answers as vLLM does: UTF-8 JSON, compact, keys in the order given, no charset in the content type."""

import json
from collections.abc import Mapping
from typing import Any

import orjson
from rest_framework.renderers import BaseRenderer


class OrjsonRenderer(BaseRenderer):
    """JSON by orjson; a non-finite float becomes null, as JSON has no word for it. Bytes are taken as rendered."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        """The body's bytes; None is an empty body."""
        if data is None or isinstance(data, bytes):
            return data or b""
        try:
            return orjson.dumps(data)
        except TypeError:
            # A lone surrogate or an integer beyond 64 bits, both possible in echoed values: rendering comes after
            # the exception handler, so that it must not fail here.
            return json.dumps(data, separators=(",", ":")).encode()
