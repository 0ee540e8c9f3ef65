"""The served models of this process, by name: where requests find their tokenizer, parser plan and limits.

Models come from the command line or a config file, from the settings and from the ServedModel table, in this order;
the first one answers requests that name none. The table is read again every few seconds, in the course of a request,
so that a change reaches every worker without a restart. What is served is one immutable value, swapped as a whole.
"""

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import DatabaseError

from derender_api.api_keys import LOST_FACTOR
from derender_api.authorization import require_model
from derender_api.conf import conf
from derender_api.event_loop import on_event_loop
from derender_api.exceptions import ModelNotFound
from derender_api.loaded_model import LoadedModel, TokenizerPool
from derender_api.model_sources import DEMO, configured_models
from parsers.configuration import ModelConfiguration
from parsers.selectors import Rows, configurations, enabled_rows

__all__ = ["Catalog", "LoadedModel", "catalog", "validate_loadable"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Served:
    """What is served at one moment. `rows` is the reading of the table it was made from."""

    models: tuple[LoadedModel, ...]
    by_name: Mapping[str, LoadedModel]
    rows: Rows


class Catalog:
    """All served models of the process, by name and alias. Thread-safe."""

    def __init__(self) -> None:
        self._tokenizers = TokenizerPool()
        self._fixed: tuple[ModelConfiguration, ...] | None = None
        self._served: Served | None = None
        self._overridden = False
        self._table_lost = False
        self._next_check = 0.0
        self._lock = threading.RLock()

    def resolve(self, name: str | None) -> LoadedModel:
        """The model that answers to `name`; the first one for None.

        Raises ModelNotFound (404), and Forbidden (403) where the API key of the request is not for this model.
        """
        served = self._current()
        model = served.models[0] if name is None else served.by_name.get(name)
        if model is None:
            raise ModelNotFound(name, list(served.by_name))
        require_model(model.names)
        return model

    def models(self) -> tuple[LoadedModel, ...]:
        """Every served model, in order."""
        return self._current().models

    @property
    def fixed(self) -> tuple[ModelConfiguration, ...]:
        """What is served whatever the table says: the models of the command line and the settings."""
        self._current()
        return self._fixed or ()

    def serve(self, command_line: Sequence[ModelConfiguration]) -> None:
        """Serve `command_line` before the models of the settings and the table. Raises ModelConfigurationError."""
        names = {name for configuration in command_line for name in configuration.names}
        others = [each for each in configured_models() if not _clash(each, names)]
        with self._lock:
            self._fixed = (*command_line, *others)
            self._served = None

    def validate(self, *, seconds: float) -> int:
        """Check all served models, and load them in order until `seconds` have passed; the number left for first use.

        The first model is loaded in any case. Raises ModelConfigurationError for a model that cannot be served.
        """
        deadline = time.monotonic() + seconds
        left = 0
        for position, model in enumerate(self.models()):
            if position and time.monotonic() > deadline:
                model.check()
                left += 1
            else:
                model.load()
        return left

    @contextmanager
    def override(self, models: Sequence[ModelConfiguration]) -> Iterator[None]:
        """Serve exactly `models` within the block; for tests and tools."""
        before = self._served, self._overridden
        self._served, self._overridden = self._make(models, rows=()), True
        try:
            yield
        finally:
            self._served, self._overridden = before

    @property
    def is_fresh(self) -> bool:
        """Whether the next answer needs no reading of the table."""
        return self._served is not None and (self._overridden or time.monotonic() < self._next_check)

    def _current(self) -> Served:
        served = self._served
        # On an event loop nothing is read, which would hold up everyone; whoever answers there sees to it beforehand.
        if served is not None and (self.is_fresh or on_event_loop()):
            return served
        # One thread reads the table while the others go on with what they have.
        if not self._lock.acquire(blocking=served is None):
            return served  # type: ignore[return-value]
        try:
            return self._refreshed()
        finally:
            self._lock.release()

    def _refreshed(self) -> Served:
        served, rows = self._served, self._rows()
        patience = LOST_FACTOR if rows is None else 1
        self._next_check = time.monotonic() + conf.models_refresh_seconds * patience
        if served is not None and (rows is None or rows == served.rows):
            return served
        if self._fixed is None:
            self._fixed = tuple(configured_models())
        self._served = served = self._make(self._merged(rows or ()), rows=rows or ())
        self._tokenizers.keep_only(model.configuration for model in served.models)
        return served

    def _rows(self) -> Rows | None:
        """The table as it is now; None while it is out of reach, which is logged once."""
        try:
            rows = enabled_rows()
        except DatabaseError as exc:
            if not self._table_lost:
                logger.warning("Cannot read the table of served models (`manage.py migrate` creates it): %s", exc)
            self._table_lost = True
            return None
        self._table_lost = False
        return rows

    def _merged(self, rows: Rows) -> list[ModelConfiguration]:
        merged = list(self._fixed or ())
        names = {name for configuration in merged for name in configuration.names}
        for configuration in configurations(rows):
            if not _clash(configuration, names):
                merged.append(configuration)
                names.update(configuration.names)
        return merged or [DEMO]

    def _make(self, models: Iterable[ModelConfiguration], *, rows: Rows) -> Served:
        known = self._served.by_name if self._served else {}
        loaded = tuple(self._reused(each, known.get(each.name)) for each in models)
        return Served(models=loaded, by_name={name: model for model in loaded for name in model.names}, rows=rows)

    def _reused(self, configuration: ModelConfiguration, known: LoadedModel | None) -> LoadedModel:
        if known is not None and known.configuration == configuration:
            return known
        return LoadedModel(configuration, tokenizers=self._tokenizers)


def _clash(configuration: ModelConfiguration, taken: set[str]) -> bool:
    names = sorted(taken.intersection(configuration.names))
    if names:
        logger.error("Model %r is not served: the name %r is taken.", configuration.name, names[0])
    return bool(names)


catalog = Catalog()


def validate_loadable(configuration: ModelConfiguration) -> None:
    """Check that a model could be served here; raises ModelConfigurationError (see parsers.validation)."""
    LoadedModel(configuration, tokenizers=TokenizerPool()).load()
