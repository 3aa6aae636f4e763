"""Every kind of page in a browser, at three widths and in both themes.

No request, no error, no sideways scroll, every chart drawn, no serious finding of axe; legend, zoom, pointer, finger
and keyboard. Skipped without Chromium, or without the package that contains axe.
"""

import shutil
from pathlib import Path

import nandlab
import pytest
import test_life
import test_power_loss
import test_reliability
from conftest import SPEC
from study_lab import BASE, STUDY

playwright = pytest.importorskip("playwright.sync_api", reason="browser tests: the package playwright is missing")
axe = pytest.importorskip("axe_playwright_python", reason="browser tests: the package axe-playwright-python is missing")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="browser tests: the program chromium is missing")

AXE = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
#: The violations of each rule, with the elements.
VIOLATIONS = """rules => axe.run(document, { resultTypes: ["violations"], ...rules }).then(found => found.violations
    .filter(one => ["serious", "critical"].includes(one.impact))
    .map(one => [one.id, ...one.nodes.slice(0, 3).map(node => node.html)]))"""
# axe needs seconds for thousands of elements. All rows of a table of values have one form, and a chart is one image.
REDUCED = """() => {
    for (const body of document.querySelectorAll("figure details tbody")) body.replaceChildren(body.firstElementChild);
    document.head.appendChild(document.createElement("style")).textContent = ".plot svg { display: none; }";
}"""
LABELS = (
    "plot => [...plot.querySelectorAll('text')].map(text => text.textContent).filter(text => text).sort().join('|')"
)
DRAWN = "document.querySelectorAll('.plot').length === document.querySelectorAll('.plot svg').length"


def run_page(folder):
    name = "</script><script>document.title = 'evil'</script>"
    result = nandlab.run(SPEC, sets={"workload.synthetic.requests": 20_000}, name=name)
    return nandlab.report(result, folder / "run.html")


def levels_page(folder):
    """A run with the sections on read levels, mapping cache and write cache."""
    cached = {"cache.size": "256KiB", "cache.sync": "smart"}
    return nandlab.report(nandlab.run(test_reliability.RUN % ("8KiB", 10_000, "365d"), sets=cached), folder / "r.html")


def power_loss_page(folder):
    return nandlab.report(nandlab.run(test_power_loss.SPEC, sets=test_power_loss.CHARGED), folder / "power.html")


def life_page(folder):
    return nandlab.report(nandlab.life(test_life.SPEC, windows=6, requests=1000), folder / "life.html")


def reliability_page(folder):
    return nandlab.reliability(test_reliability.DRIVE).save(folder / "reliability.html", susceptible=True)


def study_page(folder):
    """A study with lines, bars, effects, and verdicts of each kind."""
    factors = """
[factors.A]
title = "Victim"
off = { "gc.victim" = "greedy" }
on = { "gc.victim" = "fifo" }
[factors.B]
title = "Twice the spare space"
on = { "drive.op" = 0.5 }
[parts.cases]
variants = ["greedy", "fifo"]
[parts.cases.grid]
"drive.op" = [0.25, 0.5]
[parts.factorial]
variants = ["none", "A", "B", "AB"]
[[figures]]
id = "effects"
title = "Effects"
kind = "effects"
metric = "waf"
where = { part = "factorial" }
"""
    (folder / "base.toml").write_text(BASE)
    (folder / "s.toml").write_text(STUDY)
    return nandlab.Study.load(folder / "s.toml").run(folder / "o", workers=1).report


def compare_page(folder):
    comparison = nandlab.compare(SPEC, {"gc.victim": "fifo", "drive.op": 0.5}, {"drive.op": 0.5}, seeds=2)
    return nandlab.report(comparison, folder / "compare.html")


#: The function that writes each page; it returns the path.
PAGES = {
    "run": run_page,
    "run with levels and caches": levels_page,
    "power loss": power_loss_page,
    "life": life_page,
    "reliability": reliability_page,
    "study": study_page,
    "compare": compare_page,
}


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as api:
        started = api.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    """A function that gives the address of the page with a name, and writes the page once."""
    made = {}

    def address(name):
        if name not in made:
            made[name] = Path(PAGES[name](tmp_path_factory.mktemp("page"))).as_uri()
        return made[name]

    return address


@pytest.fixture
def address(addresses):
    return addresses("run")


def opened(browser, address, width=1280, **options):
    """A page with its requests and errors."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **options)
    page = context.new_page()
    seen = []
    page.on("request", lambda request: seen.append(request.url))
    page.on("console", lambda message: seen.append(message.text))
    page.on("pageerror", lambda error: seen.append(str(error)))
    page.goto(address)
    page.wait_for_function(DRAWN)
    return page, seen


@pytest.mark.parametrize("name", PAGES)
def test_each_page_at_each_width_and_theme(browser, addresses, name):
    page, seen = opened(browser, addresses(name), 390)
    assert page.title() != "evil"
    assert page.locator(".plot svg").count() >= 3
    for width in (390, 768, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        # The charts follow the width.
        page.wait_for_function("Math.abs(document.querySelector('.plot svg').clientWidth / "
                               "document.querySelector('.plot').clientWidth - 1) < 0.01")  # fmt: skip
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (width, theme)
    assert seen == [addresses(name)]
    page.evaluate(AXE)
    page.evaluate(REDUCED)
    for width in (390, 768, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            # The theme changes only colours.
            rules = {} if theme == "light" else {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
            assert page.evaluate(VIOLATIONS, rules) == [], (width, theme)
    page.context.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_tap_on_each_chart_shows_values(browser, addresses, name):
    page, _ = opened(browser, addresses(name), 390, has_touch=True, is_mobile=True)
    tip = page.locator("#tip")
    without = []
    for plot in page.locator(".plot").all():
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        for across, down in ((0.5, 0.4), (0.3, 0.4), (0.7, 0.4), (0.5, 0.6), (0.2, 0.6), (0.3, 0.75), (0.7, 0.75)):
            page.touchscreen.tap(box["x"] + across * box["width"], box["y"] + down * box["height"])
            page.wait_for_timeout(30)
            if tip.is_visible():
                break
        else:
            without.append(plot.get_attribute("aria-label"))
        page.touchscreen.tap(2, 2)
        page.wait_for_timeout(10)
        assert not tip.is_visible()
    assert without == []
    page.context.close()


@pytest.mark.parametrize("name", PAGES)
def test_the_keyboard_reaches_and_opens_each_fold(browser, addresses, name):
    page, _ = opened(browser, addresses(name), 390)
    page.evaluate("[...document.querySelectorAll('summary')].forEach((one, at) => { one.dataset.at = at; })")
    reached = []
    for _ in range(page.locator("a, button, summary, [tabindex='0']").count()):
        page.keyboard.press("Tab")
        at = page.evaluate("document.activeElement.dataset.at")
        if at is not None:
            reached.append(int(at))
            page.keyboard.press("Enter")
    folds = page.locator("details")
    assert reached == list(range(folds.count())) != []
    assert page.locator("details[open]").count() == folds.count()
    page.context.close()


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
