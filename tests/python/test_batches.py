"""Batches of requests and completions on `nandlab.Drive`, and the writes that reads return."""

import os
import random

import nandlab
import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import SPEC
from power_checker import Checker

#: A drive whose requests a trace has, and a batch.
TRACED = SPEC.split("[workload.synthetic]")[0] + "[output]\nrequests = true\n"
UNIT = 4096
CACHED = """\
seed = 3
[drive]
channels = 1
chips_per_channel = 2
blocks_per_plane = 32
pages_per_block = 16
page_size = "4KiB"
cell = "slc"
op = 0.5
endurance = 10000000
[timing]
program = "300us"
[cache]
size = "128KiB"
dirty_budget = 1.0
[power]
cut_after_requests = 1000000000
"""
#: Enough for a full cache and what is under way.
CAPACITOR = {
    "capacitor.capacitance": "10mF",
    "capacitor.controller_power": "20mW",
    "capacitor.program_power": "80mW",
    "capacitor.recharge": "1ms",
}


def batch(count, seed=1):
    """Requests for single units of the drive of `SPEC`, 200 us apart."""
    rng = np.random.default_rng(seed)
    units = nandlab.load(SPEC).logical_bytes // UNIT
    return {
        "op": rng.choice(["read", "write"], count),
        "offset": rng.integers(0, units, count) * UNIT,
        "length": np.full(count, UNIT),
        "arrival_ns": np.arange(count) * 200_000,
    }


def run_of(requests, tmp_path, **arrival):
    """The requests of a run of the same requests as a trace."""
    rows = zip(*requests.values(), strict=True)
    lines = [f"{at},{int(op == 'read')},{offset},{length}" for op, offset, length, at in rows]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    columns = {"columns": "time_ns, op(1=read, 0=write), offset, size"}
    sets = {"workload.trace": str(tmp_path / "t.csv"), "workload.format": columns} | arrival
    return nandlab.run(TRACED, sets=sets)


def same(completions, ran):
    """Whether completions are those of a run, in order."""
    table = ran.requests
    return all(
        completions[name].tolist() == table[name].to_list()
        for name in ("arrival_ns", "completed_ns", "offset", "length")
    )


@pytest.mark.parametrize("depth", [1, 8, None])
def test_a_batch_ends_as_a_run_of_the_same_requests(tmp_path, depth):
    requests = batch(4000)
    drive = nandlab.Drive(nandlab.load(TRACED))
    given = dict(requests)
    if depth is not None:
        del given["arrival_ns"]
    assert drive.submit_many(given, queue_depth=depth) == range(4000)
    drive.run_until_idle()
    completions = drive.completions_arrays()
    arrival = {} if depth is None else {"workload.arrival": {"queue_depth": depth}}
    assert len(completions["id"]) == 4000
    assert same(completions, run_of(requests, tmp_path, **arrival))
    assert set(completions["op"]) == {"read", "write"} and set(completions["reason"]) == {""}
    assert len(drive.completions_arrays()["id"]) == 0 and drive.completions() == []


def test_a_batch_in_two_parts_is_one_batch():
    requests = batch(500)
    whole, parts = (nandlab.Drive(nandlab.load(TRACED)) for _ in range(2))
    whole.submit_many(requests)
    assert parts.submit_many({name: column[:200] for name, column in requests.items()}) == range(200)
    assert parts.submit_many({name: column[200:] for name, column in requests.items()}) == range(200, 500)
    assert parts.now_ns == whole.now_ns == requests["arrival_ns"][-1]
    for drive in (whole, parts):
        drive.run_until_idle()
    columns, one_by_one = whole.completions_arrays(), parts.completions()
    assert list(zip(*(columns[name].tolist() for name in ("id", "op", "arrival_ns", "completed_ns")), strict=True)) == [
        done[:4] for done in one_by_one
    ]


def test_kinds_of_tables():
    requests = batch(50)
    numbers = requests | {"op": (requests["op"] == "write").astype(np.int8)}
    records = np.zeros(50, dtype=[("op", "U5"), ("offset", "i8"), ("length", "i4"), ("arrival_ns", "f8")])
    for name, column in requests.items():
        records[name] = column

    class Arrow:
        """An Arrow table of another library."""

        def __arrow_c_stream__(self, requested_schema=None):
            return pl.DataFrame(requests).__arrow_c_stream__(requested_schema)

    lists = {name: column.tolist() for name, column in requests.items()}
    objects = pd.DataFrame(requests).astype(object)
    tables = [objects, requests, numbers, records, lists, pl.DataFrame(requests), pd.DataFrame(requests), Arrow()]
    found = []
    for table in tables:
        drive = nandlab.Drive(nandlab.load(TRACED))
        drive.submit_many(table)
        drive.run_until_idle()
        found.append(drive.completions())
    assert all(completions == found[0] for completions in found) and len(found[0]) == 50


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"size": [1]}, ValueError, "column 'size': the columns of requests are op, offset"),
        ({"op": None}, ValueError, "no column 'op'"),
        ({"op": ["read", "erase"]}, ValueError, "'erase' of request 1 is none of read, write, trim, flush"),
        ({"op": [0, 4]}, ValueError, "4 of request 1 is no number from 0 to 3"),
        ({"offset": [0, -4096]}, ValueError, "-4096 of request 1 is not from 0"),
        ({"offset": [0, 0.5]}, ValueError, "expected whole numbers, found 0.5 of request 1"),
        ({"offset": [0, float("nan")]}, ValueError, "found nan of request 1"),
        ({"offset": ["a", "b"]}, ValueError, "expected whole numbers, found <U1"),
        ({"op": "write"}, ValueError, "column 'op': expected one value for each request"),
        ({"op": [["read", "write"]]}, ValueError, "column 'op': expected one value for each request"),
        ({"op": pd.array(["read", None], dtype="string")}, ValueError, "'<NA>' of request 1 is none of"),
        ({"offset": [0]}, ValueError, "one value for each of the 2 requests"),
        ({"placement": [0, 1 << 16]}, ValueError, "65536 of request 1 is not from 0 to 65535"),
        ({"offset": [0, 1 << 50]}, nandlab.RunError, "request 1 of the batch"),
        ({"length": [4096, 0]}, nandlab.RunError, "request 1 of the batch"),
    ],
)
def test_tables_that_are_no_requests(change, error, said):
    drive = nandlab.Drive(nandlab.load(SPEC))
    table = {"op": ["read", "write"], "offset": [0, 4096], "length": [4096, 4096]} | change
    with pytest.raises(error, match=said):
        drive.submit_many({name: column for name, column in table.items() if column is not None})
    # The requests before the one that is refused remain submitted.
    drive.run_until_idle()
    assert len(drive.completions()) == (error is nandlab.RunError)


def test_other_objects_and_depths_are_refused():
    drive = nandlab.Drive(nandlab.load(SPEC))
    with pytest.raises(TypeError, match="cannot be of type int: expected a mapping of arrays"):
        drive.submit_many(1)
    with pytest.raises(ValueError, match="queue_depth: expected at least 1, found 0"):
        drive.submit_many({"op": [], "offset": [], "length": []}, queue_depth=0)
    assert len(drive.submit_many({"op": [], "offset": [], "length": []})) == 0


def test_a_read_returns_the_write_before_it():
    drive = nandlab.Drive(nandlab.load(SPEC, {"drive.endurance": 10**6}), versions=True)
    units = nandlab.load(SPEC).logical_bytes // UNIT
    rng, newest, expected = random.Random(2), {}, {}
    # Ten times the drive, so that GC moves units and erases blocks.
    for _ in range(10 * units):
        unit, count = rng.randrange(units - 3), rng.randrange(1, 4)
        op = rng.choice(["read", "write", "write", "write", "trim"])
        id = drive.submit(op, unit * UNIT, count * UNIT)
        covered = range(unit, unit + count)
        if op == "read":
            expected[id] = tuple(newest.get(unit) for unit in covered)
        else:
            newest |= dict.fromkeys(covered, id if op == "write" else None)
        drive.run_until_idle()
    assert drive.summary().gc.victims > 0
    done = {completion.id: completion for completion in drive.completions()}
    assert {id: completion.versions for id, completion in done.items() if completion.op == "read"} == expected
    assert all(completion.versions is None for completion in done.values() if completion.op != "read")
    one = [id for id, units in expected.items() if len(set(units)) == 1]
    assert all(done[id].version == expected[id][0] for id in one) and len(one) < len(expected)
    assert all(done[id].version is None for id in expected.keys() - set(one))


def test_versions_of_a_batch():
    drive = nandlab.Drive(nandlab.load(SPEC), versions=True)
    drive.submit_many({"op": ["write", "write", "write"], "offset": [0, UNIT, 0], "length": [UNIT] * 3}, queue_depth=1)
    drive.run_until_idle()
    drive.completions()
    offsets, lengths = [0, UNIT, 0, 5 * UNIT, 0], [UNIT, UNIT, 2 * UNIT, UNIT, 0]
    drive.submit_many({"op": ["read"] * 4 + ["flush"], "offset": offsets, "length": lengths}, queue_depth=1)
    drive.run_until_idle()
    found = drive.completions_arrays()
    assert dict(zip(found["id"].tolist(), found["version"].tolist(), strict=True)) == {3: 2, 4: 1, 5: -2, 6: -1, 7: -1}
    plain = nandlab.Drive(nandlab.load(SPEC))
    plain.read(0, UNIT)
    plain.run_until_idle()
    assert "version" not in plain.completions_arrays()


def test_a_run_of_requests_is_a_run_of_their_trace(tmp_path):
    requests = batch(2000)
    asked = run_of(requests, tmp_path).summary_text.splitlines()
    found = nandlab.run(TRACED, requests=pl.DataFrame(requests), out=tmp_path / "r")
    # The specs differ in the name of the trace, and so in their hash.
    assert [line for line in found.summary_text.splitlines() if "spec_hash" not in line] == [
        line for line in asked if "spec_hash" not in line
    ]
    # The directory has the trace, and the spec runs again.
    (name,) = found.files
    assert (tmp_path / "r" / name).read_bytes() == found.files[name]
    again = nandlab.run(tmp_path / "r" / "spec.toml")
    assert again.summary_text == found.summary_text and again.spec_hash == found.spec_hash
    nandlab.results.RunResult.read(tmp_path / "r").save(tmp_path / "s")
    assert (tmp_path / "s" / name).read_bytes() == found.files[name]
    other = nandlab.run(TRACED, requests=batch(2000, seed=2))
    assert other.spec_hash != found.spec_hash


def test_requests_without_times_and_files_of_the_spec(tmp_path):
    requests = {name: column for name, column in batch(500).items() if name != "arrival_ns"}
    nandlab.Drive(nandlab.load(SPEC)).save(tmp_path / "saved.drive")
    (tmp_path / "d.toml").write_text(SPEC + '[precondition]\nload = "saved.drive"\n')
    ran = nandlab.run(tmp_path / "d.toml", requests=requests)
    assert "queue_depth = 32" in ran.spec_toml and ran.summary.requests == 500
    # Arrivals of the requests come before that of the spec.
    timed = nandlab.run(TRACED + "[workload]\narrival = { iops = 1e6 }\n", requests=batch(500))
    assert timed.summary.duration_s > 0.0998
    assert (
        nandlab.run(TRACED, requests=batch(9), sets={"workload.arrival": {"queue_depth": 1}}).summary.duration_s < 0.05
    )
    with pytest.raises(ValueError, match="there are no requests"):
        nandlab.run(TRACED, requests={"op": [], "offset": [], "length": []})
    with pytest.raises(nandlab.TraceError) as refused:
        nandlab.run(TRACED, requests=requests | {"length": [0] * 500})
    assert "/tmp" not in str(refused.value) and "requests-" in str(refused.value)
    slow = nandlab.run(TRACED + "[workload]\narrival = { iops = 100 }\n", requests=requests)
    assert slow.summary.duration_s > 4.9
    with pytest.raises(ValueError, match=r"column 'fua': .* nandlab.Drive.submit_many takes the others"):
        nandlab.run(SPEC, requests=requests | {"fua": [0] * 500})


def test_a_spec_as_a_mapping():
    spec = {
        "seed": 1,
        "drive": {"channels": 1, "chips_per_channel": 1, "planes_per_die": 1, "blocks_per_plane": 48},
        "drive.pages_per_block": 16,
        "workload.synthetic": {"requests": 300, "read_fraction": 0.5, "size": "4KiB", "address": "uniform"},
    }
    with pytest.raises(nandlab.SpecError, match="drive"):
        # TOML has one place for the keys of a table.
        nandlab.load(spec)
    spec["drive"]["pages_per_block"] = spec.pop("drive.pages_per_block")
    assert nandlab.run(spec).summary.requests == nandlab.run(nandlab.load(spec)).summary.requests == 300
    assert nandlab.Drive(spec).submit("read", 0, 4096) == nandlab.Drive(nandlab.load(spec)).submit("read", 0, 4096)
    assert nandlab.load({}) == nandlab.load("\n")
    assert nandlab.load({"gc.victim": "fifo"}) == nandlab.load('[gc]\nvictim = "fifo"\n')


@pytest.mark.parametrize(
    ("sets", "promise", "holds"),
    [
        ({}, "covered", True),
        ({}, "acknowledged", False),
        (CAPACITOR, "covered", True),
        (CAPACITOR, "acknowledged", True),
        ({"cache.size": "0B"}, "acknowledged", True),
    ],
)
def test_a_checker_of_durability(sets, promise, holds):
    """10,000 cuts by `make soak`; with a cache that nothing backs up an acknowledged write can be lost."""
    cuts = 2500 if os.environ.get("NANDLAB_POWER_TESTS") == "all" else 60
    spec = nandlab.load(CACHED, sets)
    broken = Checker(spec, promise, seed=5).run(cuts)
    assert (broken == []) == holds, broken[:3]
