"""Requests to the gateway in this process, by way of the server's own application, and what streams add up to."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from django.core.handlers.asgi import ASGIHandler

from derender_api.catalog import catalog
from derender_api.dispatch import Dispatcher
from derender_api.django_bridge import AsgiApplication, DjangoBridge
from derender_api.gateway.engines import engines
from derender_api.loaded_model import LoadedModel
from parsers.configuration import ModelConfiguration
from tests.derender_api.support import TOKENIZERS, served
from tests.replay_engine import PATIENCE, Output, ReplayEngine, Script, replaying

CHAT = "/v1/chat/completions"
COMPLETION = "/v1/completions"
Json = dict[str, Any]


@dataclass(slots=True)
class Reply:
    """What the server sent: `parts` of the body as they were sent; `is_whole` where the server ended it."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    parts: list[bytes] = field(default_factory=list)
    is_whole: bool = False

    @property
    def json(self) -> Any:
        """The body of an answer in one piece."""
        return json.loads(b"".join(self.parts))

    @property
    def events(self) -> list[Any]:
        """The data of the events; they must end with `[DONE]`, which is left out."""
        events = b"".join(self.parts).split(b"\n\n")
        assert events[-2:] == [b"data: [DONE]", b""]
        return [json.loads(event.removeprefix(b"data: ")) for event in events[:-2]]

    @property
    def error(self) -> Json:
        """The error object of an answer, or of a stream's last event."""
        return (self.json if "json" in self.headers["content-type"] else self.events[-1])["error"]


def ask(path: str, body: Any, **options: Any) -> Reply:
    """The reply to one request; options as in `asking`."""
    return ask_all(asking(path, body, **options))[0]


def ask_all(*requests: Coroutine[Any, Any, Reply], in_turn: bool = False) -> list[Reply]:
    """The replies to requests made at once, or one after the other."""

    async def main() -> list[Reply]:
        try:
            if in_turn:
                return [await asyncio.wait_for(each, PATIENCE) for each in requests]
            return await asyncio.wait_for(asyncio.gather(*requests), PATIENCE)
        finally:
            # Generators of clients that left are closed by the loop, in its next turns.
            await asyncio.sleep(0.01)
            await engines.close()

    return asyncio.run(main())


async def asking(
    path: str,
    body: Any,
    *,
    headers: Mapping[str, str] | None = None,
    leaves: Callable[[Reply], bool] | None = None,
    reads: int | None = None,
    method: str = "POST",
) -> Reply:
    """One request. The client `leaves` as soon as that holds; it takes `reads` parts of the body and no more."""
    reply = Reply()
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    unread = [{"type": "http.request", "body": content, "more_body": False}]

    async def receive() -> Any:
        if unread:
            return unread.pop()
        while leaves is None or not leaves(reply):
            await asyncio.sleep(0.005)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            reply.status = message["status"]
            reply.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
            return
        if reads is not None and len(reply.parts) == reads:
            await asyncio.Event().wait()
        reply.parts += filter(None, [message.get("body")])
        reply.is_whole = not message.get("more_body", False)

    sent = {"content-type": "application/json", "host": "localhost", **(headers or {})}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "http_version": "1.1",
        "scheme": "http",
        "server": ("localhost", 80),
        "client": ("127.0.0.1", 1234),
        "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
    }
    application = Dispatcher(DjangoBridge(), cast(AsgiApplication, ASGIHandler()), threads=1)
    await application(scope, receive, send)
    return reply


@contextmanager
def model_on(*engines: ReplayEngine | str, **configuration: Any) -> Iterator[LoadedModel]:
    """One served model, named "model", with these engines."""
    urls = tuple(engine if isinstance(engine, str) else engine.url for engine in engines)
    with served(**{"engine_urls": urls, **configuration}) as model:
        yield model


@contextmanager
def gateway(script: Script, **configuration: Any) -> Iterator[ReplayEngine]:
    """A replay engine, and one served model that it generates for."""
    with replaying(script) as engine, model_on(engine, **configuration):
        yield engine


def configured(name: str, *urls: str, **configuration: Any) -> ModelConfiguration:
    """A model for `catalog.override`, on the tokenizer chatml."""
    return ModelConfiguration(model=str(TOKENIZERS / "chatml"), name=name, engine_urls=urls, **configuration)


def saying(text: str, *, ends: bool = True, **fields: Any) -> Output:
    """An output of the served model's tokens for `text`, with the end-of-sequence token where it `ends`."""
    tokenizer = catalog.resolve(None).tokenizer
    end = [tokenizer.eos_id] if ends and tokenizer.eos_id is not None else []
    return Output(token_ids=[*tokenizer.encode(text), *end], **fields)


def chat(content: str = "hi", **fields: Any) -> Json:
    """A chat request."""
    return {"model": "model", "messages": [{"role": "user", "content": content}], **fields}


def completion(prompt: Any = "hi", **fields: Any) -> Json:
    """A text completion request."""
    return {"model": "model", "prompt": prompt, **fields}


def streamed(body: Json, **fields: Any) -> Json:
    """The same request, for a stream."""
    return {**body, "stream": True, **fields}


def folded_chat(events: Sequence[Json], index: int = 0) -> Json:
    """The choice that the chunks of a stream add up to, without IDs of calls."""
    message: Json = {"role": None, "content": "", "reasoning": "", "tool_calls": []}
    choice: Json = {"message": message, "finish_reason": None, "stop_reason": None}
    for each in _choices(events, index):
        assert choice["finish_reason"] is None, "a chunk behind the last one"
        delta = each["delta"]
        assert ("role" in delta) == (message["role"] is None)
        message["role"] = delta.get("role", message["role"])
        for key in ("content", "reasoning"):
            message[key] += delta.get(key, "")
        for call in delta.get("tool_calls", ()):
            if call["index"] == len(message["tool_calls"]):
                assert call["id"]
                assert call["type"] == "function"
                message["tool_calls"].append({"name": "", "arguments": ""})
            for key, text in call["function"].items():
                message["tool_calls"][call["index"]][key] += text
        choice["finish_reason"], choice["stop_reason"] = each["finish_reason"], each.get("stop_reason")
    return choice


def whole_chat(answer: Json, index: int = 0) -> Json:
    """A choice of a one-shot answer in the shape of `folded_chat`."""
    choice = answer["choices"][index]
    message = choice["message"]
    calls = message.get("tool_calls", ())
    return {
        "message": {
            "role": message["role"],
            "content": message["content"] or "",
            "reasoning": message["reasoning"] or "",
            "tool_calls": [{key: call["function"][key] for key in ("name", "arguments")} for call in calls],
        },
        "finish_reason": choice["finish_reason"],
        "stop_reason": choice["stop_reason"],
    }


def folded_text(events: Sequence[Json], index: int = 0) -> tuple[str, str | None]:
    """Text and finish reason that the chunks of a completion add up to."""
    choices = list(_choices(events, index))
    return "".join(choice["text"] for choice in choices), choices[-1]["finish_reason"]


def _choices(events: Sequence[Json], index: int) -> Iterator[Json]:
    return (choice for event in events for choice in event["choices"] if choice["index"] == index)
