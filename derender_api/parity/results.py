"""What a run of the rules found, per profile: plain values that travel between processes and into reports."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from derender_api.parity.rules import Outcome, Rule, Verdict


@dataclass(frozen=True, slots=True)
class CaseResult:
    """All verdicts on one case. `seconds` is the time it took."""

    id: str
    verdicts: tuple[Verdict, ...]
    seconds: float = 0.0

    def outcome(self, rule: Rule) -> Outcome | None:
        """The worst outcome under `rule` over all streams; None where the rule does not apply to the case."""
        found = {verdict.outcome for verdict in self.verdicts if verdict.rule == rule}
        return next((each for each in reversed(Outcome) if each in found), None)

    @property
    def failures(self) -> list[Verdict]:
        """The verdicts that fail."""
        return [verdict for verdict in self.verdicts if verdict.outcome is Outcome.FAILS]


@dataclass(slots=True)
class Tally:
    """Counts under one rule: of cases (a case fails if one of its streams does) and of single verdicts (`streams`)."""

    cases: Counter[Outcome] = field(default_factory=Counter)
    streams: Counter[Outcome] = field(default_factory=Counter)

    @property
    def applies(self) -> int:
        """Cases to which the rule applies."""
        return self.cases.total()

    def as_json(self) -> dict[str, int]:
        """Counts of cases by outcome, and of streams that hold."""
        return {
            "cases": self.applies,
            **{outcome.value: self.cases[outcome] for outcome in Outcome},
            "verdicts": self.streams.total(),
            "verdicts_failing": self.streams[Outcome.FAILS],
        }


@dataclass(slots=True)
class ProfileResult:
    """One profile of one suite. `problem` says why it could not be run ("not built: ...", "no tokenizer: ...")."""

    suite: str
    profile: str
    cases: int
    results: list[CaseResult] = field(default_factory=list)
    problem: str | None = None

    @property
    def label(self) -> str:
        """Suite and profile."""
        return f"{self.suite}/{self.profile}"

    def tally(self, rule: Rule) -> Tally:
        """Counts under one rule."""
        return tally_of(self.results, rule)

    @property
    def failing(self) -> list[CaseResult]:
        """Cases with at least one failing verdict."""
        return [result for result in self.results if result.failures]


@dataclass(slots=True)
class RunResult:
    """A whole run. `stale` names divergences that no case of the run needed; `paths` says what was driven, and how."""

    profiles: list[ProfileResult]
    stale: list[str]
    paths: str
    seconds: float

    @property
    def results(self) -> list[CaseResult]:
        """All cases that were run."""
        return [result for profile in self.profiles for result in profile.results]

    @property
    def failing(self) -> int:
        """Number of cases with at least one failing verdict."""
        return sum(len(profile.failing) for profile in self.profiles)

    @property
    def broken(self) -> bool:
        """Whether a rule is broken, a divergence is stale, or a model cannot start although its parsers are built."""
        cannot_start = any((profile.problem or "").startswith("cannot start") for profile in self.profiles)
        return bool(self.failing or self.stale) or cannot_start

    @property
    def problems(self) -> list[ProfileResult]:
        """Profiles that could not be run."""
        return [profile for profile in self.profiles if profile.problem]


def tally_of(results: Iterable[CaseResult], rule: Rule) -> Tally:
    """Counts under one rule over several cases."""
    tally = Tally()
    for result in results:
        outcome = result.outcome(rule)
        if outcome is not None:
            tally.cases[outcome] += 1
            tally.streams.update(verdict.outcome for verdict in result.verdicts if verdict.rule == rule)
    return tally
