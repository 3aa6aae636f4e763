"""The studies in studies/ and the example script examples/study.py."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import polars as pl
import pytest
from study_lab import ROOT, command


def test_the_garbage_collection_study_at_smoke_size(tmp_path):
    done = command("study", "garbage-collection", "--smoke", "--workers", "2", "--out", tmp_path / "gc", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    claims = {c["id"]: c["verdict"] for c in json.loads((tmp_path / "gc" / "claims.json").read_text())["claims"]}
    assert claims["fifo-0.28"] == claims["random-0.28"] == "reproduced"
    assert set(claims.values()) <= {"reproduced", "same direction", "not measured"}
    assert "smoke size" in (tmp_path / "gc" / "report.html").read_text()


def test_the_laldpc_study_at_smoke_size(tmp_path):
    done = command("study", "laldpc", "--smoke", "--workers", "2", "--out", tmp_path / "laldpc", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    claims = {c["id"]: c for c in json.loads((tmp_path / "laldpc" / "claims.json").read_text())["claims"]}
    measured = {name for name, claim in claims.items() if claim["verdict"] != "not measured"}
    assert {"redundant", "redundant-shares", "flash-read", "read-response", "system-response"} <= measured
    # The two eviction policies differ only if entries are evicted.
    assert claims["new-against-lru"]["measured"] < claims["new-against-lru"]["baseline"]

    # The measured values of claims are recomputed from the runs.
    runs = pl.read_parquet(tmp_path / "laldpc" / "results.parquet").filter(pl.col("part") == "basic")
    mean = {
        variant: dict(
            runs.filter(pl.col("variant") == variant).select("workload", "ecc.host.flash_read_us").iter_rows()
        )
        for variant in ("ldpc-in-ssd", "ideal", "laldpc-new")
    }
    first, ideal, new = mean.values()
    shares = [(first[name] - new[name]) / (first[name] - ideal[name]) for name in first]
    assert claims["redundant-shares"]["measured"] == pytest.approx(sum(shares) / len(shares))
    total = [sum(values.values()) for values in (first, ideal, new)]
    assert claims["redundant"]["measured"] == pytest.approx((total[0] - total[2]) / (total[0] - total[1]))
    # Ideal is that of Tables II and IV: the workloads of the smoke size need level 3 as those of the full size.
    for one in claims["ideal"]["workloads"]:
        assert one["measured"] == pytest.approx(one["reported"], abs=0.02), one


@pytest.mark.parametrize(
    "name",
    [
        *("cachelib-fdp", "capacitor-cache", "garbage-collection", "laldpc", "partial-refresh", "rcopyback"),
        *("slc-cache", "together"),
    ],
)
def test_studies_under_the_rules_say_where_every_parameter_comes_from(name, monkeypatch):
    from nandlab.study import definition
    from nandlab.study.parameters import not_stated

    monkeypatch.setenv("NANDLAB_TRACES", "/traces")
    for path in sorted((ROOT / "studies" / name).glob("*.toml")):
        if "[study]" in path.read_text():
            assert not_stated(definition.read(path)) == [], path


def test_the_rcopyback_study_at_smoke_size(tmp_path):
    done = command("study", "rcopyback", "--smoke", "--workers", "2", "--out", tmp_path / "r", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    claims = {c["id"]: c for c in json.loads((tmp_path / "r" / "claims.json").read_text())["claims"]}
    assert claims["rcftl4"]["measured"] > claims["rcftl2"]["measured"] > 1.3
    assert claims["bursts-low"]["measured"] > 1.05
    # As many copybacks as the RBER of the calibrated cell allows.
    assert claims["table-1-3000"]["measured"] == 2
    runs = pl.read_parquet(tmp_path / "r" / "results.parquet").filter(pl.col("part") == "paper")
    off = {row["variant"]: row["off"] for row in runs.filter(pl.col("workload") == "ntrx").rows(named=True)}
    assert 1 == off["off-chip"] > off["rcftl2"] > off["rcftl4"]


def test_the_capacitor_cache_study_at_smoke_size(tmp_path):
    done = command("study", "capacitor-cache", "--smoke", "--workers", "2", "--out", tmp_path / "c", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    claims = {c["id"]: c for c in json.loads((tmp_path / "c" / "claims.json").read_text())["claims"]}
    runs = pl.read_parquet(tmp_path / "c" / "results.parquet")
    paper = runs.filter(pl.col("part") == "paper").select("variant", "workload", "latency_us.write.mean")
    mean = {(variant, workload): latency for variant, workload, latency in paper.iter_rows()}
    for variant in ("ps", "gs", "proposed"):
        ratios = [latency / mean["baseline", workload] for (name, workload), latency in mean.items() if name == variant]
        assert claims[f"write-{variant}"]["measured"] == pytest.approx(sum(ratios) / len(ratios))
    assert claims["write-gs"]["measured"] < 0.2 < 1 < claims["write-ps"]["measured"]
    # No policy has more dirty pages than its budget.
    assert runs.filter(pl.col("variant") != "baseline")["cache.dirty_pages_max"].max() <= 0.7 * 512


def test_the_flush_of_the_capacitor_cache_study_at_smoke_size(tmp_path):
    path = ROOT / "studies" / "capacitor-cache" / "flush.toml"
    done = command("study", path, "--smoke", "--workers", "2", "--out", tmp_path / "f", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    runs = pl.read_parquet(tmp_path / "f" / "results.parquet").filter(pl.col("part") == "concurrency")
    assert set(runs["cells"]) == {"2D", "3D"}
    for row in runs.rows(named=True):
        fast, others = row["power.fast_pages"], row["power.flushed_pages"] - row["power.fast_pages"]
        if row["cells"] == "2D":
            # Without GC a program takes 1300 us on a fast page and 2600 us on a slow one.
            assert row["power.gc_pages"] == 0
            assert row["power.program_s"] == pytest.approx(1300e-6 * fast + 2600e-6 * others)
        if row["variant"] == "csw":
            assert fast > 0.95 * row["power.flushed_pages"]
        else:
            assert fast < 0.6 * row["power.flushed_pages"]


def test_the_cachelib_study_at_smoke_size(tmp_path):
    done = command("study", "cachelib-fdp", "--smoke", "--workers", "2", "--out", tmp_path / "c", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    claims = {c["id"]: c for c in json.loads((tmp_path / "c" / "claims.json").read_text())["claims"]}
    assert claims["without-100"]["measured"] > 3 and claims["with-100"]["measured"] < 1.3
    # With handles everything that half of the drive holds is overwritten before GC needs the room.
    assert claims["with-50"]["measured"] < 1.01
    runs = pl.read_parquet(tmp_path / "c" / "results.parquet").filter(pl.col("part") == "neighbour")
    waf = {(row["handle"], row["noise"]): row["waf"] for row in runs.rows(named=True)}
    # Noise with a handle of its own costs least, noise with the handle of the LOC as much as no handles.
    assert waf[1, 2] < 0.6 * waf[1, 1] and waf[1, 2] < 0.6 * waf[0, 0]


def test_the_slc_cache_study_at_smoke_size(tmp_path):
    done = command("study", "slc-cache", "--smoke", "--workers", "2", "--out", tmp_path / "s", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    claims = {c["id"]: c for c in json.loads((tmp_path / "s" / "claims.json").read_text())["claims"]}
    assert claims["budget"]["measured"] > 1.5 * claims["budget"]["baseline"]
    # Every fold of these blocks is whole programs, so with copybacks hardly anything is moved off-chip.
    runs = pl.read_parquet(tmp_path / "s" / "results.parquet").filter(pl.col("part") == "fold")
    for row in runs.rows(named=True):
        assert row["copied_back"] == 0 if row["variant"] == "off-chip" else row["copied_back"] > 0.99


def test_the_read_reclaim_study_at_smoke_size(tmp_path):
    done = command("study", "read-reclaim", "--smoke", "--workers", "2", "--out", tmp_path / "r", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    claims = json.loads((tmp_path / "r" / "claims.json").read_text())["claims"]
    assert [claim["verdict"] for claim in claims] == ["reproduced", "reproduced"]
    runs = pl.read_parquet(tmp_path / "r" / "results.parquet")
    none = runs.filter(pl.col("part") == "none").row(0, named=True)
    assert none["requests_failed.uncorrectable"] > 100_000
    # A lower limit reclaims more blocks, so it amplifies writes more.
    for part in ("reads", "rber"):
        low, high = runs.filter(pl.col("part") == part).sort("limit").rows(named=True)
        assert low["reclaim.blocks"] > high["reclaim.blocks"] > 0
        assert low["waf"] > high["waf"] > none["waf"]
    pairs = {pair: rows["waf"].to_list() for (pair,), rows in runs.group_by("pair") if pair is not None}
    assert len(pairs) == 2 and all(max(waf) < 1.06 * min(waf) for waf in pairs.values())


def test_the_study_of_all_schemes_at_smoke_size(tmp_path):
    done = command("study", "together", "--smoke", "--workers", "2", "--out", tmp_path / "t", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    runs = pl.read_parquet(tmp_path / "t" / "results.parquet")
    runs = runs.filter(pl.col("part") == "all")
    assert runs["variant"].n_unique() == runs.height == 16
    claims = {c["id"]: c for c in json.loads((tmp_path / "t" / "claims.json").read_text())["claims"]}
    # Pairs of runs that differ only in LaLDPC.
    read = dict(runs.select("variant", "latency_us.read.mean").iter_rows())
    pairs = [(name, "L" + name.replace("none", "")) for name in read if "L" not in name]
    ratios = [read[on] / read[off] for off, on in pairs]
    assert len(ratios) == 8 and max(ratios) < 1
    mean = 1.0
    for ratio in ratios:
        mean *= ratio ** (1 / 8)
    assert claims["laldpc-reads"]["measured"] == pytest.approx(mean - 1)
    assert claims["laldpc-rcopyback"]["verdict"] != "not measured"


def test_the_files_of_shipped_studies_state_claims_without_results():
    for path in sorted((ROOT / "studies").glob("*/study.toml")):
        for claim in tomllib.loads(path.read_text())["claims"]:
            assert "measure" in claim and not {"measured", "verdict"} & set(claim)


def test_a_study_of_traces_takes_their_folder_from_the_environment(monkeypatch):
    from nandlab.study import definition

    monkeypatch.setenv("NANDLAB_TRACES", "/traces")
    found = definition.read(ROOT / "studies" / "laldpc" / "real.toml")
    paths = [override.value for choice in found.parts[0].workloads for override in choice.sets]
    assert any(str(path).endswith("traces/oltp.blkparse.xz") for path in paths)


def test_the_shipped_studies_are_valid_at_full_size():
    from nandlab.study import definition

    paths = [
        str(path) for path in sorted((ROOT / "studies").glob("*/*.toml")) if path.name not in ("base.toml", "real.toml")
    ]
    assert len(paths) > 10
    # The seeds count for the number of runs alone, which is checked as the file is read.
    for path in paths:
        definition.read(Path(path))
    # One process, because a start takes as long as a check.
    code = """\
import sys
from nandlab.cli import main
for path in sys.argv[1:]:
    try:
        main(["study", path, "--check", "--seeds", "1"])
    except SystemExit as ended:
        if ended.code:
            raise
"""
    done = subprocess.run([sys.executable, "-c", code, *paths], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": ok, ") == len(paths), done.stdout


def test_the_example_script(tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "study.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "6 runs done" in done.stdout
    assert "reproduced" in done.stdout
