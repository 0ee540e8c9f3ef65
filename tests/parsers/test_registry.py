"""Names, combinations, and formats that come from outside."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from django.test import override_settings

from parsers import registry
from parsers.engine.exceptions import ParserConfigurationError
from parsers.engine.stage import Format
from tests.parsers.support import FakeVocabulary

PLUGIN = """
from parsers.formats.qwen3 import Qwen3CoderTools

class Shouted(Qwen3CoderTools):
    names = ("shouted",)
"""
PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "shouted-format"
version = "1"

[project.entry-points."derender.formats"]
shouted = "shouted_format:Shouted"

[tool.setuptools]
py-modules = ["shouted_format"]
"""


class Dotted(Format):
    names = ("dotted",)


@pytest.fixture(autouse=True)
def _fresh_registry():
    caches = (registry.formats, registry.tool_formats, registry.reasoning_formats)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


def test_every_built_in_name_is_taken_once():
    for role in (registry.tool_formats, registry.reasoning_formats):
        names = [name for cls in registry.BUILT_IN for name in cls.names if role().get(name) is not None]
        assert sorted(set(names)) == sorted(role())


def test_every_format_file_is_registered():
    folder = Path(registry.__file__).parent / "formats"
    registered = {cls.__module__.rpartition(".")[2] for cls in registry.BUILT_IN}
    assert registered <= {path.stem for path in folder.glob("*.py")}


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ParserConfigurationError, match=r"unknown tool-call parser 'nope'; known: .*qwen3_coder"):
        registry.build_plan(tool_parser="nope", reasoning_parser=None, vocabulary=FakeVocabulary())


def test_no_names_no_plan():
    assert registry.build_plan(tool_parser=None, reasoning_parser="", vocabulary=FakeVocabulary()) is None


def test_a_plugin_package_adds_a_format(tmp_path, monkeypatch):
    source, target = tmp_path / "source", tmp_path / "site"
    source.mkdir()
    (source / "shouted_format.py").write_text(PLUGIN)
    (source / "pyproject.toml").write_text(PROJECT)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(source)]
    subprocess.run(install, check=True, capture_output=True)
    monkeypatch.syspath_prepend(str(target))
    importlib.invalidate_caches()
    vocabulary = FakeVocabulary(("<tool_call>", "</tool_call>"))
    plan = registry.build_plan(tool_parser="shouted", reasoning_parser=None, vocabulary=vocabulary)
    assert plan is not None
    assert plan.name == "shouted+"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no_such_module.Format", "cannot be imported"),
        ("parsers.formats.qwen3.Missing", "cannot be imported"),
        ("parsers.formats.qwen3.GRAMMAR", "no subclass"),
    ],
)
def test_a_broken_plugin_is_an_error_at_start(path, message):
    with override_settings(DERENDER={"FORMATS": [path]}), pytest.raises(ParserConfigurationError, match=message):
        registry.formats()


def test_a_dotted_path_adds_a_format():
    with override_settings(DERENDER={"FORMATS": [f"{__name__}.Dotted"]}):
        assert Dotted in registry.formats()
