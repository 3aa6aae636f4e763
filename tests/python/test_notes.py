"""What the screen and the report say of numbers that are not what they look like."""

import pytest

pytestmark = pytest.mark.core

SPEC = """\
[drive]
channels = 2
chips_per_channel = 1
blocks_per_plane = 64
pages_per_block = 32
op = 0.25
[workload]
synthetic = { requests = 3000, read_fraction = %s, size = "4KiB", address = "uniform" }
arrival = %s
"""


def told(read_fraction, arrival, more=""):
    import nandlab
    from nandlab.notes import notes

    return notes(nandlab.run(SPEC % (read_fraction, arrival) + more))


def test_an_ordinary_run_needs_no_word():
    assert told(0.5, "{ queue_depth = 8 }", "[precondition]\nused = 0.8\nvalid = 0.9\nmap_reads = true\n") == []


def test_reads_of_nothing_are_told_with_the_remedy():
    (text,) = told(1.0, "{ queue_depth = 8 }")
    assert text.startswith("100.0 % of the page reads")
    assert "precondition.map_reads = true" in text


def test_a_drive_that_falls_behind_is_told_with_the_remedy():
    (text,) = told(0.0, "{ iops = 1000000 }")
    assert "did not keep up" in text
    assert "time_scale" in text
    assert told(0.0, "{ queue_depth = 1024 }") == [], "a closed loop has the queue it was given"


def test_the_report_and_the_screen_say_it(tmp_path):
    import nandlab
    from nandlab.notes import notes
    from nandlab.screen import show_summary
    from rich.console import Console

    result = nandlab.run(SPEC % (0.0, "{ iops = 1000000 }"))
    page = nandlab.report(result, tmp_path / "r.html").read_text()
    console = Console(record=True, width=80, file=(tmp_path / "screen").open("w"))
    show_summary(result.summary, result.sim, console, notes(result))
    for text in (page, console.export_text()):
        assert "did not keep up" in text


def test_long_latencies_are_shown_whole(tmp_path):
    from nandlab.screen import show_summary
    from rich.console import Console

    values = dict.fromkeys(("mean", "p50", "p95", "p99", "p999"), 71_028_512.4) | {"max": 568_906_623.1}
    summary = {"latency_us": {"write": values, "all": values}, "host": {"write": {"count": 1, "bytes": 1}}}
    console = Console(record=True, width=80, file=(tmp_path / "screen").open("w"))
    show_summary(summary, {}, console)
    text = console.export_text()
    assert "\u2026" not in text
    assert "569 s" in text
