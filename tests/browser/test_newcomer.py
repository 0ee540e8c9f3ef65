"""A newcomer's path: log in, add a model, try it in the playground, see a parity run."""

from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import MODEL, NAME, PASSWORD, Shot
from tests.servers import Server

pytestmark = pytest.mark.live


def choose(page: Page, field: str, text: str) -> None:
    """Search in a choice of formats, and take the first that is found."""
    page.locator(f"#id_{field} + .select2").click()
    page.keyboard.type(text)
    page.keyboard.press("Enter")


def test_walks_from_the_login_to_a_parity_run(visitor: Page, server: Server, shot: Shot) -> None:
    page = visitor
    page.goto("/admin/")
    shot(page, "login")
    page.get_by_label("Username").fill(NAME)
    page.locator("input[name=password]").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/admin/")
    expect(page.get_by_role("heading", name="Parity with vLLM")).to_be_visible()
    shot(page, "overview")

    page.get_by_role("link", name="Served models").first.click()
    expect(page.get_by_text("Also served, not from this table")).to_be_visible()
    page.get_by_role("link", name="Add served model").last.click()
    page.get_by_label("Name", exact=False).first.fill("newcomer")
    page.locator("#id_model").fill(MODEL)
    choose(page, "tool_call_parser", "jamba")
    expect(page.locator("#id_tool_call_parser-sample pre")).to_contain_text("<tool_calls>")
    page.locator("label[for=id_enable_auto_tool_choice]").click()
    choose(page, "reasoning_parser", "qwen3")
    page.locator("#id_tool_call_parser + .select2").scroll_into_view_if_needed()
    shot(page, "add-model")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("the tokenizer has no <tool_calls> and </tool_calls> tokens")).to_be_visible()
    page.locator("#id_tool_call_parser + .select2").scroll_into_view_if_needed()
    shot(page, "refused-model")
    choose(page, "tool_call_parser", "hermes")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url("**/servedmodel/")
    expect(page.get_by_text("was added successfully")).to_be_visible()
    _wait_until_served(server, "newcomer")
    for _ in range(20):
        httpx.post(f"{server.url}/tokenize", json={"model": "newcomer", "prompt": "loads it"}).raise_for_status()
    page.reload()
    shot(page, "models")

    page.get_by_role("link", name="newcomer").first.click()
    page.get_by_role("link", name="Check this model").click()
    expect(page.get_by_text("newcomer can be served: tokenizer with 4,009 tokens")).to_be_visible()
    shot(page, "checked-model")
    page.get_by_role("link", name="Try it in the playground").click()
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("heading", name="What became of it")).to_be_visible()
    expect(page.locator("#so-far")).to_contain_text("get_weather")
    for _ in range(9):
        page.get_by_role("button", name="Previous chunk").click()
    page.locator("#results").scroll_into_view_if_needed()
    page.evaluate("document.getElementById('results').scrollIntoView()")
    shot(page, "playground")

    page.get_by_role("link", name="Parity runs").click()
    expect(page.locator(".wb-plot circle").first).to_be_visible()
    shot(page, "parity-runs")
    page.get_by_role("link", name="after the change").click()
    expect(page.get_by_text("2 differ")).to_be_visible()
    shot(page, "parity-run")
    page.locator("#differences ~ div a").first.click()
    expect(page.locator("#first-difference")).to_contain_text("first difference")
    shot(page, "difference")


def test_a_saved_model_is_live_in_every_worker_within_seconds(page: Page, server: Server) -> None:
    page.goto("/admin/parsers/servedmodel/add/")
    page.locator("#id_name").fill("everywhere")
    page.locator("#id_model").fill(MODEL)
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url("**/servedmodel/")

    _wait_until_served(server, "everywhere")


def test_a_row_that_cannot_be_served_is_not_saved(page: Page, tmp_path: Path, server: Server) -> None:
    page.goto("/admin/parsers/servedmodel/add/")
    page.locator("#id_name").fill("broken")
    page.locator("#id_model").fill(str(tmp_path))
    page.get_by_role("button", name="Save", exact=True).click()

    expect(page.get_by_text("holds no tokenizer")).to_be_visible()
    page.goto("/admin/parsers/servedmodel/?q=broken")
    expect(page.get_by_text("0 served models")).to_be_visible()


def _wait_until_served(server: Server, name: str) -> None:
    """Until forty answers in a row, each over a connection of its own, know the model: both workers gave some."""
    known = 0
    for _ in range(2000):
        models = httpx.get(f"{server.url}/v1/models").json()["data"]
        known = known + 1 if name in [model["id"] for model in models] else 0
        if known == 40:
            return
    raise AssertionError(f"{name} is not served everywhere")
