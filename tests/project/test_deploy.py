"""The files of deploy/ are well-formed, and name only what there is. (nginx: test_nginx.py.)"""

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from django.urls import resolve

from derender_api.model_sources import read_config_file
from derender_api.server import DRAIN_SECONDS
from derender_project.environment import Environment
from tests.project.command_lines import problems_of_words
from tests.servers import REPOSITORY

DEPLOY = REPOSITORY / "deploy"
MANIFESTS = sorted(path for path in (DEPLOY / "kubernetes").glob("*.yaml") if path.name != "kustomization.yaml")
FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file() and path.suffix != ".json")
NAMED_LIKE_SETTINGS = re.compile(r"\bDERENDER_[A-Z_]+\b")


def documents(path: Path) -> list[dict[str, Any]]:
    """The YAML documents of a file."""
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def resource(kind: str, name: str = "derender") -> dict[str, Any]:
    """A resource of the manifests."""
    (found,) = (
        each
        for path in MANIFESTS
        for each in documents(path)
        if (each["kind"], each["metadata"]["name"]) == (kind, name)
    )
    return found


def pod() -> dict[str, Any]:
    """The pod of the deployment."""
    return resource("Deployment")["spec"]["template"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_named_settings_exist(path: Path) -> None:
    assert set(NAMED_LIKE_SETTINGS.findall(path.read_text())) <= Environment.variables()


class TestSystemd:
    """deploy/derender.service."""

    UNIT = (DEPLOY / "derender.service").read_text()

    def test_it_is_a_unit_that_is_allowed_little(self, tmp_path: Path) -> None:
        analyzer = shutil.which("systemd-analyze")
        assert analyzer, "the tests need systemd-analyze: apt-get install systemd"
        unit = tmp_path / "derender.service"
        unit.write_text(self.UNIT.replace("/opt/derender/bin/derender", sys.executable))

        verified = subprocess.run([analyzer, "verify", str(unit)], capture_output=True, text=True)
        confined = subprocess.run(
            [analyzer, "security", "--offline=true", "--threshold=20", str(unit)], capture_output=True, text=True
        )

        assert (verified.returncode, verified.stdout + verified.stderr) == (0, "")
        assert confined.returncode == 0, confined.stdout

    def test_its_commands_exist(self) -> None:
        commands = re.findall(r"^ExecStart(?:Pre)?=/opt/derender/bin/derender (.*)$", self.UNIT, re.MULTILINE)

        assert [command.split()[0] for command in commands] == ["migrate", "serve"]
        assert [problem for command in commands for problem in problems_of_words(shlex.split(command))] == []

    def test_a_worker_may_finish_before_it_is_killed(self) -> None:
        (seconds,) = re.findall(r"^TimeoutStopSec=(\d+)$", self.UNIT, re.MULTILINE)

        assert int(seconds) > DRAIN_SECONDS


class TestImage:
    """deploy/Dockerfile and .dockerignore."""

    TEXT = (DEPLOY / "Dockerfile").read_text()

    def instructions(self, name: str) -> list[str]:
        """Arguments of every `name` instruction."""
        joined = re.sub(r"\\\n(?:#.*\n)*", " ", self.TEXT)
        return re.findall(rf"^{name} (.*)$", joined, re.MULTILINE)

    def copied(self) -> set[str]:
        """What is copied from the repository."""
        lines = [line for line in self.instructions("COPY") if not line.startswith("--from")]
        return {word for line in lines for word in line.split()[:-1]}

    def test_hadolint_finds_nothing(self) -> None:
        hadolint = Path(sys.executable).parent / "hadolint"
        found = subprocess.run([hadolint, DEPLOY / "Dockerfile"], capture_output=True, text=True)

        assert (found.returncode, found.stdout) == (0, "")

    def test_it_copies_what_the_package_is_built_from(self) -> None:
        copied = self.copied()
        project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
        packages = {name.rstrip("*") for name in project["tool"]["setuptools"]["packages"]["find"]["include"]}

        assert copied == {
            "pyproject.toml",
            project["project"]["readme"],
            *project["project"]["license-files"],
            *packages,
        }
        assert [name for name in copied if not (REPOSITORY / name).exists()] == []

    def test_the_builder_gets_nothing_else(self) -> None:
        lines = (REPOSITORY / ".dockerignore").read_text().splitlines()

        assert "*" in lines
        assert {line[1:] for line in lines if line.startswith("!")} == self.copied()

    def test_its_extras_exist(self) -> None:
        extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        (default,) = re.findall(r"^ARG EXTRAS=(\S+)$", self.TEXT, re.MULTILINE)

        assert set(default.split(",")) <= set(extras)

    def test_it_serves_without_privileges_and_says_how_it_is(self) -> None:
        scripts = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["scripts"]
        entry = json.loads(self.instructions("ENTRYPOINT")[0])
        command = json.loads(self.instructions("CMD")[0])

        assert entry[0] in scripts
        assert problems_of_words([*entry[1:], *command]) == []
        assert self.instructions("USER") == ["10001"]
        assert "/health" in self.instructions("HEALTHCHECK")[0]


class TestCompose:
    """deploy/compose.yaml."""

    CONTENT = documents(DEPLOY / "compose.yaml")[0]
    SERVICES = CONTENT["services"]

    def test_services_wait_for_services(self) -> None:
        awaited = {name for service in self.SERVICES.values() for name in service.get("depends_on", {})}

        assert set(self.SERVICES) == {"migrate", "derender", "nginx", "postgres", "redis"}
        assert awaited == {"postgres", "migrate", "redis", "derender"}
        for name, service in self.SERVICES.items():
            for waited_for, how in service.get("depends_on", {}).items():
                is_checked = "healthcheck" in self.SERVICES[waited_for] or waited_for == "derender"
                assert how["condition"] != "service_healthy" or is_checked, name

    def test_mounts_exist(self) -> None:
        mounts = [mount.split(":")[0] for service in self.SERVICES.values() for mount in service.get("volumes", [])]

        assert "./nginx.conf" in mounts
        assert [mount for mount in mounts if mount.startswith(".") and not (DEPLOY / mount).exists()] == []
        assert {mount for mount in mounts if not mount.startswith(".")} == set(self.CONTENT["volumes"])
        build = self.SERVICES["derender"]["build"]
        assert (DEPLOY / build["context"] / build["dockerfile"]).exists()

    def test_commands_exist(self) -> None:
        assert problems_of_words(self.SERVICES["migrate"]["command"]) == []

    def test_the_environment_makes_settings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        given = {"DERENDER_SECRET_KEY": "k" * 50, "POSTGRES_PASSWORD": "p", "DERENDER_PRODUCTION": "1"}
        for name, value in self.SERVICES["derender"]["environment"].items():
            monkeypatch.setenv(name, substituted(str(value), given))

        settings = Environment()

        assert settings.database_url == "postgresql://derender:p@postgres/derender"
        assert settings.production
        assert not settings.api_key

    def test_nginx_finds_the_server_where_its_file_says(self) -> None:
        text = (DEPLOY / "nginx.conf").read_text()
        port = self.SERVICES["derender"]["ports"][0].rpartition(":")[2]

        assert self.SERVICES["nginx"]["network_mode"] == "service:derender"
        assert "server 127.0.0.1:8000;" in text
        assert f"listen {port} " in text


def substituted(text: str, variables: dict[str, str]) -> str:
    """`text` with `${NAME:-default}` and `${NAME:?complaint}` replaced as compose does it."""
    return re.sub(r"\$\{(\w+):([-?])([^}]*)\}", lambda m: variables.get(m[1]) or (m[3] if m[2] == "-" else ""), text)


class TestKubernetes:
    """deploy/kubernetes."""

    @pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
    def test_manifests_have_the_schema_of_their_kind(self, path: Path) -> None:
        for document in documents(path):
            kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)

    def test_all_of_them_are_applied(self) -> None:
        (listed,) = documents(DEPLOY / "kubernetes" / "kustomization.yaml")

        assert sorted(listed["resources"]) == [path.name for path in MANIFESTS]

    def test_selectors_find_the_pods(self) -> None:
        labels = pod()["metadata"]["labels"]

        assert resource("Deployment")["spec"]["selector"]["matchLabels"] == labels
        assert resource("Service")["spec"]["selector"] == labels
        assert resource("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels
        assert resource("NetworkPolicy")["spec"]["podSelector"]["matchLabels"] == labels
        target = resource("HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]
        assert (target["kind"], target["name"]) == ("Deployment", "derender")

    def test_probes_ask_paths_that_exist(self) -> None:
        (container,) = pod()["spec"]["containers"]
        probes = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}

        assert {name: probe["path"] for name, probe in probes.items()} == {
            "startup": "/health",
            "liveness": "/health",
            "readiness": "/ready",
        }
        for probe in probes.values():
            assert resolve(probe["path"])
            assert probe["port"] in [port["name"] for port in container["ports"]]

    def test_commands_exist(self) -> None:
        spec = pod()["spec"]

        for container in (*spec["initContainers"], *spec["containers"]):
            assert problems_of_words(container["args"]) == []

    def test_volumes_and_sources_exist(self) -> None:
        spec = pod()["spec"]
        volumes = {volume["name"] for volume in spec["volumes"]}

        for container in (*spec["initContainers"], *spec["containers"]):
            assert {mount["name"] for mount in container["volumeMounts"]} == volumes
            for source in container["envFrom"]:
                assert "secretRef" in source or resource("ConfigMap", source["configMapRef"]["name"])

    def test_the_configuration_makes_settings_and_models(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        for name, value in resource("ConfigMap")["data"].items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("DERENDER_SECRET_KEY", "k" * 50)
        file = tmp_path / "models.json"
        file.write_text(resource("ConfigMap", "derender-models")["data"]["models.json"])

        settings = Environment()

        assert settings.production
        assert str(settings.config) == "/etc/derender/models.json"
        assert [model.name for model in read_config_file(file)] == ["qwen3"]

    def test_pods_drain_before_they_are_killed(self) -> None:
        spec = pod()["spec"]
        pause = int(spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])

        assert spec["terminationGracePeriodSeconds"] > pause + DRAIN_SECONDS


def test_prometheus_asks_for_the_metrics() -> None:
    (content,) = documents(DEPLOY / "prometheus.yml")
    job, pods = content["scrape_configs"]

    assert resolve(job["metrics_path"])
    selector = pods["kubernetes_sd_configs"][0]["selectors"][0]["label"]
    assert dict([selector.split("=")]) == pod()["metadata"]["labels"]
