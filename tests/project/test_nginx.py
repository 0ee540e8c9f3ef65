"""deploy/nginx.conf with a real nginx in front of a real server."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.project.nginx import installed, nginx_in_front_of
from tests.servers import Server, serving

pytestmark = pytest.mark.live

MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """The server behind, and nginx in front of it."""
    folder = tmp_path_factory.mktemp("nginx")
    with serving(folder) as behind, nginx_in_front_of(behind, folder / "nginx") as front:
        yield behind, front


def test_a_body_of_five_megabytes_is_answered(servers: tuple[Server, Server]) -> None:
    choice = {"index": 0, "token_ids": [2541, 3048] * 50_000, "finish_reason": "stop"}
    metadata = {"kv_transfer_params": {"blob": "x" * (5 * MEGABYTE)}}
    body = {"model": "demo", "generate_response": {"request_id": "r", "choices": [choice], **metadata}}
    body["chat_request"] = {"messages": [{"role": "user", "content": "hi"}]}
    assert len(json.dumps(body)) > 5 * MEGABYTE

    answers = [httpx.post(server.url + "/v1/chat/completions/derender", json=body, timeout=60) for server in servers]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[1].json()["usage"]["completion_tokens"] == 100_000


def test_a_body_above_the_limit_is_413_in_the_error_shape(servers: tuple[Server, Server]) -> None:
    answer = httpx.post(servers[1].url + "/ping", content=b"x" * (65 * 1024 * 1024), timeout=60)

    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == 413


def test_errors_pass_through_unchanged(servers: tuple[Server, Server]) -> None:
    behind, front = (httpx.get(server.url + "/nope") for server in servers)

    assert (front.status_code, front.content) == (behind.status_code, behind.content) == (404, behind.content)


def test_connections_to_the_server_are_kept(servers: tuple[Server, Server]) -> None:
    behind, front = servers
    with httpx.Client(base_url=front.url) as client:
        for _ in range(50):
            assert client.get("/health").status_code == 200
    opened = {
        connection.laddr.port
        for child in psutil.Process(front.process.pid).children()
        for connection in child.net_connections("tcp")
        if connection.raddr and connection.raddr.port == behind.port
    }
    assert 1 <= len(opened) <= 8


def test_a_server_that_is_down_is_503_in_the_error_shape(tmp_path: Path) -> None:
    with serving(tmp_path) as behind, nginx_in_front_of(behind, tmp_path / "nginx") as front:
        behind.process.terminate()
        behind.process.wait(timeout=30)

        answer = httpx.get(front.url + "/health")

    assert (answer.status_code, answer.json()["error"]["type"]) == (503, "ServiceUnavailableError")


@pytest.mark.parametrize("path", ["/admin", "/admin/login/", "/metrics", "/ready", "/load"])
def test_the_operators_paths_are_for_the_operators_networks(servers: tuple[Server, Server], path: str) -> None:
    assert httpx.get(servers[1].url + path).status_code in (200, 302)


@pytest.mark.parametrize("path", ["/admin", "/admin/login/", "/metrics", "/ready", "/load", "//metrics", "/./ready"])
def test_others_are_refused_there_in_the_error_shape(strangers_front: Server, path: str) -> None:
    answer = httpx.get(strangers_front.url + path)

    assert (answer.status_code, answer.json()["error"]["type"]) == (403, "PermissionDeniedError")


@pytest.mark.parametrize("path", ["/health", "/v1/models", "/version", "/openapi.json"])
def test_others_may_use_the_api(strangers_front: Server, path: str) -> None:
    assert httpx.get(strangers_front.url + path).status_code == 200


@pytest.fixture(scope="module")
def strangers_front(servers: tuple[Server, Server], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An nginx to which the loopback is none of the operator's networks."""
    folder = tmp_path_factory.mktemp("strangers") / "nginx"
    with nginx_in_front_of(servers[0], folder, changes={"allow 127.0.0.0/8;": ""}) as front:
        yield front


def test_the_lines_for_tls_are_valid(tmp_path: Path) -> None:
    certificate, key = tmp_path / "derender.crt", tmp_path / "derender.key"
    subject = ["-subj", "/CN=localhost", "-days", "1", "-nodes", "-newkey", "rsa:2048"]
    made = ["openssl", "req", "-x509", *subject, "-out", str(certificate), "-keyout", str(key)]
    subprocess.run(made, check=True, capture_output=True)
    files = {"/etc/nginx/derender.crt": str(certificate), "/etc/nginx/derender.key": str(key)}

    command = installed(tmp_path / "nginx", {"listen 8080 backlog=4096;": "", "#tls ": "", **files})
    tested = subprocess.run([*command, "-t"], capture_output=True, text=True)

    assert tested.returncode == 0, tested.stderr
    assert "warn" not in tested.stderr
