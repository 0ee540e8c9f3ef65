"""A complete client: render a chat request, let an engine generate, and derender its stream.

    python streaming_client.py --derender http://localhost:8000 --engine http://localhost:8200 --model demo "Hello"

Needs httpx. `ChatDerenderer` is the part to take along.
"""

import argparse
import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx

Json = dict[str, Any]

DERENDER = "/v1/chat/completions/derender"
TRIES = 5
PASSING = {408, 429, 502, 503, 504}
"""Statuses after which the same call may succeed a little later."""


class DerenderError(Exception):
    """An answer that no further try would change."""


class ChatDerenderer:
    """Turns the chunks of one engine stream into chat completion chunks; keeps a state for each of its choices.

    `compact` asks for states of constant size. Without it only what vLLM knows is sent: states that grow with the
    output, one chunk a call, and the chat request and the prompt's token IDs with each of them.
    """

    def __init__(
        self, http: httpx.AsyncClient, *, chat_request: Json, prompt_token_ids: Sequence[int], compact: bool = True
    ) -> None:
        self._http = http
        self._compact = compact
        self._always = {
            "stream": True,
            "model": chat_request.get("model"),
            "prompt_tokens": len(prompt_token_ids),
            **({"stream_state_format": "compact"} if compact else {}),
        }
        self._context = {"chat_request": chat_request, "prompt_token_ids": list(prompt_token_ids)}
        self._states: dict[int | None, Json] = {}

    async def derender(self, waiting: Sequence[Json]) -> list[Json]:
        """The answer's chunks for the engine's chunks that have arrived; those of a choice keep their order."""
        groups: dict[int | None, list[Json]] = {}
        for chunk in waiting:
            groups.setdefault(choice_of(chunk), []).append(chunk)
        answers = await asyncio.gather(*(self._of_choice(choice, group) for choice, group in groups.items()))
        return [chunk for answer in answers for chunk in answer]

    async def _of_choice(self, choice: int | None, chunks: Sequence[Json]) -> list[Json]:
        if self._compact:
            return (await self._call(choice, {"generate_chunks": chunks}))["chunks"]
        return [(await self._call(choice, {"generate_chunk": chunk}))["chunk"] for chunk in chunks]

    async def _call(self, choice: int | None, part: Json) -> Json:
        state = self._states.get(choice)
        body = {**self._always, **part, "stream_state": state}
        if state is None or not self._compact:
            body |= self._context
        answer = await self._post(body)
        self._states[choice] = answer["stream_state"]
        return answer

    async def _post(self, body: Json) -> Json:
        """One call. It changes nothing on the server, so that it may be made again; call IDs stay the same."""
        for attempt in range(TRIES):
            pause = 0.1 * 2**attempt
            try:
                answer = await self._http.post(DERENDER, json=body)
            except httpx.TransportError as error:
                problem = repr(error)
            else:
                if answer.status_code == 200:
                    return answer.json()
                problem = answer.text
                if answer.status_code == 409:
                    # The server does not remember the chat request (any more): say it again.
                    body = {**body, **self._context}
                    continue
                if answer.status_code not in PASSING:
                    break
                pause = float(answer.headers.get("Retry-After", pause))
            await asyncio.sleep(pause)
        raise DerenderError(problem)


def choice_of(chunk: Json) -> int | None:
    """The choice that a chunk of the engine belongs to; None for the one with the usage, which has none."""
    return chunk["choices"][0]["index"] if chunk["choices"] else None


async def engine_chunks(http: httpx.AsyncClient, generate_request: Json) -> AsyncIterator[Json]:
    """Chunks of the engine's stream, which ends with [DONE]."""
    async with http.stream("POST", "/inference/v1/generate", json=generate_request) as response:
        if response.status_code != 200:
            raise DerenderError((await response.aread()).decode())
        async for line in response.aiter_lines():
            if line.startswith("data: ") and line != "data: [DONE]":
                yield json.loads(line[len("data: ") :])


async def arrived_together(chunks: AsyncIterator[Json]) -> AsyncIterator[list[Json]]:
    """Lists of chunks: all that came while the last list was worked on."""
    queue: asyncio.Queue[Json | None] = asyncio.Queue(maxsize=256)

    async def fill() -> None:
        try:
            async for chunk in chunks:
                await queue.put(chunk)
        finally:
            await queue.put(None)

    filling = asyncio.create_task(fill())
    try:
        is_open = True
        while is_open:
            waiting = [await queue.get()]
            while not queue.empty():
                waiting.append(queue.get_nowait())
            is_open = waiting[-1] is not None
            if ready := [chunk for chunk in waiting if chunk is not None]:
                yield ready
        await filling
    finally:
        filling.cancel()


async def stream_chat(
    derender: httpx.AsyncClient, engine: httpx.AsyncClient, chat_request: Json, *, compact: bool = True
) -> AsyncIterator[Json]:
    """Chat completion chunks of `chat_request`, as an OpenAI server streams them."""
    rendered = await derender.post("/v1/chat/completions/render", json=chat_request)
    rendered.raise_for_status()
    generate_request = rendered.json()
    derenderer = ChatDerenderer(
        derender, chat_request=chat_request, prompt_token_ids=generate_request["token_ids"], compact=compact
    )
    async for waiting in arrived_together(engine_chunks(engine, generate_request)):
        for chunk in await derenderer.derender(waiting):
            yield chunk


async def main() -> None:
    """Print a streamed answer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--derender", default="http://localhost:8000")
    parser.add_argument("--engine", default="http://localhost:8200")
    parser.add_argument("--model", required=True)
    parser.add_argument("--replay", action="store_true", help="states in vLLM's form")
    parser.add_argument("prompt")
    options = parser.parse_args()
    chat_request = {
        "model": options.model,
        "messages": [{"role": "user", "content": options.prompt}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    async with (
        httpx.AsyncClient(base_url=options.derender, timeout=60) as derender,
        httpx.AsyncClient(base_url=options.engine, timeout=300) as engine,
    ):
        async for chunk in stream_chat(derender, engine, chat_request, compact=not options.replay):
            for choice in chunk["choices"]:
                delta = choice["delta"]
                print(delta.get("reasoning") or "", delta.get("content") or "", sep="", end="", flush=True)
                for function in (call["function"] for call in delta.get("tool_calls") or []):
                    print(function["name"] or "", function["arguments"] or "", end=" ", flush=True)
            if chunk.get("usage"):
                print(f"\n{chunk['usage']['completion_tokens']} tokens")


if __name__ == "__main__":
    asyncio.run(main())
