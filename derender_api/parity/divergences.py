"""The cases where this service's answer is not vLLM's on purpose, each with its reason and the answer given instead.

divergences.json is a list of `{"case", "rule", "why", "answer"}`; optional: "suite" and "profile" where the case ID
alone is ambiguous, and "streams" (names of groupings) to narrow an entry of a stream rule. `answer` is an answer
(reasoning, content, tool_calls, finish_reason) or, for rule message, a refusal (`{"status", "body"}`); for an HTTP case
the list of `{"status", "body"}`, null = as recorded.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from derender_api.parity.answers import Answer, answer_from_json

FILE_NAME = "divergences.json"
DivergenceRule = Literal["message", "deltas", "contradictory", "self", "http", "right"]
"""An entry for `message` holds for the streams as well, one for a stream rule also under rule self."""


class DivergenceError(ValueError):
    """divergences.json holds an entry that cannot be read: its author has to mend it."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """One entry: under `rule`, `answer` is demanded instead of vLLM's."""

    case: str
    rule: DivergenceRule
    why: str
    answer: Answer | None = None
    refusal: Mapping[str, Any] | None = None
    exchanges: tuple[Mapping[str, Any] | None, ...] = ()
    suite: str | None = None
    profile: str | None = None
    streams: frozenset[str] | None = None

    @property
    def label(self) -> str:
        """The entry's name in reports."""
        where = f" in {self.suite or ''} {self.profile or ''}".rstrip() if self.suite or self.profile else ""
        streams = f" [{', '.join(sorted(self.streams))}]" if self.streams else ""
        return f"{self.case}{where} ({self.rule}{streams})"

    def concerns(self, *, suite: str, profile: str, case: str) -> bool:
        """Whether the entry is about this case."""
        return self.case == case and self.suite in (None, suite) and self.profile in (None, profile)

    def covers(self, stream: str) -> bool:
        """Whether the entry is about the grouping named `stream`."""
        return self.streams is None or stream in self.streams


def read_divergences(path: Path) -> list[Divergence]:
    """The entries of the file at `path`, none where there is no file. Raises DivergenceError."""
    if not path.exists():
        return []
    try:
        return [_divergence(value) for value in json.loads(path.read_text("utf-8"))]
    except (KeyError, TypeError, ValueError) as error:
        raise DivergenceError(f"{path}: {error!r}") from error


def divergences_of(entries: Iterable[Divergence], *, suite: str, profile: str, case: str) -> tuple[Divergence, ...]:
    """The entries about one case."""
    return tuple(entry for entry in entries if entry.concerns(suite=suite, profile=profile, case=case))


def _divergence(value: Mapping[str, Any]) -> Divergence:
    rules = get_args(DivergenceRule)
    if value["rule"] not in rules:
        raise DivergenceError(f"{value['case']}: rule {value['rule']!r} is none of {', '.join(rules)}")
    if not value["why"].strip():
        raise DivergenceError(f"{value['case']}: an entry needs its reason")
    http, refused = value["rule"] == "http", "status" in value["answer"]
    return Divergence(
        case=value["case"],
        rule=value["rule"],
        why=value["why"],
        answer=None if http or refused else answer_from_json(value["answer"]),
        refusal=value["answer"] if refused else None,
        exchanges=tuple(value["answer"]) if http else (),
        suite=value.get("suite"),
        profile=value.get("profile"),
        streams=frozenset(value["streams"]) if "streams" in value else None,
    )
