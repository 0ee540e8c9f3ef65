"""Every recorded case of the formats that are built, under every rule, in this process; a test per profile.

`manage.py run_parity` sends all recorded streams through the HTTP application; here a sample of them is.
"""

from pathlib import Path

import pytest
from django.conf import settings

from derender_api.parity.options import Options
from derender_api.parity.report import as_text
from derender_api.parity.runner import run
from derender_api.parity.suite import find_suites, read_suite

FOLDERS = {folder.name: folder for folder in find_suites(Path(settings.BASE_DIR) / "tests" / "data" / "parity")}
PROFILES = [
    (name, profile) for name, folder in FOLDERS.items() for profile, lines in read_suite(folder).lines.items() if lines
]

pytestmark = [pytest.mark.parity, pytest.mark.django_db]


@pytest.mark.parametrize(("suite", "profile"), PROFILES, ids=["-".join(pair) for pair in PROFILES])
def test_rules_hold(suite, profile):
    result = run([FOLDERS[suite]], options=Options(profile=profile, every_split=True, fast=True, processes=1))
    problems = [each.problem for each in result.problems]
    if problems and problems[0].startswith("no tokenizer"):
        pytest.skip(problems[0])
    assert not problems
    assert result.results
    assert not result.broken, as_text(result, verbose=True)
