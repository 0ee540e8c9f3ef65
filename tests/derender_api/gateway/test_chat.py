"""POST /v1/chat/completions through an engine: whole answers, and streams that add up to them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from derender_api.catalog import catalog
from tests.derender_api.gateway.support import (
    CHAT,
    Json,
    ask,
    ask_all,
    asking,
    chat,
    folded_chat,
    model_on,
    saying,
    streamed,
    whole_chat,
)
from tests.replay_engine import Output, ReplayEngine, Script, replaying

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]
THOUGHT_AND_CALL = (
    "<think>\nThey ask for the weather.\n</think>\n\nLet me look.\n"
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
)
WANTS_USAGE = {"stream_options": {"include_usage": True}}


@pytest.fixture
def engine() -> Iterator[ReplayEngine]:
    """An engine that says "Hello world"."""
    with replaying(Script()) as engine, model_on(engine):
        engine.script = Script(outputs=[saying("Hello world")])
        yield engine


@pytest.fixture
def parsed() -> Iterator[ReplayEngine]:
    """An engine of a model with parsers, which thinks and calls a tool."""
    parsers = {"tool_call_parser": "hermes", "reasoning_parser": "qwen3", "enable_auto_tool_choice": True}
    with replaying(Script()) as engine, model_on(engine, **parsers):
        engine.script = Script(outputs=[saying(THOUGHT_AND_CALL)])
        yield engine


class TestWhole:
    """One request, one answer."""

    def test_the_answer(self, engine: ReplayEngine) -> None:
        reply = ask(CHAT, chat())
        answer = reply.json

        assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
        assert answer["id"] == engine.only.request["request_id"]
        assert answer["object"] == "chat.completion"
        assert whole_chat(answer) == {
            "message": {"role": "assistant", "content": "Hello world", "reasoning": "", "tool_calls": []},
            "finish_reason": "stop",
            "stop_reason": None,
        }
        prompt = len(engine.only.request["token_ids"])
        usage = answer["usage"]
        assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (prompt, 3, prompt + 3)

    def test_the_engine_is_asked_with_the_rendered_prompt(self, engine: ReplayEngine) -> None:
        ask(CHAT, chat("What is 2+2?", max_tokens=7, temperature=0.5, seed=1))
        prompt = catalog.resolve(None).tokenizer.decode(engine.only.request["token_ids"])

        request = engine.only.request
        assert "What is 2+2?" in prompt
        assert (request["stream"], request["stream_options"], request["model"]) == (False, None, None)
        sampling = {key: request["sampling_params"][key] for key in ("max_tokens", "temperature", "seed")}
        assert sampling == {"max_tokens": 7, "temperature": 0.5, "seed": 1}

    def test_the_engines_name_of_the_model_is_told(self) -> None:
        with replaying(Script()) as engine, model_on(engine, engine_model="theirs", aliases=("other",)):
            engine.script = Script(outputs=[saying("a")])
            answer = ask(CHAT, {**chat(), "model": "other"}).json

        assert engine.only.request["model"] == "theirs"
        assert answer["model"] == "other"

    def test_thoughts_and_calls(self, parsed: ReplayEngine) -> None:
        choice = ask(CHAT, chat(tools=TOOLS)).json["choices"][0]

        assert choice["finish_reason"] == "tool_calls"
        assert choice["message"]["reasoning"] == "\nThey ask for the weather.\n"
        assert choice["message"]["content"] == "\n\nLet me look.\n"
        (call,) = choice["message"]["tool_calls"]
        assert call["function"] == {"name": "get_weather", "arguments": '{"city": "Paris"}'}

    def test_several_choices(self, engine: ReplayEngine) -> None:
        engine.script = Script(outputs=[saying("one"), saying("two", ends=False, finish_reason="length")])
        answer = ask(CHAT, chat(n=2)).json

        assert [choice["message"]["content"] for choice in answer["choices"]] == ["one", "two"]
        assert [choice["finish_reason"] for choice in answer["choices"]] == ["stop", "length"]
        assert [choice["index"] for choice in answer["choices"]] == [0, 1]

    def test_an_output_without_tokens_is_the_engines_fault(self, engine: ReplayEngine) -> None:
        engine.script = Script(outputs=[Output(token_ids=[], finish_reason="abort")])
        reply = ask(CHAT, chat())

        assert (reply.status, reply.error["code"]) == (502, "engine_failed")

    @pytest.mark.parametrize("body", [chat(logprobs=True), streamed(chat(logprobs=True))], ids=["whole", "stream"])
    def test_token_ids_that_there_are_not_are_the_engines_fault(self, engine: ReplayEngine, body: Json) -> None:
        engine.script = Script(outputs=[Output(token_ids=[2**40])])
        reply = ask(CHAT, body)

        assert reply.error["code"] == "engine_failed"
        assert reply.error["message"] == "The engine's output cannot be read: number too large to fit in target type"

    @pytest.mark.parametrize("body", [chat(), streamed(chat())], ids=["whole", "stream"])
    def test_what_fails_here_is_not_the_engines_fault(
        self, engine: ReplayEngine, monkeypatch: pytest.MonkeyPatch, body: Json
    ) -> None:
        def broken(*args: Any) -> Any:
            raise KeyError("secret")

        monkeypatch.setattr("derender_api.services.chat.chat_limit", broken)

        assert ask(CHAT, body).error["message"] == "Internal server error"


class TestStream:
    """Server-sent events."""

    def test_the_head(self, engine: ReplayEngine) -> None:
        reply = ask(CHAT, streamed(chat()))

        assert reply.status == 200
        assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert (reply.headers["cache-control"], reply.headers["x-accel-buffering"]) == ("no-cache", "no")
        assert reply.is_whole

    def test_every_event(self, engine: ReplayEngine) -> None:
        events = ask(CHAT, streamed(chat(), **WANTS_USAGE)).events
        created = events[0]["created"]
        prompt = len(engine.only.request["token_ids"])

        def event(delta: Json, reason: str | None = None) -> Json:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
            return {**head, "choices": [choice]}

        identity = engine.only.request["request_id"]
        head = {"id": identity, "object": "chat.completion.chunk", "created": created, "model": "model"}
        details = {"prompt_tokens_details": None, "completion_tokens_details": None}
        assert events == [
            event({"role": "assistant", "content": "Hello"}),
            event({"content": " world"}),
            event({}, "stop"),
            {
                **head,
                "choices": [],
                "usage": {"prompt_tokens": prompt, "total_tokens": prompt + 3, "completion_tokens": 3, **details},
            },
        ]

    def test_no_usage_unless_asked_for(self, engine: ReplayEngine) -> None:
        assert [event for event in ask(CHAT, streamed(chat())).events if "usage" in event] == []

    def test_usage_of_every_chunk(self, engine: ReplayEngine) -> None:
        engine.script = Script(outputs=[saying("Hello world"), saying("Hello")])
        options = {"include_usage": True, "continuous_usage_stats": True}
        events = ask(CHAT, streamed(chat(n=2), stream_options=options)).events

        counted = [
            (event["choices"][0]["index"] if event["choices"] else None, event["usage"]["completion_tokens"])
            for event in events
        ]
        assert counted == [(0, 1), (1, 1), (0, 2), (1, 2), (0, 3), (None, 5)]

    @pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
    def test_thoughts_and_calls_add_up(self, parsed: ReplayEngine, size: int) -> None:
        whole = ask(CHAT, chat(tools=TOOLS)).json
        parsed.script = Script(outputs=[saying(THOUGHT_AND_CALL, chunk=size)])

        assert folded_chat(ask(CHAT, streamed(chat(tools=TOOLS))).events) == whole_chat(whole)

    def test_thoughts_that_are_not_wanted(self, parsed: ReplayEngine) -> None:
        body = chat(tools=TOOLS, include_reasoning=False, logprobs=True, return_token_ids=True)
        whole = ask(CHAT, body).json
        events = ask(CHAT, streamed(body)).events

        assert folded_chat(events) == whole_chat(whole)
        assert whole["choices"][0]["message"]["reasoning"] is None
        assert not any(event["choices"][0].get("token_ids") or event["choices"][0]["logprobs"] for event in events)

    def test_a_call_has_one_id(self, parsed: ReplayEngine) -> None:
        events = ask(CHAT, streamed(chat(tools=TOOLS))).events
        calls = [call for event in events for call in event["choices"][0]["delta"].get("tool_calls", ())]

        assert [("id" in call, call["index"]) for call in calls] == [(True, 0)] + [(False, 0)] * (len(calls) - 1)
        assert events[-1]["choices"][0]["finish_reason"] == "tool_calls"

    def test_several_choices_are_interleaved(self, engine: ReplayEngine) -> None:
        engine.script = Script(outputs=[saying("one two three"), saying("four")])
        events = ask(CHAT, streamed(chat(n=2))).events

        assert [event["choices"][0]["index"] for event in events[:3]] == [0, 1, 0]
        assert [folded_chat(events, index)["message"]["content"] for index in (0, 1)] == ["one two three", "four"]

    def test_choices_in_one_event(self, engine: ReplayEngine) -> None:
        choices = '{"index": 0, "token_ids": [2541]}, {"index": 1, "token_ids": [3048], "finish_reason": "length"}'
        both = f'data: {{"request_id": "r", "choices": [{choices}]}}\n\n'.encode()
        last = b'data: {"request_id": "r", "choices": [{"index": 0, "token_ids": [4002], "finish_reason": "stop"}]}\n\n'
        engine.script = Script(outputs=[Output(token_ids=[1])], instead={0: both, 1: last})
        events = ask(CHAT, streamed(chat(n=2))).events

        assert [folded_chat(events, index)["message"]["content"] for index in (0, 1)] == ["Hello", " world"]

    def test_an_empty_last_chunk_ends_the_answer(self, engine: ReplayEngine) -> None:
        last = b'data: {"request_id": "r", "choices": [{"index": 0, "token_ids": [], "finish_reason": "stop"}]}\n\n'
        engine.script = Script(outputs=[Output(token_ids=[2541, 0])], instead={1: last})
        events = ask(CHAT, streamed(chat())).events

        assert folded_chat(events)["message"]["content"] == "Hello"
        assert events[-1]["choices"][0]["finish_reason"] == "stop"

    def test_an_answer_that_is_complete_does_not_wait_for_the_engines_end(self, engine: ReplayEngine) -> None:
        engine.script = Script(outputs=engine.script.outputs, hangs_at=3)  # type: ignore[union-attr]
        events = ask(CHAT, streamed(chat(), **WANTS_USAGE)).events

        assert events[-1]["usage"]["completion_tokens"] == 3

    def test_streams_use_a_connection_again(self, engine: ReplayEngine) -> None:
        ask_all(*(asking(CHAT, streamed(chat())) for _ in range(3)), in_turn=True)

        assert len({asked.connection for asked in engine.asked}) == 1
        assert not any(asked.was_aborted for asked in engine.asked)


class TestChoiceOfTools:
    """Named, required, or the model's own choice."""

    NAMED = {"type": "function", "function": {"name": "get_weather"}}

    @pytest.mark.parametrize(
        ("choice", "reason"), [(NAMED, "stop"), ("required", "tool_calls"), ("auto", "tool_calls")]
    )
    @pytest.mark.parametrize("thinks", [True, False])
    def test_calls(self, parsed: ReplayEngine, choice: Any, reason: str, thinks: bool) -> None:
        text = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
        parsed.script = Script(outputs=[saying(f"<think>\nWell.\n</think>{text}" if thinks else text, chunk=2)])
        body = chat(tools=TOOLS, tool_choice=choice, chat_template_kwargs={"enable_thinking": thinks})
        whole = whole_chat(ask(CHAT, body).json)

        assert whole["message"]["tool_calls"] == [{"name": "get_weather", "arguments": '{"city": "Paris"}'}]
        assert whole["finish_reason"] == reason
        assert folded_chat(ask(CHAT, streamed(body)).events) == whole

    def test_the_engine_is_held_to_it(self, parsed: ReplayEngine) -> None:
        parsed.script = Script(outputs=[saying("{}")])
        ask(CHAT, chat(tools=TOOLS, tool_choice=self.NAMED, chat_template_kwargs={"enable_thinking": False}))

        assert parsed.only.sampling["structured_outputs"]


class TestConstraints:
    """Engines without a tokenizer refuse every constraint."""

    STRICT: Json = {"type": "function", "function": {**TOOLS[0]["function"], "strict": True}}

    @pytest.fixture
    def glm(self) -> Iterator[ReplayEngine]:
        """Such an engine, and a model whose format guards every call."""
        parsers = {"tool_call_parser": "glm47", "enable_auto_tool_choice": True}
        with replaying(Script()) as engine, model_on(engine, tokenizer="glm47", **parsers):
            engine.script = Script(outputs=[saying("Hello")], has_no_tokenizer=True)
            yield engine

    @pytest.mark.parametrize("fields", [{}, {"stop": "x"}, {"stream": True}], ids=["whole", "stop string", "stream"])
    def test_one_that_the_client_has_not_asked_for_is_left_out(self, glm: ReplayEngine, fields: Json) -> None:
        reply = ask(CHAT, chat(tools=TOOLS, **fields))

        assert reply.status == 200
        assert ["structured_outputs" in asked.sampling for asked in glm.asked] == [True, False]

    @pytest.mark.parametrize(
        "fields",
        [
            {"tools": TOOLS, "tool_choice": "required"},
            {"tools": TOOLS, "parallel_tool_calls": False},
            {"tools": TOOLS, "response_format": {"type": "json_object"}},
            {"response_format": {"type": "json_object"}},
            {"tools": [STRICT]},
        ],
        ids=["required", "one call", "JSON and tools", "JSON", "strict"],
    )
    @pytest.mark.parametrize("stream", [False, True])
    def test_one_that_the_client_has_asked_for_is_refused(self, glm: ReplayEngine, fields: Json, stream: bool) -> None:
        reply = ask(CHAT, chat(stream=stream, **fields))

        assert reply.status == 400
        assert "requires a tokenizer" in reply.error["message"]
        assert len(glm.asked) == 1


class TestTokens:
    """Log probabilities and token IDs."""

    def test_log_probabilities(self, engine: ReplayEngine) -> None:
        body = chat(logprobs=True, top_logprobs=2)
        whole = ask(CHAT, body).json["choices"][0]["logprobs"]["content"]
        events = ask(CHAT, streamed(body)).events
        parts = [event["choices"][0]["logprobs"]["content"] for event in events]

        assert engine.asked[0].sampling["logprobs"] == 2
        assert [entry["token"] for entry in whole] == ["Hello", " world", "<|im_end|>"]
        assert [len(entry["top_logprobs"]) for entry in whole] == [2, 2, 2]
        assert [entry for part in parts for entry in part] == whole

    def test_token_ids(self, engine: ReplayEngine) -> None:
        whole = ask(CHAT, chat(return_token_ids=True)).json
        events = ask(CHAT, streamed(chat(return_token_ids=True))).events

        assert whole["prompt_token_ids"] == engine.asked[0].request["token_ids"]
        assert whole["choices"][0]["token_ids"] == [2541, 3048, 4002]
        assert events[0]["prompt_token_ids"] == whole["prompt_token_ids"]
        assert not any("prompt_token_ids" in event for event in events[1:])
        assert [event["choices"][0]["token_ids"] for event in events] == [[2541], [3048], [4002]]

    def test_neither_unless_asked_for(self, engine: ReplayEngine) -> None:
        events = ask(CHAT, streamed(chat())).events

        assert not any("prompt_token_ids" in event or "token_ids" in event["choices"][0] for event in events)
        assert all(event["choices"][0]["logprobs"] is None for event in events)


class TestFailures:
    """Before the first token an error answer, afterwards an error event."""

    @pytest.mark.parametrize("stream", [False, True])
    def test_an_engine_that_refuses(self, engine: ReplayEngine, stream: bool) -> None:
        content = {"message": "too long", "type": "BadRequestError", "param": "max_tokens", "code": 400}
        engine.script = Script(status=400, body={"error": content})
        reply = ask(CHAT, chat(stream=stream))

        assert (reply.status, reply.json) == (400, {"error": content})

    def test_an_engine_that_is_busy(self, engine: ReplayEngine) -> None:
        engine.script = Script(status=429, body=b"slowly", headers={"Retry-After": "7"})
        reply = ask(CHAT, chat())

        assert (reply.status, reply.headers["retry-after"], reply.error["message"]) == (429, "7", "slowly")

    @pytest.mark.parametrize("stream", [False, True])
    def test_an_engine_that_is_gone(self, stream: bool) -> None:
        with model_on("http://127.0.0.1:9"):
            reply = ask(CHAT, chat(stream=stream))

        assert (reply.status, reply.error["code"], reply.error["type"]) == (502, "engine_unreachable", "EngineError")

    @pytest.mark.parametrize("stream", [False, True])
    def test_an_engine_that_hangs(self, engine: ReplayEngine, settings: Any, stream: bool) -> None:
        settings.DERENDER = {**settings.DERENDER, "ENGINE_READ_SECONDS": 0.1}
        engine.script = Script(outputs=[Output(token_ids=[1])], hangs_at=0)
        reply = ask(CHAT, chat(stream=stream))

        assert (reply.status, reply.error["code"]) == (504, "engine_timeout")

    @pytest.mark.parametrize(
        "change",
        [
            lambda outputs: Script(outputs=outputs, breaks_at=1),
            lambda outputs: Script(outputs=outputs, instead={1: b"data: {garbage\n\n"}),
            lambda outputs: Script(outputs=outputs, instead={1: b'data: {"error": {"message": "out of memory"}}\n\n'}),
        ],
        ids=["break", "garbage", "error"],
    )
    def test_a_started_stream_ends_with_an_error_event(
        self, engine: ReplayEngine, change: Callable[..., Script], caplog: pytest.LogCaptureFixture
    ) -> None:
        engine.script = change([saying("Hello world")])
        reply = ask(CHAT, streamed(chat(), **WANTS_USAGE))
        first, last = reply.events

        assert reply.status == 200
        assert first["choices"][0]["delta"] == {"role": "assistant", "content": "Hello"}
        assert (last["error"]["type"], last["error"]["code"]) == ("EngineError", "engine_failed")
        (noted,) = caplog.records
        assert noted.getMessage() == f"Engine {engine.url}: {last['error']['message']}"

    def test_a_fault_of_the_server_within_a_stream_is_logged_and_says_nothing(
        self, engine: ReplayEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def broken(*args: Any, **kwargs: Any) -> Any:
            raise KeyError("secret")

        monkeypatch.setattr("derender_api.gateway.stream.shown_chunk", broken)
        reply = ask(CHAT, streamed(chat()))

        assert reply.error["message"] == "Internal server error"
        assert any(record.levelname == "ERROR" and record.exc_info for record in caplog.records)

    def test_a_stream_without_an_end_is_whole_once_its_outputs_are(self, engine: ReplayEngine) -> None:
        engine.script = Script(outputs=[saying("Hello world")], ends=b"")

        assert folded_chat(ask(CHAT, streamed(chat())).events)["message"]["content"] == "Hello world"
