"""Reports of a run: a table for people, one JSON object for programs, JUnit XML for CI."""

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from derender_api.parity.results import CaseResult, ProfileResult, RunResult, Tally, tally_of
from derender_api.parity.rules import Outcome, Rule, Verdict
from derender_api.parity.side_by_side import side_by_side

LISTED = 20
"""Failing cases that a text report lists per profile unless it is verbose."""


def as_text(run: RunResult, *, verbose: bool) -> str:
    """The table of counts, then the failing cases; verbose: all of them, with the first difference side by side."""
    lines = list(_table(run))
    for profile in run.profiles:
        lines += _failures(profile, verbose=verbose)
    lines += [f"{label}: this divergence was not needed" for label in run.stale]
    lines.append("")
    lines.append(f"{run.paths} {len(run.results)} cases in {run.seconds:.1f} s.")
    lines.append(_verdict(run))
    return "\n".join(lines)


def as_json(run: RunResult) -> dict[str, Any]:
    """Counts per profile and in all, the failing cases by rule, and the profiles that could not be run."""
    return {
        "holds": run.failing == 0,
        "cases": len(run.results),
        "failing": run.failing,
        "seconds": round(run.seconds, 3),
        "paths": run.paths,
        "rules": {rule.value: tally_of(run.results, rule).as_json() for rule in Rule},
        "profiles": [_profile_json(profile) for profile in run.profiles],
        "stale_divergences": run.stale,
    }


def as_junit(run: RunResult) -> str:
    """A test suite per profile, a test case per case; profiles that could not be run are skipped tests."""
    root = ElementTree.Element("testsuites", name="parity", time=f"{run.seconds:.3f}")
    for profile in run.profiles:
        suite = ElementTree.SubElement(root, "testsuite", name=profile.label)
        if profile.problem:
            case = ElementTree.SubElement(suite, "testcase", classname=profile.label, name="profile")
            ElementTree.SubElement(case, "skipped", message=_xml_text(profile.problem))
        for result in profile.results:
            case = ElementTree.SubElement(suite, "testcase", classname=profile.label, name=result.id)
            case.set("time", f"{result.seconds:.3f}")
            for verdict in result.failures:
                failure = ElementTree.SubElement(case, "failure", type=verdict.rule.value)
                failure.set("message", _xml_text(_summary(verdict)))
        suite.set("tests", str(len(suite)))
        suite.set("failures", str(len(profile.failing)))
        suite.set("skipped", str(int(bool(profile.problem))))
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def _table(run: RunResult) -> Iterator[str]:
    width = max((len(profile.label) for profile in run.profiles), default=10) + 1
    heads = "".join(f"{rule.value:>15}" for rule in Rule)
    yield f"{'profile':<{width}}{'cases':>7}{heads}{'diverging':>11}{'excused':>9}"
    for profile in run.profiles:
        if profile.problem:
            yield f"{profile.label:<{width}}{profile.cases:>7}  {profile.problem}"
        else:
            yield f"{profile.label:<{width}}{_row(profile.results)}"
    if len(run.profiles) > 1:
        yield f"{'all':<{width}}{_row(run.results)}"


def _row(results: list[CaseResult]) -> str:
    tallies = [tally_of(results, rule) for rule in Rule]
    cells = "".join(f"{_cell(tally):>15}" for tally in tallies)
    apart = [_cases_with(results, outcome) for outcome in (Outcome.DIVERGES, Outcome.EXCUSED)]
    return f"{len(results):>7}{cells}{apart[0]:>11}{apart[1]:>9}"


def _cell(tally: Tally) -> str:
    """Cases that hold, diverging and excused ones left out on both sides."""
    counted = tally.cases[Outcome.HOLDS] + tally.cases[Outcome.FAILS]
    return f"{tally.cases[Outcome.HOLDS]}/{counted}" if counted else "-"


def _cases_with(results: list[CaseResult], outcome: Outcome) -> int:
    return sum(any(verdict.outcome is outcome for verdict in result.verdicts) for result in results)


def _failures(profile: ProfileResult, *, verbose: bool) -> Iterator[str]:
    failing = profile.failing
    if not failing:
        return
    yield f"\n{profile.label}: {len(failing)} cases fail"
    for result in failing if verbose else failing[:LISTED]:
        yield f"  {result.id}: {'; '.join(_grouped(result))}"
        if verbose:
            verdict = result.failures[0]
            yield f"    {_summary(verdict)}"
            yield side_by_side(verdict.expected, verdict.got)
    if not verbose and len(failing) > LISTED:
        yield f"  ... and {len(failing) - LISTED} more (-v lists all)"


def _grouped(result: CaseResult) -> Iterator[str]:
    """The failing rules of a case, each with its streams."""
    for rule in Rule:
        verdicts = [verdict for verdict in result.failures if verdict.rule == rule]
        streams = [verdict.stream for verdict in verdicts if verdict.stream]
        more = f" and {len(streams) - 6} more" if len(streams) > 6 else ""
        if verdicts:
            yield f"{rule.value} {' '.join(streams[:6])}{more}".strip()


def _summary(verdict: Verdict) -> str:
    where = f" [{verdict.stream}]" if verdict.stream else ""
    return f"{verdict.rule.value}{where}: {verdict.detail}"


def _profile_json(profile: ProfileResult) -> dict[str, Any]:
    return {
        "suite": profile.suite,
        "profile": profile.profile,
        "cases": profile.cases,
        "problem": profile.problem,
        "rules": {rule.value: profile.tally(rule).as_json() for rule in Rule},
        "diverging": _cases_with(profile.results, Outcome.DIVERGES),
        "excused": _cases_with(profile.results, Outcome.EXCUSED),
        "failing": {
            result.id: [
                {"rule": each.rule.value, "stream": each.stream, "detail": each.detail} for each in result.failures
            ]
            for result in profile.failing
        },
    }


def _verdict(run: RunResult) -> str:
    not_run = sum(profile.cases for profile in run.problems)
    apart = f" {len(run.problems)} profiles ({not_run} cases) could not be run." if run.problems else ""
    outcome = f"{run.failing} cases fail." if run.failing else "Every rule holds."
    return outcome + apart


def _xml_text(text: str) -> str:
    """Text without the characters that XML cannot carry."""
    return "".join(char if char >= " " and not "\ud800" <= char <= "\udfff" else repr(char)[1:-1] for char in text)
