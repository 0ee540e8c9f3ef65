"""A served model with what requests need of it: tokenizer, parser plan, limits. Loaded on first use.

Loading failures are ModelConfigurationError with the flag to change. A failure is remembered for a while, so that
requests for a broken model stay cheap.
"""

import json
import os
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parsers.configuration import ModelConfiguration, ModelConfigurationError
from parsers.engine.exceptions import ParserConfigurationError

if TYPE_CHECKING:
    from derender_api.tokenization import ModelFacts, TokenizerHandle
    from parsers.engine.parser import ParserPlan
    from parsers.engine.vocabulary import Vocabulary

RETRY_SECONDS = 10.0
"""How long a failed tokenizer is not tried again."""

SAMPLING_DEFAULTS = frozenset(
    {
        "repetition_penalty",
        "presence_penalty",
        "frequency_penalty",
        "temperature",
        "top_k",
        "top_p",
        "min_p",
        "max_new_tokens",
    }
)
"""What of a generation configuration counts."""

PoolKey = tuple[str, str | None, str]


class TokenizerPool:
    """Loads each tokenizer once per process; models that name the same folder share it. Thread-safe."""

    def __init__(self) -> None:
        self._handles: dict[PoolKey, TokenizerHandle] = {}
        self._failures: dict[PoolKey, tuple[float, ModelConfigurationError]] = {}
        self._locks: dict[PoolKey, threading.Lock] = {}

    def get(self, configuration: ModelConfiguration) -> "TokenizerHandle":
        """The tokenizer of `configuration`; raises ModelConfigurationError if it cannot be loaded."""
        key = _pool_key(configuration)
        with self._locks.setdefault(key, threading.Lock()):
            if key not in self._handles:
                self._raise_recent_failure(key)
                try:
                    self._handles[key] = _load(configuration)
                except ModelConfigurationError as exc:
                    self._failures[key] = time.monotonic() + RETRY_SECONDS, exc
                    raise
            return self._handles[key]

    def failure(self, configuration: ModelConfiguration) -> ModelConfigurationError | None:
        """Why the tokenizer of `configuration` could not be loaded when it was last tried; None where it could."""
        key = _pool_key(configuration)
        return None if key in self._handles else self._failures.get(key, (0.0, None))[1]

    def keep_only(self, configurations: Iterable[ModelConfiguration]) -> None:
        """Forget the tokenizers that none of `configurations` uses."""
        wanted = {_pool_key(configuration) for configuration in configurations}
        for key in set(self._handles) - wanted:
            self._handles.pop(key, None)

    def _raise_recent_failure(self, key: PoolKey) -> None:
        until, failure = self._failures.get(key, (0.0, None))
        if failure is not None and time.monotonic() < until:
            raise failure


def _pool_key(configuration: ModelConfiguration) -> PoolKey:
    source = configuration.tokenizer_source
    folder = os.path.realpath(source) if os.path.isdir(source) else source
    return folder, _tokenizer_revision(configuration), configuration.tokenizer_mode


def _tokenizer_revision(configuration: ModelConfiguration) -> str | None:
    """`--revision` is one of MODEL's repository; a `--tokenizer` from elsewhere is taken as it is now."""
    return None if configuration.tokenizer else configuration.revision


def _load(configuration: ModelConfiguration) -> "TokenizerHandle":
    from derender_api.tokenization import load_tokenizer

    source = configuration.tokenizer_source
    try:
        return load_tokenizer(
            source,
            revision=_tokenizer_revision(configuration),
            mode=configuration.tokenizer_mode,
            flag="--tokenizer" if configuration.tokenizer else "MODEL",
        )
    except ModelConfigurationError as exc:
        field = "tokenizer" if configuration.tokenizer else "model"
        raise ModelConfigurationError(f"{configuration.name}: {exc}", field=field) from exc


def _generation_config(folder: Path, name: str) -> Mapping[str, Any]:
    """The generation_config.json in `folder`; raises ModelConfigurationError."""
    path = folder / "generation_config.json"
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as exc:
        raise ModelConfigurationError(f"{name}: --generation-config {str(folder)!r}: {path.name}: {exc}.") from exc
    if not isinstance(content, dict):
        raise ModelConfigurationError(f"{name}: --generation-config {str(folder)!r}: {path.name} is no JSON object.")
    return content


class LoadedModel:
    """One served model. Thread-safe: what is computed twice by a race is equal and the tokenizer is shared."""

    def __init__(self, configuration: ModelConfiguration, *, tokenizers: TokenizerPool) -> None:
        self.configuration = configuration
        self.names = configuration.names
        self.max_logprobs = configuration.max_logprobs
        self._tokenizers = tokenizers

    @cached_property
    def tokenizer(self) -> "TokenizerHandle":
        """The shared tokenizer; with a `--tokenizer` or `--chat-template` of its own, the model has a view of it."""
        handle = self._tokenizers.get(self.configuration)
        if not self.configuration.tokenizer and not self.chat_template:
            return handle
        facts = self._facts_of_the_model() if self.configuration.tokenizer else handle.facts
        template = self.chat_template or handle.facts.chat_template
        return handle.of_model(replace(facts, chat_template=template, tokenizer_config=handle.facts.tokenizer_config))

    @cached_property
    def plan(self) -> "ParserPlan | None":
        """The parser plan, None when no parser is active (protocol 8.6)."""
        return self._build_plan(self.configuration.active_tool_parser)

    @cached_property
    def max_model_len(self) -> int:
        """Longest prompt plus output in tokens: `--max-model-len`, else what the model's config.json says."""
        limit = self.known_max_model_len() or self.tokenizer.max_model_len
        if limit is None:
            raise ModelConfigurationError(
                f"{self.configuration.name}: config.json names no context length; set --max-model-len.",
                field="max_model_len",
            )
        return limit

    def known_max_model_len(self) -> int | None:
        """`max_model_len` where it is known without loading a tokenizer: from the flag or the folder's config.json."""
        from derender_api.tokenization.files import read_facts

        folder = Path(self.configuration.model).expanduser()
        try:
            return self.configuration.max_model_len or read_facts(folder).max_model_len
        except (OSError, ValueError) as exc:
            raise ModelConfigurationError(
                f"{self.configuration.name}: config.json in {str(folder)!r} cannot be read: {exc}.", field="model"
            ) from exc

    @cached_property
    def chat_template(self) -> str | None:
        """Text of `--chat-template` (a file or the template itself); None means the tokenizer's own."""
        template = self.configuration.chat_template
        if template is None or any(mark in template for mark in "{}\n"):
            return template
        try:
            return Path(template).read_text(encoding="utf-8")
        except OSError as exc:
            raise ModelConfigurationError(
                f"{self.configuration.name}: --chat-template {template!r} is neither a readable file nor a template: "
                f"{exc.strerror}.",
                field="chat_template",
            ) from exc

    @cached_property
    def default_sampling(self) -> Mapping[str, Any]:
        """Sampling parameters of requests that name none, and `max_new_tokens`: generation_config.json, overridden."""
        configuration = self.configuration
        match configuration.generation_config:
            case "vllm":
                found: Mapping[str, Any] = {}
            case "auto" if configuration.tokenizer:
                found = self._facts_of_the_model().generation_config
            case "auto":
                found = self.tokenizer.facts.generation_config
            case folder:
                found = _generation_config(Path(folder).expanduser(), configuration.name)
        return {
            name: value
            for name, value in {**found, **configuration.override_generation_config}.items()
            if name in SAMPLING_DEFAULTS and value is not None
        }

    def _facts_of_the_model(self) -> "ModelFacts":
        from derender_api.tokenization import load_facts

        try:
            return load_facts(self.configuration.model, revision=self.configuration.revision)
        except ModelConfigurationError as exc:
            raise ModelConfigurationError(f"{self.configuration.name}: {exc}", field="model") from exc

    def check(self) -> None:
        """What can be checked without loading: parser names, folders, template. Raises ModelConfigurationError."""
        from parsers.registry import reasoning_formats, tool_formats

        name, configuration = self.configuration.name, self.configuration
        for flag, value, known in (
            ("--tool-call-parser", configuration.tool_call_parser, tool_formats()),
            ("--reasoning-parser", configuration.reasoning_parser, reasoning_formats()),
        ):
            if value and value not in known:
                raise ModelConfigurationError(
                    f"{name}: {flag} {value} is unknown; known: {', '.join(sorted(known))}.",
                    field=flag.removeprefix("--").replace("-", "_"),
                )
        source = configuration.tokenizer_source
        if source.startswith(("/", ".", "~")) and not Path(source).expanduser().is_dir():
            flag, field = ("--tokenizer", "tokenizer") if configuration.tokenizer else ("MODEL", "model")
            raise ModelConfigurationError(f"{name}: {flag} {source}: there is no such folder.", field=field)
        _ = self.chat_template, self.known_max_model_len()
        if configuration.generation_config not in ("auto", "vllm"):
            _generation_config(Path(configuration.generation_config).expanduser(), name)

    def load(self) -> None:
        """Load everything now; raises ModelConfigurationError. Parsers that are named but not active count too."""
        self.check()
        _ = self.tokenizer, self.max_model_len, self.plan
        if self.configuration.active_tool_parser is None and self.configuration.tool_call_parser:
            self._build_plan(self.configuration.tool_call_parser)

    @property
    def is_loaded(self) -> bool:
        """Whether the tokenizer is in memory."""
        return "tokenizer" in self.__dict__

    @property
    def failure(self) -> ModelConfigurationError | None:
        """Why the model cannot be served, as far as that is known without loading a tokenizer."""
        if not self.is_loaded:
            return self._tokenizers.failure(self.configuration)
        try:
            self.load()
        except ModelConfigurationError as error:
            return error
        return None

    def _build_plan(self, tool_parser: str | None) -> "ParserPlan | None":
        from parsers.registry import build_plan

        reasoning_parser, vocabulary = self.configuration.reasoning_parser, self.tokenizer.vocabulary
        try:
            return build_plan(tool_parser=tool_parser, reasoning_parser=reasoning_parser, vocabulary=vocabulary)
        except ParserConfigurationError as exc:
            field = "tool_call_parser"
            if tool_parser is None or _is_refused(reasoning_parser, vocabulary):
                field = "reasoning_parser"
            flags = {"--tool-call-parser": tool_parser, "--reasoning-parser": reasoning_parser}
            given = ", ".join(f"{flag} {value}" for flag, value in flags.items() if value)
            raise ModelConfigurationError(
                f"{self.configuration.name}: {exc}. Change {given}, or give the tokenizer that belongs to the model.",
                field=field,
            ) from exc


def _is_refused(reasoning_parser: str | None, vocabulary: "Vocabulary") -> bool:
    from parsers.registry import build_plan

    try:
        build_plan(tool_parser=None, reasoning_parser=reasoning_parser, vocabulary=vocabulary)
    except ParserConfigurationError:
        return True
    return False
