"""POST /v1/completions through engines: several prompts, each a call of its own."""

from collections.abc import Iterator

import pytest

from tests.derender_api.gateway.support import (
    COMPLETION,
    Json,
    ask,
    completion,
    folded_text,
    model_on,
    saying,
    streamed,
)
from tests.replay_engine import ReplayEngine, Script, error_body, replaying, until

WANTS_USAGE = {"stream_options": {"include_usage": True}}


def by_prompt(request: Json) -> Script:
    """Says something else for each prompt."""
    words = {2541: "one two", 3048: "three"}
    return Script(outputs=[saying(words.get(request["token_ids"][0], "four"))])


@pytest.fixture
def engine() -> Iterator[ReplayEngine]:
    """An engine that says "Hello world"."""
    with replaying(Script()) as engine, model_on(engine):
        engine.script = Script(outputs=[saying("Hello world")])
        yield engine


class TestWhole:
    """One answer for all prompts."""

    def test_the_answer(self, engine: ReplayEngine) -> None:
        reply = ask(COMPLETION, completion("Hello", max_tokens=5))
        answer = reply.json

        assert reply.status == 200
        assert (answer["id"], answer["object"]) == (engine.only.request["request_id"], "text_completion")
        assert [(choice["text"], choice["finish_reason"]) for choice in answer["choices"]] == [("Hello world", "stop")]
        assert answer["usage"]["total_tokens"] == 4
        assert engine.only.request["token_ids"] == [2541]
        assert engine.only.sampling["max_tokens"] == 5

    def test_several_prompts(self, engine: ReplayEngine) -> None:
        engine.script = by_prompt
        answer = ask(COMPLETION, completion([[2541], [3048, 1], [7]], n=2)).json

        texts = [(choice["index"], choice["text"]) for choice in answer["choices"]]
        assert texts == [(0, "one two"), (1, "one two"), (2, "three"), (3, "three"), (4, "four"), (5, "four")]
        assert sorted(asked.request["token_ids"] for asked in engine.asked) == [[7], [2541], [3048, 1]]
        words = sum(len(saying(text).token_ids) for _, text in texts)
        assert answer["id"].removeprefix("cmpl-") == engine.asked[0].request["request_id"].split("-")[1]
        assert (answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]) == (4, words)

    def test_the_failure_of_one_prompt_ends_the_others(self, engine: ReplayEngine) -> None:
        broken = Script(status=400, body=error_body("too long"))
        engine.script = lambda request: broken if request["token_ids"] == [7] else Script(hangs_at=0)
        reply = ask(COMPLETION, completion([[1], [7], [2]]))

        assert (reply.status, reply.error["message"]) == (400, "too long")
        until(lambda: engine.in_flight() == 0)

    def test_log_probabilities_and_token_ids(self, engine: ReplayEngine) -> None:
        whole = ask(COMPLETION, completion([2541], logprobs=1, return_token_ids=True)).json["choices"][0]
        events = ask(COMPLETION, streamed(completion([2541], logprobs=1, return_token_ids=True))).events
        parts = [event["choices"][0] for event in events]

        assert whole["logprobs"]["tokens"] == ["Hello", " world", "<|im_end|>"]
        for key, values in whole["logprobs"].items():
            assert [value for part in parts for value in part["logprobs"][key]] == values
        assert [part["token_ids"] for part in parts] == [[each] for each in whole["token_ids"]]
        assert parts[0]["prompt_token_ids"] == whole["prompt_token_ids"] == [2541]
        assert not any("prompt_token_ids" in part for part in parts[1:])


class TestStream:
    """Chunks of all prompts in one stream."""

    def test_every_event(self, engine: ReplayEngine) -> None:
        events = ask(COMPLETION, streamed(completion("Hello"), **WANTS_USAGE)).events
        identity = engine.only.request["request_id"]
        head = {"id": identity, "object": "text_completion", "created": events[0]["created"], "model": "model"}

        def event(text: str, reason: str | None = None) -> Json:
            return {**head, "choices": [{"index": 0, "text": text, "logprobs": None, "finish_reason": reason}]}

        details = {"prompt_tokens_details": None, "completion_tokens_details": None}
        usage = {"prompt_tokens": 1, "total_tokens": 4, "completion_tokens": 3, **details}
        assert events == [event("Hello"), event(" world"), event("", "stop"), {**head, "choices": [], "usage": usage}]

    def test_several_prompts_add_up_to_the_whole_answer(self, engine: ReplayEngine) -> None:
        engine.script = by_prompt
        body = completion([[2541], [3048, 1], [7]], n=2)
        whole = ask(COMPLETION, body).json
        events = ask(COMPLETION, streamed(body, **WANTS_USAGE)).events

        for choice in whole["choices"]:
            assert folded_text(events, choice["index"]) == (choice["text"], choice["finish_reason"])
        assert events[-1]["usage"] == whole["usage"]
        assert len({event["id"] for event in events}) == 1

    def test_usage_of_every_chunk_is_that_of_its_choice(self, engine: ReplayEngine) -> None:
        options = {"include_usage": True, "continuous_usage_stats": True}
        events = ask(COMPLETION, streamed(completion([[1, 2], [3]]), stream_options=options)).events

        counts = {
            index: [
                (event["usage"]["prompt_tokens"], event["usage"]["completion_tokens"])
                for event in events
                if event["choices"] and event["choices"][0]["index"] == index
            ]
            for index in (0, 1)
        }
        assert counts == {0: [(2, 1), (2, 2), (2, 3)], 1: [(1, 1), (1, 2), (1, 3)]}
        assert (events[-1]["usage"]["prompt_tokens"], events[-1]["usage"]["completion_tokens"]) == (3, 6)

    def test_a_prompt_that_is_refused_is_an_error_answer(self, engine: ReplayEngine) -> None:
        broken = Script(status=400, body=error_body("too long"))
        engine.script = lambda request: broken if request["token_ids"] == [7] else Script(hangs_at=0)
        reply = ask(COMPLETION, streamed(completion([[1], [7], [2]])))

        assert (reply.status, reply.error["message"]) == (400, "too long")
        until(lambda: engine.in_flight() == 0)

    def test_a_prompt_that_fails_later_ends_all(self, engine: ReplayEngine) -> None:
        outputs = [saying("a b c d")]
        breaking, slow = Script(outputs=outputs, breaks_at=2), Script(outputs=outputs, hangs_at=2)
        engine.script = lambda request: breaking if request["token_ids"] == [7] else slow
        reply = ask(COMPLETION, streamed(completion([[1], [7], [2]])))

        assert reply.error["code"] == "engine_failed"
        until(lambda: engine.in_flight() == 0)


class TestRefused:
    """What the gateway does not do."""

    @pytest.mark.parametrize("stream", [False, True])
    def test_echo(self, engine: ReplayEngine, stream: bool) -> None:
        reply = ask(COMPLETION, completion(echo=True, stream=stream))

        assert (reply.status, reply.error["param"]) == (400, "echo")
        assert engine.asked == []

    def test_no_prompt(self, engine: ReplayEngine) -> None:
        assert ask(COMPLETION, {"model": "model"}).status == 400
