"""Where a model's engines are configured."""

from pathlib import Path

import pytest
from django.core.management.base import CommandParser

from derender_api.management.commands.serve import Command, command_line_models
from parsers.configuration import ModelConfigurationError
from parsers.models import ServedModel
from parsers.selectors import configurations, enabled_rows
from tests.derender_api.support import TOKENIZERS

URLS = ("http://a:8200", "https://b/engines/1")


def of_flags(*arguments: str) -> tuple[tuple[str, ...], str | None]:
    """URLs and name that a command line gives the first model."""
    parser = CommandParser()
    Command().add_arguments(parser)
    configuration = command_line_models(vars(parser.parse_args(arguments)))[0]
    return configuration.engine_urls, configuration.engine_model


def test_flags() -> None:
    assert of_flags("m", "--engine-url", *URLS, "--engine-model", "theirs") == (URLS, "theirs")
    assert of_flags("m") == ((), None)


def test_a_flag_without_a_model() -> None:
    with pytest.raises(ModelConfigurationError, match="--engine-url describes MODEL, which is missing"):
        of_flags("--engine-url", URLS[0])


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "models.toml"
    file.write_text(f'[[models]]\nmodel = "m"\nengine_urls = {list(URLS)}\nengine_model = "theirs"\n')

    assert of_flags("--config", str(file)) == (URLS, "theirs")


@pytest.mark.django_db
def test_the_table() -> None:
    ServedModel.objects.create(
        name="m", model=str(TOKENIZERS / "chatml"), engine_urls=list(URLS), engine_model="theirs"
    )
    (configuration,) = configurations(enabled_rows())

    assert (configuration.engine_urls, configuration.engine_model) == (URLS, "theirs")
