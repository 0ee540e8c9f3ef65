"""Runs the production server: uvicorn in workers that fork after everything is loaded, so that they share memory."""

import gc
import logging
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

import uvicorn
from django.core.asgi import get_asgi_application
from django.db import connections

from derender_api.connection import IDLE_SECONDS, Connection
from derender_api.dispatch import Dispatcher
from derender_api.django_bridge import AsgiApplication, DjangoBridge
from derender_api.metrics import count_notes, discard_notes
from derender_api.metrics_files import shared_folder
from derender_api.tokenization.conversation import load_template_engine
from derender_api.workers import DRAIN_SECONDS, Workers

logger = logging.getLogger(__name__)

MAX_DEFAULT_WORKERS = 8
QUOTA_FILE = Path("/sys/fs/cgroup/cpu.max")
BACKLOG = 2048
"""Connections that may wait to be accepted."""
PARENT_SECONDS = 2
"""How often a worker looks whether its parent lives."""
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
    # All workers accept from one socket: what waits in it when a worker dies is answered by another.
    with _listen(options.host, options.port) as listener, shared_folder():
        logger.info("Listening on %s port %d with %d workers", options.host, options.port, options.workers)
        Workers(options.workers, partial(_serve, _prepared(options), listener, parent=os.getpid())).run()


def _prepared(options: ServerOptions) -> Dispatcher:
    """The application, with everything loaded that workers share."""
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
    return application


def _serve(application: Dispatcher, listener: socket.socket, *, parent: int) -> None:
    """The work of a worker: answers requests until SIGTERM, or until its parent has died."""

    async def end_with_parent() -> None:
        server.should_exit = server.should_exit or os.getppid() != parent

    server = _Server(
        uvicorn.Config(
            application,
            loop="uvloop",
            http=Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=DRAIN_SECONDS,
            callback_notify=end_with_parent,
            timeout_notify=PARENT_SECONDS,
        )
    )
    server.run(sockets=[listener])
    count_notes()


class _Server(uvicorn.Server):
    """Ends when its parent says so: Ctrl+C in a terminal reaches the parent, too."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, self.handle_exit)
        yield


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises ServerError."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as exc:
        raise _cannot_listen(host, port, exc) from exc
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as exc:
        listener.close()
        raise _cannot_listen(host, port, exc) from exc
    return listener


def _cannot_listen(host: str, port: int, error: OSError) -> ServerError:
    return ServerError(f"--host {host} --port {port}: cannot listen there: {error.strerror}. Choose another.")


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
