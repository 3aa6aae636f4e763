"""RBER, read levels and read latencies without a run; read levels, caches and copybacks in results."""

import csv
import io
import json
import os
import sys

import forks
import numpy as np
import pytest

DRIVE = '[drive]\npreset = "laldpc-32g"\n'

RUN = """\
[drive]
preset = "laldpc-32g"
blocks_per_plane = 64
[ftl]
map.demand = { cache = "%s" }
[ecc]
start = "last-level"
[reliability]
pe_cycles = %d
retention = "%s"
[precondition]
used = 0.8
valid = 0.9
map_reads = true
[workload]
synthetic = { requests = 5000, read_fraction = 0.7, size = "4KiB", address = "uniform" }
arrival = { queue_depth = 8 }
"""


def command(*arguments, cwd):
    return forks.run(
        [sys.executable, "-m", "nandlab", "reliability", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"NO_COLOR": "1", "COLUMNS": "100"},
    )


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "laldpc.toml").write_text(DRIVE)
    return tmp_path


def test_after_a_year_the_laldpc_drive_needs_read_levels_2_3_and_5():
    import nandlab

    found = nandlab.reliability(DRIVE, [8000, 10_000, 12_000], ["365d"])
    assert found.kinds == ("all",)
    assert found.rber.shape == found.level.shape == found.susceptible.shape == (1, 1, 3)
    # The expected RBER is from two independent integrations of the model.
    assert found.rber[0, 0] == pytest.approx([0.00595, 0.00761, 0.00933], rel=0.02)
    assert found.level[0, 0].tolist() == [2, 3, 5]


def test_latencies_by_read_level_equal_table_1():
    import nandlab

    levels = nandlab.reliability(DRIVE, [0], [0]).levels
    # A read at the first level takes 85 us; each further level adds 14 us of sensing and 10 us of transfer.
    direct = [85 + 24 * level for level in range(7)]
    assert levels["level"].tolist() == list(range(1, 8))
    assert levels["rber_max"].tolist() == [0.005, 0.006, 0.008, 0.009, 0.01, 0.012, 0.013]
    assert levels["direct_us"].tolist() == direct
    assert levels["full_us"].tolist() == np.cumsum(direct).tolist()
    # An incremental retry also adds 15 us of decoding per level.
    assert levels["incremental_us"].tolist() == [85 + 39 * level for level in range(7)]


@pytest.mark.parametrize("retry", ["full", "incremental"])
def test_a_single_read_takes_the_listed_latency(retry):
    import nandlab

    spec = nandlab.load(
        RUN % ("64MiB", 10_000, "365d"),
        {"ecc.start": "first", "ecc.retry": retry, "workload.arrival.queue_depth": 1, "ftl.map": "page",
         "timing.command": "1us", "timing.off_chip_mb_per_s": 100, "workload.synthetic.read_fraction": 1.0},
    )  # fmt: skip
    levels = nandlab.reliability(spec, [10_000], ["365d"])
    assert levels.level[0, 0, 0] == 3
    assert nandlab.run(spec).summary.latency_us.read.max == pytest.approx(levels.levels[f"{retry}_us"][2])


def test_default_pe_cycles_range_from_0_to_the_endurance():
    import nandlab

    for endurance, pe_cycles in (
        (15_000, range(0, 15_000, 2000)),
        (3000, range(0, 3001, 500)),
        (1000, range(0, 1001, 200)),
        (100, range(0, 101, 20)),
        (5, range(6)),
    ):
        found = nandlab.reliability(DRIVE, sets={"drive.endurance": endurance})
        assert found.pe_cycles.tolist() == list(pe_cycles)
        assert found.retention_s[0] == 3600
        assert (np.diff(found.rber, axis=1) >= 0).all()


def test_page_kinds_are_shown_separately_if_the_model_has_them(folder):
    import nandlab

    sets = {"reliability.rber": {"vth": {"per_page_kind": True}}}
    apart = nandlab.reliability(DRIVE, [10_000], ["30d", "1d"], sets=sets)
    assert apart.kinds == ("lsb", "msb")
    assert apart.retention_s.tolist() == [86_400, 30 * 86_400]
    mean = nandlab.reliability(DRIVE, [10_000], ["30d", "1d"])
    assert apart.rber.mean(axis=0) == pytest.approx(mean.rber[0])
    assert apart.frame()["kind"].to_list() == ["lsb", "lsb", "msb", "msb"]
    done = command("laldpc.toml", "--set", "reliability.rber.vth={ per_page_kind = true }", "--susceptible", cwd=folder)
    assert "RBER of LSB pages" in done.stdout
    assert "susceptible bits of MSB pages" in done.stdout


@pytest.mark.parametrize("superblock", ["plane", "die", "drive"])
def test_the_sense_time_is_the_mean_of_a_wordline_whatever_a_superblock_is(superblock):
    import nandlab

    text = """
[drive]
cell = "mlc"
channels = 2
planes_per_die = 2
[timing]
read = { lsb = "40us", msb = "80us" }
multi_plane = true
[ecc]
levels = [{ rber_max = 0.01 }]
[reliability]
rber = "vth"
"""
    for order in ("page", "one-shot"):
        sets = {"ftl.superblock": superblock, "drive.program_order": order}
        assert nandlab.reliability(text, [0], [0], sets=sets).levels["sense_us"].tolist() == [60.0]


def test_reads_and_copybacks_add_the_rber_of_the_spec():
    import nandlab

    sets = {"reliability.read_disturb": 1e-9, "reliability.copyback_error": 1e-4}
    new, used = (
        nandlab.reliability(DRIVE, [1000], ["1d"], sets=sets, reads=reads, copybacks=copybacks).rber[0, 0, 0]
        for reads, copybacks in ((0, 0), (100_000, 3))
    )
    assert used - new == pytest.approx(4e-4)


def test_rber_of_a_table_is_shown_unchanged(folder):
    import nandlab

    (folder / "lab.csv").write_text("pe_cycles,retention,rber\n0,0d,1e-4\n0,30d,2e-3\n3000,0d,1e-3\n3000,30d,2e-2\n")
    (folder / "lab.toml").write_text('[ecc]\nlevels = "laldpc"\n[reliability]\nrber.table = "lab.csv"\n')
    found = nandlab.reliability(folder / "lab.toml", [0, 3000], ["30d"])
    assert found.rber[0, 0] == pytest.approx([2e-3, 2e-2])
    assert found.level[0, 0].tolist() == [1, 0]
    assert found.susceptible is None
    assert found.to_dict()["points"][1]["level"] is None
    done = command("lab.toml", "--pe", "0,3000", "--retention", "30d", cwd=folder)
    assert "2.00e-3 1" in done.stdout
    assert "2.00e-2 lost" in done.stdout
    done = command("lab.toml", "--susceptible", cwd=folder)
    assert done.returncode == 2
    assert "reliability.rber.vth" in done.stderr


def test_the_command_shows_a_table_of_conditions_and_a_table_of_levels(folder):
    done = command("laldpc.toml", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for word in ("7.61e-3 3", "1.44e-2 lost", "14,000", "365 d", "incremental", "1,099"):
        assert word in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_json_has_the_points_and_the_levels(folder):
    done = command("laldpc.toml", "--pe", "0,10000", "--retention", "1h,365d", "--json", cwd=folder)
    printed = json.loads(done.stdout)
    assert printed.keys() == {"reads", "copybacks", "points", "levels"}
    assert len(printed["points"]) == 4
    assert printed["points"][3].keys() == {"kind", "pe_cycles", "retention_s", "rber", "level", "susceptible"}
    assert printed["points"][3]["level"] == 3
    assert printed["points"][3]["retention_s"] == 365 * 86_400
    assert printed["levels"][6]["full_us"] == 1099.0
    assert len(printed["levels"]) == 7


@pytest.mark.parametrize(
    ("name", "magic"), [("a.svg", b"<svg"), ("a.html", b"<!doctype html>"), ("a.pdf", b"%PDF"), ("a.PNG", b"\x89PNG")]
)
def test_a_figure_is_saved_with_the_same_bytes_twice(folder, name, magic):
    import nandlab

    found = nandlab.reliability(DRIVE, [0, 10_000])
    data = found.save(folder / name, susceptible=True).read_bytes()
    assert data.startswith(magic)
    assert found.save(folder / name, susceptible=True).read_bytes() == data
    assert found.save(folder / name).read_bytes() != data
    assert str(folder).encode() not in data


def test_csv_has_the_points(folder):
    done = command("laldpc.toml", "--pe", "10000", "--retention", "365d", "--out", "a.csv", cwd=folder)
    assert done.stdout.endswith("a.csv\n")
    (row,) = csv.DictReader(io.StringIO((folder / "a.csv").read_text()))
    assert row["pe_cycles"] == "10000"
    assert row["retention_s"] == "31536000"
    assert row["level"] == "3"
    assert float(row["rber"]) == pytest.approx(0.00761, rel=0.02)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--pe", "x"], "whole number"),
        (["--pe", "1,,2"], "comma"),
        (["--pe", "20000000"], "10,000,000"),
        (["--retention", "1y"], "365d"),
        (["--retention", "70y"], "365d"),
        (["--retention", "30000d"], "60 years"),
        (["--reads", "-1"], "--reads"),
        (["--copybacks", "256"], "255"),
        (["--out", "a.gif"], ".svg"),
        (["--out", "nowhere/a.svg"], "create the directory first"),
        (["--out", "a.svg", "--retention", "0d,1d"], "two retentions"),
        (["--set", "reliability.rber=none"], "set reliability.rber"),
    ],
)
def test_invalid_arguments_are_refused_with_a_remedy(folder, arguments, word):
    done = command("laldpc.toml", *arguments, cwd=folder)
    assert done.returncode == 2
    assert done.stdout == ""
    assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["laldpc.toml"]


#: 3D TLC with early retention loss: the values of docs/explanation/reliability.md.
AGED = """\
[drive]
cell = "3d-tlc"
layers = 16
pages_per_block = 192
[ecc]
levels.retry = { rber_max = 0.0088, entries = { steps = 32, size = 1.3 } }
[reliability]
rber.vth-tlc = { sigma = 0.92, shift = 0.2, early = { loss = 3.0 }, layers = { ratio = 1.5 } }
"""


def test_published_figures_stand_beside_planar_and_aged_cells(folder):
    import nandlab

    found = nandlab.reliability(AGED, [2000], ["365d"]).published
    assert found.has_retries
    # The integration shares no formula with the model.
    assert 0 < found.deviation < 1e-4
    figures = {figure.name: figure for figure in found.figures}
    for figure in found.figures:
        assert figure.integrated == pytest.approx(figure.model, rel=1e-4), figure
    # Luo et al.: ten and ten, at fixed references. The planar cells and the optimal references do not have it.
    growth = [figure for name, figure in figures.items() if "growth" in name]
    assert [figure.model for figure in growth] == pytest.approx([9.78, 10.50, 1.56, 3.40], rel=5e-3)
    assert [figure.planar for figure in growth] == pytest.approx([1.53, 6.83, 1.48, 3.83], rel=5e-3)
    # Park et al.: more than three retries unworn; 19.9 worn, within 30 %.
    (fresh,) = (figure for name, figure in figures.items() if "fewest retries" in name)
    (worn,) = (figure for name, figure in figures.items() if "mean retries" in name)
    assert fresh.model > 3 == fresh.planar + 3
    assert worn.model == pytest.approx(19.9, rel=0.3)
    # Lee et al.: the planar cells have the number of the docs.
    (bits,) = (figure for name, figure in figures.items() if "wrong bits" in name)
    assert bits.planar == pytest.approx(41.6, abs=0.1)
    assert bits.model < 49


def test_published_figures_are_printed_and_drawn(folder):
    import nandlab

    (folder / "aged.toml").write_text(AGED)
    done = command("aged.toml", "--pe", "0,2000", "--retention", "91d,365d", "--out", "a.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    for word in ("planar", "19.9", "Luo et al.", "The integration agrees"):
        assert word in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    page = (folder / "a.html").read_text()
    assert "Published figures" in page and "Diamonds: the growth" in page
    printed = json.loads(command("aged.toml", "--json", cwd=folder).stdout)
    assert {"name", "published", "source", "planar", "model", "integrated"} == printed["published"]["figures"][0].keys()
    # Another model has no such figures; a drive without a read-retry table has no retries.
    assert nandlab.reliability(DRIVE, [0]).published is None
    levels = AGED.replace(
        "levels.retry = { rber_max = 0.0088, entries = { steps = 32, size = 1.3 } }", 'levels = "laldpc"'
    )
    found = nandlab.reliability(levels, [0]).published
    assert not found.has_retries and not any("retries" in figure.name for figure in found.figures)


def test_invalid_values_and_specs_without_an_error_model_are_refused():
    import nandlab

    for wrong in ({"pe_cycles": [-1]}, {"pe_cycles": [0.5]}, {"retention": []}, {"retention": [-1]}, {"reads": True}):
        with pytest.raises(ValueError, match=r"."):
            nandlab.reliability(DRIVE, **wrong)
    with pytest.raises(nandlab.RunError, match="remedy: set"):
        nandlab.reliability("seed = 1\n")


def shown(result, tmp_path):
    import nandlab
    from nandlab.console import Console
    from nandlab.screen import show_run

    screen = io.StringIO()
    console = Console(screen, width=80)
    show_run(result, console)
    return screen.getvalue(), nandlab.report(result, tmp_path / "r.html").read_text()


def test_screen_and_report_show_levels_and_mapping_cache(tmp_path):
    import nandlab

    screen, page = shown(nandlab.run(RUN % ("8KiB", 10_000, "365d")), tmp_path)
    for word in ("read level", "host reads", "retries per read", "mapping cache", "1,024 entries"):
        assert word in screen, word
    assert ">Read levels</h2>" in page
    assert "started above level 1" in page
    assert ">Mapping cache</h2>" in page
    for fact in ("laldpc", "vth (dvpp 0.38", "last-level / full", "365d", "10,000"):
        assert fact in page, fact


def test_screen_and_report_show_the_write_cache(tmp_path):
    import nandlab

    cached = nandlab.run(RUN % ("8KiB", 10_000, "365d"), sets={"cache.size": "256KiB", "cache.sync": "smart"})
    screen, page = shown(cached, tmp_path)
    assert "write cache  64 pages" in screen
    assert ">Write cache</h2>" in page
    assert cached.summary.cache.write_backs > 0
    screen, page = shown(nandlab.run(RUN % ("8KiB", 10_000, "365d")), tmp_path)
    assert "write cache  " not in screen and ">Write cache</h2>" not in page


def test_screen_and_report_show_the_copybacks(tmp_path):
    import nandlab

    spec = """
seed = 3
[drive]
channels = 1
chips_per_channel = 1
planes_per_die = 1
blocks_per_plane = 32
pages_per_block = 8
op = 0.8
[migration]
policy.rcopyback-greedy.limit = 2
[workload.synthetic]
requests = 3000
read_fraction = 0.0
size = "4KiB"
"""
    result = nandlab.run(spec)
    migration = result.summary.migration
    assert sum(migration.by_count.values()) == migration.copybacks > 0
    assert list(migration.by_count) == [1, 2]
    screen, page = shown(result, tmp_path)
    assert f"copybacks  {migration['copybacks']:,} pages" in screen
    assert "2 in a row at most" in screen
    assert ">Migration</h2>" in page
    assert "RAM of copyback counters, one per block" in page
    result = nandlab.run(spec, sets={"migration.policy": "off-chip"})
    assert result.summary.migration is None
    screen, page = shown(result, tmp_path)
    assert "copybacks  " not in screen and ">Migration</h2>" not in page


def test_a_new_drive_and_a_cache_of_the_whole_map_are_reported(tmp_path):
    import nandlab

    notes = {note.code: note for note in nandlab.run(RUN % ("64MiB", 0, "0d")).summary.notes}
    assert "reliability.pe_cycles" in notes["first-level-only"].text
    assert "ftl.map.demand.cache" in notes["whole-map-cached"].text


def test_reads_that_no_level_decodes_are_reported(tmp_path):
    import nandlab

    screen, page = shown(nandlab.run(RUN % ("8KiB", 15_000 - 1, "1825d")), tmp_path)
    for text in (screen, page):
        assert "decoded by no read" in text
    assert "lost" in screen
    assert "page reads not decoded</li>" in page


def test_the_drive_of_the_partial_refresh_paper_is_calibrated_to_its_table_1(tmp_path):
    import nandlab

    spec = tmp_path / "drive.toml"
    spec.write_text('[drive]\npreset = "partial-refresh-128g"\n')
    day, page_bits = 86_400, 131_072
    found = nandlab.reliability(spec, [1000, 2000, 3000, 4000], ["1s", "7d", "14d", "30d", "365d"])
    point = {(row["pe_cycles"], row["retention_s"]): row for row in found.frame().to_dicts()}
    ends = [point[at] for at in ((1000, 365 * day), (2000, 30 * day), (4000, 7 * day))]
    errors = [end["rber"] for end in ends]
    # Each end needs a level above the third, whose limit is 0.008, and decodes at the seventh, whose limit is 0.013.
    assert all(0.008 < rber < 0.013 for rber in errors) and max(errors) < 1.15 * min(errors)
    assert errors == pytest.approx([8.02e-3, 8.32e-3, 9.05e-3], abs=0.005e-3)
    assert [end["level"] for end in ends] == [4, 4, 5]
    # Not fitted: the share of susceptible cells (7.88 % in Table 2), and the new errors of a page in its first week
    # (394 in Section 2.2) and in the second (300).
    assert [2 * end["susceptible"] for end in ends] == pytest.approx([0.069, 0.071, 0.0735], abs=0.0006)
    new = [
        [page_bits * (point[pe, to * day]["rber"] - point[pe, since]["rber"]) for pe in (3000, 4000)]
        for since, to in ((1, 7), (7 * day, 14))
    ]
    assert new == [pytest.approx([344, 414], abs=1), pytest.approx([53, 65], abs=1)]
    # A lower noise puts the first end below 0.008.
    lower = nandlab.reliability(spec, [1000], ["365d"], sets={"reliability.rber": {"vth": {"cell_to_cell": 0.095}}})
    assert lower.rber.min() < 0.008
