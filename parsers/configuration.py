"""How one model is served: a plain value, the same for the command line, a config file, the settings and the table.

Field names are the flags of `manage.py serve` (and of vLLM) with underscores; defaults are vLLM's.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

ENGINE_URL = re.compile(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?")

TokenizerMode = Literal[
    "auto", "hf", "slow", "mistral", "deepseek_v32", "deepseek_v4", "deepseek_v41", "kimi_k3", "cohere"
]
ENCODER_MODES = frozenset({"cohere"})
"""Tokenizer modes in which vLLM renders chats with an encoder that is not here."""
StreamStateFormat = Literal["replay", "compact"]
ContentFormat = Literal["auto", "string", "openai"]


class ModelConfigurationError(ValueError):
    """A configuration that cannot be served. The operator's fault; the text names the flag and the cure.

    `field` is the key of ModelConfiguration that is to be changed, where one is; forms show the text beside it.
    """

    def __init__(self, text: str, *, field: str | None = None) -> None:
        super().__init__(text)
        self.field = field


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfiguration:
    """One served model.

    `model` is a folder or a hub id. `name` defaults to `model`. `aliases` are further names it answers to.
    `tokenizer` (folder or hub id) defaults to `model`; of `tokenizer_mode`, the modes of encoders only matter to
    rendering; `chat_template` is a file or the template's text.
    `max_model_len` of None means: from the model's config.json. `max_logprobs` of -1 means no limit.
    `stream_state_format` is the form of stream states where a stream asks for none.
    For rendering: `chat_template_content_format` says whether templates get a message's content as text or as a list of
    parts; `generation_config` is where default sampling parameters come from ("auto": the model, "vllm": nowhere, else
    a folder), and `override_generation_config` changes them.
    For the gateway: `engine_urls` are engines that generate for this model (`http://host:port`), `engine_model` is the
    name it has there (None: theirs to choose).
    """

    model: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    revision: str | None = None
    tokenizer: str | None = None
    tokenizer_mode: TokenizerMode = "auto"
    tool_call_parser: str | None = None
    reasoning_parser: str | None = None
    enable_auto_tool_choice: bool = False
    chat_template: str | None = None
    default_chat_template_kwargs: dict[str, Any] = field(default_factory=dict)
    max_model_len: int | None = None
    max_logprobs: int = 20
    stream_state_format: StreamStateFormat = "replay"
    trust_request_chat_template: bool = False
    chat_template_content_format: ContentFormat = "auto"
    exclude_tools_when_tool_choice_none: bool = False
    generation_config: str = "auto"
    override_generation_config: dict[str, Any] = field(default_factory=dict)
    engine_urls: tuple[str, ...] = ()
    engine_model: str | None = None

    def __post_init__(self) -> None:
        if not self.model:
            raise ModelConfigurationError("model must not be empty; give a folder or a hub id.", field="model")
        if not self.name:
            object.__setattr__(self, "name", self.model)
        if len(set(self.names)) != len(self.names) or not all(self.names):
            raise ModelConfigurationError(
                f"{self.name}: aliases must be different from each other and not empty.", field="aliases"
            )
        if self.max_model_len is not None and self.max_model_len < 1:
            raise ModelConfigurationError(
                f"{self.name}: max_model_len must be at least 1 (absent: from config.json).", field="max_model_len"
            )
        if self.max_logprobs < -1:
            raise ModelConfigurationError(
                f"{self.name}: max_logprobs must be -1 (no limit) or more.", field="max_logprobs"
            )
        for url in self.engine_urls:
            if not ENGINE_URL.fullmatch(url):
                raise ModelConfigurationError(
                    f"{self.name}: {url!r} is not the URL of an engine; give it as http://host:port.",
                    field="engine_urls",
                )
        if self.enable_auto_tool_choice and not self.tool_call_parser:
            raise ModelConfigurationError(
                f"{self.name}: enable_auto_tool_choice needs a tool parser; set tool_call_parser "
                "(--tool-call-parser) as well.",
                field="tool_call_parser",
            )

    @property
    def names(self) -> tuple[str, ...]:
        """All names the model answers to; the first is the one that answers carry."""
        return (self.name, *self.aliases)

    @property
    def tokenizer_source(self) -> str:
        """Folder or hub id the tokenizer is loaded from."""
        return self.tokenizer or self.model

    @property
    def needs_encoder(self) -> bool:
        """Whether chats of this model would be rendered by an encoder that is not here."""
        return self.tokenizer_mode in ENCODER_MODES and self.chat_template is None

    @property
    def active_tool_parser(self) -> str | None:
        """The tool parser that runs: vLLM ignores it unless automatic tool choice is enabled (protocol 8.6)."""
        return self.tool_call_parser if self.enable_auto_tool_choice else None


KEYS = tuple(f.name for f in dataclasses.fields(ModelConfiguration))
_ADAPTER = TypeAdapter(ModelConfiguration)


def configuration_from_mapping(values: Mapping[str, Any]) -> ModelConfiguration:
    """Build a configuration from a JSON or TOML object; an absent key and null both mean the default.

    Raises ModelConfigurationError for unknown keys, wrong types and impossible combinations.
    """
    given = {key: value for key, value in values.items() if value is not None}
    unknown = sorted(set(given) - set(KEYS))
    label = given.get("name") or given.get("model") or "?"
    if unknown:
        raise ModelConfigurationError(f"{label}: unknown key {', '.join(unknown)}; known: {', '.join(KEYS)}.")
    try:
        return _ADAPTER.validate_python(given)
    except ValidationError as exc:
        raise _configuration_error(label, exc) from exc


def _configuration_error(label: Any, exc: ValidationError) -> ModelConfigurationError:
    problem = exc.errors(include_url=False, include_input=False)[0]
    error = problem.get("ctx", {}).get("error")
    if isinstance(error, ModelConfigurationError):
        return error
    text = f"{label}: {'.'.join(map(str, problem['loc']))}: {problem['msg']}"
    return ModelConfigurationError(text, field=str(problem["loc"][0]) if problem["loc"] else None)


def require_unique_names(configurations: Iterable[ModelConfiguration]) -> None:
    """Raise ModelConfigurationError if two of the configurations share a name or an alias."""
    owners: dict[str, str] = {}
    for configuration in configurations:
        for name in configuration.names:
            if name in owners:
                raise ModelConfigurationError(
                    f"{configuration.name}: the name {name!r} is already taken by {owners[name]!r}; "
                    "names and aliases must be unique."
                )
            owners[name] = configuration.name
