"""A private PostgreSQL server for tests: its own cluster in a temporary folder, on the loopback, gone afterwards."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.servers import free_port

REQUIRED = "DERENDER_TEST_POSTGRESQL"
"""Set where PostgreSQL must be tested (in continuous integration): a machine without it is an error then."""
DEBIAN = Path("/usr/lib/postgresql")
SYSTEM_USER = "postgres"
"""PostgreSQL refuses to run as root; this user of Debian's package stands in."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that can be stopped and started again."""

    binaries: Path
    folder: Path
    port: int

    @property
    def url(self) -> str:
        """What DERENDER_DATABASE_URL is set to."""
        return f"postgresql://derender@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start it and wait until it answers."""
        options = f"-h 127.0.0.1 -p {self.port} -k {self.folder} -F"
        self.run(
            "pg_ctl", "-D", str(self.folder / "data"), "-l", str(self.folder / "log"), "-o", options, "-w", "start"
        )

    def stop(self) -> None:
        """Stop it at once, with all of its connections."""
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "-w", "stop")

    def run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs as a user that is not root."""
        user = ["runuser", "-u", SYSTEM_USER, "--"] if os.geteuid() == 0 else []
        command = [*user, str(self.binaries / program), *arguments]
        subprocess.run(command, cwd=self.folder, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


def binaries() -> Path | None:
    """The folder with initdb and pg_ctl, None where PostgreSQL cannot be run on this machine."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    if DEBIAN.is_dir():
        versions = (each for each in DEBIAN.iterdir() if each.name.isdecimal())
        folders += [each / "bin" for each in sorted(versions, key=lambda each: int(each.name), reverse=True)]
    usable = [folder for folder in folders if (folder / "initdb").exists() and (folder / "pg_ctl").exists()]
    return usable[0] if usable and (os.geteuid() != 0 or _has_system_user()) else None


def is_tested() -> bool:
    """Whether the tests that need PostgreSQL run: where it is installed, or has to be."""
    return binaries() is not None or bool(os.environ.get(REQUIRED))


@contextmanager
def cluster() -> Iterator[Cluster]:
    """A running cluster; its user `derender` may do everything without a password."""
    found = binaries()
    assert found, f"{REQUIRED} is set and PostgreSQL is not installed: apt-get install postgresql"
    folder = Path(tempfile.mkdtemp(prefix="derender-postgresql-"))
    if os.geteuid() == 0:
        shutil.chown(folder, SYSTEM_USER)
    made = Cluster(found, folder, free_port())
    try:
        made.run("initdb", "-D", str(folder / "data"), "-U", "derender", "-A", "trust", "-E", "UTF8", "--no-sync")
        made.start()
        try:
            yield made
        finally:
            if (folder / "data" / "postmaster.pid").exists():
                made.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _has_system_user() -> bool:
    try:
        pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        return False
    return shutil.which("runuser") is not None
