"""Every kind of page in a browser, at three widths and in both themes.

No request, no error, no sideways scroll, every chart drawn, no serious finding of axe; legend, zoom, pointer, finger
and keyboard. Skipped without Chromium, or without the package that contains axe.
"""

import shutil
from itertools import pairwise
from pathlib import Path

import nandlab
import pytest
import test_life
import test_power_loss
import test_power_test
import test_reliability
from conftest import SPEC
from nandlab.power_test import report as power_test_report
from nandlab.power_test.test import Cut, PowerTest
from nandlab.reporting.render import html_of
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
# For axe a chart is one image, and all rows of a table of values have one form. Without them axe is ten times faster.
WITHOUT_CHARTS = "window.IntersectionObserver = class { observe() {} }; window.requestIdleCallback = () => {};"
SHORT_TABLES = """() => {
    for (const body of document.querySelectorAll("figure details tbody")) body.replaceChildren(body.firstElementChild);
}"""
LABELS = (
    "plot => [...plot.querySelectorAll('text')].map(text => text.textContent).filter(text => text).sort().join('|')"
)
DRAWN = "document.querySelectorAll('.plot').length === document.querySelectorAll('.plot svg').length"


def run_page(folder):
    """A run with the sections on read levels, mapping cache, write cache, and what requests waited for."""
    name = "</script><script>document.title = 'evil'</script>"
    sets = {"cache.size": "256KiB", "cache.sync": "smart", "output.explain": 5}
    result = nandlab.run(test_reliability.RUN % ("8KiB", 10_000, "365d"), sets=sets, name=name)
    return nandlab.report(result, folder / "run.html")


def power_loss_page(folder):
    return nandlab.report(nandlab.run(test_power_loss.SPEC, sets=test_power_loss.CHARGED), folder / "power.html")


def life_page(folder):
    return nandlab.report(nandlab.life(test_life.SPEC, windows=6, requests=1000), folder / "life.html")


def reliability_page(folder):
    return nandlab.reliability(test_reliability.DRIVE).save(folder / "reliability.html", susceptible=True)


def study_page(folder):
    """A study with lines, bars, effects, and verdicts."""
    factors = """
[factors.A]
title = "First in, first out"
off = { "gc.victim" = "greedy" }
on = { "gc.victim" = "fifo" }
[factors.B]
title = "Few valid pages"
on = { "precondition.valid" = 0.5 }
[[figures]]
id = "effects"
title = "Effects"
kind = "effects"
metric = "waf"
"""
    (folder / "base.toml").write_text(BASE)
    (folder / "s.toml").write_text(STUDY + factors)
    return nandlab.Study.load(folder / "s.toml").run(folder / "o", workers=1).report


def compare_page(folder):
    comparison = nandlab.compare(SPEC, {"gc.victim": "fifo", "drive.op": 0.5}, {"drive.op": 0.5}, seeds=2)
    return nandlab.report(comparison, folder / "compare.html")


#: The function that writes each page; it returns the path.
PAGES = {
    "run": run_page,
    "power loss": power_loss_page,
    "life": life_page,
    "reliability": reliability_page,
    "study": study_page,
    "compare": compare_page,
}


def power_test_page(folder):
    """Two broken cuts of a session of writes and flushes, with a time line each and one of the smallest case."""
    moments = test_power_test.many(100)
    lost, other = test_power_test.unit(48), test_power_test.unit(47)
    rows = [{"number": n, "at_ns": 50_200, "unit_bytes": 4096, "lost_units": [lost, other]} for n in range(2)]
    evidence = {"with_covered": True, "put_back": 1, "fsck": ""}
    losses = {"covered": 1, "acknowledged": 2, "in_flight": 0}
    cuts = [Cut(n, 50_200, False, 1, "key 3 is lost", "", 2, losses, 1, "drive", evidence, 0.1) for n in range(2)]
    lost |= {"request": 48}
    smallest = {"lost": [lost], "also_lost": [other], "tries": 3, "bounded": False, "needs_no_loss": False}
    smallest |= {"cut": 0, "at_ns": 50_200, "unit_bytes": 4096, "events": 9, "events_tried": 9}
    result = PowerTest(folder, cuts, {}, smallest, 1.0, 3, "slc", True, 100, 9, 1.0, "check.sh")
    path = folder / "power-test.html"
    path.write_text(html_of(power_test_report.page_of(result, moments, rows)))
    return path


#: A page without charts that scripts draw.
DRAWINGS = {"power test": power_test_page}


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
            made[name] = Path((PAGES | DRAWINGS)[name](tmp_path_factory.mktemp("page"))).as_uri()
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


@pytest.fixture(scope="module", params=PAGES)
def shown(request, browser, addresses):
    """Each page, opened once, on a screen with touch."""
    page, seen = opened(browser, addresses(request.param), 390, has_touch=True, reduced_motion="reduce")
    yield page, seen
    page.context.close()


def each_width(page):
    for width in (390, 768, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        yield width


def test_each_page_at_each_width_and_theme(shown):
    page, seen = shown
    assert page.title() != "evil"
    assert page.locator(".plot svg").count() == page.locator(".plot svg[aria-hidden=true]").count() >= 3
    for width in each_width(page):
        # The charts follow the width.
        page.wait_for_function("""[...document.querySelectorAll(".plot")]
            .every(plot => Math.abs(plot.querySelector("svg").clientWidth - plot.clientWidth) < 2)""")
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (width, theme)
        if width == 390:
            # The rows of such a table are blocks below one another.
            wide = ".filter(table => table.parentElement.scrollWidth > table.parentElement.clientWidth).length"
            assert page.evaluate(f"[...document.querySelectorAll('.stacks')]{wide}") == 0
    assert seen == [page.url]


def test_a_tap_on_each_chart_shows_values(shown):
    page, _ = shown
    page.set_viewport_size({"width": 390, "height": 900})
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


def test_the_keyboard_reaches_and_opens_each_fold(shown):
    page, _ = shown
    page.evaluate(SHORT_TABLES)
    page.evaluate("""() => {
        window.reached = [];
        const folds = [...document.querySelectorAll("summary")];
        addEventListener("focusin", event => {
            if (event.target.matches("summary")) window.reached.push(folds.indexOf(event.target));
        });
    }""")
    page.locator(".skip").focus()
    for _ in range(page.locator("a, button, summary, [tabindex='0']").count()):
        page.keyboard.press("Tab")
    folds = page.locator("details")
    # Beyond the last element the focus returns to the first.
    assert page.evaluate("[...new Set(window.reached)]") == list(range(folds.count())) != []
    for fold in (folds.first, folds.last):
        fold.locator("summary").focus()
        page.keyboard.press("Enter")
        assert fold.get_attribute("open") is not None
        # The part that scrolls is next.
        page.keyboard.press("Tab")
        assert fold.evaluate("fold => fold.contains(document.activeElement) && document.activeElement.tabIndex === 0")


def test_time_lines_fit_each_width(browser, addresses):
    page, seen = opened(browser, addresses("power test"))
    for width in each_width(page):
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        for fold in page.locator("details").all():
            fold.evaluate("fold => { fold.open = true; }")
        lines = page.locator("svg.times")
        assert lines.count() == 3
        for line in lines.all():
            box = line.bounding_box()
            assert box["width"] >= 0.6 * (width - 60) and box["x"] + box["width"] <= width
            # The labels that are shown do not overlap.
            shown = [of.bounding_box() for of in line.locator("text.tick").all() if of.is_visible()]
            ends = sorted((one["x"], one["x"] + one["width"]) for one in shown)
            assert len(ends) >= 2 and all(first[1] < then[0] for first, then in pairwise(ends)), (width, ends)
    assert seen == [page.url]
    page.context.close()


@pytest.mark.parametrize("name", [*PAGES, *DRAWINGS])
def test_axe_finds_nothing_serious(browser, addresses, name):
    context = browser.new_context()
    context.add_init_script(WITHOUT_CHARTS)
    page = context.new_page()
    page.goto(addresses(name))
    page.evaluate(SHORT_TABLES)
    page.evaluate(AXE)
    # The theme changes only colours, and the width no colour. Contrast takes most of the time.
    for width in each_width(page):
        assert page.evaluate(VIOLATIONS, {"rules": {"color-contrast": {"enabled": False}}}) == [], width
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        assert page.evaluate(VIOLATIONS, {"runOnly": {"type": "rule", "values": ["color-contrast"]}}) == [], theme
    context.close()


def over_middle(page, plot):
    """Moves the pointer over the middle of a plot until its values are shown.

    One move is not enough: a plot moves when a focus scrolls the page or charts above it are drawn, and Vega listens a
    moment after the drawing is there.
    """
    tip = page.locator("#tip")
    for step in range(100):
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2 + step % 2, box["y"] + 100)
        page.wait_for_timeout(100)
        if tip.is_visible():
            return
    pytest.fail("no values under the pointer")


def test_legend_zoom_and_pointer(browser, address):
    page, seen = opened(browser, address)
    figure = page.locator("figure.chart").first
    plot = figure.locator(".plot").first
    over_middle(page, plot)
    assert "read" in page.locator("#tip").inner_text() and "write" in page.locator("#tip").inner_text()
    lines = plot.locator("path[stroke='var(--blue)']")
    assert lines.count() == 1
    button = figure.locator(".legend button").first
    button.focus()
    page.keyboard.press("Enter")
    playwright.expect(lines).to_have_count(0)
    playwright.expect(button).to_have_attribute("aria-pressed", "false")
    whole = plot.evaluate(LABELS)
    labels = {"plot": plot.element_handle(), "whole": whole}
    over_middle(page, plot)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    page.wait_for_function(f"({{ plot, whole }}) => ({LABELS})(plot) !== whole", arg=labels)
    page.keyboard.up("Control")
    figure.locator("[data-do=all]").click()
    page.wait_for_function(f"({{ plot, whole }}) => ({LABELS})(plot) === whole", arg=labels)
    with page.expect_download() as download:
        figure.locator("[data-do=svg]").click()
    assert download.value.suggested_filename == "all-requests.svg"
    assert "var(--" not in download.value.path().read_text()
    assert [entry for entry in seen if not entry.startswith(("file:", "blob:"))] == []
