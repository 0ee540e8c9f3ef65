"""What derender servers cost, side by side on the same work: latency, throughput, streams against their length.

The servers take turns within every round, so that a busy machine hurts all of them alike. Clients share the machine
with the servers; they send prepared bytes over kept connections to weigh little.
"""

import socket
import statistics
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from derender_api.parity.application import CHAT, Remote
from derender_api.parity.benchmark_streams import BenchmarkError, stream_cost
from derender_api.parity.benchmark_work import Encoder, Plan, Work
from derender_api.parity.suite import JSON_TYPE

LATENCY_REQUESTS = 30


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: the median over the rounds for each server, in the order given; None where it was left out."""

    name: str
    values: tuple[float | None, ...]


def measure(servers: Mapping[str, str], *, encoder: Encoder, plan: Plan) -> list[Row]:
    """Measure the servers (name -> URL). Raises BenchmarkError."""
    work = Work(encoder, plan)
    samples: dict[str, dict[str, list[float]]] = {}
    for url in servers.values():
        for _ in range(3):
            _checked_post(url, work.oneshot(64))
    for _ in range(plan.rounds):
        for number, (name, url) in enumerate(servers.items()):
            for measurement, value in _round(url, work, longest=plan.others_limit if number else None):
                samples.setdefault(measurement, {}).setdefault(name, []).append(value)
    return [
        Row(measurement, tuple(statistics.median(by_server[name]) if name in by_server else None for name in servers))
        for measurement, by_server in samples.items()
    ]


def as_table(servers: Sequence[str], rows: Sequence[Row]) -> str:
    """The measurements as text; each server after the first with its ratio to the first."""
    width = max(len(row.name) for row in rows) + 2
    lines = [" " * width + "".join(f"{name:>22}" for name in servers)]
    for row in rows:
        first = row.values[0]
        cells = [_cell(first, 22), *(f"{_cell(value, 13)} {_ratio(value, first):>8}" for value in row.values[1:])]
        lines.append(f"{row.name:<{width}}{''.join(cells)}")
    return "\n".join(lines)


def _cell(value: float | None, width: int) -> str:
    return f"{'-':>{width}}" if value is None else f"{value:>{width},.2f}"


def _ratio(value: float | None, first: float | None) -> str:
    return f"(x{value / first:.2f})" if value is not None and first else ""


def _round(url: str, work: Work, *, longest: int | None) -> Iterator[tuple[str, float]]:
    plan = work.plan
    for length in plan.oneshot_lengths:
        body = work.oneshot(length)
        yield f"one-shot, {length} tokens: latency, ms", 1000 * _latency(url, body)
        yield (
            f"one-shot, {length} tokens: requests/s, {plan.clients} clients",
            _throughput(url, body, requests=plan.requests, clients=plan.clients),
        )
    for length in plan.stream_lengths:
        if longest is None or length <= longest:
            yield from _streams(url, work, work.output(length), length)


def _streams(url: str, work: Work, token_ids: Sequence[int], length: int) -> Iterator[tuple[str, float]]:
    """The same output in each form, behind each prompt."""
    for prompt_length in work.plan.prompt_lengths:
        prompt = work.prompt(prompt_length)
        for form in work.plan.forms:
            cost = stream_cost(url, work, token_ids, prompt=prompt, form=form)
            name = f"{form} stream, {length} tokens, prompt {prompt_length}"
            yield f"{name}: total, s", cost.total
            yield f"{name}: tenth call, ms", 1000 * cost.tenth
            yield f"{name}: last call, ms", 1000 * cost.last
            yield f"{name}: last call, kB", cost.last_bytes / 1e3
            yield f"{name}: all calls, MB", cost.carried / 1e6


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
