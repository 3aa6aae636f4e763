"""`explained.json`: what requests waited for, in the results and in the report of a run."""

import json

import nandlab
import pytest
from nandlab import explained

#: GC never ends on this drive.
SPEC = """
seed = 3
[drive]
channels = 2
chips_per_channel = 1
dies_per_chip = 2
planes_per_die = 1
blocks_per_plane = 24
pages_per_block = 16
page_size = "4KiB"
op = 0.5
[precondition]
used = 0.9
valid = 0.7
[workload]
synthetic = { requests = 3000, read_fraction = 0.5, size = "4KiB", address = "uniform" }
arrival = { queue_depth = 8 }
[output]
explain = 7
requests = true
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explained")
    (folder / "busy.toml").write_text(SPEC)
    return nandlab.run(folder / "busy.toml", folder / "out")


def test_the_parts_sum_to_the_latencies_of_the_table_of_requests(result):
    found, rows = result.explained, result.requests
    latency = rows["completed_ns"] - rows["arrival_ns"]
    for number, op in enumerate(("read", "write")):
        mask = rows["op"] == number
        sum_ = found.sum_of(op)
        assert (sum_.requests, sum_.latency_ns) == (mask.sum(), latency.filter(mask).sum())
        assert sum(sum_.parts_ns.values()) == sum_.latency_ns
        assert {"erase_gc", "transfer"} <= set(sum_.parts_ns)
    assert [of.latency_ns for of in found.slowest] == latency.sort(descending=True)[:7].to_list()
    for of in found.slowest:
        assert sum(of.parts_ns.values()) == of.latency_ns
        edges = [0, *(step.to_ns for step in of.steps)]
        assert [step.from_ns for step in of.steps] == edges[:-1]
        assert edges[-1] == of.latency_ns


def test_a_run_is_the_same_whether_it_is_explained_or_not(result, tmp_path):
    plain = nandlab.run(result.path.parent / "busy.toml", sets={"output.explain": 0})
    assert plain.explained is None
    one, other = json.loads(plain.summary_text), json.loads(result.summary_text)
    one.pop("spec_hash", None), other.pop("spec_hash", None)
    assert one == other


def test_a_result_is_read_as_it_was_written(result):
    again = nandlab.RunResult.read(result.path)
    assert again.explained == result.explained
    assert (result.path / "explained.json").read_text().endswith("\n")


def test_the_report_explains_the_slowest_requests(result, tmp_path):
    html = nandlab.report(result, tmp_path / "report.html").read_text()
    assert "Where did the time go?" in html
    slowest = result.explained.slowest[0]
    assert explained.words(max(slowest.parts_ns, key=slowest.parts_ns.get)) in html
    assert "erases for garbage collection" in html


def test_a_report_without_it_says_how_to_get_it(result, tmp_path):
    plain = nandlab.run(result.path.parent / "busy.toml", sets={"output.explain": 0})
    assert "output.explain=20" in nandlab.report(plain, tmp_path / "report.html").read_text()


def test_every_part_has_words(result):
    parts = {part for sum_ in result.explained.sums for part in sum_.parts_ns}
    assert all(explained.words(part) and "_" not in explained.words(part) for part in parts)
