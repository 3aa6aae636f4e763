"""The report is one file without network addresses; a section without data has a sentence instead of a figure."""

import json
import re
from html.parser import HTMLParser

import nandlab
import numpy as np
import pytest
from conftest import SPEC
from nandlab.reporting.plots import slowest
from nandlab.reporting.series import thin, with_extremes, without_empty

SECTIONS = [
    "Settings",
    "Latency",
    "Throughput and latency over time",
    "Write amplification",
    "Steady state",
    "Garbage collection",
    "Dies",
    "Wear",
    "Flash operations by cause",
    "Energy",
    "SMART",
    "Counters",
    "The simulator itself",
]


class Reader(HTMLParser):
    """Checks that every opened tag is closed, and collects addresses and embedded data."""

    VOID = frozenset(["meta", "path", "rect", "image", "circle", "br"])

    def __init__(self):
        super().__init__()
        self.open, self.addresses, self.data, self._json = [], [], [], False

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.addresses += [attrs[name] for name in ("href", "src") if name in attrs]
        self._json = tag == "script" and attrs.get("type") == "application/json"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.addresses += [value for name, value in attrs if name in ("href", "src")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self._json:
            self.data.append(json.loads(data))


def page_of(sets, tmp_path):
    result = nandlab.run(SPEC, sets=sets)
    path = nandlab.report(result, tmp_path / "report.html")
    text = path.read_text()
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    shown = text.split("<svg", 1)[-1].split("<script>")[0]
    assert not re.search(r"\bnan\b", re.sub(r"base64,[^\"]*", "", shown), re.IGNORECASE)
    return text, reader


def test_the_report_has_every_section_and_no_network_address(tmp_path):
    text, reader = page_of({}, tmp_path)
    assert re.findall("<h2>(.*?)</h2>", text) == SECTIONS
    assert all(address.startswith("data:") for address in reader.addresses)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert len(reader.data) >= 12
    assert len(text) < 1_000_000
    # Seven figures have no caption: latency, the steady-state test, SMART (2), counters (2) and the simulator.
    assert text.count("<figcaption>") == text.count("<figure>") - 7


def test_a_section_without_data_has_a_sentence(tmp_path):
    text, _ = page_of({"workload.synthetic.read_fraction": 0.0, "workload.synthetic.requests": 20}, tmp_path)
    assert "The run has no reads, so there is no read latency." in text
    assert "No victim was picked." in text or "GC never ran" in text


@pytest.mark.parametrize("requests", [1, 2, 20, 2000, 20_000])
def test_a_run_of_any_length_is_drawn(tmp_path, requests):
    _, reader = page_of({"workload.synthetic.requests": requests}, tmp_path)
    for plot in reader.data:
        if plot["kind"] == "lines":
            assert len(plot["x"]) <= 602
            assert all(len(series["y"]) == len(plot["x"]) for series in plot["s"])
        else:
            assert len(plot["v"]) == len(plot["r"])


@pytest.mark.parametrize("table", ["series", "dies", "latency", "blocks"])
def test_a_report_is_written_for_tables_without_rows(tmp_path, table):
    result = nandlab.run(SPEC)
    result._columns[table] = {name: column[:0] for name, column in result._columns[table].items()}
    assert nandlab.report(result, tmp_path / "report.html").stat().st_size > 10_000


def test_the_report_of_a_stopped_run_states_that_it_is_not_complete(tmp_path):
    result = nandlab.run(SPEC)
    result.summary_text = json.dumps(json.loads(result.summary_text) | {"complete": False})
    text = nandlab.report(result, tmp_path / "report.html").read_text()
    assert "not complete" in text


def test_text_of_the_user_is_escaped(tmp_path):
    result = nandlab.run(SPEC, name="<script>alert(1)</script>")
    result.spec_toml = 'seed = 1\n[drive]\ncell = "</pre><b>"\n'
    text = nandlab.report(result, tmp_path / "report.html").read_text()
    assert "<script>alert" not in text
    assert "</pre><b>" not in text


def test_a_moment_without_progress_is_visible_in_the_figure_of_a_long_run():
    rows, still = 4000, 2345
    series = {
        "time_s": np.arange(1, rows + 1) * 0.1,
        "interval_s": np.full(rows, 0.1),
        "requests_read": np.full(rows, 40, dtype=np.uint64),
        "requests_write": np.full(rows, 60, dtype=np.uint64),
        "latency_us_read_max": np.full(rows, 300.0),
        "latency_us_write_max": np.full(rows, 900.0),
        "iops": np.full(rows, 1000.0),
    }
    even = slowest(thin(with_extremes(without_empty(series))))
    assert '"least"' not in even and '"slowest"' in even
    series["iops"][still] = series["requests_read"][still] = series["requests_write"][still] = 0
    series["latency_us_write_max"][still + 1] = 250_000.0
    short = thin(with_extremes(without_empty(series)))
    assert len(short["iops_min"]) <= 400
    assert np.flatnonzero(short["iops_min"] == 0).tolist() == [still // 10]
    assert short["latency_us_max"].max() == 250_000.0 and np.median(short["latency_us_max"]) == 900.0
    assert '"least"' in slowest(short)


def test_thinning_keeps_counts_extremes_and_weighted_means():
    rows = 1003
    rng = np.random.default_rng(1)
    series = {
        "time_s": np.arange(1, rows + 1) * 0.5,
        "interval_s": np.full(rows, 0.5),
        "requests_read": rng.integers(0, 5, rows).astype(np.uint64),
        "latency_us_read_mean": rng.random(rows),
        "latency_us_read_max": rng.random(rows),
        "free_share_min": rng.random(rows),
        "cache_dirty_pages": rng.integers(0, 99, rows).astype(np.uint64),
    }
    series["latency_us_read_mean"][series["requests_read"] == 0] = np.nan
    short = thin(series, 100)
    assert len(short["time_s"]) <= 100
    assert short["time_s"][-1] == series["time_s"][-1]
    assert short["requests_read"].sum() == series["requests_read"].sum()
    assert short["latency_us_read_max"].max() == series["latency_us_read_max"].max()
    assert short["free_share_min"].min() == series["free_share_min"].min()
    assert short["cache_dirty_pages"].max() == series["cache_dirty_pages"].max()
    assert short["cache_dirty_pages"].min() >= series["cache_dirty_pages"].min()
    total = np.nansum(series["latency_us_read_mean"] * series["requests_read"])
    assert np.nansum(short["latency_us_read_mean"] * short["requests_read"]) == pytest.approx(total)
