"""The report is one file without network addresses; a section without data has a sentence instead of a chart.

Table and CSV of a chart have its values; text of the user is escaped; the script is there once.
"""

import csv
import io
import json
import re
from html.parser import HTMLParser
from urllib.parse import unquote

import nandlab
import numpy as np
import pytest
from conftest import NANDLAB, SPEC
from nandlab.reporting import extra, files
from nandlab.reporting.run_charts import slowest
from nandlab.reporting.series import thin, with_extremes, without_empty

SECTIONS = [
    "Settings",
    "Latency",
    "Where did the time go?",
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
#: The most bytes of a report.
LIMIT = 2_500_000


class Reader(HTMLParser):
    """Checks that every opened tag is closed, and collects addresses, ids, headings, tables and embedded data."""

    VOID = frozenset(["meta", "br", "input", "link", "img"])

    def __init__(self):
        super().__init__()
        self.open, self.addresses, self.ids, self.data, self.tags = [], [], [], [], []
        self.headings, self.tables, self._text = [], [], None
        self._json = False

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        self.addresses += [attrs[name] for name in ("href", "src") if name in attrs]
        self.ids += [attrs["id"]] if "id" in attrs else []
        self._json = tag == "script" and attrs.get("type") == "application/json"
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th", "h1", "h2", "h3"):
            self._text = ""

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag in ("td", "th"):
            self.tables[-1][-1].append(self._text)
        elif tag in ("h1", "h2", "h3"):
            self.headings.append((tag, self._text))
        if tag in ("td", "th", "h1", "h2", "h3"):
            self._text = None

    def handle_data(self, data):
        if self._text is not None:
            self._text += data
        if self._json:
            self.data.append(json.loads(data))
            self._json = False

    @property
    def charts(self):
        """The data of the charts: all embedded JSON after the configuration, which comes last."""
        return [data for data in self.data if "spec" in data]


def read(text):
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    assert len(set(reader.ids)) == len(reader.ids)
    inside = [address[1:] for address in reader.addresses if address.startswith("#")]
    assert set(inside) <= set(reader.ids)
    assert all(address.startswith(("#", "data:text/csv")) for address in reader.addresses)
    return reader


def page_of(sets, tmp_path):
    result = nandlab.run(SPEC, sets=sets)
    path = nandlab.report(result, tmp_path / "report.html")
    text = path.read_text()
    return text, read(text)


def without_script(text):
    return text.replace(files.script(), "")


def test_the_report_has_every_section_and_no_network_address(tmp_path):
    text, reader = page_of({}, tmp_path)
    assert [title for tag, title in reader.headings if tag == "h2"] == ["Notes", *SECTIONS]
    contents = re.search("<nav.*?</nav>", text, re.DOTALL)[0]
    assert all(f">{title}</a>" in contents for title in SECTIONS)
    assert not re.search(r"https?:", without_script(text).replace("http://www.w3.org/2000/svg", ""))
    assert "default-src 'none'" in text and "connect-src" not in text
    assert len(reader.charts) >= 12
    assert len(text.encode()) < LIMIT


def test_the_script_is_embedded_once(tmp_path):
    text, reader = page_of({}, tmp_path)
    assert text.count(files.script()) == 1
    assert text.count("vegaEmbed=") == 1
    assert sum(1 for tag, attrs in reader.tags if tag == "script" and "type" not in attrs) == 2
    assert "</script" not in files.script()


def test_the_first_sentence_says_what_happened(tmp_path):
    text, _ = page_of({}, tmp_path)
    lead = re.search('<p class="lead">(.*?)</p>', text)[1]
    assert "3,000 requests completed" in lead and "write amplification was" in lead and "ook" in lead


def test_a_section_without_data_has_a_sentence(tmp_path):
    text, _ = page_of({"workload.synthetic.read_fraction": 0.0, "workload.synthetic.requests": 20}, tmp_path)
    assert "The run has no reads, so there is no read latency." in text
    assert "No victim was picked." in text or "GC never ran" in text


@pytest.mark.parametrize("requests", [1, 2, 20, 2000, 20_000])
def test_a_run_of_any_length_is_drawn(tmp_path, requests):
    text, reader = page_of({"workload.synthetic.requests": requests}, tmp_path)
    assert not re.search(r"\bnan\b", without_script(text), re.IGNORECASE)
    for chart in reader.charts:
        for table in chart["tables"].values():
            assert len({len(column) for column in table.values()}) == 1
            assert len(next(iter(table.values()))) <= 6400


def test_table_and_csv_have_the_values_of_the_chart(tmp_path):
    _, reader = page_of({}, tmp_path)
    files_of = [address for address in reader.addresses if address.startswith("data:text/csv")]
    listed = [list(csv.reader(io.StringIO(unquote(address.split(",", 1)[1])))) for address in files_of]
    assert len(listed) >= 12
    assert all(rows in reader.tables for rows in listed)
    for names in (["WAF"], ["mean", "fullest plane"]):
        chart = next(chart for chart in reader.charts if [name for name, _ in chart["series"]] == names)
        data = chart["tables"]["data"]
        rows = next(rows for rows in listed if rows[0] == ["simulated time, s", *names])
        for number in range(len(names)):
            points = [(x, y) for x, k, y in zip(data["x"], data["k"], data["y"], strict=True) if k == number]
            assert [(float(row[0]), float(row[1 + number]) if row[1 + number] else None) for row in rows[1:]] == points


@pytest.mark.parametrize("table", ["series", "dies", "latency", "blocks"])
def test_a_report_is_written_for_tables_without_rows(tmp_path, table):
    result = nandlab.run(SPEC)
    result._raw[table] = {name: (dtype, b"") for name, (dtype, _) in result._raw[table].items()}
    assert nandlab.report(result, tmp_path / "report.html").stat().st_size > 10_000


#: Settings that a default drive does not have: the key, its value, and the row of the report.
DIVIDED = [
    ("drive.planes_per_die", 2, None),
    ("drive.blocks_per_plane", 64, None),
    ("drive.op", 0.5, ("capacity", "8 MiB raw with the bad blocks, 5.33 MiB for the host")),
    ("drive.bad_blocks", 0.05, ("share of blocks that are bad from the factory", "0.05")),
    ("drive.program_order", "one-shot", ("program order", "one-shot")),
    ("ftl.superblock", "die", ("superblock", "die")),
    ("ftl.mapping_unit", "1KiB", ("mapping unit", "1KiB")),
    ("ftl.buffer", "64KiB", ("write buffer", "64KiB")),
    ("timing.multi_plane", True, ("multi-plane operations", "yes")),
    (
        "timing.suspend.program",
        {"enter": "20us", "resume": "10us", "min_progress": "100us", "max": 3},
        (
            "suspension for host reads",
            "program (enter 20us, resume 10us, min_progress 100us, max 3), erase none",
        ),
    ),
]


def settings_in(text):
    """The rows of the settings of a page."""
    section = text[text.index('<section id="settings"') :]
    section = section[: section.index("<details")]
    return dict(re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", section))


def test_the_settings_have_what_differs_from_a_default_drive(tmp_path):
    divided, _ = page_of({key: value for key, value, _ in DIVIDED}, tmp_path)
    rows = settings_in(divided)
    expected = dict(row for *_, row in DIVIDED if row)
    assert {name: rows.get(name) for name in expected} == expected
    default, _ = page_of({}, tmp_path)
    assert set(expected) & set(settings_in(default)) == {"capacity"}
    assert "bad blocks" not in settings_in(default)["capacity"]
    assert "Bad blocks" in divided
    assert "Bad blocks" not in default


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
    assert "<script>alert" not in result._repr_mimebundle_()["text/html"]


def test_a_report_has_the_same_bytes_twice(tmp_path):
    result = nandlab.run(SPEC)
    first = nandlab.report(result, tmp_path / "a.html").read_bytes()
    assert nandlab.report(result, tmp_path / "b.html").read_bytes() == first


def test_without_the_extra_a_report_is_refused_with_a_remedy(tmp_path, monkeypatch):
    result = nandlab.run(SPEC)
    monkeypatch.setattr(extra, "_NEEDED", {"no_such_module": "vl-convert-python"})
    with pytest.raises(nandlab.NandlabError, match=r"vl-convert-python.*\n.*nandlab\[figures\]"):
        nandlab.report(result, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
    assert result._repr_mimebundle_().keys() == {"text/plain"}


def test_a_run_needs_no_package_of_the_extra(command, spec_file):
    blocked = "import sys\nfor name in ('altair', 'jinja2', 'vl_convert'): sys.modules[name] = None\n"
    program = [NANDLAB[0], "-c", f"{blocked}from nandlab.cli import main\nmain()\n"]
    assert command("run", spec_file, "--out", "r", program=program).returncode == 0
    assert command("spec", "check", spec_file, program=program).returncode == 0


def test_a_broken_script_in_the_cache_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(files.vl_convert, "javascript_bundle", lambda *_, **__: "good </script>")
    files.script.cache_clear()
    try:
        made = files.script()
        assert made == "good <\\/script>\n"
        (kept,) = (tmp_path / "nandlab").iterdir()
        kept.write_text(kept.read_text().replace("good", "evil"))
        files.script.cache_clear()
        assert files.script() == made
    finally:
        files.script.cache_clear()


def names_of(drawing):
    return [series.name for series in drawing.figure.series]


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
    assert names_of(even) == ["mean", "slowest request"]
    series["iops"][still] = series["requests_read"][still] = series["requests_write"][still] = 0
    series["latency_us_write_max"][still + 1] = 250_000.0
    short = thin(with_extremes(without_empty(series)))
    assert len(short["iops_min"]) <= 400
    assert np.flatnonzero(short["iops_min"] == 0).tolist() == [still // 10]
    assert short["latency_us_max"].max() == 250_000.0 and np.median(short["latency_us_max"]) == 900.0
    assert names_of(slowest(short)) == ["mean", "least", "slowest request"]


def test_thinning_keeps_the_bytes_written_in_each_mode():
    """Regression: the picture of the SLC cache had a third of the rate and of the bytes of a run with 831 rows."""
    rows = 831
    series = {
        "time_s": np.arange(1, rows + 1) / 10,
        "interval_s": np.full(rows, 0.1),
        "slc_bytes": np.arange(rows) * 4096.0,
        "direct_bytes": np.arange(rows)[::-1] * 4096.0,
    }
    short = thin(series)
    assert len(short["time_s"]) < rows
    for name in ("interval_s", "slc_bytes", "direct_bytes"):
        assert short[name].sum() == pytest.approx(series[name].sum())


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


def test_what_is_no_result_has_no_report():
    with pytest.raises(TypeError, match="expected a result, a comparison or a path, found int"):
        nandlab.report(7)
