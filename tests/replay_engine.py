"""A token-in, token-out engine that replays: `POST /inference/v1/generate` as `vllm serve --tokens-only` answers it.

It answers over real HTTP, from a thread of its own, whole or as server-sent events; and it fails on demand.
"""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

PATH = "/inference/v1/generate"
NO_STOP_STRINGS = (
    "stop strings are not supported on a --tokens-only server because detokenization is disabled. Check stop strings "
    "on the coordinator, or use stop_token_ids."
)
NO_CONSTRAINTS = "Structured outputs requires a tokenizer so it can't be used with 'skip_tokenizer_init'"
MAX_LOGPROBS = 20
PATIENCE = 20.0
"""Seconds after which a test that waits for something has failed."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a choice generates: `chunk` token IDs per event."""

    token_ids: Sequence[int]
    chunk: int = 1
    finish_reason: str = "stop"
    stop_reason: int | str | None = None

    def chunks(self) -> list[list[int]]:
        """The token IDs of each event."""
        ids = list(self.token_ids)
        return [ids[start : start + self.chunk] for start in range(0, len(ids), self.chunk)] or [[]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What the engine does with a request.

    `outputs[i]` is the choice `i`; a request for more gets them again. `pause` seconds lie between events. `status`
    other than 200 answers `body` (JSON, or bytes as they are). It `hangs` for good before event number `hangs_at` (a
    whole response counts as one event), closes the connection before number `breaks_at`, and sends `instead[k]` as
    event `k`. `ends` is the last event, None for an end without one. Stop strings are refused in any case, constraints
    of the output where the engine `has_no_tokenizer`.
    """

    outputs: Sequence[Output] = ()
    has_no_tokenizer: bool = False
    pause: float = 0.0
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    hangs_at: int | None = None
    breaks_at: int | None = None
    instead: Mapping[int, bytes] = field(default_factory=dict)
    ends: bytes | None = b"data: [DONE]\n\n"


@dataclass(slots=True)
class Asked:
    """A request that came: its body and headers, how many events were sent, and how it ended."""

    request: Json
    headers: Mapping[str, str]
    connection: tuple[str, int]
    sent: int = 0
    is_over: bool = False
    was_aborted: bool = False

    @property
    def sampling(self) -> Json:
        """The sampling parameters."""
        return self.request["sampling_params"]


class ReplayEngine:
    """A running engine. `script` may be changed at any time, or be a function of the request."""

    def __init__(self, script: Script | Callable[[Json], Script]) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._loop: asyncio.AbstractEventLoop | None = None
        self._runner: web.AppRunner | None = None

    @property
    def only(self) -> Asked:
        """The request that came; there must be no other."""
        (asked,) = self.asked
        return asked

    def in_flight(self) -> int:
        """Requests that are being answered."""
        return sum(not asked.is_over for asked in self.asked)

    def kill(self) -> None:
        """Listen no more, and cut all connections, within a running block."""
        assert self._loop is not None
        assert self._runner is not None
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(PATIENCE)

    @contextmanager
    def running(self) -> Iterator["ReplayEngine"]:
        """Listen until the block ends; then connections that are left are cut."""
        self._loop = loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="replay engine")
        thread.start()
        try:
            self._runner = asyncio.run_coroutine_threadsafe(self._start(), loop).result(PATIENCE)
            yield self
            self.kill()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    async def _start(self) -> web.AppRunner:
        application = web.Application(client_max_size=2**26)
        application.router.add_post(PATH, self._generate)
        runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        await web.SockSite(runner, self._socket).start()
        return runner

    async def _generate(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        assert request.transport is not None
        asked = Asked(body, dict(request.headers), request.transport.get_extra_info("peername")[:2])
        self.asked.append(asked)
        script = self.script(body) if callable(self.script) else self.script
        try:
            refusal = _refusal(body, script)
            if refusal is not None:
                return refusal
            return await (_stream if body.get("stream") else _whole)(request, asked, script)
        except (asyncio.CancelledError, ConnectionError):
            asked.was_aborted = asked.sent != script.breaks_at
            raise asyncio.CancelledError from None
        finally:
            asked.is_over = True


@contextmanager
def replaying(script: Script | Callable[[Json], Script]) -> Iterator[ReplayEngine]:
    """A running engine with `script`."""
    with ReplayEngine(script).running() as engine:
        yield engine


def until(condition: Callable[[], bool]) -> None:
    """Wait until `condition` holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.005)


def error_body(message: str, *, type: str = "BadRequestError", param: str | None = None, code: int = 400) -> Json:
    """An error as vLLM answers it."""
    return {"error": {"message": message, "type": type, "param": param, "code": code}}


def _refusal(request: Json, script: Script) -> web.Response | None:
    if script.status != 200:
        if isinstance(script.body, bytes):
            return web.Response(status=script.status, headers=script.headers, body=script.body)
        return web.json_response(script.body, status=script.status, headers=script.headers)
    if request["sampling_params"].get("stop"):
        return web.json_response(error_body(NO_STOP_STRINGS), status=400)
    if script.has_no_tokenizer and request["sampling_params"].get("structured_outputs"):
        return web.json_response(error_body(NO_CONSTRAINTS), status=400)
    wanted = request["sampling_params"].get("logprobs") or 0
    if not 0 <= wanted <= MAX_LOGPROBS:
        message = f"Requested sample logprobs of {wanted}, which is greater than max allowed: {MAX_LOGPROBS}"
        message = f"{message} (parameter=logprobs, value={wanted})"
        return web.json_response(error_body(message, param="logprobs"), status=400)
    return None


async def _whole(request: web.Request, asked: Asked, script: Script) -> web.Response:
    await _before(request, asked, script)
    choices = [_choice(index, output.token_ids, asked, output) for index, output in _outputs(asked, script)]
    counts = _usage(asked, sum(len(choice["token_ids"]) for choice in choices))
    await asyncio.sleep(script.pause)
    body = {
        "request_id": _identity(asked),
        "model": "model",
        "created": int(time.time()),
        "usage": {**counts, "prompt_tokens_details": None, "completion_tokens_details": None},
        "prompt_logprobs": None,
        "prompt_token_ids": None,
        "metrics": None,
        "kv_transfer_params": None,
        "ec_transfer_params": None,
        "output_mode": "tokens",
        "choices": choices,
    }
    return web.Response(body=script.instead.get(0, json.dumps(body).encode()), content_type="application/json")


async def _stream(request: web.Request, asked: Asked, script: Script) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    await response.prepare(request)
    for data in _events(asked, script):
        await _before(request, asked, script)
        await response.write(script.instead.get(asked.sent, data))
        asked.sent += 1
        await asyncio.sleep(script.pause)
    await _before(request, asked, script)
    if script.ends is not None:
        await response.write(script.ends)
    await response.write_eof()
    return response


async def _before(request: web.Request, asked: Asked, script: Script) -> None:
    """What is to happen before the next event."""
    if asked.sent == script.hangs_at:
        await asyncio.sleep(10 * PATIENCE)
    if asked.sent == script.breaks_at:
        assert request.transport is not None
        # What was written still arrives, which an abort would not let it.
        request.transport.close()
        raise ConnectionResetError


def _events(asked: Asked, script: Script) -> Iterator[bytes]:
    """The events of a stream: the first chunk of each choice, the second of each, and so on; the usage."""
    options = asked.request.get("stream_options") or {}
    outputs = _outputs(asked, script)
    parts = [(index, output, output.chunks()) for index, output in outputs]
    counted = dict.fromkeys(range(len(parts)), 0)
    for position in range(max((len(chunks) for *_, chunks in parts), default=0)):
        for index, output, chunks in parts:
            if position < len(chunks):
                counted[index] += len(chunks[position])
                choice = _choice(index, chunks[position], asked, output, is_last=position == len(chunks) - 1)
                usage = _usage(asked, counted[index]) if options.get("continuous_usage_stats") else None
                yield _event({"request_id": _identity(asked), "usage": usage, "choices": [choice]})
    if options.get("include_usage"):
        usage = _usage(asked, sum(counted.values()))
        yield _event({"request_id": _identity(asked), "usage": usage, "choices": []})


def _outputs(asked: Asked, script: Script) -> list[tuple[int, Output]]:
    number = asked.sampling.get("n") or 1
    return [(index, script.outputs[index % len(script.outputs)]) for index in range(number)] if script.outputs else []


def _choice(
    index: int, token_ids: Sequence[int], asked: Asked, output: Output, *, is_last: bool = True
) -> dict[str, Any]:
    return {
        "index": index,
        "finish_reason": output.finish_reason if is_last else None,
        "stop_reason": output.stop_reason if is_last else None,
        "token_ids": list(token_ids),
        "routed_experts": None,
        "sampling_mask": None,
        "weight_versions": [{"version": "default", "start": 0, "end": len(output.token_ids)}] if is_last else None,
        "logprobs": _logprobs(token_ids, asked.sampling.get("logprobs")),
    }


def _logprobs(token_ids: Sequence[int], wanted: int | None) -> Json | None:
    """The sampled tokens with made-up numbers; each but the first candidate is the token before it."""
    if wanted is None:
        return None
    content = []
    for token_id in token_ids:
        candidates = [
            {"token_id": token_id - rank, "logprob": -0.25 - rank, "rank": rank + 1} for rank in range(max(wanted, 1))
        ]
        content.append({"token_id": token_id, "logprob": -0.25, "rank": 1, "top_logprobs": candidates})
    return {"content": content}


def _usage(asked: Asked, generated: int) -> Json:
    prompt = len(asked.request["token_ids"])
    return {"prompt_tokens": prompt, "total_tokens": prompt + generated, "completion_tokens": generated}


def _identity(asked: Asked) -> str:
    return f"generate-tokens-{asked.request.get('request_id') or '0'}"


def _event(chunk: Json) -> bytes:
    return b"data: " + json.dumps({"output_mode": "tokens", **chunk}).encode() + b"\n\n"
