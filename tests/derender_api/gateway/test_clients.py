"""Clients that leave, and clients that do not read: the engine is told."""

import asyncio

import pytest

from derender_api.gateway.engines import engines
from derender_api.load import requests_in_flight
from tests.derender_api.gateway.support import (
    CHAT,
    COMPLETION,
    Json,
    Reply,
    ask,
    ask_all,
    asking,
    chat,
    completion,
    folded_chat,
    model_on,
    streamed,
)
from tests.replay_engine import Output, ReplayEngine, Script, replaying, until

LONG = Output(token_ids=[2541] * 100_000)
BODIES = pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, chat()),
        (CHAT, chat(stop="x")),
        (CHAT, streamed(chat())),
        (COMPLETION, completion([[1], [2]])),
        (COMPLETION, streamed(completion([[1], [2]]))),
    ],
    ids=["chat", "chat with stop", "chat stream", "text", "text stream"],
)


def all_given_up(engine: ReplayEngine, url: str) -> bool:
    """Whether nothing of what the engine was asked is going on, here or there."""
    return (
        all(asked.was_aborted for asked in engine.asked) and engines.in_flight(url) == requests_in_flight.total() == 0
    )


class TestLeaving:
    """A client that closes its connection."""

    @BODIES
    def test_before_the_first_token(self, path: str, body: Json) -> None:
        prompts = len(body["prompt"]) if path == COMPLETION else 1
        with replaying(Script(outputs=[LONG], hangs_at=0)) as engine, model_on(engine):
            reply = ask(path, body, leaves=lambda _: len(engine.asked) == prompts)
            until(lambda: all_given_up(engine, engine.url))

        assert reply.status == 0

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            (CHAT, chat(stop="x")),
            (CHAT, streamed(chat())),
            (COMPLETION, completion([[1], [2]], stop="x")),
            (COMPLETION, streamed(completion([[1], [2]]))),
        ],
        ids=["chat with stop", "chat stream", "text with stop", "text stream"],
    )
    def test_in_the_middle(self, path: str, body: Json) -> None:
        with replaying(Script(outputs=[LONG], pause=0.005)) as engine, model_on(engine):
            reply = ask(path, body, leaves=lambda _: bool(engine.asked) and engine.asked[-1].sent > 3)
            until(lambda: all_given_up(engine, engine.url))

        assert not reply.is_whole
        assert max(asked.sent for asked in engine.asked) < 10_000

    def test_while_the_stream_waits_for_the_engine(self) -> None:
        with replaying(Script(outputs=[LONG], hangs_at=2)) as engine, model_on(engine):
            ask(CHAT, streamed(chat()), leaves=lambda reply: len(reply.parts) == 2)
            until(lambda: all_given_up(engine, engine.url))


class TestReading:
    """A client that does not read, or slowly."""

    @pytest.mark.parametrize(
        ("path", "body"),
        [(CHAT, streamed(chat())), (COMPLETION, streamed(completion([[1], [2]])))],
        ids=["chat", "text of two prompts"],
    )
    def test_a_client_that_does_not_read_stalls_the_engine(self, path: str, body: Json) -> None:
        seen: list[int] = []

        def is_stalled(_: object) -> bool:
            """Whether nothing was sent for a while, long before the end."""
            seen.append(sum(asked.sent for asked in engine.asked))
            return len(seen) > 60 and seen[-1] == seen[-60] > 0

        with replaying(Script(outputs=[LONG])) as engine, model_on(engine, max_model_len=10**6):
            reply = ask(path, body, reads=3, leaves=is_stalled)
            until(lambda: all_given_up(engine, engine.url))

        assert len(reply.parts) == 3
        assert all(0 < asked.sent < 50_000 for asked in engine.asked)

    def test_other_clients_are_not_held_up(self) -> None:
        slow, quick = Script(outputs=[LONG]), Script(outputs=[Output(token_ids=[2541, 4002])])
        stalled, done = asyncio.Event(), asyncio.Event()

        def script(request: Json) -> Script:
            return slow if request["sampling_params"].get("seed") else quick

        def leaves(reply: Reply) -> bool:
            """The client takes one part, and stays until the other one has everything."""
            if reply.parts:
                stalled.set()
            return done.is_set()

        async def later() -> Reply:
            await stalled.wait()
            reply = await asking(CHAT, streamed(chat()))
            done.set()
            return reply

        with replaying(script) as engine, model_on(engine, max_model_len=10**6):
            unread, reply = ask_all(asking(CHAT, streamed(chat(seed=1)), reads=1, leaves=leaves), later())

        assert len(unread.parts) == 1
        assert folded_chat(reply.events)["message"]["content"] == "Hello"
