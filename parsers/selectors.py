"""Reads the table of served models for the catalog."""

import logging
from typing import Any

from parsers.configuration import KEYS, ModelConfiguration, ModelConfigurationError
from parsers.models import ServedModel

logger = logging.getLogger(__name__)

Rows = tuple[tuple[Any, ...], ...]


def enabled_rows() -> Rows:
    """Raw values of the enabled rows, in order, to compare with an earlier reading; raises DatabaseError."""
    return tuple(ServedModel.objects.filter(enabled=True).values_list(*KEYS))


def configurations(rows: Rows) -> list[ModelConfiguration]:
    """The configurations of `rows`; a broken row is logged and left out, so that it does not harm the others."""
    found = []
    for row in rows:
        served = ServedModel(**dict(zip(KEYS, row, strict=True)))
        try:
            found.append(served.configuration())
        except ModelConfigurationError as exc:
            logger.error("Served model %r is not served: %s", served.name, exc)
    return found
