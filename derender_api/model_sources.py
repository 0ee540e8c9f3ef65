"""Where served models come from, apart from the table: a config file, the settings, the bundled demo model."""

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from derender_api.conf import conf
from parsers.configuration import (
    ModelConfiguration,
    ModelConfigurationError,
    configuration_from_mapping,
    require_unique_names,
)

DEMO_FOLDER = Path(__file__).parent / "demo_model"

DEMO = ModelConfiguration(
    name="demo",
    model=str(DEMO_FOLDER),
    tool_call_parser="hermes",
    reasoning_parser="qwen3",
    enable_auto_tool_choice=True,
)
"""Served when nothing else is: a small tokenizer with Qwen's markers, shipped with the package."""


def read_config_file(path: Path) -> list[ModelConfiguration]:
    """The models of a JSON or TOML file, `{"models": [{...}, ...]}`; raises ModelConfigurationError."""
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except OSError as exc:
        raise ModelConfigurationError(f"--config {path}: cannot be read: {exc.strerror}.") from exc
    except ValueError as exc:
        raise ModelConfigurationError(f"--config {path}: not valid {_format(path)}: {exc}.") from exc
    models = document.get("models") if isinstance(document, dict) else None
    if not isinstance(models, list) or not models or not all(isinstance(each, dict) for each in models):
        raise ModelConfigurationError(
            f'--config {path}: expected {{"models": [{{...}}, ...]}} with at least one model.'
        )
    try:
        return configurations_of(models)
    except ModelConfigurationError as exc:
        raise ModelConfigurationError(f"--config {path}: {exc}") from exc


def configured_models() -> list[ModelConfiguration]:
    """The models of the settings: those of `DERENDER["CONFIG"]` (a file), then those of `DERENDER["MODELS"]`."""
    models = read_config_file(conf.config) if conf.config else []
    models += configurations_of(conf.models)
    require_unique_names(models)
    return models


def configurations_of(models: Iterable[Mapping[str, Any]]) -> list[ModelConfiguration]:
    """Configurations of plain mappings, with unique names; raises ModelConfigurationError."""
    configurations = [configuration_from_mapping(each) for each in models]
    require_unique_names(configurations)
    return configurations


def _format(path: Path) -> str:
    return "TOML" if path.suffix == ".toml" else "JSON"
