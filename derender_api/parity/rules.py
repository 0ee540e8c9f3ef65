"""The parity rules: what must hold between vLLM's recorded answers and this service's.

message        the one-shot answer equals vLLM's: reasoning, content, calls with their exact arguments, finish and stop
               reason, usage, logprobs; where vLLM refused, status and error body.
deltas         a stream of vLLM that adds up to its own one-shot answer is matched chunk by chunk.
contradictory  any other stream: ours equals vLLM's, or adds up to the one-shot answer (white space at the ends of
               reasoning and content apart).
self           every grouping of the same tokens adds up to this service's one-shot answer (white space at the ends
               apart), and restoring the parser from its snapshot at every boundary changes no delta.
http           status and body of an HTTP exchange are equal; streams through HTTP, where every call replays, are those
               of the parser core alone.
right          the answer is the right one of a public bug report, in both modes, at every grouping.

A divergence or a right answer takes the place of what vLLM answered; it is counted apart where it was needed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from derender_api.parity.answers import Answer, fold, is_json
from derender_api.parity.divergences import Divergence
from derender_api.parity.observed import HttpAnswer, Observed, Streamed, oneshot_answer
from derender_api.parity.right import RightAnswer
from derender_api.parity.shapes import difference
from derender_api.parity.suite import Case, HttpCase, RecordedStream


class Rule(StrEnum):
    """The rules, in the order of reports."""

    MESSAGE = "message"
    DELTAS = "deltas"
    CONTRADICTORY = "contradictory"
    SELF = "self"
    HTTP = "http"
    RIGHT = "right"


class Outcome(StrEnum):
    """How a rule fared. `excused` (rule self): what was sent cannot be taken back, see `_cannot_be_taken_back`."""

    HOLDS = "holds"
    DIVERGES = "diverges"
    EXCUSED = "excused"
    FAILS = "fails"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One rule applied to one answer. `expected` and `got` are shown where it fails: chunks, answers or bodies."""

    rule: Rule
    outcome: Outcome
    stream: str | None = None
    detail: str = ""
    expected: Any = None
    got: Any = None
    divergence: str | None = None


@dataclass(frozen=True, slots=True)
class Exceptions:
    """What takes the place of vLLM's answers for one case."""

    divergences: tuple[Divergence, ...] = ()
    right: RightAnswer | None = None

    def entry(self, rule: str, stream: str | None = None) -> Divergence | None:
        """The divergence for `rule` and, for a stream rule, the grouping."""
        for each in self.divergences:
            if each.rule == rule and (stream is None or each.covers(stream)):
                return each
        return None

    def entry_for_sum(self, folded: Answer) -> Divergence | None:
        """The divergence of rule self, else of a stream rule, that demands this sum of deltas."""
        matching = [each for each in self.divergences if each.answer and each.answer.loose == folded.loose]
        for rule in ("self", "contradictory", "deltas"):
            for each in matching:
                if each.rule == rule:
                    return each
        return None

    def right_where_vllm_is_wrong(self, mode: str) -> RightAnswer | None:
        """The right answer where vLLM's in this mode ("oneshot", "stream") is known to be wrong."""
        right = self.right
        return right if right and right.is_answer and getattr(right, f"vllm_{mode}") == "wrong" else None


def judge(case: Case, ours: Observed, *, exceptions: Exceptions = Exceptions()) -> Iterator[Verdict]:
    """All verdicts on a parser case."""
    yield _judge_message(case, ours, exceptions)
    for name, recorded in case.streams.items():
        if name in ours.streams:
            yield _judge_stream(case, name, recorded, ours.streams[name], ours, exceptions)
    yield from _judge_self(ours, exceptions)
    yield from _judge_core(ours)
    yield from _judge_right(ours, exceptions)


def judge_http(case: HttpCase, answers: Sequence[HttpAnswer], *, entry: Divergence | None = None) -> Verdict:
    """The verdict on an HTTP case."""
    demanded = [HttpAnswer(each.status, each.body) for each in case.exchanges]
    found = _http_difference(demanded, answers)
    if found and entry:
        demanded = [
            each if other is None else HttpAnswer(other["status"], other["body"])
            for each, other in zip(demanded, entry.exchanges, strict=True)
        ]
        found = _http_difference(demanded, answers)
        if not found:
            return Verdict(Rule.HTTP, Outcome.DIVERGES, divergence=entry.label, detail=entry.why)
    if not found:
        return Verdict(Rule.HTTP, Outcome.HOLDS)
    index, detail = found
    expected, got = demanded[index], answers[index]
    return Verdict(
        Rule.HTTP,
        Outcome.FAILS,
        detail=f"exchange {index + 1}: {detail}",
        expected={"status": expected.status, "body": expected.body},
        got={"status": got.status, "body": got.body},
    )


def is_consistent(stream: RecordedStream, oneshot: Mapping[str, Any]) -> bool:
    """Whether a recorded stream adds up to the recorded one-shot answer, white space included."""
    answer = oneshot_answer(oneshot)
    folded = fold(stream.chunks)
    return answer is not None and folded is not None and folded == answer.filled


def _judge_message(case: Case, ours: Observed, exceptions: Exceptions) -> Verdict:
    found = difference(case.oneshot, ours.oneshot)
    verdict = Verdict(Rule.MESSAGE, Outcome.HOLDS)
    if not found:
        return verdict
    entry = exceptions.entry("message")
    answer = oneshot_answer(ours.oneshot)
    if entry:
        if answer == entry.answer if answer else difference(entry.refusal, ours.oneshot) is None:
            return replace(verdict, outcome=Outcome.DIVERGES, divergence=entry.label, detail=entry.why)
        demanded = entry.refusal or (entry.answer and entry.answer.as_json())
        got = answer.as_json() if answer else dict(ours.oneshot)
        return replace(
            verdict, outcome=Outcome.FAILS, detail="not the answer of its divergence", expected=demanded, got=got
        )
    right = exceptions.right_where_vllm_is_wrong("oneshot")
    if right and right.accepts(answer):
        return replace(verdict, outcome=Outcome.DIVERGES, detail=right.source)
    return replace(verdict, outcome=Outcome.FAILS, detail=found, expected=case.oneshot, got=dict(ours.oneshot))


def _judge_stream(
    case: Case, name: str, recorded: RecordedStream, got: Streamed, ours: Observed, exceptions: Exceptions
) -> Verdict:
    consistent = is_consistent(recorded, case.oneshot)
    verdict = Verdict(Rule.DELTAS if consistent else Rule.CONTRADICTORY, Outcome.HOLDS, stream=name)
    found = chunk_difference(recorded.chunks, got.chunks)
    if not found:
        return verdict
    folded = fold(got.chunks)
    vllm = oneshot_answer(case.oneshot)
    if not consistent and folded and vllm and folded.loose == vllm.loose:
        return verdict
    entry = exceptions.entry(verdict.rule, name) or exceptions.entry("message")
    if entry and _follows(entry, got, folded):
        return replace(verdict, outcome=Outcome.DIVERGES, divergence=entry.label, detail=entry.why)
    right = exceptions.right_where_vllm_is_wrong("stream") or exceptions.right_where_vllm_is_wrong("oneshot")
    if right and right.accepts(folded):
        return replace(verdict, outcome=Outcome.DIVERGES, detail=right.source)
    if not consistent and vllm:
        found += "; nor does it add up to the one-shot answer"
    return replace(verdict, outcome=Outcome.FAILS, detail=found, expected=recorded.chunks, got=got.chunks)


def _follows(entry: Divergence, got: Streamed, folded: Answer | None) -> bool:
    """Whether a stream gives what its divergence demands: the answer as its sum, or the refusal."""
    if entry.refusal is not None:
        return got.status == entry.refusal["status"] and difference(entry.refusal["body"], got.chunks[-1]) is None
    return bool(entry.answer and folded and folded.loose == entry.answer.loose)


def _judge_self(ours: Observed, exceptions: Exceptions) -> Iterator[Verdict]:
    answer = oneshot_answer(ours.oneshot)
    if answer is None:
        return
    for name, streamed in ours.selves.items():
        verdict = Verdict(Rule.SELF, Outcome.HOLDS, stream=name)
        folded = fold(streamed.chunks)
        entry = exceptions.entry_for_sum(folded) if folded else None
        if name in ours.unsteady:
            detail = "restoring from snapshots changes the deltas"
            yield replace(
                verdict, outcome=Outcome.FAILS, detail=detail, expected=streamed.chunks, got=ours.unsteady[name].chunks
            )
        elif folded and folded.loose == answer.loose:
            yield verdict
        elif entry:
            yield replace(verdict, outcome=Outcome.DIVERGES, divergence=entry.label, detail=entry.why)
        elif folded and _cannot_be_taken_back(folded, answer):
            yield replace(verdict, outcome=Outcome.EXCUSED, detail="a call was sent that the whole text has not")
        else:
            yield _failed(verdict, "the sum of the deltas is not the one-shot answer", answer, folded)


def _judge_core(ours: Observed) -> Iterator[Verdict]:
    """The HTTP application, which replays, and the parser core, which goes on, must send the same."""
    for name, alone in ours.core.items():
        verdict = Verdict(Rule.HTTP, Outcome.HOLDS, stream=name)
        found = chunk_difference(ours.streams[name].chunks, alone.chunks)
        if found:
            detail = f"the parser core alone differs from the application: {found}"
            verdict = replace(
                verdict, outcome=Outcome.FAILS, detail=detail, expected=ours.streams[name].chunks, got=alone.chunks
            )
        yield verdict


def _judge_right(ours: Observed, exceptions: Exceptions) -> Iterator[Verdict]:
    right = exceptions.right
    if right is None or not right.is_answer:
        return
    entry = exceptions.entry("right")
    if right.vllm_oneshot != "debatable":
        yield _right(right, entry, oneshot_answer(ours.oneshot), None)
    if right.vllm_stream != "debatable":
        for name, streamed in {**ours.streams, **ours.selves}.items():
            yield _right(right, entry, fold(streamed.chunks), name)


def _right(right: RightAnswer, entry: Divergence | None, answer: Answer | None, stream: str | None) -> Verdict:
    verdict = Verdict(Rule.RIGHT, Outcome.HOLDS, stream=stream)
    if right.accepts(answer):
        return verdict
    if entry and entry.answer and answer and answer.loose == entry.answer.loose:
        return replace(verdict, outcome=Outcome.DIVERGES, divergence=entry.label, detail=entry.why)
    got = answer.as_json() if answer else None
    return replace(verdict, outcome=Outcome.FAILS, detail=right.source, expected=right.value, got=got)


def chunk_difference(expected: Sequence[Any], got: Sequence[Any]) -> str | None:
    """The first chunk in which two streams differ, as text; None where they are equal by shape."""
    for index, (one, other) in enumerate(zip(expected, got, strict=False)):
        found = difference(one, other, path=f"chunk {index}")
        if found:
            return found
    return None if len(expected) == len(got) else f"expected {len(expected)} chunks, got {len(got)}"


def _http_difference(demanded: Sequence[HttpAnswer], answers: Sequence[HttpAnswer]) -> tuple[int, str] | None:
    for index, (one, other) in enumerate(zip(demanded, answers, strict=True)):
        found = difference(one.status, other.status, path="status") or difference(one.body, other.body)
        if found:
            return index, found
    return None


def _cannot_be_taken_back(folded: Answer, answer: Answer) -> bool:
    """Whether a stream differs from the one-shot answer by what was sent before more text could decide otherwise.

    Either a call was announced that turned out to be none: the stream holds all calls of the answer in order, and at
    least one more. Or the output was cut within a call, which the one-shot answer repairs: all else is equal.
    """
    if len(folded.calls) > len(answer.calls):
        remaining = iter(folded.calls)
        return all(call in remaining for call in answer.calls)
    if answer.finish_reason == "stop" or not folded.calls or len(folded.calls) != len(answer.calls):
        return False
    *finished, (name, arguments) = folded.calls
    repaired = (*finished, (name, answer.calls[-1][1]))
    return not is_json(arguments) and replace(folded, calls=repaired).loose == answer.loose


def _failed(verdict: Verdict, detail: str, expected: Answer | None, got: Answer | None) -> Verdict:
    return replace(
        verdict,
        outcome=Outcome.FAILS,
        detail=detail,
        expected=expected and expected.as_json(),
        got=got and got.as_json(),
    )
