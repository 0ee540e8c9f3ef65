"""What happens around the server; the live tests are in test_serve_command.py."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from derender_api import server
from derender_api.server import ServerError, ServerOptions, default_workers, run_server


class TestDefaultWorkers:
    """One worker per usable CPU."""

    @pytest.fixture
    def cpus(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[int, str | None], int]]:
        """Workers on a machine with so many CPUs and such a container quota."""

        def workers(affinity: int, quota: str | None) -> int:
            monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(affinity)), raising=False)
            file = tmp_path / "cpu.max"
            if quota is not None:
                file.write_text(quota)
            monkeypatch.setattr(server, "QUOTA_FILE", file)
            return default_workers()

        return workers

    @pytest.mark.parametrize(
        ("affinity", "quota", "expected"),
        [
            (1, None, 1),
            (2, None, 2),
            (64, None, 8),
            (64, "max 100000\n", 8),
            (64, "200000 100000\n", 2),
            (64, "150000 100000\n", 2),
            (64, "50000 100000\n", 1),
            (2, "800000 100000\n", 2),
        ],
    )
    def test_counts(
        self, cpus: Callable[[int, str | None], int], affinity: int, quota: str | None, expected: int
    ) -> None:
        assert cpus(affinity, quota) == expected


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_port_in_use_names_the_flags(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ServerError, match=rf"--host {host} --port {port}: cannot listen there: .* Choose another"):
            run_server(ServerOptions(host=host, port=port, workers=1, threads=1))


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid"])
def test_an_address_of_another_machine_names_the_flags(host: str) -> None:
    with pytest.raises(ServerError, match=f"--host {host} --port 1: cannot listen there"):
        run_server(ServerOptions(host=host, port=1, workers=1, threads=1))
