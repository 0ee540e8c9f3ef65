"""The table of served models that operators edit in the admin page."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from parsers.configuration import KEYS, ModelConfiguration, ModelConfigurationError, configuration_from_mapping
from parsers.validation import validate_configuration


class TokenizerMode(models.TextChoices):
    """How the tokenizer is loaded; the values of `--tokenizer-mode`."""

    AUTO = "auto", "auto"
    HF = "hf", "hf (fast)"
    SLOW = "slow", "slow"
    MISTRAL = "mistral", "mistral"
    DEEPSEEK_V32 = "deepseek_v32", "deepseek_v32"
    DEEPSEEK_V4 = "deepseek_v4", "deepseek_v4"
    DEEPSEEK_V41 = "deepseek_v41", "deepseek_v41"
    KIMI_K3 = "kimi_k3", "kimi_k3"
    COHERE = "cohere", "cohere"


class StreamStateFormat(models.TextChoices):
    """What a streaming client carries where it asks for nothing else."""

    REPLAY = "replay", "replay (as vLLM)"
    COMPACT = "compact", "compact"


class ContentFormat(models.TextChoices):
    """What chat templates get as the content of a message; the values of `--chat-template-content-format`."""

    AUTO = "auto", "auto (from the template)"
    STRING = "string", "string"
    OPENAI = "openai", "openai (list of parts)"


class ServedModel(models.Model):
    """One served model: the fields of ModelConfiguration, a switch and a place in the order."""

    name = models.CharField(max_length=255, unique=True, help_text="Name that requests use in `model`.")
    aliases = models.JSONField(default=list, blank=True, help_text='Further names, a JSON list: ["a", "b"].')
    model = models.CharField(max_length=1024, help_text="Folder or hub id.")
    revision = models.CharField(max_length=255, blank=True, help_text="Revision of the hub repository.")
    tokenizer = models.CharField(max_length=1024, blank=True, help_text="Folder or hub id; empty: that of the model.")
    tokenizer_mode = models.CharField(max_length=16, choices=TokenizerMode, default=TokenizerMode.AUTO)
    tool_call_parser = models.CharField(max_length=64, blank=True)
    reasoning_parser = models.CharField(max_length=64, blank=True)
    enable_auto_tool_choice = models.BooleanField(default=False, help_text="The tool parser runs only with this on.")
    chat_template = models.TextField(blank=True, help_text="A file's path or the template itself.")
    default_chat_template_kwargs = models.JSONField(default=dict, blank=True)
    max_model_len = models.PositiveIntegerField(null=True, blank=True, help_text="Empty: from config.json.")
    max_logprobs = models.IntegerField(default=20, help_text="-1: no limit.")
    stream_state_format = models.CharField(
        max_length=16,
        choices=StreamStateFormat,
        default=StreamStateFormat.REPLAY,
        help_text="Stream states of clients that ask for no form.",
    )
    trust_request_chat_template = models.BooleanField(
        default=False, help_text="Requests may bring their own chat template; it is rendered in a sandbox."
    )
    chat_template_content_format = models.CharField(
        max_length=16, choices=ContentFormat, default=ContentFormat.AUTO, help_text="Content as chat templates get it."
    )
    exclude_tools_when_tool_choice_none = models.BooleanField(
        default=False, help_text='Leave tools out of the prompt where `tool_choice` is "none".'
    )
    generation_config = models.CharField(
        max_length=1024,
        default="auto",
        help_text='Default sampling parameters: "auto" (the model\'s), "vllm" (none), or a folder.',
    )
    override_generation_config = models.JSONField(
        default=dict, blank=True, help_text='Sampling parameters that replace the defaults: {"temperature": 0.5}.'
    )
    engine_urls = models.JSONField(
        default=list, blank=True, help_text='Engines behind this model, a JSON list: ["http://10.0.0.7:8200"].'
    )
    engine_model = models.CharField(max_length=255, blank=True, help_text="The model's name there; empty: not told.")
    enabled = models.BooleanField(default=True, help_text="Only enabled models are served.")
    position = models.IntegerField(default=0, help_text="Order; the first model answers requests that name none.")

    class Meta:
        """Served in this order."""

        ordering = ("position", "id")
        verbose_name = "served model"

    def __str__(self) -> str:
        return self.name

    def configuration(self) -> ModelConfiguration:
        """The row as the rest of the service knows it; raises ModelConfigurationError."""
        values: dict[str, Any] = {key: getattr(self, key) for key in KEYS}
        return configuration_from_mapping({key: value for key, value in values.items() if value != ""})

    def clean(self) -> None:
        """Validate exactly what a server validates at start; disabled rows may be unfinished, but have the right types.

        An error is attached to the field that is to be changed, where one is.
        """
        try:
            self._require_types()
            if self.enabled:
                configuration = self.configuration()
                self._require_free_names(configuration)
                validate_configuration(configuration)
        except ModelConfigurationError as exc:
            raise ValidationError({exc.field: str(exc)} if exc.field in KEYS else str(exc)) from exc

    def _require_types(self) -> None:
        """JSON fields hold what they are for: other rows are compared with the names, enabled or not."""
        if not isinstance(self.aliases, list) or not all(isinstance(alias, str) for alias in self.aliases):
            raise ModelConfigurationError('Aliases are a JSON list of names: ["a", "b"].', field="aliases")
        if not isinstance(self.engine_urls, list):
            raise ModelConfigurationError('Engines are a JSON list of URLs: ["http://host:port"].', field="engine_urls")
        for field in ("default_chat_template_kwargs", "override_generation_config"):
            if not isinstance(getattr(self, field), dict):
                raise ModelConfigurationError('Expected a JSON object: {"name": value}.', field=field)

    def _require_free_names(self, configuration: ModelConfiguration) -> None:
        others = ServedModel.objects.exclude(pk=self.pk).values_list("name", "aliases")
        taken = {name: owner for owner, aliases in others for name in (owner, *aliases)}
        for name in configuration.names:
            if name in taken:
                field = "name" if name == configuration.name else "aliases"
                raise ModelConfigurationError(f"The name {name!r} is already taken by {taken[name]!r}.", field=field)
