"""Runs the production server, granian. Workers fork after everything is loaded, so that they share memory."""

import gc
import logging
import multiprocessing
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from django.core.asgi import get_asgi_application
from django.db import connections

from derender_api.metrics import discard_notes
from derender_api.metrics_files import shared_folder

logger = logging.getLogger(__name__)

MAX_DEFAULT_WORKERS = 8
QUOTA_FILE = Path("/sys/fs/cgroup/cpu.max")
DRAIN_SECONDS = 30
"""How long requests in flight may take to finish after SIGTERM."""
HEADER_MILLISECONDS = 10_000
"""How long the headers of a request may take to arrive; the connection is closed then."""
RESPAWN_SECONDS = 0.5
"""Pause before a worker that died is replaced."""
WARM_UP = {
    "method": "GET",
    "path": "/health",
    "query_string": b"",
    "http_version": "1.1",
    "scheme": "http",
    "headers": [(b"host", b"localhost")],
}
"""A request that is answered before the workers fork, so that every view and its imports are loaded once for all."""


class ServerError(Exception):
    """The server cannot start; the text names the flag and the cure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """Where and how wide to serve."""

    host: str
    port: int
    workers: int
    threads: int


def run_server(options: ServerOptions) -> None:
    """Serve until SIGTERM or SIGINT, then let requests in flight finish. Raises ServerError."""
    _require_free(options.host, options.port)
    with shared_folder():
        _serve(options)


def _serve(options: ServerOptions) -> None:
    from granian import Granian
    from granian.constants import HTTPModes, Interfaces
    from granian.http import HTTP1Settings

    from derender_api.dispatch import Dispatcher
    from derender_api.django_bridge import AsgiApplication, DjangoBridge
    from derender_api.tokenization.conversation import load_template_engine

    bridge = DjangoBridge()
    application = Dispatcher(bridge, cast(AsgiApplication, get_asgi_application()), threads=options.threads)
    bridge.answer(WARM_UP, b"")
    load_template_engine()
    discard_notes()
    # The loaded tokenizers outlive every collection; frozen, their pages stay shared between the workers.
    gc.collect()
    gc.freeze()
    # Large answers are made of thousands of short-lived dicts; the default would collect again and again meanwhile.
    gc.set_threshold(50_000, 25, 25)
    connections.close_all()
    # Newer Pythons default to other start methods, which would load everything anew in each worker.
    multiprocessing.set_start_method("fork", force=True)
    server = Granian(
        "derender_api.dispatch:Dispatcher",
        address=options.host,
        port=options.port,
        interface=Interfaces.ASGINL,
        # As vLLM's server; a connection is one request at a time, which bounds what a client may hold.
        http=HTTPModes.http1,
        workers=options.workers,
        backlog=2048,
        websockets=False,
        http1_settings=HTTP1Settings(header_read_timeout=HEADER_MILLISECONDS),
        respawn_failed_workers=True,
        respawn_interval=RESPAWN_SECONDS,
        # Its lines go the way of all others.
        log_dictconfig={"formatters": {}, "handlers": {}, "loggers": {"_granian": {"propagate": True}}},
        workers_kill_timeout=DRAIN_SECONDS,
    )
    server.serve(target_loader=lambda: application, wrap_loader=False)


def default_workers() -> int:
    """One worker per usable CPU (affinity and container quota), at most eight."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(usable, _quota() or usable, MAX_DEFAULT_WORKERS))


def _quota() -> int | None:
    """CPUs that the container's control group grants, rounded up; None without a limit."""
    try:
        quota, period = QUOTA_FILE.read_text().split()
        return -(-int(quota) // int(period))
    except (OSError, ValueError):
        return None


def _require_free(host: str, port: int) -> None:
    """The workers listen with SO_REUSEPORT, which would silently share the port with a second server."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as exc:
        raise ServerError(f"--host {host} --port {port}: cannot listen there: {exc.strerror}. Choose another.") from exc
