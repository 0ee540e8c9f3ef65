"""Conventions of the code base that reviewers would otherwise repeat."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.servers import REPOSITORY

PACKAGES = ("parsers", "derender_api", "derender_project")
LAYERS = ("parsers.engine", "parsers.formats", "parsers.registry", "parsers", "derender_api", "derender_project")
"""A module may import its own layer and those before it."""
TOKENIZER_LIBRARIES = ("transformers", "tokenizers", "mistral_common", "sentencepiece", "huggingface_hub")
LONGEST_MODULE = 400

MODULES = sorted(
    path.relative_to(REPOSITORY)
    for package in PACKAGES
    for path in (REPOSITORY / package).rglob("*.py")
    if "migrations" not in path.parts
)


def layer(module: str) -> int | None:
    """Position of a module's layer, None for a module of another project."""
    places = [place for place, name in enumerate(LAYERS) if module == name or module.startswith(name + ".")]
    return min(places) if places else None


def dotted(path: Path) -> str:
    """Import name of a source file."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[str]:
    """Every module that a source file imports, at any place in it."""
    for node in ast.walk(ast.parse((REPOSITORY / path).read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = list(path.parts[: -node.level]) if node.level else []
            origin = ".".join([*package, *([node.module] if node.module else [])])
            yield origin
            yield from (f"{origin}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_imports_go_one_way(path: Path) -> None:
    own = layer(dotted(path))
    assert own is not None
    upward = [name for name in imports(path) if (place := layer(name)) is not None and place > own]

    assert upward == []


@pytest.mark.parametrize("path", [path for path in MODULES if path.parts[:2] == ("parsers", "engine")], ids=str)
def test_the_engine_is_a_plain_library(path: Path) -> None:
    roots = {name.partition(".")[0] for name in imports(path)}

    # `regex` for the patterns that tokenizers bring along, which are written for it.
    assert roots <= set(sys.stdlib_module_names) | {"parsers", "regex"}


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_only_the_tokenization_package_knows_tokenizer_libraries(path: Path) -> None:
    if path.parts[:2] == ("derender_api", "tokenization"):
        return
    assert not {name.partition(".")[0] for name in imports(path)} & set(TOKENIZER_LIBRARIES)


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_the_frameworks_parsers_are_not_mistaken_for_the_projects(path: Path) -> None:
    bound = [
        alias.asname or alias.name
        for node in ast.walk(ast.parse((REPOSITORY / path).read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rest_framework")
        for alias in node.names
    ]

    assert "parsers" not in bound


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_modules_say_what_they_are_for_and_stay_small(path: Path) -> None:
    source = (REPOSITORY / path).read_text()
    if source.strip():
        assert ast.get_docstring(ast.parse(source)), f"{path} has no docstring"
    assert len(source.splitlines()) <= LONGEST_MODULE


def test_every_imported_library_is_declared() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = [requirement for extra in project["optional-dependencies"].values() for requirement in extra]
    declared = {canonicalize_name(Requirement(each).name) for each in [*project["dependencies"], *extras]}
    imported = {name.partition(".")[0] for path in MODULES for name in imports(path)}
    distributions = packages_distributions()
    needed = {
        root: {canonicalize_name(name) for name in distributions.get(root, [root])}
        for root in imported - set(sys.stdlib_module_names) - set(PACKAGES) - {""}
    }

    assert [root for root, names in needed.items() if not names & declared] == []


def test_the_top_level_holds_three_packages() -> None:
    found = {path.parent.name for path in REPOSITORY.glob("*/__init__.py")}

    assert found == {*PACKAGES, "tests"}


def test_every_test_folder_is_a_package() -> None:
    folders = {path.parent for path in (REPOSITORY / "tests").rglob("test_*.py")}

    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []
