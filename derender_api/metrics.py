"""What the service counts for Prometheus; `GET /metrics` shows it.

Requests only note what is to be counted (metrics_notes.py). Metrics are made when something is counted first, so that a
server has chosen by then whether its worker processes count together (metrics_files.py).
"""

import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Literal

from django.http import HttpRequest
from django.urls import get_resolver
from prometheus_client import CollectorRegistry, Counter, Histogram, values
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from derender_api.load import requests_in_flight
from derender_api.metrics_files import FOLDER_VARIABLE, FilesCollector
from derender_api.metrics_notes import Note, Notebook

PAGES = ("/admin", "/docs", "/static")
"""Path prefixes that are counted as one path each."""
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
COUNTERS = {
    "derender_requests": (("path", "status"), "Requests answered."),
    "derender_errors": (("type", "code"), "Errors answered, by the type and code in their body."),
    "derender_stream_calls": (("kind",), "Calls that carried chunks of a stream."),
    "derender_stream_chunks": (("kind",), "Chunks of streams."),
    "derender_prompt_tokens": (("model",), "Prompt tokens of answers and of streams that began."),
    "derender_generated_tokens": (("model",), "Tokens of engines that were turned into answers."),
    "derender_parser_cache_lookups": (
        ("result",),
        "Chunks of replayed streams, by the parser that was remembered: that of the chunk before (hit), of one shortly "
        "before, so that a few chunks were replayed (near), or none (miss).",
    ),
    "derender_parser_outcomes": (
        ("format", "outcome"),
        "Answers by what became of their markup: parsed; truncated (the engine stopped at its length limit); malformed "
        "(some markup was no call); given_back (markup stands in the content); failed (the parser broke: all text is "
        "content, or the chunk is refused). Streams count malformed and given_back where they meet it, too.",
    ),
}
"""Labels and help of each counter."""
LONGEST_PROMPT = 100_000_000
"""Prompt tokens beyond this are no prompt's; a counter that has taken in such a number would not show later ones."""
REQUEST_SECONDS = "derender_request_seconds"
IN_FLIGHT = "derender_requests_in_flight"

Count = Callable[..., None]


@cache
def _metrics() -> tuple[CollectorRegistry, dict[str, Counter | Histogram]]:
    # The library chooses between one process and several when it is imported, which may have been any time ago.
    values.ValueClass = values.get_value_class()
    registry = CollectorRegistry()
    metrics: dict[str, Counter | Histogram] = {
        name: Counter(name, text, labels, registry=registry) for name, (labels, text) in COUNTERS.items()
    }
    metrics[REQUEST_SECONDS] = Histogram(
        REQUEST_SECONDS, "Time to answer a request.", ["path"], buckets=SECONDS, registry=registry
    )
    return registry, metrics


@cache
def _child(name: str, *labels: str) -> Count:
    child = _metrics()[1][name].labels(*labels)
    count: Count = child.observe if isinstance(child, Histogram) else child.inc
    return count


def count_request(path: str, status: int, seconds: float) -> None:
    """One answer; `path` comes from `path_label`."""
    note(("derender_requests", path, str(status)), 1)
    note((REQUEST_SECONDS, path), seconds)


def count_error(kind: str, code: str | int) -> None:
    """One error body with this type and code."""
    note(("derender_errors", kind, str(code)), 1)


def count_stream_call(kind: str, *, chunks: int) -> None:
    """One streaming call with so many chunks; `kind` is "chat" or "completion"."""
    note(("derender_stream_calls", kind), 1)
    note(("derender_stream_chunks", kind), chunks)


def count_tokens(model: str, *, prompt: int, generated: int) -> None:
    """Tokens of one answer or chunk of a model. The client says how long its prompt was: nonsense is not counted."""
    if 0 < prompt <= LONGEST_PROMPT:
        note(("derender_prompt_tokens", model), prompt)
    if generated:
        note(("derender_generated_tokens", model), generated)


def count_cache_lookup(result: Literal["hit", "near", "miss"]) -> None:
    """One chunk of a replayed stream whose parser was remembered, or not."""
    note(("derender_parser_cache_lookups", result), 1)


def count_outcome(plan: str, outcome: str) -> None:
    """What became of the markup of one answer; `plan` names the formats."""
    note(("derender_parser_outcomes", plan, outcome), 1)


def write(notes: Iterable[Note]) -> None:
    """Count what was noted."""
    sums: dict[tuple[str, ...], float] = {}
    for key, amount in notes:
        if key[0] == REQUEST_SECONDS:
            _child(*key)(amount)
        else:
            sums[key] = sums.get(key, 0) + amount
    for key, amount in sums.items():
        _child(*key)(amount)


_notebook = Notebook(write)
note = _notebook.note
discard_notes = _notebook.discard
count_notes = _notebook.flush


@cache
def _plain_paths() -> frozenset[str]:
    """Paths without parameters."""
    routes = (str(getattr(pattern, "pattern", "")) for pattern in get_resolver().url_patterns)
    paths = ("/" + route for route in routes if "<" not in route)
    return frozenset(path for path in paths if not path.startswith(PAGES))


def path_label(request: HttpRequest) -> str:
    """The path as a label: one of the routes, or `other`, so that clients cannot make up series."""
    path = request.path_info
    if path in _plain_paths():
        return path
    for page in PAGES:
        if path.startswith(page):
            return page
    match = request.resolver_match
    return f"/{match.route}" if match is not None else "other"


class _InFlight(Collector):
    """The gauge of requests in flight, which load.py counts."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One sample over all living workers."""
        text = "Requests that are being answered now, in all workers."
        yield GaugeMetricFamily(IN_FLIGHT, text, value=requests_in_flight.total())


def exposition() -> bytes:
    """All metrics in Prometheus' text format, of all worker processes that share a folder."""
    _notebook.flush()
    registry = CollectorRegistry()
    folder = os.environ.get(FOLDER_VARIABLE)
    registry.register(FilesCollector(folder) if folder else _metrics()[0])
    registry.register(_InFlight())
    return generate_latest(registry)
