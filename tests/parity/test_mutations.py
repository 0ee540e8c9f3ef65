"""Outputs that no recording has: recorded token IDs cut, doubled, swapped and spliced at random.

Whatever a model samples, the core answers it, and a parser that is restored from its snapshot at every boundary sends
the same deltas.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from derender_api.catalog import catalog
from derender_api.parity.core import CoreStreams, decoded_output, load
from derender_api.parity.groupings import lengths
from derender_api.parity.suite import Case, find_suites, read_case, read_suite
from derender_api.parity.tokenizers import TokenizerMissing, locate

DATA = Path(settings.BASE_DIR) / "tests" / "data"
SUITES = [read_suite(folder) for folder in find_suites(DATA / "parity")]
PROFILES = [
    (suite, profile)
    for suite in SUITES
    for profile in suite.profiles.values()
    if (profile.tool_parser or profile.reasoning_parser)
    and any(b'"oneshot"' in line for line in suite.lines[profile.name])
]
LONGEST = 200

pytestmark = [pytest.mark.parity, pytest.mark.django_db]


@st.composite
def mutations(draw, cases):
    """A recorded case with mutated token IDs."""
    case, other = draw(st.sampled_from(cases)), draw(st.sampled_from(cases))
    ids = list(case.output_token_ids)
    start = draw(st.integers(0, len(ids) - 1))
    end = draw(st.integers(start, min(len(ids), start + 12)))
    spliced = other.output_token_ids
    mutated = draw(
        st.sampled_from(
            [
                ids[:end],
                ids[:start] + ids[end:],
                ids[:end] + ids[start:],
                ids[:start] + spliced[min(start, len(spliced)) :],
                ids + spliced,
                [*ids[:start], *reversed(ids[start:end]), *ids[end:]],
            ]
        )
    )
    finish_reason = draw(st.sampled_from(["stop", "length"]))
    return replace(case, output_token_ids=mutated[:LONGEST], finish_reason=finish_reason, stop_reason=None)


@pytest.mark.parametrize(
    ("suite", "profile"), PROFILES, ids=[f"{suite.name}-{profile.name}" for suite, profile in PROFILES]
)
def test_any_output_is_answered_and_restoring_changes_nothing(suite, profile):
    cases = [case for line in suite.lines[profile.name] if isinstance(case := read_case(line, suite=suite.name), Case)]
    cases = [case for case in cases if case.output_token_ids and case.oneshot["status"] == 200]
    try:
        folder = locate(profile.tokenizer, roots=[DATA])
    except TokenizerMissing as error:
        pytest.skip(str(error))
    with catalog.override([profile.configuration(folder=folder)]):
        model = catalog.resolve(None)
        assert load(model) is None
        if model.plan is None:
            return
        core = CoreStreams(model)

        @given(case=mutations(cases), grouping=st.sampled_from(["1", "2", "3", "7", "all", "r1", "r2"]))
        @hypothesis_settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
        def check(case, grouping):
            output = decoded_output(model, case)
            model.plan.open(output.context, prompt_token_ids=output.prompt_token_ids).parse(
                output.token_ids, output.cut_texts
            )
            groupings = {grouping: lengths(grouping, len(case.output_token_ids))}
            streams = core.streams(case, groupings)
            assert streams[grouping].status == 200
            assert core.restored_streams(case, groupings) == streams

        check()
