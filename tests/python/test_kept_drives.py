"""Kept drives: a run with a kept drive has the results of one that preconditions its own."""

import json
import os
from pathlib import Path

import nandlab
import pytest
from conftest import run_two_at_once

#: A drive whose preconditioning programs 5 Mi mapping units.
BIG = """
seed = 3
[drive]
channels = 2
chips_per_channel = 1
dies_per_chip = 2
planes_per_die = 2
blocks_per_plane = 690
pages_per_block = 256
page_size = "16KiB"
op = 0.15
[ftl]
mapping_unit = "4KiB"
[precondition]
used = 0.97
valid = 0.8
map_reads = true
[workload]
profile = "msr/proj_0"
requests = 3000
beyond = "wrap"
"""
#: Files of a result that differ between equal runs.
MEASURED = "sim.json"


@pytest.fixture
def here(tmp_path):
    (tmp_path / "big.toml").write_text(BIG)
    return tmp_path


def run(command, here, cache, *sets):
    """The files of the result, and what the run said on stderr."""
    out = here / f"out-{len(list(here.iterdir()))}"
    ended = command("run", "big.toml", *sets, "--out", out, env=os.environ | {"NANDLAB_CACHE": str(cache)})
    assert ended.returncode == 0, ended.stderr
    return {file.name: file.read_bytes() for file in out.iterdir() if file.name != MEASURED}, ended.stderr


def drives(cache):
    return sorted((Path(cache) / "drives").glob("*.drive"))


def test_runs_with_a_kept_drive_have_the_same_results(command, here):
    cache = here / "cache"
    # One preconditioning: a mapping cache counts by its presence, and the workload does not count.
    for sets in ([], ["workload.profile=msr/prxy_0"], ["timing.read=70us"]):
        fresh, _ = run(command, here, "off", *sets)
        for _ in range(2):
            kept, said = run(command, here, cache, *sets)
            assert kept == fresh, sets
            assert "note:" not in said
            assert len(drives(cache)) == 1
    demand = ["ftl.map.demand.cache=64KiB"]
    fresh, _ = run(command, here, "off", *demand)
    for _ in range(2):
        assert run(command, here, cache, *demand)[0] == fresh
    assert len(drives(cache)) == 2
    facts = json.loads(command("doctor", "--json", env=os.environ | {"NANDLAB_CACHE": str(cache)}).stdout)
    assert facts["kept_drives"] == {
        "folder": str(cache / "drives"),
        "drives": 2,
        "bytes": sum(file.stat().st_size for file in drives(cache)),
        "bytes_max": 8 << 30,
    }
    text = command("doctor", env=os.environ | {"NANDLAB_CACHE": str(cache)}).stdout
    assert f"{cache / 'drives'}: 2 (" in text and "of 8 GiB)" in text


def test_a_damaged_file_and_a_folder_that_cannot_be_written_change_no_result(command, here):
    cache = here / "cache"
    fresh, _ = run(command, here, cache)
    [file] = drives(cache)
    whole = file.read_bytes()
    for damaged in (whole[:-1], whole[:1000], whole[: len(whole) // 2] + b"x" + whole[len(whole) // 2 + 1 :]):
        file.write_bytes(damaged)
        kept, said = run(command, here, cache)
        assert kept == fresh
        assert f"note: {file}: the kept drive is damaged" in said
        assert file.read_bytes() == whole
    (here / "file").write_text("no folder")
    kept, said = run(command, here, here / "file")
    assert kept == fresh
    assert "note: the preconditioned drive was not kept in" in said


def test_two_runs_at_once(here):
    run_two_at_once(here, "big.toml", here / "cache")
    assert [file.suffix for file in (here / "cache" / "drives").iterdir()] == [".drive"]


def test_a_drive_for_steps_is_a_kept_one(here, monkeypatch):
    def summary():
        drive = nandlab.Drive(nandlab.load(here / "big.toml"))
        drive.write(offset=0, length=1 << 20)
        drive.run_until_idle()
        return drive.summary()

    monkeypatch.setenv("NANDLAB_CACHE", "off")
    fresh = summary()
    monkeypatch.setenv("NANDLAB_CACHE", str(here / "cache"))
    assert summary() == fresh
    assert len(drives(here / "cache")) == 1
    assert summary() == fresh
    (here / "file").write_text("no folder")
    monkeypatch.setenv("NANDLAB_CACHE", str(here / "file"))
    with pytest.warns(UserWarning, match="was not kept in"):
        assert summary() == fresh


def test_a_small_drive_touches_no_disk(command, here):
    run(command, here, here / "cache", "drive.blocks_per_plane=200")
    assert not (here / "cache" / "drives").exists()


def test_a_checked_drive_of_overwrites_is_not_kept(command, here):
    """The oracle observes the writes of `pts`."""
    cache = here / "cache"
    sets = ["precondition.method=pts", "precondition.rounds_max=1", "drive.blocks_per_plane=400"]
    text = BIG.replace("used = 0.97\nvalid = 0.8\n", "")
    (here / "big.toml").write_text(text)
    fresh, _ = run(command, here, "off", *sets)
    assert json.loads(fresh["summary.json"])["precondition"]["waf_by_round"]
    for _ in range(2):
        assert run(command, here, cache, *sets)[0] == fresh
    assert len(drives(cache)) == 1
    out = here / "checked"
    ended = command("run", "big.toml", "--verify", *sets, "--out", out, env=os.environ | {"NANDLAB_CACHE": str(cache)})
    assert ended.returncode == 0, ended.stderr
    assert len(drives(cache)) == 1
