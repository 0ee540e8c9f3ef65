"""The list of formats: complete, described, and the page kept up to date."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from parsers import catalogue
from parsers.management.commands import list_formats

NAMES = json.loads((Path(__file__).parents[1] / "data" / "vllm_parser_names.json").read_text())
"""The names that vLLM 0.33.0 registers."""


def test_every_name_of_the_reference_is_available():
    assert (len(NAMES["tool_parsers"]), len(NAMES["reasoning_parsers"])) == (58, 42)
    assert set(NAMES["tool_parsers"]) <= set(catalogue.tool_formats())
    assert set(NAMES["reasoning_parsers"]) <= set(catalogue.reasoning_formats())


@pytest.mark.parametrize("entry", catalogue.entries(), ids=lambda entry: entry.names[0] + "-" + entry.roles[0])
def test_every_format_is_described(entry):
    assert entry.family
    assert entry.roles
    assert "`" not in entry.sample.replace("```", "")
    assert entry.sample


def test_the_command_prints_every_name():
    out = StringIO()
    call_command("list_formats", stdout=out)
    printed = {line.split()[0] for line in out.getvalue().splitlines() if line.startswith("  ")}
    assert printed == set(catalogue.tool_formats()) | set(catalogue.reasoning_formats())


def test_the_page_is_up_to_date():
    call_command("list_formats", check=True)


def test_an_outdated_page_is_an_error(settings, tmp_path):
    settings.BASE_DIR = tmp_path
    (tmp_path / list_formats.PAGE).parent.mkdir()
    with pytest.raises(CommandError, match="out of date"):
        call_command("list_formats", check=True)
    call_command("list_formats", markdown=True)
    call_command("list_formats", check=True)


def test_figures_count_a_profile_for_both_of_its_formats(tmp_path):
    (tmp_path / "xml").mkdir()
    profile = {"name": "qwen3_coder+qwen3", "tool_parser": "qwen3_coder", "reasoning_parser": "qwen3"}
    (tmp_path / "xml" / "profiles.json").write_text(json.dumps([profile]))
    rules = {rule: {"cases": 5, "fails": 1} for rule in catalogue.RULES}
    run = {"profiles": [{"suite": "xml", "profile": "qwen3_coder+qwen3", "rules": rules}]}
    figures = catalogue.figures_of(run, tmp_path)
    assert figures == {name: {rule: [4, 5] for rule in catalogue.RULES} for name in ("qwen3_coder", "qwen3")}
    assert "| 4/5 | 4/5 | 4/5 | 4/5 | 4/5 |" in catalogue.markdown(figures)
