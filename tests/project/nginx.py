"""Runs a real nginx with deploy/nginx.conf in front of a server."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.servers import REPOSITORY, Server, free_port, running

CONFIGURATION = REPOSITORY / "deploy" / "nginx.conf"
FRAME = """
{user}
pid nginx.pid;
error_log stderr warn;
events {{}}
http {{
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    {site}
}}
"""
"""What an installation has around the file; everything that is written stays in the folder of the test."""


@contextmanager
def nginx_in_front_of(server: Server, folder: Path, *, changes: Mapping[str, str] | None = None) -> Iterator[Server]:
    """deploy/nginx.conf with only its two ports replaced, and what `changes` names, run in `folder`."""
    port = free_port()
    ports = {"127.0.0.1:8000": f"127.0.0.1:{server.port}", "listen 8080": f"listen 127.0.0.1:{port}"}
    command = [*installed(folder, {**ports, **(changes or {})}), "-g", "daemon off;"]
    with running(command, folder=folder, port=port, health="/health") as front:
        yield front


def installed(folder: Path, changes: Mapping[str, str]) -> list[str]:
    """The command of an nginx with deploy/nginx.conf, in a new `folder`; each key of `changes` is replaced."""
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin:/sbin:/bin")
    assert nginx, "the tests need nginx: apt-get install nginx"
    text = CONFIGURATION.read_text()
    for declared, used in changes.items():
        assert declared in text
        text = text.replace(declared, used)
    folder.mkdir()
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(FRAME.format(user=user, site=text))
    return [nginx, "-p", str(folder), "-c", str(folder / "nginx.conf")]
