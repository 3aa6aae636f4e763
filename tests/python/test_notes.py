"""Notes of a result, on numbers that may mislead: when they appear, and their texts."""

import json

import pytest

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


def notes(read_fraction, arrival, more="", sets=()):
    import nandlab

    return list(nandlab.run(SPEC % (read_fraction, arrival) + more, sets=sets).summary.notes)


CLOSED = "{ queue_depth = 8 }"
FULL = "[precondition]\nused = 0.8\nvalid = 0.9\nmap_reads = true\n"


def test_an_ordinary_run_has_no_notes():
    assert notes(0.5, CLOSED, FULL, {"workload.synthetic.requests": 20_000}) == []


def test_unmapped_reads_are_reported_with_the_remedy():
    (note,) = notes(1.0, CLOSED)
    assert (note.severity, note.code) == ("warning", "unmapped-reads")
    assert note.text.startswith("100.0 % of the page reads")
    assert "precondition.map_reads = true" in note.text


def test_a_drive_that_cannot_keep_up_is_reported_with_the_remedy():
    first = notes(0.0, "{ iops = 1000000 }")[0]
    assert (first.severity, first.code) == ("warning", "backlog")
    assert "did not keep up" in first.text
    assert "time_scale" in first.text
    assert all(note.code != "backlog" for note in notes(0.0, "{ queue_depth = 1024 }")), "a closed loop has no backlog"


#: Settings with which blocks come due, and enough blocks are free for partial refresh.
REFRESHED = {
    "refresh.interval": [{"pe": 1000, "every": "30d"}],
    "reliability.clock_scale": 2e7,
    "drive.op": 0.6,
    "precondition.valid": 0.7,
    "drive.cell": "mlc",
}
#: By code of a note on an event that never happened: settings with the note, parts of its text, settings without the
#: note.
NEVER = {
    "no-gc": (
        {"precondition.used": 0.1},
        (
            "gc.victim, gc.pacing, gc.foreground, gc.foreground_free and gc.background_free had no effect",
            "MiB of spare space",
            "spec fit",
            "repeat = ",
        ),
        {"workload.synthetic.requests": 20_000},
    ),
    "no-copybacks": (
        {
            "migration.policy": {"rcopyback": {"limit": "table"}},
            "reliability.pe_cycles": 4000,
            "drive.endurance": 9000,
            "precondition.valid": 0.8,
            "drive.op": 0.4,
        },
        ("migration.policy had no effect", "refused by the limit", "Raise the limit"),
        {"migration.policy": {"rcopyback-greedy": {"limit": 2}}, "precondition.valid": 0.8, "drive.op": 0.4},
    ),
    "no-refresh": (
        {"refresh.policy": "fcr", "refresh.interval": [{"pe": 1000, "every": "30d"}]},
        ("refresh.policy had no effect", "30 days", "reliability.clock_scale"),
        {
            "refresh.policy": "fcr",
            "refresh.interval": [{"pe": 1000, "every": "30d"}],
            "reliability.clock_scale": 2e7,
        },
    ),
    "no-partial-refresh": (
        {**REFRESHED, "refresh.policy": {"partial": {"min_free_blocks": 0.9}}},
        ("min_free_blocks = 90.0 %", "raise drive.op"),
        {**REFRESHED, "refresh.policy": {"partial": {"min_free_blocks": 0.01}}},
    ),
    "budget-never-bound": (
        {"cache.size": "2MiB", "cache.sync": "punctual", "cache.dirty_budget": 0.9, "workload.synthetic.requests": 300},
        ("cache.dirty_budget and cache.sync had no effect", "of the 512 pages", "460 may be"),
        {"cache.size": "2MiB", "cache.sync": "punctual", "cache.dirty_budget": 0.1},
    ),
    "first-level-only": (
        {"ecc.levels": "laldpc", "ecc.start": "last-level", "reliability.rber.vth": {}},
        ("ecc.retry and ecc.start had no effect", "reliability.pe_cycles"),
        {
            "ecc.levels": "laldpc",
            "reliability.rber.vth": {},
            "drive.endurance": 20000,
            "reliability.pe_cycles": 10000,
            "reliability.retention": "365d",
        },
    ),
    "no-suspension": (
        {"timing.suspend.program": {"enter": "9us", "resume": "4us", "min_progress": "10ms", "max": 3}},
        ("timing.suspend had no effect", "min_progress"),
        {"timing.suspend.program": {"enter": "9us", "resume": "4us", "min_progress": "0us", "max": 3}},
    ),
    "never-measured": (
        {
            "cache.size": "1MiB",
            "cache.sync": "smart",
            "cache.dirty_budget": "measured",
            "capacitor.capacitance": "1mF",
            "drive.op": 0.6,
            "precondition.valid": 0.7,
            "workload.synthetic.requests": 300,
            "reliability.clock_scale": 1.0,
        },
        ("never measured", "capacitor.detect_every and capacitor.detect_grace had no effect", "of 256 pages"),
        {
            "cache.size": "1MiB",
            "cache.sync": "smart",
            "cache.dirty_budget": "measured",
            "capacitor.capacitance": "1mF",
            "drive.op": 0.6,
            "precondition.valid": 0.7,
            "reliability.clock_scale": 1e7,
        },
    ),
    "too-short": (
        {},
        ("of the five rounds", "requests would do", "workload.repeat = "),
        {"workload.synthetic.requests": 20_000},
    ),
}


@pytest.mark.parametrize("code", NEVER)
def test_events_that_never_happened_are_reported_with_keys_and_remedy(code):
    never, texts, happened = NEVER[code]
    (note,) = [note for note in notes(0.5, CLOSED, FULL, never) if note.code == code]
    assert note.severity == "info"
    for text in texts:
        assert text in note.text
    assert code not in [note.code for note in notes(0.5, CLOSED, FULL, happened)]


def test_screen_report_and_summary_have_the_notes(tmp_path):
    import nandlab
    from nandlab.screen import show_run
    from rich.console import Console

    result = nandlab.run(SPEC % (0.0, "{ iops = 1000000 }"), tmp_path / "out")
    page = nandlab.report(result, tmp_path / "r.html").read_text()
    console = Console(record=True, width=80, file=(tmp_path / "screen").open("w"))
    show_run(result, console)
    for text in (page, console.export_text()):
        assert "did not keep up" in text
    first = json.loads((tmp_path / "out/summary.json").read_text())["notes"][0]
    assert set(first) == {"severity", "code", "text"}
    assert nandlab.Drive(nandlab.load(SPEC % (0.0, CLOSED))).summary().notes == ()


def test_long_latencies_are_not_cut_off_on_the_screen(tmp_path):
    import nandlab
    from nandlab.screen import show_run
    from rich.console import Console

    result = nandlab.run(SPEC % (0.0, CLOSED))
    summary = json.loads(result.summary_text)
    summary["latency_us"]["write"] = dict.fromkeys(summary["latency_us"]["write"], 71_028_512.4) | {
        "max": 568_906_623.1
    }
    result.summary_text = json.dumps(summary)
    console = Console(record=True, width=80, file=(tmp_path / "screen").open("w"))
    show_run(result, console)
    text = console.export_text()
    assert "\u2026" not in text
    assert "569 s" in text
