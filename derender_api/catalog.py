"""The served models of this process, by name: where requests find their tokenizer, parser plan and limits.

Models come from the command line or a config file, from `settings.DERENDER` and from the ServedModel table. Tokenizers
and plans are loaded on first use; tokenizers are shared by all models that name the same folder.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from derender_api.exceptions import ModelNotFound
from parsers.configuration import ModelConfiguration, ModelConfigurationError, configuration_from_mapping

if TYPE_CHECKING:
    from derender_api.tokenization import TokenizerHandle


class TokenizerPool:
    """Loads each tokenizer once per process; models that name the same folder share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._handles: dict[tuple[str, str | None, str], TokenizerHandle] = {}

    def get(self, configuration: ModelConfiguration) -> "TokenizerHandle":
        from derender_api.tokenization import load_tokenizer

        key = (configuration.tokenizer_source, configuration.revision, configuration.tokenizer_mode)
        with self._lock:
            if key not in self._handles:
                source, revision, mode = key
                self._handles[key] = load_tokenizer(source, revision=revision, mode=mode)
            return self._handles[key]


class LoadedModel:
    """One served model. Thread-safe; the tokenizer and the plan are loaded when first asked for."""

    def __init__(self, configuration: ModelConfiguration, *, tokenizers: TokenizerPool) -> None:
        self.configuration = configuration
        self.names = configuration.names
        self.max_logprobs = configuration.max_logprobs
        self._tokenizers = tokenizers
        self._lock = threading.RLock()

    @cached_property
    def tokenizer(self) -> "TokenizerHandle":
        """The shared tokenizer of the model's folder."""
        return self._tokenizers.get(self.configuration)

    @cached_property
    def plan(self) -> Any:
        """The parser plan, None when no parser is active (protocol 8.6)."""
        configuration = self.configuration
        if configuration.active_tool_parser is None and configuration.reasoning_parser is None:
            return None
        from parsers.registry import build_plan

        with self._lock:
            return build_plan(
                tool_parser=configuration.active_tool_parser,
                reasoning_parser=configuration.reasoning_parser,
                vocabulary=self.tokenizer.vocabulary,
            )

    @cached_property
    def max_model_len(self) -> int:
        """Longest prompt plus output in tokens: `--max-model-len`, else what the model's config.json says."""
        limit = self.configuration.max_model_len or self.tokenizer.max_model_len
        if limit is None:
            raise ModelConfigurationError(
                f"{self.configuration.name}: config.json gives no context length; set max_model_len (--max-model-len)."
            )
        return limit


class Catalog:
    """All served models of the process, by name and alias."""

    def __init__(self) -> None:
        self._tokenizers = TokenizerPool()
        self._models: tuple[LoadedModel, ...] | None = None
        self._by_name: dict[str, LoadedModel] = {}
        self._lock = threading.RLock()

    def models(self) -> tuple[LoadedModel, ...]:
        """Every served model, in order; the first answers requests that name none."""
        if self._models is None:
            from derender_api.conf import conf

            self._install([configuration_from_mapping(values) for values in conf.models])
        return self._models or ()

    def resolve(self, name: str | None) -> LoadedModel:
        """The model that answers to `name`; the first one for None. Raises ModelNotFound (404)."""
        models = self.models()
        if name is None and models:
            return models[0]
        model = self._by_name.get(name or "")
        if model is None:
            raise ModelNotFound(name, [known for served in models for known in served.names])
        return model

    @contextmanager
    def override(self, configurations: Sequence[ModelConfiguration]) -> Iterator[None]:
        """Serve exactly `configurations` within the block."""
        before = self._models, self._by_name
        self._install(configurations)
        try:
            yield
        finally:
            self._models, self._by_name = before

    def _install(self, configurations: Sequence[ModelConfiguration]) -> None:
        models = tuple(LoadedModel(each, tokenizers=self._tokenizers) for each in configurations)
        with self._lock:
            self._models = models
            self._by_name = {name: model for model in models for name in model.names}


catalog = Catalog()
