"""Every pair of formats streams in the compact form over HTTP where each call lands on any of two worker processes."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from derender_api.catalog import catalog
from derender_api.parity.application import InProcess, Remote, post_stream
from derender_api.parity.observed import HttpAnswer
from derender_api.parity.suite import Case, Profile, Suite, find_suites, read_case, read_suite
from derender_api.parity.tokenizers import TokenizerMissing, locate
from tests.servers import migrate, serving

DATA = Path(settings.BASE_DIR) / "tests" / "data"
LONGEST = 60
"""Tokens of the longest stream; every token is a call."""

pytestmark = [pytest.mark.parity, pytest.mark.live, pytest.mark.django_db]


class AnyWorker:
    """A server whose calls each open a connection of their own; counts the workers that did not know the request."""

    def __init__(self, url: str, model: str) -> None:
        self._url = url
        self._model = model
        self.strangers = 0

    def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        """The answer for the model that stands for the profile."""
        remote = Remote(self._url)
        answer = remote.send(method, path, headers, json.dumps({**json.loads(body), "model": self._model}).encode())
        remote.close()
        self.strangers += answer.status == 409
        return answer


def pairs() -> Iterator[tuple[Suite, Profile, Case]]:
    """A profile and its longest short stream for every pair of parsers."""
    seen = set()
    for folder in find_suites(DATA / "parity"):
        suite = read_suite(folder)
        for profile in suite.profiles.values():
            key = profile.tool_parser, profile.reasoning_parser
            cases = [
                case for line in suite.lines[profile.name] if b'"streams"' in line for case in _streamed(line, suite)
            ]
            if key not in seen and cases:
                seen.add(key)
                yield suite, profile, max(cases, key=lambda case: len(case.output_token_ids))


def _streamed(line: bytes, suite: Suite) -> list[Case]:
    case = read_case(line, suite=suite.name)
    return [case] if isinstance(case, Case) and case.streams and len(case.output_token_ids) <= LONGEST else []


def without_model(streamed: Any) -> Any:
    """What was streamed; the model's name is that of the request."""
    return streamed.status, streamed.chunks


def test_calls_land_on_either_worker(tmp_path: Path) -> None:
    configurations, work = [], []
    for number, (suite, profile, case) in enumerate(pairs()):
        try:
            folder = locate(profile.tokenizer, roots=[DATA])
        except TokenizerMissing:
            continue
        configuration = profile.configuration(folder=folder)
        values = {
            "name": f"model-{number}",
            "model": str(folder),
            "tokenizer_mode": configuration.tokenizer_mode,
            "tool_call_parser": configuration.tool_call_parser,
            "reasoning_parser": configuration.reasoning_parser,
            "enable_auto_tool_choice": configuration.enable_auto_tool_choice,
            "default_chat_template_kwargs": configuration.default_chat_template_kwargs,
            "max_model_len": configuration.max_model_len,
        }
        configurations.append(values)
        work.append((f"{suite.name}/{profile.name}", values["name"], configuration, case))
    (tmp_path / "models.json").write_text(json.dumps({"models": configurations}))
    migrate(tmp_path)

    differing, strangers = [], 0
    with serving(tmp_path, "--config", "models.json", "--workers", "2") as server:
        for label, name, configuration, case in work:
            lens = [1] * len(case.output_token_ids)
            remote = AnyWorker(server.url, name)
            got = post_stream(remote, case, lens, compact=True)
            with catalog.override([configuration]):
                expected = post_stream(InProcess(), case, lens)
            if without_model(got) != without_model(expected):
                differing.append(label)
            strangers += remote.strangers

    assert differing == []
    assert len(work) > 100
    # A worker that did not see a stream's first call asks for its request once.
    assert strangers > 10
