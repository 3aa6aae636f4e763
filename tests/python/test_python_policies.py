"""Policies in Python: the results of built-in ones, their errors, their views, loading, identity, copies, workers."""

import json

import policies_in_python  # noqa: F401  # declares the policies
import pytest

import nandlab

SPEC = """\
seed = 3
[drive]
channels = 2
chips_per_channel = 1
planes_per_die = 2
blocks_per_plane = 48
pages_per_block = 16
page_size = "4KiB"
op = 0.25
[workload.synthetic]
requests = 6000
read_fraction = 0.4
size = "8KiB"
address = { zipf = 0.9 }
"""

CACHE = {"cache.size": "256KiB", "cache.dirty_budget": 0.5, "workload.arrival": {"iops": 3000}}
EVICTING = {**CACHE, "cache.sync": "punctual"}
COPYBACK = {"cache.size": "1MiB", "cache.sync": "greedy", "workload.arrival": {"iops": 1000}}

#: Settings, slot, the policy in Python, the built-in one.
PAIRS = [
    ({}, "gc.victim", "greedy-in-python", "greedy"),
    ({}, "gc.victim", "fifo-in-python", "fifo"),
    ({}, "gc.victim", "cost-benefit-in-python", "cost-benefit"),
    ({}, "gc.victim", "random-in-python", "random"),
    ({}, "gc.victim", {"random-in-python": {"k": 2}}, {"random": {"k": 2}}),
    ({}, "gc.victim", {"partial-aware-in-python": {"linked_cost": 0.5}}, {"partial-aware": {"linked_cost": 0.5}}),
    (EVICTING, "cache.eviction", "lru-in-python", "lru"),
    (EVICTING, "cache.eviction", "lru-by-events", "lru"),
    (EVICTING, "cache.eviction", "lru-by-batches", "lru"),
    (EVICTING, "cache.eviction", "cflru-in-python", "cflru"),
    (CACHE, "cache.sync", "none-in-python", "none"),
    (CACHE, "cache.sync", "eager-in-python", "eager"),
    (CACHE, "cache.sync", "punctual-in-python", "punctual"),
    (CACHE, "cache.sync", "sync-greedy-in-python", "greedy"),
    (CACHE, "cache.sync", {"smart-in-python": {"cold_share": 0.2}}, {"smart": {"cold_share": 0.2}}),
    (COPYBACK, "migration.policy", {"rcopyback-in-python": {"limit": 2}}, {"rcopyback": {"limit": 2}}),
    (COPYBACK, "migration.policy", {"rcopyback-greedy-in-python": {"limit": 2}}, {"rcopyback-greedy": {"limit": 2}}),
    ({}, "ftl.map.demand", {"cache": "4KiB", "eviction": "map-lru-in-python"}, {"cache": "4KiB", "eviction": "lru"}),
]


def outcome(result, folder):
    """The files of a result without what names the policy: the spec, its hash, and a note."""
    result.save(folder)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name in ("spec.toml", "sim.json", "nandlab-result.json"):
        files.pop(name)
    summary = json.loads(files.pop("summary.json"))
    summary.pop("policies", None)
    summary["spec_hash"] = ""
    summary["notes"] = [note for note in summary["notes"] if note["code"] != "same-as-greedy"]
    return {**files, "summary.json": summary}


@pytest.mark.parametrize(("sets", "slot", "ours", "theirs"), PAIRS, ids=[str(pair[2]) for pair in PAIRS])
def test_a_built_in_policy_in_python_gives_the_same_results(tmp_path, sets, slot, ours, theirs):
    mine = nandlab.run(nandlab.load(SPEC, {**sets, slot: ours}), name="run")
    built_in = nandlab.run(nandlab.load(SPEC, {**sets, slot: theirs}), name="run")
    assert mine.summary.policies is not None and built_in.summary.policies is None
    assert outcome(mine, tmp_path / "a") == outcome(built_in, tmp_path / "b")


@pytest.mark.parametrize(
    ("sets", "slot", "one", "other"),
    [
        ({}, "gc.victim", "greedy", "fifo"),
        ({}, "gc.victim", "greedy", "cost-benefit"),
        (EVICTING, "cache.eviction", "lru", "cflru"),
        (CACHE, "cache.sync", "none", "eager"),
        (CACHE, "cache.sync", "punctual", "smart"),
        (COPYBACK, "migration.policy", {"rcopyback": {"limit": 2}}, {"never-copy": {"limit": 2}}),
        (
            {},
            "ftl.map.demand",
            {"cache": "4KiB", "eviction": "lru"},
            {"cache": "4KiB", "eviction": "map-fifo"},
        ),
    ],
)
def test_the_decisions_of_the_runs_above_matter(tmp_path, sets, slot, one, other):
    runs = [nandlab.run(nandlab.load(SPEC, {**sets, slot: choice}), name="run") for choice in (one, other)]
    first, second = (outcome(run, tmp_path / str(number)) for number, run in enumerate(runs))
    assert first != second
