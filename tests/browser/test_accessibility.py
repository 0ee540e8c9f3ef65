"""Pages in both themes: no violation that axe finds, usable by keyboard, and nothing wider than a small screen."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.conftest import Shot

pytestmark = pytest.mark.live

PAGES = {
    "overview": "/admin/",
    "models": "/admin/parsers/servedmodel/",
    "add-model": "/admin/parsers/servedmodel/add/",
    "playground": "/admin/playground/",
    "parity-runs": "/admin/workbench/parityrun/",
    "parity-run": "/admin/parity/1/",
    "difference": "/admin/parity/differences/1/",
}


def violations(page: Page) -> list[str]:
    """What axe says about a page."""
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]})
    return [
        f"{each['id']}: {node['html'][:160]} ({node['any'][0]['message'] if node['any'] else ''})"
        for each in found.response["violations"]
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("name", list(PAGES))
def test_pages_have_no_violation(themed_page: Page, name: str, theme: str, shot: Shot) -> None:
    themed_page.goto(PAGES[name])
    if name == "playground":
        themed_page.get_by_role("button", name="Run").click()
        expect(themed_page.locator("#results")).to_be_visible()
        themed_page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    shot(themed_page, f"{name}-{theme}")

    assert violations(themed_page) == []


@pytest.mark.parametrize("name", list(PAGES))
def test_pages_fit_a_small_screen(page: Page, name: str, shot: Shot) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(PAGES[name])
    shot(page, f"{name}-small")

    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_playground_is_run_with_the_keyboard_alone(page: Page) -> None:
    page.goto("/admin/playground/")
    page.locator("#id_output").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("By hand.")
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.textContent.trim()"))
        if reached[-1] == "Run":
            break
    page.keyboard.press("Enter")

    expect(page.locator("#so-far .content")).to_have_text("By hand.")


def test_every_field_has_a_label(page: Page) -> None:
    for path in (PAGES["playground"], PAGES["add-model"]):
        page.goto(path)
        unlabelled = page.evaluate(
            """() => [...document.querySelectorAll('#content :is(input, select, textarea):not([type=hidden])')]
                .filter(each => !each.labels?.length && !each.getAttribute('aria-label')).map(each => each.name)"""
        )
        assert unlabelled == [], path
