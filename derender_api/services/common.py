"""Steps that chat and completions share."""

from typing import Any

from derender_api.loaded_model import LoadedModel
from derender_api.protocol.derender import (
    StreamRequest,
)
from derender_api.stream_state import Carried, Form

Json = dict[str, Any]


def scope_of(endpoint: str, model: LoadedModel) -> tuple[str, str, str]:
    """What a compact stream state belongs to."""
    return endpoint, model.names[0], model.plan.name if model.plan else ""


def stopped(carried: Carried, reason: str | None, stop_reason: int | str | None) -> tuple[str | None, int | str | None]:
    """Finish and stop reason of a chunk: a stop string ends the output, and what comes behind ends nothing."""
    if carried.is_stopped:
        return None, None
    if carried.matched is not None:
        return reason or "stop", carried.matched
    return reason, stop_reason


def form_of(request: StreamRequest, model: LoadedModel) -> Form:
    """The form of the states of a stream that begins."""
    return request.stream_state_format or model.configuration.stream_state_format
