"""Config files and settings as sources of models."""

from pathlib import Path
from typing import Any

import pytest

from derender_api.model_sources import configured_models, read_config_file
from parsers.configuration import ModelConfiguration, ModelConfigurationError

JSON = '{"models": [{"name": "a", "model": "m", "max_model_len": null}, {"model": "org/b", "aliases": ["b"]}]}'
TOML = """
[[models]]
name = "a"
model = "m"

[[models]]
model = "org/b"
aliases = ["b"]
"""
EXPECTED = [ModelConfiguration(name="a", model="m"), ModelConfiguration(model="org/b", aliases=("b",))]


@pytest.mark.parametrize(("name", "text"), [("c.json", JSON), ("c.toml", TOML), ("c.conf", JSON)])
def test_json_and_toml_say_the_same(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)

    assert read_config_file(path) == EXPECTED


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("c.json", "{", "not valid JSON: Expecting property name"),
        ("c.toml", "[[", "not valid TOML: "),
        ("c.json", "[]", 'expected {"models": [{...}, ...]} with at least one model.'),
        ("c.json", '{"models": []}', 'expected {"models": [{...}, ...]} with at least one model.'),
        ("c.json", '{"models": [1]}', 'expected {"models": [{...}, ...]} with at least one model.'),
        ("c.json", '{"models": [{"model": "a", "parser": "x"}]}', "a: unknown key parser; known: model, name, "),
        ("c.json", '{"models": [{"model": "a"}, {"model": "a"}]}', "a: the name 'a' is already taken by 'a'"),
    ],
)
def test_errors_name_the_flag_the_file_and_the_cure(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)

    with pytest.raises(ModelConfigurationError) as caught:
        read_config_file(path)

    assert str(caught.value).startswith(f"--config {path}: {message}")


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelConfigurationError, match="cannot be read: No such file or directory"):
        read_config_file(tmp_path / "c.json")


def test_the_settings_name_a_file_and_models(tmp_path: Path, settings: Any) -> None:
    path = tmp_path / "c.json"
    path.write_text(JSON)
    settings.DERENDER = {"CONFIG": path, "MODELS": [{"model": "c"}]}

    assert configured_models() == [*EXPECTED, ModelConfiguration(model="c")]


def test_names_must_be_unique_over_file_and_settings(tmp_path: Path, settings: Any) -> None:
    path = tmp_path / "c.json"
    path.write_text(JSON)
    settings.DERENDER = {"CONFIG": path, "MODELS": [{"model": "b"}]}

    with pytest.raises(ModelConfigurationError, match="the name 'b' is already taken by 'org/b'"):
        configured_models()
