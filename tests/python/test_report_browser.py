"""A page in a browser: no request, no error, every chart drawn, no sideways scroll; legend, zoom, pointer and finger.

Skipped without Playwright or Chromium.
"""

import shutil

import nandlab
import pytest
from conftest import SPEC

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")

LABELS = (
    "plot => [...plot.querySelectorAll('text')].map(text => text.textContent).filter(text => text).sort().join('|')"
)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    page = tmp_path_factory.mktemp("page") / "report.html"
    name = "</script><script>document.title = 'evil'</script>"
    nandlab.report(nandlab.run(SPEC, sets={"workload.synthetic.requests": 20_000}, name=name), page)
    return page.as_uri()


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as api:
        started = api.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


def opened(browser, address, width=1280, **options):
    """A page with its requests and errors."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **options)
    page = context.new_page()
    seen = []
    page.on("request", lambda request: seen.append(request.url))
    page.on("console", lambda message: seen.append(message.text))
    page.on("pageerror", lambda error: seen.append(str(error)))
    page.goto(address)
    page.wait_for_function(
        "document.querySelectorAll('.plot').length === document.querySelectorAll('.plot svg').length"
    )
    return page, seen


@pytest.mark.parametrize("width", [390, 768, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_charts_are_drawn_without_a_request_and_without_sideways_scroll(browser, address, width, theme):
    page, seen = opened(browser, address, width, color_scheme=theme)
    assert seen == [address]
    assert page.title() != "evil"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".plot svg").count() >= 12


def test_legend_zoom_and_pointer(browser, address):
    page, seen = opened(browser, address)
    figure = page.locator("figure.chart").first
    plot = figure.locator(".plot").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + 100)
    page.mouse.move(*middle)
    page.wait_for_selector("#tip:visible")
    assert "read" in page.locator("#tip").inner_text() and "write" in page.locator("#tip").inner_text()
    lines = plot.locator("path[stroke='var(--blue)']")
    assert lines.count() == 1
    button = figure.locator(".legend button").first
    button.focus()
    page.keyboard.press("Enter")
    page.wait_for_timeout(300)
    assert lines.count() == 0
    assert button.get_attribute("aria-pressed") == "false"
    whole = plot.evaluate(LABELS)
    page.mouse.move(*middle)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    page.wait_for_timeout(300)
    page.keyboard.up("Control")
    assert plot.evaluate(LABELS) != whole
    figure.locator("[data-do=all]").click()
    page.wait_for_timeout(300)
    assert plot.evaluate(LABELS) == whole
    with page.expect_download() as download:
        figure.locator("[data-do=svg]").click()
    assert download.value.suggested_filename == "all-requests.svg"
    assert "var(--" not in download.value.path().read_text()
    assert [entry for entry in seen if not entry.startswith(("file:", "blob:"))] == []


def test_a_tap_shows_values(browser, address):
    page, _ = opened(browser, address, 390, has_touch=True, is_mobile=True)
    plot = page.locator(".plot").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + 100)
    page.wait_for_selector("#tip:visible")
    assert "read" in page.locator("#tip").inner_text()
