"""How served models stand in this process, for the admin page (parsers.inspection)."""

import time
from collections.abc import Sequence
from urllib.parse import urlencode

from django.urls import reverse

from derender_api.catalog import LoadedModel, catalog
from derender_api.loaded_model import TokenizerPool
from derender_api.model_sources import DEMO
from parsers.configuration import ModelConfiguration, ModelConfigurationError
from parsers.inspection import Elsewhere, ModelState, Status
from parsers.selectors import configurations, enabled_rows


class CatalogInspector:
    """Reads the catalog of this process. Other workers serve the same, each with what it has loaded so far."""

    def state(self, configuration: ModelConfiguration) -> ModelState:
        """How the model of an enabled row stands."""
        fixed = {name for each in catalog.fixed for name in each.names}
        taken = next((name for name in configuration.names if name in fixed), None)
        if taken is not None:
            return ModelState(Status.SHADOWED, f"The name {taken!r} is served from elsewhere; that one wins.")
        found = next((each for each in catalog.models() if each.configuration == configuration), None)
        if found is None:
            return ModelState(Status.PENDING, "Saved; requests get it within seconds.")
        return _state_of(found)

    def check(self, configuration: ModelConfiguration) -> str:
        """Load the model anew, beside what is served; raises ModelConfigurationError."""
        started = time.perf_counter()
        model = LoadedModel(configuration, tokenizers=TokenizerPool())
        model.load()
        return f"{_facts(model)}; loaded in {time.perf_counter() - started:.2f} s"

    def elsewhere(self) -> Sequence[Elsewhere]:
        """The served models that are not in the table."""
        rows = configurations(enabled_rows())
        return [
            Elsewhere(model.configuration, _state_of(model), _source(model.configuration))
            for model in catalog.models()
            if model.configuration not in rows
        ]

    def playground(self, name: str) -> str:
        """URL of the page where the model can be tried."""
        return f"{reverse('workbench:playground')}?{urlencode({'model': name})}"


def _state_of(model: LoadedModel) -> ModelState:
    failure = model.failure
    if failure is not None:
        return ModelState(Status.FAILED, str(failure))
    if not model.is_loaded:
        return ModelState(Status.WAITING, "The first request loads the tokenizer.")
    return ModelState(Status.LOADED, _facts(model))


def _facts(model: LoadedModel) -> str:
    """What was loaded, in a sentence. Raises ModelConfigurationError."""
    plan = model.plan
    unified = plan.unified if plan else None
    parts = [
        f"tokenizer with {model.tokenizer.size:,} tokens",
        f"context of {model.max_model_len:,} tokens",
        f"parsers {plan.name.strip('+').replace('+', ' + ')}" if plan else "no parser runs",
    ]
    if plan and plan.marks:
        parts.append(f"{len(plan.marks)} markers are tokens")
    if unified:
        parts.append("one format for both")
    return ", ".join(parts)


def _source(configuration: ModelConfiguration) -> str:
    if configuration == DEMO and configuration not in catalog.fixed:
        return "the bundled demo model, since nothing else is served"
    return "the command line, a models file or the settings"


inspector = CatalogInspector()

__all__ = ["CatalogInspector", "ModelConfigurationError", "inspector"]
