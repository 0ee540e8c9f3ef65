"""Recorded outputs through the gateway: its answers are those of the derender endpoints, its streams add up to them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from derender_api.catalog import catalog
from derender_api.loaded_model import LoadedModel
from derender_api.parity.suite import Case, read_case, read_suite
from tests.derender_api.gateway.support import (
    CHAT,
    Json,
    Reply,
    ask_all,
    asking,
    folded_chat,
    streamed,
    whole_chat,
)
from tests.derender_api.support import CHAT as DERENDER
from tests.derender_api.support import TOKENIZERS, post
from tests.replay_engine import Output, ReplayEngine, Script, replaying
from tests.servers import REPOSITORY

SUITES = REPOSITORY / "tests" / "data" / "parity"
PROFILES = [
    ("json", "hermes+qwen3"),
    ("json", "llama3_json"),
    ("xml", "qwen3_coder+qwen3"),
    ("xml", "glm47+glm47"),
    ("deepseek_kimi_harmony", "deepseek_v31+deepseek_v3"),
    ("deepseek_kimi_harmony", "kimi_k2+kimi_k2"),
    ("pythonic_misc", "pythonic"),
]
MOST = 12
"""Cases of a profile."""
CHUNK = 3
"""Tokens per event of a stream."""


@pytest.fixture(params=PROFILES, ids="-".join)
def recorded(request: pytest.FixtureRequest) -> Iterator[tuple[list[Case], ReplayEngine, LoadedModel]]:
    """Cases of a profile, an engine, and the served model."""
    folder, name = request.param
    suite = read_suite(SUITES / folder)
    profile = suite.profiles[name]
    cases = [read_case(line, suite=folder) for line in suite.lines[name][:MOST]]
    tokenizer = TOKENIZERS / profile.tokenizer.removeprefix("tokenizers/")
    with replaying(Script()) as engine:
        configuration = replace(profile.configuration(folder=tokenizer), engine_urls=(engine.url,))
        with catalog.override([configuration]):
            yield [case for case in cases if isinstance(case, Case)], engine, catalog.resolve(None)


def test_whole_answers_and_streams(recorded: tuple[list[Case], ReplayEngine, LoadedModel]) -> None:
    cases, engine, _ = recorded
    scripts = {case.id: script_of(case) for case in cases}
    engine.script = lambda request: scripts[request["request_id"].partition("-")[2]]
    bodies = [{**case.request, "request_id": case.id, "stream": False} for case in cases]
    wholes = ask_all(*(asking(CHAT, body) for body in bodies), in_turn=True)
    streams = ask_all(*(asking(CHAT, streamed(body)) for body in bodies), in_turn=True)
    answered = [
        (case, body, whole, stream)
        for case, body, whole, stream in zip(cases, bodies, wholes, streams, strict=True)
        if whole.status == 200
    ]

    assert len(answered) > 0.8 * len(cases)
    for case, body, whole, stream in answered:
        prompts = [
            asked.request["token_ids"] for asked in engine.asked if asked.request["request_id"].endswith(case.id)
        ]
        assert prompts[0] == prompts[1]
        check(case, body, prompts[0], whole, stream)
    # A call that was sent before its text turned out to be cut or malformed cannot be taken back.
    adding_up = [
        trimmed(folded_chat(stream.events)) == trimmed(whole_chat(whole.json)) for *_, whole, stream in answered
    ]
    assert adding_up.count(False) <= 1


def check(case: Case, body: Json, prompt: list[int], whole: Reply, stream: Reply) -> None:
    """The whole answer is the derender endpoint's, and so is every delta of the stream."""
    choice = {"index": 0, "token_ids": case.output_token_ids, **ending(case)}
    response = {"request_id": "r", "choices": [choice], "prompt_token_ids": prompt}
    derendered = post(DERENDER, {"generate_response": response, "chat_request": body})[1]
    assert whole_chat(whole.json) == whole_chat(derendered), case.id

    chunks = post(DERENDER, bulk(case, streamed(body), prompt))[1]["chunks"]
    shown = [each for each in map(delta_of, chunks) if each[0] or each[1]]
    assert [delta_of(event) for event in stream.events] == shown, case.id


def trimmed(choice: Json) -> Json:
    """A choice without white space at the ends of its texts, which streams may send where one-shot answers trim."""
    message = choice["message"]
    texts = {key: message[key].strip() for key in ("content", "reasoning")}
    return {**choice, "message": {**message, **texts}}


def bulk(case: Case, body: Json, prompt: list[int]) -> Json:
    """A stream of the output in one call of the derender endpoint."""
    parts = script_of(case).outputs[0].chunks()
    chunks = [
        {"request_id": "r", "choices": [{"index": 0, "token_ids": part, **(ending(case) if is_last else {})}]}
        for part, is_last in zip(parts, [False] * (len(parts) - 1) + [True], strict=True)
    ]
    return {"stream": True, "generate_chunks": chunks, "chat_request": body, "prompt_token_ids": prompt}


def script_of(case: Case) -> Script:
    """The engine's part of a case."""
    return Script(outputs=[Output(token_ids=case.output_token_ids, chunk=CHUNK, **ending(case))])


def ending(case: Case) -> Json:
    """Why the output ended."""
    return {"finish_reason": case.finish_reason, "stop_reason": case.stop_reason}


def delta_of(chunk: Json) -> tuple[Any, Any]:
    """Delta, without nulls and IDs of calls, and finish reason of a chunk."""
    (choice,) = chunk["choices"]
    delta = {key: value for key, value in choice["delta"].items() if value is not None}
    if "tool_calls" in delta:
        delta["tool_calls"] = [
            (call["index"], {key: value for key, value in call["function"].items() if value is not None})
            for call in delta["tool_calls"]
        ]
    return delta, choice["finish_reason"]
