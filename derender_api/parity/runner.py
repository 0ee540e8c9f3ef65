"""Runs suites: cases in slices, slices over processes, each slice with its profile's model being the one served."""

import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from derender_api.parity import application
from derender_api.parity.core import CoreStreams, load
from derender_api.parity.divergences import FILE_NAME, Divergence, divergences_of, read_divergences
from derender_api.parity.driver import SAMPLED, Driver
from derender_api.parity.options import Options
from derender_api.parity.results import CaseResult, ProfileResult, RunResult
from derender_api.parity.right import RightAnswer, right_answer
from derender_api.parity.rules import Exceptions, Verdict, judge, judge_http
from derender_api.parity.suite import Case, HttpCase, Profile, Suite, read_case, read_suite
from derender_api.parity.tokenizers import TokenizerMissing, locate

SLICE = 24
"""Cases per unit of work."""
REFUSED_ANYHOW = "refused at start, where vLLM refuses every request"


@dataclass(frozen=True, slots=True)
class Work:
    """A slice of one profile's cases, with all that judging them needs."""

    suite: str
    profile: Profile
    folder: Path
    lines: tuple[bytes, ...]
    options: Options
    divergences: tuple[Divergence, ...]
    right: dict[str, RightAnswer] = field(default_factory=dict)


Progress = Callable[[int], None]
"""Called with the number of cases that were finished since the last call."""


def run(
    folders: Sequence[Path], *, options: Options, total: Callable[[int], Progress] = lambda _: lambda _: None
) -> RunResult:
    """Run the suites in `folders`. `total` is told the number of cases and gives what reports progress."""
    started = time.monotonic()
    profiles: dict[tuple[str, str], ProfileResult] = {}
    work: list[Work] = []
    known: list[Divergence] = []
    for folder in folders:
        suite = read_suite(folder)
        entries = read_divergences(_divergences_file(folder))
        known += [entry for entry in entries if entry not in known]
        for result, slices in _planned(suite, entries, options):
            profiles[result.suite, result.profile] = result
            work += slices
    progress = total(sum(len(each.lines) for each in work))
    for each, outcome in _executed(work, options):
        result = profiles[each.suite, each.profile.name]
        if isinstance(outcome, str):
            refused = outcome.startswith("cannot start") and _all_refused(each)
            result.problem = f"{REFUSED_ANYHOW} ({outcome})" if refused else outcome
        else:
            result.results += outcome
        progress(len(each.lines))
    seconds = time.monotonic() - started
    return RunResult(list(profiles.values()), _stale(known, profiles.values(), options), _paths(options), seconds)


def run_work(work: Work) -> list[CaseResult] | str:
    """The results of one slice, or why its profile cannot be run."""
    from derender_api.catalog import catalog

    if work.options.url:
        driver = Driver(application.Remote(work.options.url), core=None, options=work.options)
        return [_run_case(line, work, driver) for line in work.lines]
    with _on_day(work.profile.system_date), catalog.override([work.profile.configuration(folder=work.folder)]):
        model = catalog.resolve(None)
        problem = load(model)
        if problem:
            return problem
        core = None if work.options.http_streams else CoreStreams(model)
        driver = Driver(application.InProcess(), core=core, options=work.options)
        return [_run_case(line, work, driver) for line in work.lines]


@contextmanager
def _on_day(date: str | None) -> Iterator[None]:
    """Prompts that name the day name that of the recording."""
    before = settings.DERENDER
    settings.DERENDER = {**before, "SYSTEM_START_DATE": date}
    try:
        yield
    finally:
        settings.DERENDER = before


def _run_case(line: bytes, work: Work, driver: Driver) -> CaseResult:
    started = time.monotonic()
    case = read_case(line, suite=work.suite)
    entries = divergences_of(work.divergences, suite=work.suite, profile=work.profile.name, case=case.id)
    exceptions = Exceptions(entries, work.right.get(case.id))
    if isinstance(case, HttpCase):
        answers = application.post_exchanges(driver.application, case.exchanges)
        verdicts: tuple[Verdict, ...] = (judge_http(case, answers, entry=exceptions.entry("http")),)
    else:
        verdicts = tuple(judge(case, driver.observe(case), exceptions=exceptions))
    return CaseResult(case.id, verdicts, time.monotonic() - started)


def _planned(
    suite: Suite, entries: Sequence[Divergence], options: Options
) -> Iterator[tuple[ProfileResult, list[Work]]]:
    """Each selected profile of a suite, and its cases in slices; none where its tokenizer is missing."""
    parent = suite.folder.resolve().parent
    roots = [*([options.root] if options.root else [parent, parent.parent]), _own_data()]
    mine = tuple(entry for entry in entries if entry.suite in (None, suite.name))
    right = {name: right_answer(value) for name, value in suite.right.items()}
    for profile in suite.profiles.values():
        if options.profile not in (None, profile.name):
            continue
        lines = [line for line in suite.lines[profile.name] if _selected(line, suite.name, options)]
        if not lines:
            continue
        result = ProfileResult(suite.name, profile.name, len(lines))
        try:
            folder = suite.folder if options.url else locate(profile.tokenizer, roots=roots)
        except TokenizerMissing as error:
            result.problem = f"no tokenizer: {error}"
            yield result, []
            continue
        yield (
            result,
            [
                Work(suite.name, profile, folder, tuple(lines[start : start + SLICE]), options, mine, right)
                for start in range(0, len(lines), SLICE)
            ],
        )


def _own_data() -> Path:
    """The project's own recordings and tokenizers."""
    return Path(settings.BASE_DIR) / "tests" / "data"


def _divergences_file(folder: Path) -> Path:
    """The divergences of a suite: those beside it, else the project's own, which name the same cases."""
    beside = folder.parent / FILE_NAME
    return beside if beside.exists() else _own_data() / "parity" / FILE_NAME


def _all_refused(work: Work) -> bool:
    """Whether vLLM refused every one of the cases: a model that does not start loses nothing then."""
    cases = [read_case(line, suite=work.suite) for line in work.lines]
    return all(isinstance(case, Case) and case.oneshot["status"] != 200 for case in cases)


def _selected(line: bytes, suite: str, options: Options) -> bool:
    if not options.only:
        return True
    case = read_case(line, suite=suite)
    return options.only in f"{suite}/{case.profile}/{case.id}"


def _executed(work: Sequence[Work], options: Options) -> Iterator[tuple[Work, list[CaseResult] | str]]:
    """Each slice with its outcome, as they are finished; over processes where there is enough to do."""
    processes = options.processes or multiprocessing.cpu_count()
    if processes == 1 or len(work) < 2:
        for each in work:
            yield each, run_work(each)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(processes, len(work)), mp_context=context, initializer=_start_process) as pool:
        pending = {pool.submit(run_work, each): each for each in work}
        for future in as_completed(pending):
            yield pending[future], future.result()


def _start_process() -> None:
    """Django in a fresh process, and no log lines between the lines of the report."""
    import logging

    import django

    django.setup()
    logging.disable(logging.CRITICAL)


def _stale(known: Sequence[Divergence], profiles: Iterable[ProfileResult], options: Options) -> list[str]:
    """Divergences about cases that were run and that needed none. Those of rule self may need a split not tried."""
    needed = {verdict.divergence for profile in profiles for result in profile.results for verdict in result.verdicts}
    ran = [(profile, result.id) for profile in profiles for result in profile.results]
    return sorted(
        entry.label
        for entry in known
        if entry.label not in needed
        and (entry.rule != "self" or options.every_split)
        and any(entry.concerns(suite=each.suite, profile=each.profile, case=case) for each, case in ran)
    )


def _paths(options: Options) -> str:
    if options.url:
        return f"Everything over HTTP at {options.url}."
    if options.http_streams:
        return "Everything through the HTTP application in this process."
    splits = "every two-way split" if options.every_split else "some two-way splits"
    recorded = f"recorded streams of one case in {SAMPLED}" if options.fast else "recorded streams"
    rest = "other streams" if options.fast else "other groupings of rule self"
    return (
        f"One-shot answers, {recorded} and HTTP exchanges through the HTTP application in this process; "
        f"the {rest} ({splits} for rule self) through the parser core."
    )
