"""The playground in a browser: steps, keys, links, cases."""

import json

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import MODEL

pytestmark = pytest.mark.live


def run(page: Page, **fields: str) -> None:
    """Fill in fields and run the experiment."""
    page.goto("/admin/playground/")
    for name, value in fields.items():
        page.locator(f"#id_{name}").fill(value)
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#results")).to_be_visible()


def kinds(page: Page) -> list[str]:
    """Classes of the tokens' pieces, as they are shown now."""
    return page.locator("#tokens .tok").evaluate_all("all => all.map(each => each.className)")


def test_steps_through_the_stream(page: Page) -> None:
    run(page, output="Hello, world!")
    state, slider = page.locator("#step-state"), page.get_by_label("Chunks sent")
    chunks = int(slider.get_attribute("max") or 0)

    expect(state).to_contain_text(f"chunk {chunks} of {chunks}")
    page.get_by_role("button", name="Before the first chunk").click()
    expect(state).to_have_text("before the first chunk")
    expect(page.locator("#so-far")).to_have_text("nothing yet")
    assert "content" not in " ".join(kinds(page))
    page.get_by_role("button", name="Next chunk").click()
    expect(state).to_contain_text(f"chunk 1 of {chunks}")
    expect(page.locator("#so-far .content")).to_have_text("Hello")
    slider.focus()
    page.keyboard.press("End")
    expect(page.locator("#so-far .content")).to_have_text("Hello, world!")


def test_keys_step_from_the_tokens(page: Page) -> None:
    run(page, output="Hello, world!")
    tokens, state = page.locator("#tokens"), page.locator("#step-state")

    tokens.focus()
    page.keyboard.press("Home")
    expect(state).to_have_text("before the first chunk")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(state).to_contain_text("chunk 2 of")
    page.keyboard.press("ArrowLeft")
    expect(state).to_contain_text("chunk 1 of")


def test_a_token_is_held_back_until_the_parser_knows(page: Page) -> None:
    run(page)
    page.get_by_text("get", exact=True).first.click()

    assert any("held" in each for each in kinds(page))
    expect(page.locator("[data-count=held]")).not_to_have_text("0")
    page.get_by_role("button", name="After the last chunk").click()
    assert not any("held" in each for each in kinds(page))
    expect(page.locator("[data-count=held]")).to_have_text("0")
    expect(page.locator("#tokens .tok.name").first).to_have_text("get")


def test_a_link_brings_everything_back(page: Page) -> None:
    run(page, output="A link says ü and 🌍.")
    page.get_by_role("button", name="Before the first chunk").click()
    page.get_by_role("button", name="Next chunk").click()
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#link-state")).to_contain_text("The link is")
    link = page.url

    page.goto("/admin/")
    page.goto(link)

    expect(page.locator("#results")).to_be_visible()
    expect(page.locator("#id_output")).to_have_value("A link says ü and 🌍.")
    expect(page.locator("#step-state")).to_contain_text("chunk 1 of")
    assert "?" not in link, "outputs stay out of access logs"


def test_a_link_to_another_tokenizer_waits_for_a_click(page: Page) -> None:
    page.goto("/admin/playground/")
    page.locator("#id_model").select_option("")
    page.get_by_text("A pair of parsers", exact=True).click()
    page.locator("#id_tokenizer").fill(MODEL)
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#link-state")).to_contain_text("The link is")
    link = page.url

    page.goto("/admin/")
    page.goto(link)

    expect(page.locator("#link-state")).to_contain_text("Run loads the tokenizer")
    expect(page.locator("#results")).to_have_count(0)
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#results")).to_be_visible()


def test_new_lines_of_json_are_indented_and_tab_leaves_the_field(page: Page) -> None:
    page.goto("/admin/playground/")
    tools = page.locator("#id_tools")
    tools.fill("")
    tools.type("[{")
    page.keyboard.press("Enter")
    page.keyboard.type('"a": 1}]')
    expect(tools).to_have_value('[{\n  "a": 1}]')
    page.get_by_role("button", name="Format").first.click()
    expect(tools).to_have_value('[\n  {\n    "a": 1\n  }\n]')
    tools.focus()
    page.keyboard.press("Tab")
    expect(tools).not_to_be_focused()


def test_a_damaged_link_says_so(page: Page) -> None:
    page.goto("/admin/playground/#s=AAAA")

    expect(page.locator("#link-state")).to_have_text("The link is damaged.")


def test_an_error_stands_beside_its_field(page: Page) -> None:
    page.goto("/admin/playground/")
    page.locator("#id_tools").fill('[{"type": "function"]')
    expect(page.locator("div:has(> #id_tools) .json-editor-state")).to_contain_text("line 1, column 21")
    page.locator("#id_tools").fill("{}")
    expect(page.locator("div:has(> #id_tools) .json-editor-state")).to_have_text(
        "A JSON list is expected, this is an object."
    )
    page.get_by_role("button", name="Run").click()

    expect(page.get_by_text("A JSON list is expected.", exact=True)).to_be_visible()


def test_a_case_is_saved_and_tried_again(page: Page) -> None:
    run(page, output="A case.")
    page.get_by_label("Case id").fill("a-case")
    page.get_by_label("What it is about").fill("saved by a test")
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/savedcase/*/change/")
    page.get_by_role("link", name="Try it in the playground").click()

    page.get_by_role("button", name="Run").click()
    expect(page.locator("#so-far .content")).to_have_text("A case.")


def test_a_case_is_downloaded(page: Page) -> None:
    run(page, output="A case.")
    page.get_by_label("Case id").fill("mine")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download").click()

    assert waiting.value.suggested_filename == "mine.json"
    assert json.loads(waiting.value.path().read_text())["case"]["oneshot"]["message"]["content"] == "A case."
