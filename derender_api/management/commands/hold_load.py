"""`manage.py hold_load URL`: holds a running server at a share of its peak, and kills workers meanwhile."""

import asyncio
import random
from argparse import ArgumentParser
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import orjson
from django.core.management.base import BaseCommand, CommandError

from derender_api.management.commands.bench import DEMO_MODEL
from derender_api.parity.application import CHAT
from derender_api.parity.benchmark_work import Plan, Work
from derender_api.parity.held_load import hold, measure_peak
from derender_api.parity.suite import JSON_TYPE

PEAK_SECONDS = 10.0
PROMPT_TOKENS = 200
MIDDLE = 40
"""Tokens of the stream before the call that is repeated."""


class Command(BaseCommand):
    """Measure the peak, then hold a share of it."""

    help = (
        "Hold URL, a server (or nginx in front of it) that serves --model with hermes and qwen3, at a share of its "
        "measured peak: half one-shot calls of 64 tokens, half chunks of compact streams."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Where, how much, and what goes wrong meanwhile."""
        parser.add_argument("url")
        parser.add_argument(
            "--model", default=str(DEMO_MODEL), help="folder of its tokenizer (default: the demo model)"
        )
        parser.add_argument("--seconds", type=float, default=300.0)
        parser.add_argument("--share", type=float, default=0.8, help="of the peak")
        parser.add_argument("--clients", type=int, default=8, help="clients that measure the peak")
        parser.add_argument("--kill-every", type=float, metavar="SECONDS", help="kill -9 a worker so often")
        parser.add_argument("--server-pid", type=int, help="process of `serve`, whose workers are killed; needs psutil")

    def handle(self, *args: Any, **options: Any) -> None:
        """Measure and print."""
        if options["kill_every"] and not options["server_pid"]:
            raise CommandError("--kill-every needs --server-pid.")
        bodies = _bodies(options["url"], options["model"])
        peak = asyncio.run(measure_peak(options["url"], bodies, clients=options["clients"], seconds=PEAK_SECONDS))
        rate = peak * options["share"]
        self.stdout.write(f"Peak {peak:.0f} calls/s; holding {rate:.0f} calls/s for {options['seconds']:.0f} s.")
        killed: list[int] = []
        outcome = asyncio.run(
            hold(
                options["url"],
                bodies,
                rate=rate,
                seconds=options["seconds"],
                every=options["kill_every"],
                disturb=lambda: killed.append(_kill_a_worker(options["server_pid"])),
            )
        )
        errors = ", ".join(f"{name}: {count}" for name, count in outcome.errors.most_common()) or "none"
        self.stdout.write(
            f"{outcome.calls} calls, {len(killed)} workers killed, errors: {errors}; "
            f"p50 {outcome.percentile(0.5):.1f} ms, p99 {outcome.percentile(0.99):.1f} ms."
        )


def _bodies(url: str, model: str) -> list[bytes]:
    """A one-shot call, and a call from the middle of a compact stream."""
    from derender_api.tokenization import load_tokenizer

    work = Work(load_tokenizer(model), Plan(oneshot_lengths=(64,), prompt_lengths=(PROMPT_TOKENS,)))
    prompt, output, state = work.prompt(PROMPT_TOKENS), work.output(64), None
    for token_id in output[:MIDDLE]:
        state = _state_after(url, _chunk(work, token_id, prompt, state))
    return [work.oneshot(64), _chunk(work, output[MIDDLE], prompt, state)]


def _chunk(work: Work, token_id: int, prompt: list[int], state: Any) -> bytes:
    """The call for one token, with prompt and request: a new worker knows neither."""
    body = orjson.loads(work.chunk([token_id], prompt=prompt, state=None, form="compact", last=False))
    return orjson.dumps({**body, "stream_state": state})


def _state_after(url: str, body: bytes) -> Any:
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "127.0.0.1", parts.port, timeout=30)
    connection.request("POST", CHAT, body, JSON_TYPE)
    response = connection.getresponse()
    answer = orjson.loads(response.read())
    connection.close()
    if response.status != 200:
        raise CommandError(f"{url} answers {response.status}: {answer}. Serve the model of --model, with parsers.")
    return answer["stream_state"]


def _kill_a_worker(server: int) -> int:
    import psutil

    victim = random.choice(psutil.Process(server).children())
    victim.kill()
    return victim.pid
