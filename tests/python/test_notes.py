"""Notes of a result, on numbers that may mislead: when they appear, and their texts."""

import io
import json

import nandlab
import pytest
from study_lab import BASE, command, refusal

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
        ("migration.policy only reserved ", "refused by the limit", "Raise the limit"),
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
    "no-decoder-wait": (
        {"timing.decode": "1us", "ecc.decoders": 64},
        ("ecc.decoders = 64 had no effect", "Fewer decoders"),
        {"timing.decode": "200us", "ecc.decoders": 1},
    ),
    "no-suspension": (
        {"timing.suspend.program": {"enter": "9us", "resume": "4us", "min_progress": "10ms", "max": 3}},
        ("timing.suspend.program had no effect", "min_progress"),
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
        ("never measured", "capacitor.detect_every and capacitor.detect_grace had no effect", "of 256 units"),
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


#: Blocks with little valid data, which wear unevenly; pages that are read again and again.
SPACE = {"drive.op": 0.6, "precondition.valid": 0.7}
HOT = {"workload.synthetic.address": {"zipf": 1.2}, "workload.synthetic.requests": 6000}
#: Data that needs a higher read level than 1.
AGED = {
    "ecc.levels": "laldpc",
    "reliability.rber.vth": {},
    "drive.endurance": 20_000,
    "reliability.pe_cycles": 10_000,
    "reliability.retention": "365d",
}
#: 64 entries of the mapping cache.
CACHED = {"ftl.map.demand.cache": "512B"}
#: As `NEVER`, of schemes that are on and did nothing.
NEVER |= {
    "no-reclaim": (
        {"reclaim.policy": "reads"},
        ("reclaim.policy had no effect", "100,000 times", "Lower reclaim.policy.reads.limit"),
        {"reclaim.policy": {"reads": {"limit": 5}}},
    ),
    "no-slc-cache": (
        {"slc.dynamic": 0.01},
        ("Nothing was written in SLC mode", "slc.static and drive.op"),
        {"slc.dynamic": 1.0, "precondition.used": 0.6},
    ),
    "no-slc-fill": (
        {"slc.dynamic": 0.5, "slc.filled": 0.01, "precondition.used": 0.6},
        ("slc.filled = 0.01 had no effect", "less than a block", "slc.dynamic"),
        {"slc.dynamic": 0.5, "slc.filled": 0.5, "precondition.used": 0.6},
    ),
    "no-fold": (
        {"slc.dynamic": 0.5, "precondition.used": 0.6, "slc.idle_after": "1h"},
        ("No block was folded", "slc.idle_after", "slc.watermark"),
        {"slc.dynamic": 0.5, "precondition.used": 0.6, "slc.watermark": 0.0},
    ),
    "one-placement": (
        {"placement.handles": 2},
        ("All data was written with one placement identifier", "placement.ranges"),
        {"placement.handles": 2, "placement.ranges": [{"from": 0.0, "to": 0.5, "placement": 1}]},
    ),
    "no-wear-levelling": (
        {**SPACE, **HOT, "ftl.wear_levelling": "static"},
        ("moved no block", "ftl.wear_gap = 100", "Lower ftl.wear_gap"),
        {**SPACE, **HOT, "ftl.wear_levelling": "static", "ftl.wear_gap": 1, "workload.synthetic.requests": 60_000},
    ),
    "same-as-greedy": (
        {"gc.victim": "partial-aware"},
        ("gc.victim = partial-aware had no effect", "raise drive.op"),
        {"gc.victim": "fifo"},
    ),
    "no-eviction": (
        {**SPACE, "ftl.map.demand.cache": "8KiB", "workload.synthetic.requests": 300},
        ("eviction policy of ftl.map.demand had no effect", "entries", "Lower ftl.map.demand.cache"),
        {**SPACE, **CACHED},
    ),
    "all-entries-fixed": (
        {**SPACE, **AGED, **CACHED, "ftl.map.demand.eviction": "read-level", "ecc.start": "last-level"},
        ("fixes 1,999 entries (fixed = 2,000)", "has room for 64", "as lru does"),
        {**SPACE, **AGED, **CACHED, "ftl.map.demand.eviction": {"read-level": {"fixed": 8}}, "ecc.start": "last-level"},
    ),
    "always-from-first": (
        {**AGED, "ecc.start": "last-level", "workload.synthetic.requests": 20},
        ("ecc.start = last-level had no effect", "workload.repeat"),
        {**AGED, **HOT, "ecc.start": "last-level"},
    ),
    "no-lower-level": (
        {**AGED, "refresh.policy": {"ec-cache": {"hot_reads": 255}}},
        ("lowered the read level of no host read", "hot_reads = 255 host reads"),
        {**AGED, **HOT, "refresh.policy": {"ec-cache": {"hot_reads": 1}}},
    ),
    "cache-never-hit": (
        {**SPACE, "cache.size": "64KiB", "workload.synthetic.requests": 20},
        ("had no hit in ", "Raise cache.size"),
        {**SPACE, **HOT, "cache.size": "64KiB"},
    ),
    "no-sync": (
        {**SPACE, "cache.size": "2MiB", "cache.sync": "greedy", "workload.synthetic.requests": 300},
        ("cache.sync = greedy wrote back no page", "the policy had no effect", "Lower the load"),
        {**SPACE, "cache.size": "2MiB", "cache.sync": "greedy", "workload.arrival": {"iops": 50}},
    ),
    "no-multi-plane": (
        {"timing.multi_plane": True, "drive.planes_per_die": 1},
        ("timing.multi_plane had no effect", "drive.planes_per_die = 1"),
        {"timing.multi_plane": True, "workload.synthetic.size": "64KiB"},
    ),
    "no-independent-reads": (
        {"timing.plane_reads": "independent", "drive.planes_per_die": 4, "workload.arrival": {"queue_depth": 1}},
        ("timing.plane_reads and timing.read_hold had no effect", "workload.arrival"),
        {"timing.plane_reads": "independent", "drive.planes_per_die": 4},
    ),
    "nothing-buffered": (
        {
            "ftl.buffer": "64KiB",
            "drive.page_size": "16KiB",
            "ftl.mapping_unit": "4KiB",
            "workload.synthetic.read_fraction": 1.0,
        },
        ("ftl.buffer had no effect", "read_fraction"),
        {"ftl.buffer": "64KiB", "drive.page_size": "16KiB", "ftl.mapping_unit": "4KiB"},
    ),
}


def test_an_over_provisioning_in_per_cent_is_noticed():
    found = {note.code: note for note in notes(0.5, CLOSED, "", {"drive.op": 28})}
    assert found["op-large"].severity == "info"
    assert "If 28 per cent are meant: drive.op = 0.28." in found["op-large"].text
    assert "op-large" not in [note.code for note in notes(0.5, CLOSED, FULL)]


def test_a_stopped_run_is_not_told_to_repeat():
    # Five rounds are more than two million requests, and the run is stopped at the first look after its beginning.
    sets = {"workload.synthetic.requests": 100_000_000, "drive.blocks_per_plane": 2048, "drive.pages_per_block": 256}
    spec = nandlab.load(SPEC % (0.0, CLOSED) + FULL, sets=sets)
    stopped = nandlab.run(spec, progress=lambda progress: progress.requests == 0)
    assert not stopped.complete
    (text,) = (note.text for note in stopped.summary.notes if note.code in ("too-short", "no-gc"))
    assert "the run was stopped before its end" in text and "repeat" not in text


@pytest.mark.parametrize("code", NEVER)
def test_events_that_never_happened_are_reported_with_keys_and_remedy(code):
    never, texts, happened = NEVER[code]
    (note,) = [note for note in notes(0.5, CLOSED, FULL, never) if note.code == code]
    assert note.severity == "info"
    for text in texts:
        assert text in note.text
    assert code not in [note.code for note in notes(0.5, CLOSED, FULL, happened)]


#: By code of a note that says "had no effect": the settings with which the scheme is off.
OFF = {
    "no-gc": {"gc.victim": "fifo", "gc.pacing": "none", "gc.foreground": "blocking", "gc.foreground_free": 0.05},
    "no-refresh": {"refresh.policy": "none"},
    "budget-never-bound": {"cache.sync": "none", "cache.dirty_budget": 1.0},
    "first-level-only": {"ecc.start": "first", "ecc.retry": "incremental"},
    "no-decoder-wait": {"ecc.decoders": "unlimited"},
    "no-suspension": {"timing.suspend": "none"},
    "no-reclaim": {"reclaim.policy": "none"},
    "same-as-greedy": {"gc.victim": "greedy"},
    "no-eviction": {"ftl.map.demand.eviction": {"read-level": {"fixed": 8}}},
    "all-entries-fixed": {"ftl.map.demand.eviction": "lru"},
    "always-from-first": {"ecc.start": "first"},
    "no-lower-level": {"refresh.policy": "fcr"},
    "no-sync": {"cache.sync": "none"},
    "no-multi-plane": {"timing.multi_plane": False},
    "no-independent-reads": {"timing.plane_reads": "together"},
    "nothing-buffered": {"ftl.buffer": "0B"},
}


@pytest.mark.parametrize("code", OFF)
def test_no_effect_is_said_only_where_the_run_without_the_scheme_is_the_same(code):
    import nandlab
    from nandlab.study.metrics import flat

    never = NEVER[code][0]
    on = nandlab.load(SPEC % (0.5, CLOSED) + FULL, never)
    off = on.with_(OFF[code])
    runs = [nandlab.run(spec) for spec in (on, off)]
    texts = [note.text for note in runs[0].summary.notes if note.code == code]
    assert (len(texts) == 1 and "had no effect" in texts[0]) or code == "all-entries-fixed", texts
    values = [dict(flat(json.loads(run.summary_text))) for run in runs]
    # The dirty budget in pages is a setting in another unit.
    both = (values[0].keys() & values[1].keys()) - {"spec_hash", "cache.budget_pages"}
    assert len(both) > 100
    assert {key: values[0][key] for key in both} == {key: values[1][key] for key in both}
    assert runs[0].numpy("series")["iops"].tolist() == runs[1].numpy("series")["iops"].tolist()


def test_screen_report_and_summary_have_the_notes(tmp_path):
    import nandlab
    from nandlab.console import Console
    from nandlab.screen import show_run

    result = nandlab.run(SPEC % (0.0, "{ iops = 1000000 }"), tmp_path / "out")
    page = nandlab.report(result, tmp_path / "r.html").read_text()
    screen = io.StringIO()
    console = Console(screen, width=80)
    show_run(result, console)
    for text in (page, screen.getvalue()):
        assert "did not keep up" in text
    first = json.loads((tmp_path / "out/summary.json").read_text())["notes"][0]
    assert set(first) == {"severity", "code", "text"}
    assert nandlab.Drive(nandlab.load(SPEC % (0.0, CLOSED))).summary().notes == ()


def test_notes_are_gathered_by_code_the_gravest_first_and_the_most_frequent_next():
    from nandlab.noted import first_sentence, gather, of_runs, where
    from nandlab.result_types import Note

    few, many, grave = Note("info", "few", "a"), Note("info", "many", "b"), Note("error", "grave", "c")
    found = gather([(1, [few, many]), (2, [Note("info", "many", "other")]), (3, [grave, grave])])
    assert [(one.note.code, one.note.text, one.runs) for one in found] == [
        ("grave", "c", (3,)),
        ("many", "b", (1, 2)),
        ("few", "a", (1,)),
    ]
    assert gather([(1, []), (2, [])]) == []
    assert (
        first_sentence("It took 1.5 s, with gc.victim = fifo. Remedy: wait.") == "It took 1.5 s, with gc.victim = fifo."
    )
    assert first_sentence("It is so. `nandlab spec fit` helps.") == "It is so."
    runs = [{"variant": variant, "seed": seed} for variant in "ab" for seed in (1, 2)]
    assert where(runs, runs) == ""
    assert where(runs[:2], runs) == "variant a"
    assert where(runs[3:], runs) == "variant b; seed 2"
    assert where([runs[0], runs[3]], runs) == "", "the labels do not single these runs out"
    assert where([{"op": k} for k in range(7)], [{"op": k} for k in range(9)]) == "op 0, 1, 2, 3, 4, 5, ..."
    assert of_runs(1, 1, "") == ""
    assert of_runs(3, 3, "") == "in all 3 runs. The first: "
    assert of_runs(1, 3, "seed 1") == "in 1 of 3 runs (seed 1): "


#: Twelve runs: no read level decodes the data of `old`, with `old` and `uniform` power loss destroys acknowledged
#: writes, with `short` GC never runs.
NOTED = """\
[study]
title = "Noted"
question = "Q"
base = "base.toml"
[variants.greedy]
[variants.fifo]
set = { "gc.victim" = "fifo" }
[variants.old.set]
"cache.size" = "64KiB"
"power.cut_after_requests" = 500
"ecc.levels" = "laldpc"
"reliability.rber" = "vth"
"reliability.pe_cycles" = 40_000
"reliability.retention" = "3650d"
[workloads.uniform]
[workloads.short]
set = { "workload.synthetic.requests" = 100 }
[grid]
"drive.op" = [0.25, 0.5]
"""


def test_a_study_gathers_the_notes_of_its_runs(tmp_path):
    """On the first screen, also of kept runs, on the page, in results.parquet and in claims.json."""
    import nandlab
    import polars as pl

    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "s.toml").write_text(NOTED)
    first, again = (command("study", "s.toml", "--workers", 2, "--out", "out", cwd=tmp_path) for _ in range(2))
    for done, runs in ((first, "12 runs done, 4 with errors"), (again, "0 runs done, 12 kept, 4 with errors")):
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert lines[1] == runs
        assert lines[2].startswith("error uncorrectable in 4 of 12 runs (variant old). The first: ")
        text = " ".join(done.stdout.split())
        assert "Lower reliability.pe_cycles, " in text, "an error is told in full"
        assert "warning data-lost in 2 of 12 runs (variant old; workload uniform). The first: Power loss" in text
        assert "warning never-cut in 2 of 12 runs (variant old; workload short). The first: Power never" in text
        assert "note no-gc in 6 of 12 runs (workload short). The first: GC never ran, so gc.victim, " in text
        assert "Remedy: " not in text, "the page has the remedies of what is no error"

    frame = pl.read_parquet(tmp_path / "out" / "results.parquet")
    claims = json.loads((tmp_path / "out" / "claims.json").read_text())
    by_code = {note["code"]: note for note in claims["notes"]}
    assert claims["notes"][0]["code"] == "uncorrectable"
    expected = {}
    for row in frame.iter_rows(named=True):
        summary = json.loads((tmp_path / "out" / "runs" / row["run"] / "summary.json").read_text())
        assert row["notes"] == [note["code"] for note in summary["notes"]]
        assert row["error_notes"] == [note["code"] for note in summary["notes"] if note["severity"] == "error"]
        for note in summary["notes"]:
            expected.setdefault(note["code"], set()).add(row["run"])
    assert {code: set(note["runs"]) for code, note in by_code.items()} == expected
    assert all(note["count"] == len(note["runs"]) and note["of"] == 12 for note in by_code.values())
    assert by_code["no-gc"]["severity"] == "info" and by_code["uncorrectable"]["severity"] == "error"
    page = (tmp_path / "out" / "report.html").read_text()
    for text in (
        "4 runs with errors</li>",
        "4 of them with errors. Look first at the notes.",
        "<b>Error</b> uncorrectable in 4 of 12 runs (variant old). The first: ",
        "<b>Note</b> no-gc in 6 of 12 runs (workload short). The first: GC never ran",
        "never-cut, unmapped-reads",
    ):
        assert text in page, text
    result = nandlab.Study.load(tmp_path / "s.toml").run(tmp_path / "out")
    assert result.notes == claims["notes"]


def test_a_study_without_notes_has_none(tmp_path):
    import nandlab

    (tmp_path / "base.toml").write_text(SPEC % (0.5, CLOSED) + FULL)
    (tmp_path / "s.toml").write_text(
        NOTED.split("[variants.greedy]")[0] + '[workloads.long]\nset = { "workload.synthetic.requests" = 20000 }\n'
    )
    done = command("study", "s.toml", "--workers", 1, "--out", "out", cwd=tmp_path)
    assert done.stdout.splitlines()[1:] == ["1 runs done", "out/report.html"], done.stderr
    assert json.loads((tmp_path / "out" / "claims.json").read_text())["notes"] == []
    page = (tmp_path / "out" / "report.html").read_text()
    assert 'id="notes"' not in page and "with errors" not in page
    frame = nandlab.Study.load(tmp_path / "s.toml").run(tmp_path / "out").results
    assert frame["notes"].to_list() == frame["error_notes"].to_list() == [[]]


@pytest.mark.parametrize("name", ["notes", "error_notes"])
def test_no_axis_or_metric_takes_the_columns_of_the_notes(tmp_path, name):
    (tmp_path / "base.toml").write_text(BASE)
    begin = NOTED.split("[variants.greedy]")[0]
    axis = refusal(tmp_path / "s.toml", f'{begin}[grid]\n{name} = [{{ value = 1, set = {{ "drive.op" = 0.5 }} }}]\n')
    metric = refusal(tmp_path / "s.toml", f'{begin}[metrics]\n{name} = "waf"\n')
    assert "a column has this name already" in axis and "a column has this name already" in metric


def test_long_latencies_are_not_cut_off_on_the_screen(tmp_path):
    import nandlab
    from nandlab.console import Console
    from nandlab.screen import show_run

    result = nandlab.run(SPEC % (0.0, CLOSED))
    summary = json.loads(result.summary_text)
    summary["latency_us"]["write"] = dict.fromkeys(summary["latency_us"]["write"], 71_028_512.4) | {
        "max": 568_906_623.1
    }
    result.summary_text = json.dumps(summary)
    screen = io.StringIO()
    console = Console(screen, width=80)
    show_run(result, console)
    text = screen.getvalue()
    assert "\u2026" not in text
    assert "569 s" in text
