"""Every tool parser streams an argument of 100,000 characters, a token a chunk, in time that grows with its length.

The argument is that of a recorded call, with words put into it.
"""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings

from derender_api.catalog import catalog
from derender_api.parity.answers import fold
from derender_api.parity.core import CoreStreams, load
from derender_api.parity.suite import Case, find_suites, read_case, read_suite
from derender_api.parity.tokenizers import TokenizerMissing, locate
from parsers.registry import tool_formats

DATA = Path(settings.BASE_DIR) / "tests" / "data"
WORD = " lorem"
PROFILES = {}
for suite in map(read_suite, find_suites(DATA / "parity")):
    for profile in suite.profiles.values():
        if profile.tool_parser and suite.lines[profile.name]:
            PROFILES.setdefault(profile.tool_parser, []).append((suite, profile))

pytestmark = [pytest.mark.parity, pytest.mark.django_db]


def test_every_tool_parser_is_recorded():
    assert set(PROFILES) == set(tool_formats())


def words_of(core, case, lens):
    """How many words the values of the only call's arguments hold."""
    folded = fold(core.streams(case, {"": lens})[""].chunks)
    calls = folded.as_json()["tool_calls"] if folded else []
    try:
        arguments = json.loads(calls[0]["arguments"]) if len(calls) == 1 else {}
    except ValueError:
        return 0
    return sum(str(value).count(WORD.strip()) for value in arguments.values()) if isinstance(arguments, dict) else 0


def with_words(case, place, words):
    ids = case.output_token_ids
    return replace(case, output_token_ids=[*ids[:place], *words, *ids[place:]], streams={})


def place_for_words(core, case, words):
    """Where words can stand in the only call's arguments; None if nowhere."""
    for place in range(1, len(case.output_token_ids) - 1):
        longer = with_words(case, place, words * 30)
        if words_of(core, longer, [len(longer.output_token_ids)]) == 30:
            return place
    return None


def recorded_calls(suite, profile):
    for line in suite.lines[profile.name]:
        case = read_case(line, suite=suite.name)
        if isinstance(case, Case) and case.oneshot["status"] == 200 and case.finish_reason == "stop":
            chooses = case.request.get("tool_choice") in (None, "auto")
            if chooses and len(case.oneshot["message"].get("tool_calls") or []) == 1:
                yield case


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_a_long_argument_takes_linear_time(name):
    for suite, profile in PROFILES[name]:
        try:
            folder = locate(profile.tokenizer, roots=[DATA])
        except TokenizerMissing:
            continue
        with catalog.override([profile.configuration(folder=folder)]):
            model = catalog.resolve(None)
            if load(model) is not None:
                continue
            core, words = CoreStreams(model), model.tokenizer.encode(WORD)
            for case in recorded_calls(suite, profile):
                place = place_for_words(core, case, words)
                if place is not None:
                    short, long = (seconds(core, case, place, words, count) for count in (1_700, 17_000))
                    assert long < 20 * max(short, 0.01) + 0.5
                    return
    pytest.fail("no recorded call takes words")


def seconds(core, case, place, words, count):
    longer = with_words(case, place, words * count)
    started = time.process_time()
    assert words_of(core, longer, [1] * len(longer.output_token_ids)) == count
    return time.process_time() - started
