"""`manage.py record_parity`: what a running vLLM render server answers, recorded for `run_parity`."""

import gzip
import json
import os
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from django.core.management.base import BaseCommand, CommandError

from derender_api.parity.application import Remote
from derender_api.parity.recording import Encoder, RecordingError, ServerEncoder, record


class Command(BaseCommand):
    """Posts every case to the server at --url and writes the case with its answers, one a line."""

    help = __doc__ or ""
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Paths and options."""
        parser.add_argument(
            "cases", type=Path, nargs="+", help="files with one case a line (JSON; .gz is read as such)"
        )
        parser.add_argument("--url", required=True, help="http://HOST:PORT of the server")
        parser.add_argument("--out", required=True, type=Path, help="file to write (.gz is written as such)")
        parser.add_argument(
            "--only", default="", metavar="TEXT", help="record the cases whose profile/id contains TEXT"
        )
        parser.add_argument(
            "--tokenizer", help="folder or hub id to encode texts with (default: the server's /tokenize)"
        )
        parser.add_argument("--api-key", default=os.environ.get("DERENDER_API_KEY"), help="key that the server demands")

    def handle(self, *args: Any, **options: Any) -> None:
        """Record all cases; stops with the first that cannot be recorded."""
        headers = {"authorization": f"Bearer {options['api_key']}"} if options["api_key"] else {}
        server = Remote(options["url"], headers=headers)
        encoder = _encoder(options["tokenizer"]) if options["tokenizer"] else ServerEncoder(server)
        recorded = 0
        try:
            with _open(options["out"], "wt") as out:
                for case in _cases(options["cases"], options["only"]):
                    out.write(json.dumps(record(server, case, encoder=encoder)) + "\n")
                    recorded += 1
        except (RecordingError, OSError, ValueError, KeyError) as error:
            raise CommandError(f"after {recorded} cases: {error!r}") from error
        finally:
            server.close()
        self.stdout.write(f"{recorded} cases recorded in {options['out']}.")


def _encoder(folder: str) -> Encoder:
    from derender_api.tokenization import load_tokenizer

    return load_tokenizer(folder)


def _cases(paths: list[Path], only: str) -> Iterator[dict[str, Any]]:
    for path in paths:
        with _open(path, "rt") as file:
            cases = (json.loads(line) for line in file if line.strip())
            yield from (case for case in cases if only in f"{case['profile']}/{case['id']}")


@contextmanager
def _open(path: Path, mode: str) -> Iterator[IO[str]]:
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with opener(path, mode, encoding="utf-8") as file:
        yield file
