"""Both forms of the stream state give the same deltas over HTTP, in every profile, token by token."""

from pathlib import Path

import pytest
from django.conf import settings

from derender_api.catalog import catalog
from derender_api.parity.application import InProcess, post_stream
from derender_api.parity.suite import Case, find_suites, read_case, read_suite
from derender_api.parity.tokenizers import TokenizerMissing, locate

DATA = Path(settings.BASE_DIR) / "tests" / "data"
SUITES = [read_suite(folder) for folder in find_suites(DATA / "parity")]
PROFILES = [
    (suite, profile)
    for suite in SUITES
    for profile in suite.profiles.values()
    if any(b'"streams"' in line for line in suite.lines[profile.name])
]
LONGEST = 200

pytestmark = [pytest.mark.parity, pytest.mark.django_db]


@pytest.mark.parametrize(
    ("suite", "profile"), PROFILES, ids=[f"{suite.name}-{profile.name}" for suite, profile in PROFILES]
)
def test_both_forms_send_the_same_deltas(suite, profile):
    cases = [case for line in suite.lines[profile.name] if isinstance(case := read_case(line, suite=suite.name), Case)]
    cases = [case for case in cases if case.streams and len(case.output_token_ids) <= LONGEST]
    try:
        folder = locate(profile.tokenizer, roots=[DATA])
    except TokenizerMissing as error:
        pytest.skip(str(error))
    with catalog.override([profile.configuration(folder=folder)]):
        case = max(cases, key=lambda case: len(case.output_token_ids))
        lens = [1] * len(case.output_token_ids)
        assert post_stream(InProcess(), case, lens, compact=True) == post_stream(InProcess(), case, lens)
