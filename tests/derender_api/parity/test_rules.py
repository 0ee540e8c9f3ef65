"""The rules on small synthetic cases: what holds, what fails, what diverges."""

from dataclasses import dataclass, field

import pytest

from derender_api.parity.answers import Answer
from derender_api.parity.divergences import Divergence
from derender_api.parity.observed import HttpAnswer, Observed, Streamed
from derender_api.parity.right import right_answer
from derender_api.parity.rules import Exceptions, Outcome, Rule, judge, judge_http
from derender_api.parity.suite import Case, Exchange, HttpCase, RecordedStream

HOLDS, FAILS, DIVERGES, EXCUSED = Outcome.HOLDS, Outcome.FAILS, Outcome.DIVERGES, Outcome.EXCUSED
REFUSED = {"error": {"message": "no", "type": "BadRequestError", "param": None, "code": 400}}


def oneshot(content, *, finish="stop", calls=()):
    message = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [
            {"id": "chatcmpl-tool-0123456789abcdef", "type": "function", "function": {"name": n, "arguments": a}}
            for n, a in calls
        ]
    message["reasoning"] = None
    return {"status": 200, "message": message, "finish_reason": finish, "stop_reason": None, "usage": {}}


def chunks(*texts, finish="stop"):
    made = [[{"content": text} if text is not None else {}, None] for text in texts]
    made[-1][1] = finish
    return made


CUT, REPAIRED = '{"a": "b', "{}"


def with_call(made, name, arguments=None):
    entry = {"id": None, "type": None, "index": 0, "function": {"name": name, "arguments": arguments}}
    made[0][0]["tool_calls"] = [entry]
    return made


def case(recorded, streams):
    return Case(
        suite="s",
        profile="p",
        id="s/c",
        request={},
        prompt_token_ids=[],
        output_token_ids=[1, 2],
        finish_reason="stop",
        stop_reason=None,
        logprobs=None,
        oneshot=recorded,
        streams={name: RecordedStream((1,) * len(made), 200, made) for name, made in streams.items()},
    )


def observed(given, streams, *, selves=None, unsteady=None):
    return Observed(
        given,
        {name: Streamed(400 if made[-1] is REFUSED else 200, made) for name, made in streams.items()},
        {name: Streamed(200, made) for name, made in (selves or {}).items()},
        {name: Streamed(200, made) for name, made in (unsteady or {}).items()},
    )


@dataclass(frozen=True)
class Judged:
    """What vLLM said, what this service said, and the outcomes by rule."""

    vllm: dict
    ours: dict
    outcomes: dict
    vllm_streams: dict = field(default_factory=dict)
    our_streams: dict = field(default_factory=dict)
    exceptions: Exceptions = field(default_factory=Exceptions)
    selves: dict = field(default_factory=dict)


def divergence(rule, answer, **more):
    return Exceptions((Divergence(case="s/c", rule=rule, why="lost text", answer=answer, **more),))


def reported(**more):
    right = {"reasoning": None, "content": "right", "tool_calls": [], "finish_reason": "stop"}
    return Exceptions(
        right=right_answer({"id": "s/c", "source": "a#1", "why": "", "right": right, **more}),
    )


A, B = {"1": chunks("a", "b")}, {"1": chunks("ab", None)}
SPACED = {"1": chunks("a", "b ")}
LOST = {"1": chunks("a", None)}

CASES = {
    "equal answers": Judged(oneshot("ab"), oneshot("ab"), {Rule.MESSAGE: HOLDS, Rule.DELTAS: HOLDS}, A, A),
    "null is not empty": Judged(oneshot(None), oneshot(""), {Rule.MESSAGE: FAILS}),
    "another finish reason": Judged(oneshot("a"), oneshot("a", finish="length"), {Rule.MESSAGE: FAILS}),
    "arguments are compared as text": Judged(
        oneshot(None, calls=[("f", '{"a": 1}')]), oneshot(None, calls=[("f", '{"a":1}')]), {Rule.MESSAGE: FAILS}
    ),
    "refused alike": Judged({"status": 400, "body": REFUSED}, {"status": 400, "body": REFUSED}, {Rule.MESSAGE: HOLDS}),
    "refused by one": Judged({"status": 400, "body": REFUSED}, oneshot("a"), {Rule.MESSAGE: FAILS}),
    "a consistent stream is matched chunk by chunk": Judged(
        oneshot("ab"), oneshot("ab"), {Rule.MESSAGE: HOLDS, Rule.DELTAS: FAILS}, A, B
    ),
    "a stream that differs in white space may be copied": Judged(
        oneshot("ab"), oneshot("ab"), {Rule.MESSAGE: HOLDS, Rule.CONTRADICTORY: HOLDS}, SPACED, SPACED
    ),
    "a stream that loses text may be copied": Judged(
        oneshot("ab"), oneshot("ab"), {Rule.MESSAGE: HOLDS, Rule.CONTRADICTORY: HOLDS}, LOST, LOST
    ),
    "or answered with the one-shot text": Judged(
        oneshot("ab"), oneshot("ab"), {Rule.MESSAGE: HOLDS, Rule.CONTRADICTORY: HOLDS}, LOST, A
    ),
    "but nothing else": Judged(
        oneshot("ab"), oneshot("ab"), {Rule.MESSAGE: HOLDS, Rule.CONTRADICTORY: FAILS}, LOST, {"1": chunks("ac")}
    ),
    "a refused stream may be copied": Judged(
        oneshot("ab"),
        oneshot("ab"),
        {Rule.MESSAGE: HOLDS, Rule.CONTRADICTORY: HOLDS},
        {"1": [[{"content": "a"}, None], REFUSED]},
        {"1": [[{"content": "a"}, None], REFUSED]},
    ),
    "a divergence is demanded": Judged(
        oneshot("a"),
        oneshot("ab"),
        {Rule.MESSAGE: DIVERGES, Rule.DELTAS: DIVERGES},
        LOST,
        A,
        divergence("message", Answer(None, "ab", (), "stop")),
    ),
    "and nothing but it": Judged(
        oneshot("a"),
        oneshot("abc"),
        {Rule.MESSAGE: FAILS, Rule.DELTAS: FAILS},
        LOST,
        {"1": chunks("abc")},
        divergence("message", Answer(None, "ab", (), "stop")),
    ),
    "a divergence may be a refusal": Judged(
        {"status": 500, "body": {"error": "?"}},
        {"status": 400, "body": REFUSED},
        {Rule.MESSAGE: DIVERGES, Rule.CONTRADICTORY: DIVERGES},
        {"1": [{"error": "?"}]},
        {"1": [REFUSED]},
        divergence("message", None, refusal={"status": 400, "body": REFUSED}),
    ),
    "a divergence of one stream leaves the others": Judged(
        oneshot("a"),
        oneshot("a"),
        {Rule.MESSAGE: HOLDS, Rule.DELTAS: FAILS},
        LOST,
        A,
        divergence("deltas", Answer(None, "ab", (), "stop"), streams=frozenset({"all"})),
    ),
    "the right answer of a report takes vLLM's place": Judged(
        oneshot("wrong"),
        oneshot("right"),
        {Rule.MESSAGE: DIVERGES, Rule.DELTAS: DIVERGES, Rule.RIGHT: HOLDS},
        {"1": chunks("wrong")},
        {"1": chunks("ri", "ght")},
        reported(vllm_oneshot="wrong", vllm_stream="wrong"),
    ),
    "copying the wrong answer is not right": Judged(
        oneshot("wrong"),
        oneshot("wrong"),
        {Rule.MESSAGE: HOLDS, Rule.RIGHT: FAILS},
        exceptions=reported(vllm_oneshot="wrong", vllm_stream="wrong"),
    ),
    "a debatable report follows vLLM": Judged(
        oneshot("wrong"),
        oneshot("right"),
        {Rule.MESSAGE: FAILS},
        exceptions=reported(vllm_oneshot="debatable", vllm_stream="debatable"),
    ),
    "a stream that may diverge may do so in every grouping": Judged(
        oneshot("ab"),
        oneshot("ab"),
        {Rule.MESSAGE: HOLDS, Rule.SELF: DIVERGES},
        exceptions=divergence("contradictory", Answer(None, "ac", (), "stop"), streams=frozenset({"1"})),
        selves={"2|1": chunks("a", "c")},
    ),
    "every grouping adds up to the one-shot answer": Judged(
        oneshot("ab"), oneshot("ab"), {Rule.MESSAGE: HOLDS, Rule.SELF: HOLDS}, selves={"2|1": chunks(" a", "b\n")}
    ),
    "a grouping that loses text fails": Judged(
        oneshot("ab"), oneshot("ab"), {Rule.MESSAGE: HOLDS, Rule.SELF: FAILS}, selves={"2|1": chunks("a")}
    ),
    "a call announced in vain is counted apart": Judged(
        oneshot("ab"),
        oneshot("ab"),
        {Rule.MESSAGE: HOLDS, Rule.SELF: EXCUSED},
        selves={"1": with_call(chunks("a"), "f")},
    ),
    "so are the arguments of a call that the output was cut in": Judged(
        oneshot(None, finish="length", calls=[("f", REPAIRED)]),
        oneshot(None, finish="length", calls=[("f", REPAIRED)]),
        {Rule.MESSAGE: HOLDS, Rule.SELF: EXCUSED},
        selves={"1": with_call(chunks(None, finish="length"), "f", CUT)},
    ),
    "but not those of a finished one": Judged(
        oneshot(None, calls=[("f", REPAIRED)]),
        oneshot(None, calls=[("f", REPAIRED)]),
        {Rule.MESSAGE: HOLDS, Rule.SELF: FAILS},
        selves={"1": with_call(chunks(None), "f", CUT)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_outcomes(name):
    judged = CASES[name]
    verdicts = list(
        judge(
            case(judged.vllm, judged.vllm_streams),
            observed(judged.ours, judged.our_streams, selves=judged.selves),
            exceptions=judged.exceptions,
        )
    )
    outcomes = {}
    for verdict in verdicts:
        if outcomes.get(verdict.rule) is not FAILS:
            outcomes[verdict.rule] = verdict.outcome
    assert outcomes == judged.outcomes


def test_a_restored_parser_that_differs_fails():
    steady, unsteady = {"1": chunks("a", "b")}, {"1": chunks("ab", "")}
    verdicts = list(judge(case(oneshot("ab"), {}), observed(oneshot("ab"), {}, selves=steady, unsteady=unsteady)))
    assert [(each.rule, each.outcome) for each in verdicts] == [(Rule.MESSAGE, HOLDS), (Rule.SELF, FAILS)]


def test_the_core_alone_must_send_what_the_application_sends():
    ours = Observed(oneshot("ab"), {"1": Streamed(200, A["1"])}, core={"1": Streamed(200, B["1"])})
    verdicts = list(judge(case(oneshot("ab"), A), ours))
    assert [(each.rule, each.outcome) for each in verdicts] == [
        (Rule.MESSAGE, HOLDS),
        (Rule.DELTAS, HOLDS),
        (Rule.HTTP, FAILS),
    ]


def http_case(*answers):
    exchanges = tuple(Exchange("POST", "/x", {}, b"", status, body) for status, body in answers)
    return HttpCase("s", "p", "s/c", exchanges)


def test_http_answers_are_compared_by_status_and_body():
    recorded = http_case((200, {"created": 1, "a": 1}), (400, REFUSED))
    assert judge_http(recorded, [HttpAnswer(200, {"created": 9, "a": 1}), HttpAnswer(400, REFUSED)]).outcome is HOLDS
    failed = judge_http(recorded, [HttpAnswer(200, {"created": 9, "a": 1}), HttpAnswer(404, REFUSED)])
    assert (failed.outcome, failed.detail) == (FAILS, "exchange 2: status: expected 400, got 404")


def test_http_divergence_gives_the_exchanges_it_changes():
    recorded = http_case((200, "a"), (405, {"detail": "Method Not Allowed"}))
    entry = Divergence(case="s/c", rule="http", why="one shape", exchanges=(None, {"status": 405, "body": REFUSED}))
    assert judge_http(recorded, [HttpAnswer(200, "a"), HttpAnswer(405, REFUSED)], entry=entry).outcome is DIVERGES
    assert judge_http(recorded, [HttpAnswer(200, "b"), HttpAnswer(405, REFUSED)], entry=entry).outcome is FAILS
