"""What derender servers cost, side by side on the same work: latency, throughput, streams against their length.

The servers take turns within every round, so that a busy machine hurts all of them alike. Clients share the machine
with the servers; they send prepared bytes over kept connections to weigh little.
"""

import json
import socket
import statistics
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

from derender_api.parity.application import CHAT, Remote
from derender_api.parity.suite import JSON_TYPE, MODEL_NAME, dumps

LATENCY_REQUESTS = 30
_SENTENCE = "First look at the file, then write it again with the dates in order; Zürich comes before 서울 🙂. "
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "write_file",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            },
        },
    }
]


class BenchmarkError(Exception):
    """A server did not answer as it should: nothing can be measured."""


class Encoder(Protocol):
    """Text to token IDs, without special tokens at the ends."""

    def encode(self, text: str) -> list[int]:
        """The token IDs of `text`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much to measure. Lengths are in tokens; `requests` are those of one throughput measurement."""

    oneshot_lengths: tuple[int, ...] = (64, 1024)
    stream_lengths: tuple[int, ...] = (256, 512, 1024)
    prompt_length: int = 200
    rounds: int = 3
    requests: int = 200
    clients: int = 4
    with_parsers: bool = True


@dataclass(frozen=True, slots=True)
class Work:
    """Output and prompt token IDs of a given length, and the request that goes with them."""

    encoder: Encoder
    plan: Plan

    def output(self, length: int) -> list[int]:
        """About `length` tokens: a third each reasoning, content and one tool call; plain text without parsers."""
        if not self.plan.with_parsers:
            return self._ids(self._prose(length))
        third = self._prose(length // 3)
        call = {"name": "write_file", "arguments": {"path": "a.txt", "content": third}}
        body = json.dumps(call, ensure_ascii=False)
        return self._ids(f"<think>\n{third}\n</think>\n\n{third}\n<tool_call>\n{body}\n</tool_call>")

    def oneshot(self, length: int) -> bytes:
        """Body of a one-shot request."""
        choice = {"index": 0, "token_ids": self.output(length), "finish_reason": "stop"}
        body = {"generate_response": {"request_id": "bench", "choices": [choice]}, **self._request()}
        return dumps(body | {"prompt_tokens": self.plan.prompt_length})

    def prompt(self) -> list[int]:
        """The prompt's token IDs."""
        return self._ids(self._prose(self.plan.prompt_length + 10))[: self.plan.prompt_length]

    def chunk(self, token_ids: Sequence[int], *, prompt: Sequence[int], state: Any, last: bool) -> bytes:
        """Body of the call for one chunk."""
        choice = {"index": 0, "token_ids": token_ids, "finish_reason": "stop" if last else None}
        body = {
            "stream": True,
            "generate_chunk": {"request_id": "bench", "choices": [choice]},
            "stream_state": state,
            "prompt_token_ids": prompt,
            "prompt_tokens": len(prompt),
            **self._request(),
        }
        return dumps(body)

    def _request(self) -> dict[str, Any]:
        request = {"model": MODEL_NAME, "messages": [{"role": "user", "content": "hi"}], "tools": _TOOLS}
        return {"chat_request": request if self.plan.with_parsers else {**request, "tools": None}}

    def _prose(self, length: int) -> str:
        """Text of about `length` tokens."""
        per_sentence = len(self._ids(_SENTENCE))
        return (_SENTENCE * (length // per_sentence + 1)).strip()[: max(length * len(_SENTENCE) // per_sentence, 1)]

    def _ids(self, text: str) -> list[int]:
        return self.encoder.encode(text)


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: the median over the rounds for each server, in the order given."""

    name: str
    values: tuple[float, ...]


def measure(servers: Mapping[str, str], *, encoder: Encoder, plan: Plan) -> list[Row]:
    """Measure the servers (name -> URL). Raises BenchmarkError."""
    work = Work(encoder, plan)
    samples: dict[str, dict[str, list[float]]] = {}
    for url in servers.values():
        for _ in range(3):
            _checked_post(url, work.oneshot(64))
    for _ in range(plan.rounds):
        for name, url in servers.items():
            for measurement, value in _round(url, work):
                samples.setdefault(measurement, {}).setdefault(name, []).append(value)
    return [
        Row(measurement, tuple(statistics.median(by_server[name]) for name in servers))
        for measurement, by_server in samples.items()
    ]


def as_table(servers: Sequence[str], rows: Sequence[Row]) -> str:
    """The measurements as text; each server after the first with its ratio to the first."""
    width = max(len(row.name) for row in rows) + 2
    lines = [" " * width + "".join(f"{name:>22}" for name in servers)]
    for row in rows:
        first = row.values[0]
        cells = [f"{first:>22,.2f}"]
        cells += [f"{value:>13,.2f} {f'(x{value / first:.2f})' if first else '':>8}" for value in row.values[1:]]
        lines.append(f"{row.name:<{width}}{''.join(cells)}")
    return "\n".join(lines)


def _round(url: str, work: Work) -> Iterator[tuple[str, float]]:
    plan = work.plan
    for length in plan.oneshot_lengths:
        body = work.oneshot(length)
        yield f"one-shot, {length} tokens: latency, ms", 1000 * _latency(url, body)
        yield (
            f"one-shot, {length} tokens: requests/s, {plan.clients} clients",
            _throughput(url, body, requests=plan.requests, clients=plan.clients),
        )
    for length in plan.stream_lengths:
        total, last, carried = _stream(url, work, work.output(length))
        yield f"stream, {length} tokens one by one: total, s", total
        yield f"stream, {length} tokens one by one: last chunk, ms", 1000 * last
        yield f"stream, {length} tokens one by one: both ways, MB", carried / 1e6


def _latency(url: str, body: bytes) -> float:
    with RawConnection(url, body) as connection:
        times = []
        for _ in range(LATENCY_REQUESTS):
            started = time.perf_counter()
            connection.exchange()
            times.append(time.perf_counter() - started)
    return statistics.median(times)


def _throughput(url: str, body: bytes, *, requests: int, clients: int) -> float:
    """Requests per second of several clients, each with its own connection."""
    failures: list[Exception] = []

    def work() -> None:
        try:
            with RawConnection(url, body) as connection:
                for _ in range(requests // clients):
                    connection.exchange()
        except (OSError, BenchmarkError) as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(clients)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise BenchmarkError(f"{url}: {failures[0]}")
    return requests // clients * clients / (time.perf_counter() - started)


def _stream(url: str, work: Work, token_ids: Sequence[int]) -> tuple[float, float, int]:
    """A whole stream, a token a call: seconds in all, seconds of the last call, bytes in both directions."""
    server, prompt, state = Remote(url), work.prompt(), None
    total, last, carried = 0.0, 0.0, 0
    for index, token_id in enumerate(token_ids):
        body = work.chunk([token_id], prompt=prompt, state=state, last=index == len(token_ids) - 1)
        started = time.perf_counter()
        status, content = server.exchange("POST", CHAT, JSON_TYPE, body)
        last = time.perf_counter() - started
        total += last
        if status != 200:
            raise BenchmarkError(f"{url} answered {status}: {content[:300]!r}")
        carried += len(body) + len(content)
        state = json.loads(content)["stream_state"]
    server.close()
    return total, last, carried


def _checked_post(url: str, body: bytes) -> None:
    server = Remote(url)
    try:
        status, content = server.exchange("POST", CHAT, JSON_TYPE, body)
    except OSError as error:
        raise BenchmarkError(f"{url} does not answer: {error}") from error
    finally:
        server.close()
    if status != 200:
        raise BenchmarkError(f"{url} answered {status}: {content[:300]!r}")


class RawConnection:
    """A kept connection that posts one prepared request again and again; far cheaper than an HTTP library."""

    def __init__(self, url: str, body: bytes) -> None:
        parts = urlsplit(url)
        host, port = parts.hostname or "127.0.0.1", parts.port or 80
        head = f"POST {parts.path}{CHAT} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
        self._request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        self._socket = socket.create_connection((host, port), timeout=120)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> "RawConnection":
        return self

    def __exit__(self, *exception: object) -> None:
        self._socket.close()

    def exchange(self) -> None:
        """Post, and read the answer. Raises BenchmarkError where it is not a 200 with a Content-Length."""
        self._socket.sendall(self._request)
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._more()
        head, _, content = received.partition(b"\r\n\r\n")
        headers = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
        if b" 200 " not in head[:16] or b"content-length" not in headers:
            raise BenchmarkError(f"not a plain answer: {head[:200]!r}")
        missing = int(headers[b"content-length"]) - len(content)
        while missing > 0:
            missing -= len(self._more())

    def _more(self) -> bytes:
        part = self._socket.recv(262144)
        if not part:
            raise BenchmarkError("the server closed the connection")
        return part
