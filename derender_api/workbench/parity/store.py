"""Keeps a run of the parity suites in the tables: its figures by profile and rule, and the answers that differ."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from derender_api.parity.report import as_json
from derender_api.parity.results import ProfileResult, RunResult
from derender_api.parity.suite import Case, Suite, read_case, read_suite
from derender_api.parity.tokenizers import TokenizerMissing, locate
from derender_api.workbench.models import Difference, ParityRun, ProfileFigures

MOST_DIFFERENCES = 2000
"""Differing answers kept of one run."""
MOST_OF_A_CASE = 5

Sources = dict[tuple[str, str, str], dict[str, Any]]


@transaction.atomic
def save_run(result: RunResult, folders: Sequence[Path], *, label: str) -> ParityRun:
    """Save `result`, a run of the suites in `folders`."""
    report = as_json(result)
    run = ParityRun.objects.create(
        label=label,
        version=_version(),
        seconds=result.seconds,
        cases=len(result.results),
        failing=result.failing,
        rules=report["rules"],
        paths=result.paths,
        stale=result.stale,
    )
    figures = ProfileFigures.objects.bulk_create(
        ProfileFigures(
            run=run,
            suite=each["suite"],
            profile=each["profile"],
            cases=each["cases"],
            problem=each["problem"] or "",
            rules=each["rules"],
            diverging=each["diverging"],
            excused=each["excused"],
            failing=len(each["failing"]),
        )
        for each in report["profiles"]
    )
    sources = _sources(result, folders)
    differences = [
        difference
        for row, profile in zip(figures, result.profiles, strict=True)
        for difference in _differences(row, profile, sources)
    ]
    Difference.objects.bulk_create(differences[:MOST_DIFFERENCES])
    return run


def _differences(row: ProfileFigures, profile: ProfileResult, sources: Sources) -> Iterator[Difference]:
    for result in profile.failing:
        for verdict in result.failures[:MOST_OF_A_CASE]:
            yield Difference(
                figures=row,
                case=result.id,
                rule=verdict.rule.value,
                stream=verdict.stream or "",
                detail=storable(verdict.detail),
                expected=storable(verdict.expected),
                got=storable(verdict.got),
                source=storable(sources.get((profile.suite, profile.profile, result.id))),
            )


def _sources(result: RunResult, folders: Sequence[Path]) -> Sources:
    """What the playground needs to try a failing case: its profile, the tokenizer's folder, and what was sent."""
    wanted = {(profile.suite, profile.profile, case.id) for profile in result.profiles for case in profile.failing}
    found: Sources = {}
    for folder in folders if wanted else ():
        suite = read_suite(folder)
        for case in _parser_cases(suite):
            key = suite.name, case.profile, case.id
            if key in wanted:
                tokenizer = _tokenizer(suite, case.profile)
                sent = ("request", "prompt_token_ids", "output_token_ids", "finish_reason")
                found[key] = {
                    "profile": asdict(suite.profiles[case.profile]),
                    "tokenizer": tokenizer,
                    "case": {name: getattr(case, name) for name in sent},
                }
    return found


def _parser_cases(suite: Suite) -> Iterable[Case]:
    cases = (read_case(line, suite=suite.name) for lines in suite.lines.values() for line in lines)
    return (case for case in cases if isinstance(case, Case))


def _tokenizer(suite: Suite, profile: str) -> str:
    parent = suite.folder.resolve().parent
    roots = [parent, parent.parent, Path(settings.BASE_DIR) / "tests" / "data"]
    try:
        return str(locate(suite.profiles[profile].tokenizer, roots=roots))
    except TokenizerMissing:
        return suite.profiles[profile].tokenizer


def storable(value: Any) -> Any:
    """JSON without what databases refuse: NUL and lone surrogates in texts are written as escapes."""
    match value:
        case str():
            return "".join(repr(char)[1:-1] if char == "\0" or "\ud800" <= char <= "\udfff" else char for char in value)
        case list() | tuple():
            return [storable(each) for each in value]
        case dict():
            return {storable(str(key)): storable(each) for key, each in value.items()}
        case _:
            return value


def _version() -> str:
    try:
        return version("derender")
    except PackageNotFoundError:
        return "?"
