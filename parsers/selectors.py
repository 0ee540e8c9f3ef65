"""Reads the table of served models for the catalog."""

import logging
from typing import Any

from django.db import DatabaseError

from parsers.configuration import KEYS, ModelConfiguration, ModelConfigurationError
from parsers.models import ServedModel

logger = logging.getLogger(__name__)

Rows = tuple[tuple[Any, ...], ...]


def enabled_rows() -> Rows | None:
    """Raw values of the enabled rows, in order, to compare with an earlier reading; None if the table is out of reach."""
    try:
        return tuple(ServedModel.objects.filter(enabled=True).values_list(*KEYS))
    except DatabaseError:
        return None


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
