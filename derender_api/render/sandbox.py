"""Chat templates of requests, rendered in a process of their own with limits on time, memory and output.

Jinja's sandbox keeps a template from the interpreter, not from looping forever or from filling the memory. A process is
started with the first such request, kept for the next, and killed where a template takes too long.
"""

import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from derender_api.conf import conf
from derender_api.exceptions import BadRequest, ServiceUnavailable

WORKER = "derender_api.render.sandbox_worker"
START_SECONDS = 60.0
LONGEST_TEMPLATE = 256 * 1024
NO_PROCESS = "Chat templates of requests cannot be rendered now: their process does not start."
MOST_IDLE = 2
HEADER = 8
"""Bytes of the length in front of every message between the processes, big-endian."""


class SandboxFailure(Exception):
    """The process did not answer: it was killed at the time limit, or died."""


def render_untrusted(arguments: Mapping[str, Any]) -> str:
    """What `render_conversation(**arguments)` gives, within limits. Raises BadRequest."""
    if len(arguments["chat_template"]) > LONGEST_TEMPLATE:
        raise BadRequest(f"chat_template must not be longer than {LONGEST_TEMPLATE} characters.")
    try:
        answer = _pool.render({**arguments, "longest": conf.request_template_characters})
    except SandboxFailure as error:
        raise BadRequest(
            f"The chat template of the request was stopped: {error}. It may take {conf.request_template_seconds:g} "
            f"seconds and give {conf.request_template_characters} characters."
        ) from error
    if "error" in answer:
        raise BadRequest(answer["error"])
    return answer["text"]


class _Process:
    """One sandbox process: a request in, an answer out. Raises ServiceUnavailable where it does not start."""

    def __init__(self) -> None:
        # Nothing of this process's environment, where secrets are, is passed on.
        environment = {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                close_fds=True,
            )
        except OSError as error:
            raise ServiceUnavailable(NO_PROCESS) from error
        try:
            self._read(START_SECONDS)
        except SandboxFailure as error:
            self.kill()
            raise ServiceUnavailable(NO_PROCESS) from error

    def ask(self, request: bytes, seconds: float) -> bytes:
        """The answer to one request. Raises SandboxFailure, after which the process is of no use."""
        pipe = self._process.stdin
        assert pipe is not None
        try:
            pipe.write(len(request).to_bytes(HEADER, "big") + request)
            pipe.flush()
        except OSError as error:
            raise SandboxFailure("its process died") from error
        return self._read(seconds)

    def kill(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()

    def _read(self, seconds: float) -> bytes:
        deadline = time.monotonic() + seconds
        return self._receive(int.from_bytes(self._receive(HEADER, deadline), "big"), deadline)

    def _receive(self, count: int, deadline: float) -> bytes:
        pipe = self._process.stdout
        assert pipe is not None
        parts: list[bytes] = []
        while count:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                raise SandboxFailure("it took too long")
            part = os.read(pipe.fileno(), count)
            if not part:
                raise SandboxFailure("it needed too much memory")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


class _Pool:
    """Sandbox processes that wait for work; each serves one request at a time. Thread-safe."""

    def __init__(self) -> None:
        self._idle: list[_Process] = []
        self._owner = os.getpid()
        self._lock = threading.Lock()

    def render(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The worker's answer. Raises SandboxFailure."""
        process = self._take()
        try:
            answer = process.ask(json.dumps(request).encode(), conf.request_template_seconds)
        except BaseException:
            process.kill()
            raise
        self._put(process)
        return json.loads(answer)

    def _take(self) -> _Process:
        with self._lock:
            if self._owner != os.getpid():  # processes of the parent, before it forked
                self._owner, self._idle = os.getpid(), []
            if self._idle:
                return self._idle.pop()
        return _Process()

    def _put(self, process: _Process) -> None:
        with self._lock:
            if len(self._idle) < MOST_IDLE:
                self._idle.append(process)
                return
        process.kill()


_pool = _Pool()
