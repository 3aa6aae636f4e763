"""The window on a live drive: its page in a browser, its metrics, and whom it refuses."""

import http.client
import io
import json
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import nandlab
import pytest
from nandlab import live, simulate
from nandlab.cli.top import frame
from nbd_client import Client
from rich.console import Console

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a drive is served on Linux only")
QEMU_IO = shutil.which("qemu-io")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_qemu_io = pytest.mark.skipif(QEMU_IO is None, reason="not on this machine: qemu-io")

SPEC = """
[drive]
channels = 2
chips_per_channel = 1
dies_per_chip = 2
planes_per_die = 1
blocks_per_plane = 32
pages_per_block = 16
page_size = "4KiB"
op = 0.5
[capacitor]
capacitance = "1mF"
[cache]
size = "64KiB"
flush_to = "cache"
"""


class Window:
    """A served drive with its window."""

    def __init__(self, drive, url):
        self.drive, self.url = drive, url
        self.address, self.token = re.fullmatch(r"http://([^/]*)/#([0-9a-f]{32})", url).groups()

    def ask(self, path, method="GET", **headers):
        """Status, headers and body of an answer; `headers` replace those of the page."""
        sent = {"Host": self.address, "Authorization": f"Bearer {self.token}"} | headers
        connection = http.client.HTTPConnection(self.address, timeout=60)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in sent.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer.status, dict(answer.getheaders()), body

    def snapshot(self, until=lambda _: True):
        """The first snapshot that satisfies a condition."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            status, _, body = self.ask("/snapshot")
            if status == 200 and until(json.loads(body)):
                return json.loads(body)
            time.sleep(0.1)
        raise AssertionError("no such snapshot within two minutes")

    def load(self, *, passes=3, megabytes=2):
        """Writes and reads of the whole drive, so that GC works."""
        commands = []
        for number in range(passes):
            commands += ["-c", f"write -P {number + 1} 0 {megabytes}M"]
            for at in range(0, megabytes << 20, 24 << 10):
                commands += ["-c", f"write -P {number + 7} {at} 4k", "-c", f"read {at} 4k"]
        subprocess.run([QEMU_IO, "-f", "raw", *commands, self.drive.uri], check=True, capture_output=True)


@contextmanager
def window(folder, *options):
    (folder / "drive.toml").write_text(SPEC)
    socket = folder / "live" / "drive.sock"
    words = [*("serve", str(folder / "drive.toml"), "--socket", str(socket)), *("--http", "127.0.0.1:0"), *options]
    process = subprocess.Popen(
        [sys.executable, "-m", "nandlab", *words, "--speed", "max"], stdout=subprocess.PIPE, text=True
    )
    try:
        uri, url = process.stdout.readline().strip(), process.stdout.readline().strip()
        yield Window(live.Drive(socket, uri, process.pid), url)
    finally:
        process.terminate()
        process.communicate(timeout=120)
    assert process.returncode == 143, "the status of SIGTERM"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with window(tmp_path_factory.mktemp("window")) as opened:
        yield opened


def test_data_is_for_the_token_alone(served):
    for path in ("/snapshot", "/metrics", "/explained/0"):
        for given in (
            None,
            "Bearer ",
            "Bearer " + "0" * 32,
            served.token,
            f"Basic {served.token}",
            f"Bearer {served.token}0",
        ):
            status, headers, body = served.ask(path, Authorization=given)
            assert (status, "error" in json.loads(body)) == (401, True), (path, given)
            assert "set-cookie" not in {name.lower() for name in headers}
    # In the address the token is of no use.
    assert served.ask(f"/snapshot?token={served.token}", Authorization=None)[0] == 401
    assert served.ask("/snapshot", Authorization=None, Cookie=f"token={served.token}")[0] == 401


@pytest.mark.parametrize("path", ["/", "/snapshot", "/metrics"])
def test_another_host_or_origin_is_refused(served, path):
    name, _, port = served.address.rpartition(":")
    for host in (None, "evil.example", f"evil.example:{port}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.2:{port}", ""):
        assert served.ask(path, Host=host)[0] in (400, 421), host
    for origin in ("http://evil.example", "null", f"https://{served.address}", f"http://{name}:1", ""):
        assert served.ask(path, Origin=origin)[0] == 403, origin
    assert served.ask(path, Origin=f"http://{served.address}")[0] in (200, 503)
    assert served.ask(path, Host=f"localhost:{port}")[0] in (200, 503)


def test_changes_are_posted_by_who_has_the_token(served):
    for path in ("/cut", "/restore", "/detect"):
        for method in ("GET", "PUT", "DELETE", "HEAD"):
            status, headers, _ = served.ask(path, method)
            assert (status, headers.get("allow")) == (405, "POST")
        assert served.ask(path, "POST", Authorization=None)[0] == 401
        assert served.ask(path, "POST", Origin="http://evil.example")[0] == 403
        assert served.ask(path, "POST", Host="evil.example")[0] == 421
    assert served.drive.stat()["power"] == "on"
    assert served.drive.stat()["power_losses"] == 0
    for path in ("/", "/snapshot", "/metrics"):
        assert served.ask(path, "POST")[0] == 405
    for path in ("/orders", "/../etc/passwd", "/explained/999999", "/page.js/", "//"):
        assert served.ask(path)[0] == 404


def test_the_page_is_ours_alone(served):
    for path, kind in (("/", "text/html"), ("/page.js", "text/javascript"), ("/page.css", "text/css")):
        status, headers, body = served.ask(path, Authorization=None)
        headers = {name.lower(): value for name, value in headers.items()}
        assert status == 200 and headers["content-type"].startswith(kind)
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-store"
        assert served.token not in body
        assert [address for address in re.findall(r"https?://[^\"'\s]*", body) if "www.w3.org" not in address] == []


@pytest.mark.parametrize("address", ["0.0.0.0:0", "127.0.0.1", "localhost:0"])
def test_an_address_is_refused(tmp_path, address):
    (tmp_path / "drive.toml").write_text(SPEC)
    words = ["serve", tmp_path / "drive.toml", "--socket", tmp_path / "live/d.sock", "--http", address]
    done = subprocess.run([sys.executable, "-m", "nandlab", *words], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        ("--allow-remote" in done.stderr or "remote" in done.stderr)
        if address == "0.0.0.0:0"
        else "remedy" in done.stderr
    )


def test_options_without_effect_are_refused(tmp_path):
    (tmp_path / "drive.toml").write_text(SPEC)
    words = [sys.executable, "-m", "nandlab", "serve", tmp_path / "drive.toml", "--no-explain"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--no-explain" in done.stderr and "remedy" in done.stderr


@needs_qemu_io
def test_a_window_that_explains_nothing_shows_the_rest(tmp_path):
    with window(tmp_path, "--no-explain") as own:
        own.load(passes=1)
        stat = own.drive.stat()
        seen = own.snapshot(lambda one: one["stat"]["server"]["requests"] == stat["server"]["requests"])
        assert seen["state"]["parts_ns"] is None and seen["hour"]["parts_ns"] == {}
        assert all(point["slowest"] is None for point in seen["minute"]["points"])
        assert seen["hour"]["write"]["count"] == stat["host"]["write"]["count"]


@needs_qemu_io
def test_a_snapshot_has_what_stat_and_state_say(served):
    served.load()
    stat, state = served.drive.stat(), served.drive.state()
    seen = served.snapshot(lambda one: one["stat"]["server"]["requests"] == stat["server"]["requests"])
    for key in ("power", "host", "latency_us", "waf", "iops", "depth", "outstanding", "power_losses", "simulated_s"):
        assert seen["stat"][key] == stat[key], key
    assert seen["state"] == state
    assert seen["smart"] == served.drive.smart()
    assert len(seen["dies"]) == 4
    assert sum(seen["shares"]) == state["superblocks"]["closed"]
    assert sum(state["dies"].values()) == 4
    # The last minute has all requests of a server that is younger; the sums are exact, the percentiles those of bins.
    hour = seen["hour"]
    for op in ("read", "write"):
        assert hour[op]["count"] == stat["host"][op]["count"]
        assert hour[op]["max"] == pytest.approx(stat["latency_us"][op]["max"])
        assert hour[op]["p99"] == pytest.approx(stat["latency_us"][op]["p99"], rel=1 / 30)
    assert sum(hour["parts_ns"].values()) == sum(state["parts_ns"].values())
    assert 0 < hour["explained"] == state["explained"] <= sum(hour[op]["count"] for op in ("read", "write"))


@needs_qemu_io
def test_a_slow_request_is_explained(served):
    served.load(passes=1)
    seen = served.snapshot(lambda one: any(point["slowest"] for point in one["minute"]["points"]))
    slowest = max((point["slowest"] for point in seen["minute"]["points"] if point["slowest"]), key=lambda of: of["us"])
    status, _, body = served.ask(f"/explained/{slowest['id']}")
    found = json.loads(body)
    assert status == 200 and found["latency_ns"] == round(slowest["us"] * 1000)
    assert sum(found["parts_ns"].values()) == found["latency_ns"]
    assert found["steps"][0]["from_ns"] == 0 and found["steps"][-1]["to_ns"] == found["latency_ns"]


@needs_qemu_io
def test_a_recording_is_explained_when_it_is_played(tmp_path):
    recording = tmp_path / "session.rec"
    with window(tmp_path, "--record", str(recording)) as own:
        own.load(passes=2)
        stat = own.drive.stat()
    plain = simulate.replay(recording)
    words = [sys.executable, "-m", "nandlab", "run", recording, "--explain", "3", "--out", tmp_path / "out"]
    subprocess.run(words, check=True, capture_output=True)
    played = nandlab.RunResult.read(tmp_path / "out")
    assert plain.explained is None and plain.summary.latency_us == played.summary.latency_us
    assert len(played.explained.slowest) == 3
    write = played.explained.sum_of("write")
    assert write.requests == stat["host"]["write"]["count"]
    assert write.latency_ns == sum(write.parts_ns.values())
    assert played.explained.slowest[0].latency_ns == round(played.summary.latency_us.write.max * 1000)


@needs_qemu_io
def test_the_metrics_follow_the_rules_of_openmetrics(served):
    served.load(passes=1)
    stat = served.drive.stat()
    served.snapshot(lambda one: one["stat"]["server"]["requests"] == stat["server"]["requests"])
    status, headers, text = served.ask("/metrics")
    assert status == 200
    kind = {name.lower(): value for name, value in headers.items()}["content-type"]
    assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    lines = text.split("\n")
    assert lines[-2:] == ["# EOF", ""]
    families, samples, current = {}, {}, None
    for line in lines[:-2]:
        if line.startswith("# TYPE "):
            current, kind = line.split(" ")[2:]
            assert current not in families, "a family is in one piece"
            families[current] = {"type": kind}
        elif line.startswith(("# UNIT ", "# HELP ")):
            _, what, name, value = line.split(" ", 3)
            assert name == current
            families[name][what] = value
        else:
            found = re.fullmatch(r'([a-z_]+)(\{(?:[a-z_]+="[^"\\]*",?)+\})? (-?[0-9.e+-]+)', line)
            assert found, line
            name, labels, value = found.groups()
            suffixes = {"counter": ("_total",), "gauge": ("",), "summary": ("", "_count", "_sum")}
            assert name in [current + suffix for suffix in suffixes[families[current]["type"]]], line
            assert (name, labels) not in samples
            samples[name, labels] = float(value)
    for name, family in families.items():
        assert family["HELP"].endswith("."), name
        assert "UNIT" not in family or name.endswith("_" + family["UNIT"]), name
    assert samples["nandlab_requests_total", '{op="read"}'] == stat["host"]["read"]["count"]
    assert samples["nandlab_write_amplification_ratio", None] == stat["waf"]
    p99 = samples["nandlab_request_latency_seconds", '{op="write",quantile="0.99"}']
    assert p99 == pytest.approx(stat["latency_us"]["write"]["p99"] * 1e-6)


def test_metrics_are_as_the_dashboard_names_them(served):
    served.snapshot()
    text = served.ask("/metrics")[2]
    dashboard = (Path(__file__).parents[2] / "docs/how-to/grafana-dashboard.json").read_text()
    json.loads(dashboard)
    named = set(re.findall(r"nandlab_[a-z_]+", dashboard))
    assert named and all(f"\n{name}" in text for name in named), [name for name in named if f"\n{name}" not in text]


def test_power_is_cut_and_returns_from_the_window(tmp_path):
    with window(tmp_path) as own:
        own.snapshot(lambda one: one["stat"]["power"] == "on")
        assert own.ask("/restore", "POST")[0] == 409
        status, _, body = own.ask("/cut", "POST")
        assert (status, json.loads(body)["ok"]["power"]) == (200, "off")
        assert own.drive.stat()["power"] == "off"
        seen = own.snapshot(lambda one: one["stat"]["power"] == "off")
        assert seen["events"][0]["text"] == "Power has failed."
        assert own.ask("/restore", "POST", Origin=f"http://{own.address}")[0] == 200
        seen = own.snapshot(lambda one: one["stat"]["power"] == "on" and one["stat"]["power_losses"] == 1)
        assert "Power is back." in [event["text"] for event in seen["events"]]


def test_top_shows_what_stat_says(served):
    stat, state = served.drive.stat(), served.drive.state()
    console = Console(width=120, record=True, file=io.StringIO())
    look = {"at": 1.0, "stat": stat, "state": state}
    console.print(frame(look, look, 1.0))
    text = console.export_text()
    assert "power on" in text and "superblocks" in text and "dirty" not in text
    words = [sys.executable, "-m", "nandlab", "live", "top", "--socket", str(served.drive.path), "--times", "2"]
    done = subprocess.run([*words, "--every", "10ms"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "P/E cycles" in done.stdout


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="browser tests: the package playwright is missing")
    if CHROMIUM is None:
        pytest.skip("browser tests: the program chromium is missing")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(params=[("light", 1280), ("dark", 390)], ids=["desk", "phone"])
def page(browser, served, request):
    theme, width = request.param
    context = browser.new_context(color_scheme=theme, viewport={"width": width, "height": 900})
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.told, page.asked = [], []
    page.on("console", lambda message: page.told.append(message.text))
    page.on("pageerror", lambda error: page.told.append(str(error)))
    page.on("request", lambda asked: page.asked.append(asked.url))
    page.goto(served.url)
    yield page
    assert page.told == []
    ours = f"http://{served.address}/"
    assert [url for url in page.asked if not url.startswith((ours, "data:"))] == []
    assert all(served.token not in url.partition("#")[0] for url in page.asked)
    assert context.cookies() == []
    context.close()


@needs_qemu_io
def test_its_values_are_those_of_stat(page, served):
    served.load(passes=1)
    stat = served.drive.stat()
    reads = stat["host"]["read"]["count"]
    page.wait_for_selector(f'[data-path="host.read.count"][data-value="{reads}"]', state="attached")
    shown = page.eval_on_selector_all("[data-path]", "all => all.map(of => [of.dataset.path, of.dataset.value])")
    assert len(shown) > 8
    for path, value in shown:
        wanted = stat
        for key in path.split("."):
            wanted = wanted[key]
        assert float(value) == wanted, path
    assert page.text_content("#power") == "power on"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@needs_qemu_io
def test_a_spike_is_explained_by_keyboard(page, served):
    served.load(passes=1)
    page.wait_for_selector("#spikes button")
    page.locator("#spikes button").last.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#of")
    text = page.text_content("#explained")
    assert "Most of it:" in text and "waited for" in text
    assert page.locator("#explained tbody tr").count() >= 1
    assert page.evaluate("document.activeElement.id") == "h-explained"


def serious(page):
    """What axe finds on a page."""
    axe = pytest.importorskip(
        "axe_playwright_python", reason="browser tests: the package axe-playwright-python is missing"
    )
    script = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    # The policy of the page lets no script of others in.
    page.evaluate(script)
    return page.evaluate(
        """() => axe.run(document, { resultTypes: ["violations"] }).then(found => found.violations
        .map(one => [one.id, ...one.nodes.slice(0, 3).map(node => node.html)]))"""
    )


def test_axe_finds_nothing_serious(page, served):
    page.wait_for_selector("[data-path]", state="attached")
    assert serious(page) == []


def test_a_drive_with_an_slc_cache_shows_it(browser, tmp_path):
    plain = ("cache.size=0B", "cache.flush_to=flash", "capacitor.capacitance=0F", "drive.cell=tlc", "slc.dynamic=1.0")
    with window(tmp_path, *(word for one in plain for word in ("--set", one))) as own:
        client = Client(own.drive.path)
        for number in range(40):
            client.write(number * 4096, bytes([number + 1]) * 4096)
        shown = own.snapshot(lambda one: one["state"]["slc"]["cached"] == 40)
        slc = shown["state"]["slc"]
        # Four lanes, of which each has written two superblocks of five pages of 16 in SLC mode.
        assert (slc["direct"], slc["blocks"], slc["folded"]) == (0, 8, {"idle": 0, "full": 0, "space": 0})
        assert slc["blocks_max"] >= 8
        points = shown["minute"]["points"]
        assert sum(point["slc"]["cached"] for point in points) <= 40
        assert points[-1]["slc"]["blocks"] == 8
        text = own.ask("/metrics")[2]
        assert 'nandlab_slc_host_units_total{mode="slc"} 40\n' in text
        assert "nandlab_slc_superblocks 8\n" in text
        page = browser.new_page(viewport={"width": 390, "height": 900})
        page.goto(own.url)
        page.wait_for_selector("#slc-now meter")
        assert page.is_visible("#s-slc")
        assert "8 superblocks in SLC mode" in page.text_content("#slc-now")
        assert page.locator("#slc-written svg, #slc-blocks svg").count() >= 2
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert serious(page) == []
        page.close()


def test_a_drive_with_handles_shows_them(tmp_path):
    plain = ("--set", "cache.size=0B", "--set", "cache.flush_to=flash", "--set", "capacitor.capacitance=0F")
    with window(tmp_path, *plain, "--set", "placement.handles=2") as own:
        client = Client(own.drive.path, "handle-1")
        client.write(0, b"x" * 8192)
        shown = own.snapshot(lambda one: one["stat"]["placement"]["handles"]["1"]["host_bytes"] == 8192)
        assert [of["placement"] for of in shown["clients"]] == [1]
        text = own.ask("/metrics")[2]
        assert 'nandlab_placement_host_bytes_total{placement="1"} 8192\n' in text
        assert 'nandlab_placement_host_bytes_total{placement="0"} 0\n' in text
        assert "nandlab_fdp_write_amplification_ratio 1\n" in text
        assert 'nandlab_fdp_events_total{type="invalid_identifier"} 0\n' in text
