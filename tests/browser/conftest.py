"""A server with an administrator and a saved parity run, and headless Chromium logged in to it.

Screenshots go to the folder that DERENDER_SCREENSHOTS names (.cache/screenshots), to be looked at and kept by CI.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from derender_api.model_sources import DEMO_FOLDER
from tests import browsers
from tests.derender_api.workbench.suites import RECORDED, changed_suite, unchanged_suite
from tests.servers import MANAGE, REPOSITORY, Server, migrate, serving

MODEL = "models/qwen-small"
"""Folder of a small model, as seen from where the server runs."""
NAME, PASSWORD = "admin", "a-password-for-tests"
SUITES = ("json_more", "deepseek_more", "kimi_more")
CASES = 40
"""Cases of each."""
WINDOW = {"width": 1280, "height": 900}
SCREENSHOTS = Path(os.environ.get("DERENDER_SCREENSHOTS", REPOSITORY / ".cache" / "screenshots"))

collect_ignore_glob = [] if browsers.is_tested() else ["test_*.py"]

Shot = Callable[[Page, str], None]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Two workers, a model without a reasoning parser, an administrator, and parity runs that found two differences."""
    folder = tmp_path_factory.mktemp("server")
    migrate(folder)
    create_administrator(folder)
    for label, changed in (("before the change", SUITES), ("after the change", SUITES[:1])):
        suites = tmp_path_factory.mktemp("suites")
        for name in SUITES:
            (changed_suite if name in changed else unchanged_suite)(suites, recorded=name, cases=CASES)
        options = ["--root", str(RECORDED.parent), "--save", "--fast", "--processes", "1", "--label", label]
        command = [*MANAGE, "run_parity", str(suites), *options]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    shutil.copytree(DEMO_FOLDER, folder / MODEL)
    flags = ["--served-model-name", "demo", "--tool-call-parser", "hermes", "--enable-auto-tool-choice"]
    with serving(folder, MODEL, *flags, "--workers", "2") as running:
        yield running


def create_administrator(folder: Path) -> None:
    """The account that the tests log in with."""
    command = [*MANAGE, "createsuperuser", "--noinput", "--username", NAME, "--email", "admin@example.org"]
    environment = {**os.environ, "DJANGO_SUPERUSER_PASSWORD": PASSWORD}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Headless Chromium. Its driver keeps an event loop running, which must not be there for other tests."""
    with sync_playwright() as playwright:
        # Root has no sandbox, and containers have little shared memory.
        chromium = playwright.chromium.launch(
            executable_path=browsers.installed(), args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        )
        yield chromium
        chromium.close()


@pytest.fixture(params=["light", "dark"])
def theme(request: pytest.FixtureRequest) -> str:
    """Both themes."""
    return str(request.param)


@pytest.fixture
def visitor(browser: Browser, server: Server) -> Iterator[Page]:
    """A page of somebody who is not logged in. Nothing that it loads is missing, and no script fails."""
    yield from _watched_page(browser, server, theme="light")


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    """The same, logged in."""
    for found in _watched_page(browser, server, theme="light"):
        log_in(found)
        yield found


@pytest.fixture
def themed_page(browser: Browser, server: Server, theme: str) -> Iterator[Page]:
    """The same in each theme."""
    for found in _watched_page(browser, server, theme=theme):
        log_in(found)
        yield found


def _watched_page(browser: Browser, server: Server, *, theme: str) -> Iterator[Page]:
    context = browser.new_context(base_url=server.url, viewport=WINDOW, color_scheme=theme)  # type: ignore[arg-type]
    page, problems = context.new_page(), []
    page.set_default_timeout(15_000)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("response", lambda answer: answer.status >= 400 and problems.append(f"{answer.status} {answer.url}"))
    page.on("request", lambda sent: sent.url.startswith(("http", "ws")) and _require_own(sent.url, server, problems))
    yield page
    context.close()
    assert problems == []


def _require_own(url: str, server: Server, problems: list[str]) -> None:
    """Everything comes from the server itself."""
    if not url.startswith(server.url):
        problems.append(f"asks another host: {url}")


def log_in(page: Page) -> None:
    """Through the form."""
    page.goto("/admin/")
    page.get_by_label("Username").fill(NAME)
    page.locator("input[name=password]").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/admin/")


@pytest.fixture(scope="session")
def shot() -> Shot:
    """Takes a screenshot of a page under a name."""

    def take(page: Page, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.evaluate("document.fonts.ready")
        page.screenshot(path=SCREENSHOTS / f"{name}.png")

    return take
