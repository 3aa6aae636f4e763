"""Policies in Python: the results of built-in ones, their errors, their views, loading, identity, copies, workers."""

import importlib.util
import json
import pickle
import random
import re
import sys
import tempfile
from pathlib import Path

import forks
import nandlab
import numpy as np
import policies_in_python  # declares the policies
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nandlab import python_policies

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
PTS = {"precondition.method": "pts"}
EVICTING = {**CACHE, "cache.sync": "punctual"}
COPYBACK = {"cache.size": "1MiB", "cache.sync": "greedy", "workload.arrival": {"iops": 1000}}

#: Data of a year, and data that ages fast, on a worn drive: read levels 1 to 6.
OLD = {
    "ecc.levels": "laldpc",
    "reliability.rber.vth.cell_to_cell": 0.05,
    "drive.endurance": 20000,
    "reliability.pe_cycles": 9000,
    "reliability.retention": "365d",
    "reliability.clock_scale": 1e8,
    "precondition.method": "fill",
}
#: Data of a month on 3D TLC with a read-retry table, whose entries wrap around.
RETRY = {
    "drive.cell": "3d-tlc",
    "drive.layers": 4,
    "drive.pages_per_block": 48,
    "ecc.levels.retry": {"rber_max": 0.0088, "entries": {"steps": 32, "size": 1.3}},
    "reliability.rber.vth-tlc": {"sigma": 0.92, "shift": 0.2, "early": {"loss": 3.0}, "layers": {"ratio": 1.5}},
    "reliability.pe_cycles": 1000,
    "reliability.retention": "30d",
    "reliability.clock_scale": 1e8,
    "workload.synthetic.requests": 2000,
    "workload.synthetic.read_fraction": 0.9,
}
DEMAND = {"ftl.map.demand": {"cache": "4KiB", "eviction": "read-level"}, "precondition.used": 0.8}
TABLE = {
    "rows": [
        {"pe": pe, "age": age, "level": level} for pe, age, level in ((0, "0s", 2), (9001, "0s", 3), (9000, "7d", 5))
    ]
}

#: Settings, slot, the policy in Python, the built-in one.
PAIRS = [
    ({}, "gc.victim", "greedy-in-python", "greedy"),
    ({}, "gc.victim", "greedy-by-lane", "greedy"),
    ({}, "gc.victim", "cost-benefit-by-lane", "cost-benefit"),
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
    ({}, "ftl.streams", "multi-hash-in-python", {"multi-hash": {"counters": 512, "threshold": 3, "decay": 700}}),
    (EVICTING, "ftl.streams", "multi-hash-in-python", {"multi-hash": {"counters": 512, "threshold": 3, "decay": 700}}),
    (OLD, "ecc.start", "first-in-python", "first"),
    (OLD, "ecc.start", "ideal-in-python", "ideal"),
    (OLD, "ecc.start", "last-level-in-python", "last-level"),
    ({**OLD, **DEMAND}, "ecc.start", "last-level-in-python", "last-level"),
    (OLD, "ecc.start", "block-level-in-python", "block-level"),
    ({**OLD, **DEMAND}, "ecc.start", "block-level-in-python", "block-level"),
    (OLD, "ecc.start", "last-good-in-python", "last-good"),
    (OLD, "ecc.start", "last-good-by-events", "last-good"),
    (RETRY, "ecc.start", "last-good-in-python", "last-good"),
    (RETRY, "ecc.start", "last-level-in-python", "last-level"),
    (OLD, "ecc.start", "drive-level-in-python", "drive-level"),
    (OLD, "ecc.start", "table-in-python", {"table": TABLE}),
]
#: Notes that name the policy, or that a policy from outside does not have.
OF_THE_POLICY = {"same-as-greedy", "always-from-first", "first-level-only"}


def outcome(result, folder):
    """The files of a result without what names the policy: the spec, its hash, and a note."""
    result.save(folder)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name in ("spec.toml", "sim.json", "nandlab-result.json"):
        files.pop(name)
    summary = json.loads(files.pop("summary.json"))
    summary.pop("policies", None)
    summary["spec_hash"] = ""
    summary["notes"] = [note for note in summary["notes"] if note["code"] not in OF_THE_POLICY]
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
        ({}, "ftl.streams", "sepbit", {"multi-hash": {"counters": 512, "threshold": 3, "decay": 700}}),
        (OLD, "ecc.start", "first", "ideal"),
        (OLD, "ecc.start", "last-level", "first"),
        (OLD, "ecc.start", "last-level", "block-level"),
        ({**OLD, **DEMAND}, "ecc.start", "last-level", "block-level"),
        (OLD, "ecc.start", "last-good", "drive-level"),
        (OLD, "ecc.start", "first", {"table": TABLE}),
        (OLD, "ecc.start", {"table": {"rows": TABLE["rows"][::2]}}, {"table": TABLE}),
        (RETRY, "ecc.start", "last-good", "last-level"),
    ],
)
def test_the_decisions_of_the_runs_above_matter(tmp_path, sets, slot, one, other):
    runs = [nandlab.run(nandlab.load(SPEC, {**sets, slot: choice}), name="run") for choice in (one, other)]
    first, second = (outcome(run, tmp_path / str(number)) for number, run in enumerate(runs))
    assert first != second


# ------------------------------------------------------------------------------------------------- errors of a policy


def run_with(declare, slot="gc.victim", sets=None):
    """Run the drive with a class, which `declare` makes a policy."""
    nandlab.policy(slot, "user")(declare)
    return nandlab.run(nandlab.load(SPEC, {**(sets or {}), slot: "user"}))


def greedy(lane):
    full = (lane.state == lane.FULL).nonzero()[0]
    return int(full[lane.valid[full].argmin()]) if len(full) else None


class Keeps:
    def __init__(self):
        self.kept = []


class KeepsAnArray(Keeps):
    def pick(self, lane):
        self.kept.append(lane.valid)
        return greedy(lane)


class KeepsASlice(Keeps):
    def pick(self, lane):
        self.kept.append(lane.closed_at[3:7][::2])
        return greedy(lane)


class KeepsTheLane(Keeps):
    def pick(self, lane):
        self.kept.append(lane)
        return greedy(lane)


class KeepsABuffer(Keeps):
    def pick(self, lane):
        self.kept.append(memoryview(lane.erases))
        return greedy(lane)


@pytest.mark.parametrize("policy", [KeepsAnArray, KeepsASlice, KeepsTheLane, KeepsABuffer])
def test_a_view_that_outlives_its_call_ends_the_run(policy):
    with pytest.raises(nandlab.RunError) as error:
        run_with(policy)
    line = policy.pick.__code__.co_firstlineno
    assert f"test_python_policies.py:{line}: " in str(error.value)
    assert "it has kept a view" in str(error.value) and ".copy()" in str(error.value)


def test_a_kept_view_reads_valid_memory_after_the_run():
    kept = []

    class KeepsOutside:
        def pick(self, lane):
            kept.append(lane.valid)
            return greedy(lane)

    with pytest.raises(nandlab.RunError, match="it has kept a view"):
        run_with(KeepsOutside)
    assert kept[0].shape == (48,) and int(kept[0].max()) <= 16 * 2
    del kept[:]
    run_with(policies_in_python.GreedyInPython)


def test_a_copy_of_a_view_may_be_kept():
    class KeepsACopy(Keeps):
        def pick(self, lane):
            self.kept.append(lane.valid.copy())
            return greedy(lane)

    assert run_with(KeepsACopy).complete


def test_views_are_read_only():
    class Writes:
        def pick(self, lane):
            lane.valid[0] = 0

    with pytest.raises(ValueError, match="read-only"):
        run_with(Writes)

    class Unlocks:
        def pick(self, lane):
            lane.valid.flags.writeable = True

    with pytest.raises(ValueError, match="WRITEABLE"):
        run_with(Unlocks)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("block", "it returned 'block': expected the number of a block, or None"),
        (-1, "it returned -1: expected the number of a block"),
        (2.5, "it returned 2.5: expected the number of a block"),
        (True, "it returned True: expected the number of a block"),
        (1 << 40, "it returned 1099511627776: expected"),
        (48, "it picked block 48, which does not exist: the blocks are 0 to 47"),
        ([0], "it returned [0]: expected"),
    ],
)
def test_an_answer_that_cannot_be_ends_the_run(answer, text):
    class Answers:
        def pick(self, lane):
            return answer

    with pytest.raises(nandlab.RunError) as error:
        run_with(Answers)
    line = Answers.pick.__code__.co_firstlineno
    assert f"test_python_policies.py:{line}: " in str(error.value) and text in str(error.value)


def test_a_policy_that_picks_nothing_ends_the_run_with_its_name():
    class PicksNothing:
        def pick(self, lane):
            return None

    with pytest.raises(nandlab.RunError, match=r"selects none of the [0-9]+ full superblocks that have") as error:
        run_with(PicksNothing)
    assert "fault in nandlab" not in str(error.value) and "correct the policy" in str(error.value)


def test_a_pick_that_is_not_full_ends_the_run():
    class PicksOpen:
        def pick(self, lane):
            return int((lane.state != lane.FULL).argmax())

    with pytest.raises(nandlab.RunError, match=r"it picked block [0-9]+, which is (open|free), not full"):
        run_with(PicksOpen)


@pytest.mark.parametrize(
    ("slot", "sets", "methods", "text"),
    [
        ("cache.eviction", EVICTING, {"pick": lambda self, cache: "x"}, "expected the number of a slot"),
        ("cache.eviction", EVICTING, {"pick": lambda self, cache: cache.capacity}, "slot"),
        ("cache.sync", CACHE, {"evicts_dirty_first": lambda self, cache: 7}, "it returned 7: expected True or False"),
        (
            "migration.policy",
            COPYBACK,
            {"copies_back": lambda self, *_: None},
            "it returned None: expected True or False",
        ),
        ("ftl.map.demand.eviction", {}, {"evict": lambda self: None}, "it returned None: expected the LPN"),
        ("ftl.map.demand.eviction", {}, {"evict": lambda self: 1 << 31}, "2147483648"),
        ("ftl.streams", {}, {"stream": lambda self, *_: None}, "it returned None: expected the number of a stream"),
        ("ftl.streams", {}, {"stream": lambda self, *_: 2}, "it told a write to class 2, and the drive has 2 classes"),
        ("ecc.start", OLD, {"start": lambda self, read: 0}, "it returned 0: expected a read level from 1 to 7"),
        (
            "ecc.start",
            OLD,
            {"start": lambda self, read: read.levels + 1},
            "it returned 8: expected a read level from 1",
        ),
        ("ecc.start", OLD, {"start": lambda self, read: None}, "it returned None: expected a read level from 1 to 7"),
        ("ecc.start", OLD, {"start": lambda self, read: True}, "it returned True: expected a read level"),
        ("ecc.start", OLD, {"start": lambda self, read: 2.0}, "it returned 2.0: expected a read level"),
    ],
)
def test_an_answer_of_another_slot_that_cannot_be_ends_the_run(slot, sets, methods, text):
    nandlab.policy(slot, "user")(type("Answers", (), {**methods, "__module__": __name__}))
    chosen = {"user": {"limit": 2}} if slot == "migration.policy" else "user"
    key, value = (
        (slot, chosen) if not slot.startswith("ftl.map") else ("ftl.map.demand", {"cache": "4KiB", "eviction": "user"})
    )
    with pytest.raises(nandlab.RunError) as error:
        nandlab.run(nandlab.load(SPEC, {**sets, key: value}))
    assert "test_python_policies.py:" in str(error.value) and text in str(error.value)


def test_an_exception_arrives_as_it_is():
    class Odd(Exception):
        pass

    class Raises:
        def pick(self, lane):
            raise Odd("no victim")

    with pytest.raises(Odd, match="no victim") as error:
        run_with(Raises)
    assert error.value.__notes__ == ["in the policy user of gc.victim"]
    assert error.traceback[-1].path.name == "test_python_policies.py"

    class RaisesInTheHook:
        def on_closed(self, block, lane):
            raise Odd("in a hook")

        def pick(self, lane):
            return greedy(lane)

    with pytest.raises(Odd, match="in a hook"):
        run_with(RaisesInTheHook)

    class RaisesAtFirst:
        def __init__(self):
            raise Odd("no object")

        def pick(self, lane):
            return None

    with pytest.raises(Odd, match="no object"):
        run_with(RaisesAtFirst)


def test_a_drive_that_is_stepped_has_policies_in_python():
    class Odd(Exception):
        pass

    raises = []

    @nandlab.policy("gc.victim", "user")
    class Raises:
        def pick(self, lane):
            if raises:
                raise Odd("no victim")
            return greedy(lane)

    drive = nandlab.Drive(nandlab.load(SPEC, {"gc.victim": "user"}))
    built_in = nandlab.Drive(nandlab.load(SPEC, {"gc.victim": "greedy"}))
    for one in (drive, built_in):
        draw = random.Random(1)
        for number in draw.choices(range(2000), k=5000):
            one.write(offset=number * 4096, length=4096)
            one.run_until_idle()
    assert drive.now_ns == built_in.now_ns
    raises.append(True)
    with pytest.raises(Odd, match="no victim"):
        for number in draw.choices(range(2000), k=3000):
            drive.write(offset=number * 4096, length=4096)
            drive.run_until_idle()


def test_a_cache_can_be_looked_at_during_the_call_only():
    seen = []

    class Keeps:
        def pick(self, cache):
            seen.append(cache)
            return cache.least_recently_used

    run_with(Keeps, "cache.eviction", EVICTING)
    with pytest.raises(ValueError, match="during the call of pick"):
        len(seen[0])


def test_events_arrive_in_order_before_the_decision():
    heard = []

    class Hears:
        def on_closed(self, block, lane):
            heard.append((lane, block))

        def pick(self, lane):
            full = {int(block) for block in (lane.state == lane.FULL).nonzero()[0]}
            assert full <= {block for number, block in heard if number == lane.number}
            last = [block for number, block in heard if number == lane.number][-1]
            assert lane.closed_at[last] == lane.closed_at.max()
            return greedy(lane)

    run_with(Hears)
    assert len(heard) > 200


def test_a_lane_finds_the_best_of_its_full_blocks():
    draws = np.random.default_rng(1)
    lanes = []

    class Finds:
        def pick(self, lane):
            lanes.append(lane.number)
            full = np.flatnonzero(lane.state == lane.FULL)
            assert lane.full.tolist() == full.tolist()
            for dtype in ("f8", "f4", "u8", "i8", "u4", "i4", "u2", "u1"):
                # Equal scores are frequent.
                scores = draws.integers(0, 30, size=2 * len(lane)).astype(dtype)
                for one in (scores[: len(lane)], scores[::2], scores[: len(lane)].tolist()):
                    of_full = np.asarray(one)[full]
                    assert lane.least(one) == full[of_full.argmin()]
                    assert lane.greatest(one) == full[of_full.argmax()]
            for one in (lane.valid, lane.closed_at, lane.erases, lane.reads, lane.linked, lane.units):
                assert lane.least(one) == full[one[full].argmin()]
                assert lane.greatest(one) == full[one[full].argmax()]
            negative = np.where(np.arange(len(lane)) % 2, np.nan, -1.5 * np.arange(len(lane)))
            of_full = negative[full]
            assert lane.least(negative) == full[np.nanargmin(of_full)]
            assert lane.greatest(negative) == full[np.nanargmax(of_full)]
            assert lane.least(np.full(len(lane), np.nan)) is None
            for wrong, text in ((negative[1:], "expected an array of 48 scores"), (["a"] * 48, "could not convert")):
                with pytest.raises(ValueError, match=text):
                    lane.least(wrong)
            return lane.least(lane.valid)

    assert run_with(Finds, sets={"workload.synthetic.requests": 3000}).complete and set(lanes) == {0, 1, 2, 3}

    seen = []

    class Keeps:
        def pick(self, lane):
            seen.append(lane)
            return lane.least(lane.valid)

    with pytest.raises(nandlab.RunError, match="it has kept a view"):
        run_with(Keeps)
    for look in (lambda lane: lane.full, lambda lane: lane.least(lane.valid), lambda lane: lane.greatest([1.0] * 48)):
        with pytest.raises(ValueError, match="during the call of pick"):
            look(seen[0])


def test_the_arrays_of_a_batch_may_be_kept():
    class Keeps:
        def __init__(self):
            self.arrays, self.copies = [], []

        def on_events(self, kinds, slots, lpns):
            for array in (kinds, slots[1:], memoryview(lpns)):
                if self.random.below(3) == 0:
                    self.arrays.append(array)
                    self.copies.append(np.array(array))
            lpns[:] = 0  # The arrays are the policy's own.

        def pick(self, cache):
            for array, copy in zip(self.arrays[-30:], self.copies[-30:], strict=True):
                assert np.array_equal(array, copy) or isinstance(array, memoryview)
            return cache.least_recently_used

    assert run_with(Keeps, "cache.eviction", EVICTING).complete


PAGES = sorted((Path(__file__).parents[2] / "docs/reference/python-policies").glob("*-*.md"))
#: The settings with which the example of a page decides.
OF_PAGE = {
    "gc-victim": {},
    "cache-eviction": EVICTING,
    "cache-sync": CACHE,
    "ecc-start": OLD,
    "migration-policy": COPYBACK,
    "map-eviction": {"ftl.map.demand.cache": "4KiB"},
    "ftl-streams": {},
}


def test_a_file_can_be_loaded_again(tmp_path):
    file = tmp_path / "again.py"
    file.write_text(
        "import nandlab\n\n@nandlab.policy('gc.victim')\nclass Again:\n    def pick(self, lane):\n        pass\n"
    )
    for _ in range(2):
        python_policies.load_files([file])


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_the_examples_of_the_pages_run(page, tmp_path):
    for number, part in enumerate(page.read_text().split("```python\n")[1:]):
        code = part.split("```")[0]
        if "import numba" in code and importlib.util.find_spec("numba") is None:
            continue
        file = tmp_path / f"example_{page.stem.replace('-', '_')}_{number}.py"
        file.write_text(code)
        known = {id(policy) for policy in nandlab._core.declared_policies()}
        python_policies.load_files([file])
        (policy,) = [one for one in nandlab._core.declared_policies() if id(one) not in known]
        name = {policy.name: {"limit": 2}} if policy.slot == "migration.policy" else policy.name
        assert nandlab.run(nandlab.load(SPEC, {**OF_PAGE[page.stem], policy.slot: name})).complete


def test_a_policy_of_start_levels_sees_the_read():
    seen = []

    class Sees:
        def start(self, read):
            seen.append(read)
            assert 1 <= read.needed <= read.levels + 1 == 8
            assert read.kind in (read.LSB, read.MSB)
            assert read.erases >= 9000 and read.age_s <= 366 * 86_400
            return 1

    result = run_with(Sees, "ecc.start", {**OLD, "reliability.clock_scale": 1.0})
    # Each read of a unit is asked for once, whatever its tries; units of one page share a flash read.
    assert len(seen) >= result.summary.flash.read.host + result.summary.flash.read.gc > 2000
    assert {read.age_s >= 100 * 86_400 for read in seen} == {True, False}
    assert max(read.block for read in seen) < 4 * 48 and max(read.unit for read in seen) < 16
    # What a policy has seen may be kept.
    assert [read.now for read in seen] == sorted(read.now for read in seen) and seen[0].levels == 7


def test_no_start_level_is_asked_for_without_a_read_of_flash():
    """Preconditioning reads no flash in simulated time, and recovery reads the OOB of pages at level 1."""

    class Never:
        def start(self, read):
            raise AssertionError("asked")

    few = {"workload.synthetic.read_fraction": 0.0, "workload.synthetic.requests": 40, "power.cut_at": "1ms"}
    result = run_with(Never, "ecc.start", {**OLD, **few, "precondition.used": 0.3})
    assert result.complete and result.power is not None
    # The drive is full of garbage, so its first write may read for GC.
    nandlab.Drive(nandlab.load(SPEC, {**OLD, **PTS, "ecc.start": "user"}))


def test_a_policy_of_start_levels_needs_read_levels():
    class Starts:
        def start(self, read):
            return 1

    with pytest.raises(nandlab.SpecError, match=r'ecc\.start: "user" has no effect with ecc\.levels = "none"'):
        run_with(Starts, "ecc.start")


# ------------------------------------------------------------------------------------------------------- declarations


@pytest.mark.parametrize(
    ("slot", "body", "text"),
    [
        ("gc.victims", {}, 'no slot "gc.victims" takes policies in Python'),
        ("gc.victim", {}, "a policy of gc.victim needs the method pick"),
        ("gc.victim", {"pick": greedy, "on_close": greedy}, "has no hook on_close\n  remedy: did you mean on_closed?"),
        ("cache.sync", {"on_hit": greedy}, "has no hook on_hit\n  remedy: the slot has no hooks"),
        ("gc.victim", {"pick": greedy, "name": "greedy"}, 'has a built-in policy "greedy"'),
        ("gc.victim", {"pick": greedy, "name": "No Name"}, "is no name of a policy"),
        ("gc.victim", {"pick": greedy, "k": nandlab.param(1, low=0, high=2, help="k")}, "needs the annotation"),
        ("cache.sync", {"k": nandlab.param(3, low=0, high=2, help="k"), "of": {"k": int}}, "the default 3 is not from"),
        ("cache.sync", {"k": nandlab.param(3, low=4, high=2, help="k"), "of": {"k": int}}, "expected low <= high"),
        ("cache.sync", {"k": nandlab.param(0.5, low=0, high=2, help="k"), "of": {"k": int}}, "expected whole numbers"),
    ],
)
def test_a_wrong_declaration_is_refused_with_file_and_line(slot, body, text):
    body = dict(body)
    name, annotations = body.pop("name", "user"), body.pop("of", {})
    cls = type("Wrong", (), {**body, "__annotations__": annotations, "__module__": __name__})
    with pytest.raises(ValueError) as error:
        nandlab.policy(slot, name)(cls)
    assert "test_python_policies.py:" in str(error.value) and text in str(error.value)


def test_the_hooks_of_a_slot_are_those_that_the_core_calls():
    core = (Path(__file__).parents[2] / "crates/nandlab-py/src/policy/slots.rs").read_text()
    called = sorted(tuple(re.findall('"(on_[a-z]+)"', line)) for line in core.splitlines() if "const HOOKS" in line)
    assert called == sorted(hooks[1:] for hooks in python_policies._HOOKS.values() if hooks)


def test_parameters_are_checked_as_those_of_built_in_policies():
    with pytest.raises(nandlab.SpecError, match=r"gc\.victim\.random-in-python\.k"):
        nandlab.load(SPEC, {"gc.victim": {"random-in-python": {"k": 0}}})
    with pytest.raises(nandlab.SpecError, match=r"random-in-python\.kk"):
        nandlab.load(SPEC, {"gc.victim": {"random-in-python": {"kk": 1}}})


def test_each_parameter_has_the_type_of_its_annotation():
    seen = {}

    @nandlab.policy("gc.victim", "typed")
    class Typed:
        whole: int = nandlab.param(3, low=0, high=9, help="a number")
        share: float = nandlab.param(1, low=0, high=1, help="a share")
        needed: float = nandlab.param(low=0, high=1, help="a share")

        def pick(self, lane):
            seen.update(vars(self))
            return greedy(lane)

    with pytest.raises(nandlab.SpecError, match="needed"):
        nandlab.load(SPEC, {"gc.victim": "typed"})
    nandlab.run(nandlab.load(SPEC, {"gc.victim": {"typed": {"needed": 0.5}}}))
    assert seen["whole"] == 3 and isinstance(seen["whole"], int)
    assert seen["share"] == 1.0 and isinstance(seen["share"], float) and seen["needed"] == 0.5


# ------------------------------------------------------------------------------------------------- the drive's copies


def test_the_state_is_copied_with_the_drive():
    """Runs that share a preconditioned drive give the results of runs that precondition their own."""
    for choice in ("fifo-in-python", "random-in-python"):
        shared = nandlab.simulate._core.SharedDrives()
        results = []
        for read_fraction in (0.2, 0.4):
            spec = nandlab.load(SPEC, {**PTS, "gc.victim": choice, "workload.synthetic.read_fraction": read_fraction})
            results.append((nandlab.simulate.run_sharing(spec, shared), nandlab.run(spec)))
        assert shared.kept[1] == 1
        for one, other in results:
            assert one.summary_text == other.summary_text


def test_the_copy_of_the_object_has_its_own_state():
    copies = []

    @nandlab.policy("gc.victim", "user")
    class Counts:
        def __init__(self):
            self.picks = 0

        def copy(self):
            copies.append(self.picks)
            other = Counts.__new__(Counts)
            other.picks = self.picks
            return other

        def pick(self, lane):
            self.picks += 1
            return greedy(lane)

    shared = nandlab.simulate._core.SharedDrives()
    spec = nandlab.load(SPEC, {**PTS, "gc.victim": "user"})
    texts = {nandlab.simulate.run_sharing(spec, shared).summary_text for _ in range(3)}
    assert len(texts) == 1 and len(copies) >= 2 and len(set(copies)) == 1 and copies[0] > 0


def test_a_policy_that_cannot_be_copied_shares_no_drive():
    made = []

    @nandlab.policy("gc.victim", "user", copies=False)
    class Alone:
        def __init__(self):
            made.append(self)

        def copy(self):
            raise AssertionError("copied")

        def pick(self, lane):
            return greedy(lane)

    shared = nandlab.simulate._core.SharedDrives()
    spec = nandlab.load(SPEC, {**PTS, "gc.victim": "user"})
    for _ in range(2):
        nandlab.simulate.run_sharing(spec, shared)
    assert len(made) >= 2


# ------------------------------------------------------------------------------------------------------------ loading


FILE = '''\
import numpy as np

import nandlab

WEIGHT = 1
SHAPE = {"by": [1, 2]}


def score(lane):
    return lane.valid * WEIGHT


@nandlab.policy("gc.victim", files=["weights.txt"])
class Mine:
    """The block with the fewest valid units."""

    k: int = nandlab.param(4, low=1, high=9, help="nothing")

    def pick(self, lane):
        assert SHAPE
        full = np.flatnonzero(lane.state == lane.FULL)
        return int(full[score(lane)[full].argmin()]) if len(full) else None
'''


@pytest.fixture
def lab(tmp_path):
    """A folder with a spec, and a file with the policy that the spec names."""
    (tmp_path / "s.toml").write_text(SPEC.replace("[workload.", '[gc]\nvictim = "mine"\n[workload.'))
    (tmp_path / "mine.py").write_text(FILE)
    (tmp_path / "weights.txt").write_text("1\n")
    return tmp_path


def test_a_command_imports_only_the_files_of_policy(lab, command):
    ran = command("run", "s.toml", "--policy", "mine.py")
    assert ran.returncode == 0, ran.stderr
    assert json.loads((lab / "out/s/summary.json").read_text())["policies"] == [{"slot": "gc.victim", "name": "mine"}]
    refused = command("run", "s.toml")
    assert refused.returncode == 2
    assert 's.toml:11: gc.victim: unknown value "mine"' in refused.stderr and "--policy FILE" in refused.stderr
    # Existing runs are read without the file.
    (lab / "mine.py").write_text("raise SystemError('imported')\n")
    assert command("report", "out/s").returncode == 0
    assert command("compare", "out/s", "out/s").returncode == 0
    again = command("compare", "out/s", "gc.victim=greedy", "--seeds", "2")
    assert again.returncode == 2 and "--policy FILE" in again.stderr and "mine" in again.stderr


def test_check_accepts_a_policy_that_is_not_loaded_with_a_note(lab, command):
    checked = command("spec", "check", "s.toml", "--set", "gc.victim={mine = {k = 100}}")
    assert checked.returncode == 0 and "s.toml: ok" in checked.stdout
    assert 'gc.victim = "mine": not loaded, parameters unchecked' in checked.stderr
    for words in (("spec", "show", "s.toml"), ("spec", "fit", "s.toml")):
        assert command(*words).returncode == 0
    wrong = command("spec", "check", "s.toml", "--policy", "mine.py", "--set", "gc.victim={mine = {k = 100}}")
    assert wrong.returncode == 2 and "gc.victim.mine.k" in wrong.stderr and "not loaded" not in wrong.stderr
    typing_error = command("spec", "check", "s.toml", "--set", "gc.victim=gredy")
    assert typing_error.returncode == 2 and 'did you mean "greedy"?' in typing_error.stderr
    listed = command("spec", "policies", "--policy", "mine.py", "--json")
    row = {"slot": "gc.victim", "name": "mine", "description": "The block with the fewest valid units."}
    assert row in json.loads(listed.stdout)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (None, "no file bad.py"),
        ("x = 1\n", "bad.py declares no policy"),
        ("x = 1\ny = (\n", "bad.py:2: SyntaxError"),
        ("import nandlab\n\n1 / 0\n", "bad.py:3: ZeroDivisionError: division by zero"),
        (
            "import nandlab\n@nandlab.policy('gc.victim')\nclass A:\n    pass\n",
            "bad.py:2: A: a policy of gc.victim needs",
        ),
    ],
)
def test_a_file_that_cannot_be_loaded_is_refused(lab, command, text, wanted):
    if text is not None:
        (lab / "bad.py").write_text(text)
    ran = command("run", "s.toml", "--policy", "bad.py")
    assert ran.returncode == 2 and wanted in ran.stderr and "remedy" in ran.stderr


@pytest.mark.parametrize("words", [("run", "s.toml"), ("compare", "s.toml", "drive.op=0.5")], ids=("run", "compare"))
def test_the_command_shows_the_exception_of_a_policy(lab, command, words):
    (lab / "mine.py").write_text(FILE.replace("assert SHAPE", "raise KeyError('gone')"))
    ran = command(*words, "--policy", "mine.py")
    assert ran.returncode == 2
    assert 'mine.py", line 20, in pick' in ran.stderr and "KeyError: 'gone'" in ran.stderr
    # Without the frames of the package and of Python's threads before those of the policy.
    assert "simulate.py" not in ran.stderr and "concurrent" not in ran.stderr
    assert "in the policy mine of gc.victim" in ran.stderr and "bug in nandlab" not in ran.stderr


def test_a_policy_that_exits_is_a_policy_that_failed(lab, command):
    (lab / "mine.py").write_text(FILE.replace("assert SHAPE", "raise SystemExit(0)"))
    ran = command("run", "s.toml", "--policy", "mine.py")
    assert ran.returncode == 2
    assert "SystemExit: 0" in ran.stderr and "the policy mine has raised this exception" in ran.stderr


def test_a_live_drive_takes_no_policy_in_python(lab, command):
    for words in (
        ("serve", "s.toml"),
        ("powertest", "s.toml", "--workload", "true", "--check", "true", "--fs", "none"),
    ):
        ran = command(*words)
        assert ran.returncode == 2, ran.stderr
        assert 'gc.victim = "mine" is no built-in policy, and a live drive takes no policies in Python' in ran.stderr
        assert "remedy" in ran.stderr and not (lab / "out").exists()
        # Neither command has the option that imports a file.
        assert command(*words, "--policy", "mine.py").returncode == 2
    typing_error = command("serve", "s.toml", "--set", "gc.victim=gredy")
    assert typing_error.returncode == 2 and 'did you mean "greedy"?' in typing_error.stderr
    # Nor does a session that has declared the class run it.
    (lab / "greedy.toml").write_text((lab / "s.toml").read_text().replace('"mine"', '"greedy-in-python"'))
    with pytest.raises(nandlab.OutputError, match="a live drive takes no policies in Python"):
        nandlab.powertest(lab / "greedy.toml", workload="true", check="true", fs="none", out=lab / "power")


def test_preconditioning_by_pts_says_what_a_policy_costs(lab, command):
    set_pts = ("--set", "precondition.method=pts")
    # Five rounds of 2457 units into 3072, in blocks of 16: (5 * 2457 - 615) / 16.
    text = 'picks more than 729 victims before the run, each by a call of gc.victim = "mine": 0.01 s at 20 µs a call'
    for words in (("spec", "check", "s.toml"), ("run", "s.toml", "--policy", "mine.py")):
        ran = command(*words, *set_pts)
        assert ran.returncode == 0 and text in ran.stderr, ran.stderr
        assert "victims before the run" not in command(*words, *(("--force",) if words[0] == "run" else ())).stderr
    built_in = command("spec", "check", "s.toml", *set_pts, "--set", "gc.victim=greedy")
    assert "victims before the run" not in built_in.stderr
    picked = []

    class Counts:
        def pick(self, lane):
            picked.append(lane.now)
            return greedy(lane)

    run_with(Counts, sets=PTS)
    assert 729 < picked.count(0) < 5 * 729


# ----------------------------------------------------------------------------------------------------------- identity


def identity_of(folder, text, weights="1\n", name="mine.py"):
    """The hash of the spec, computed in another process."""
    (folder / name).write_text(text)
    (folder / "weights.txt").write_text(weights)
    program = (
        "import sys, nandlab\nfrom nandlab.python_policies import load_files\n"
        f"load_files([{name!r}])\nspec = nandlab.load('s.toml')\n"
        "print(spec.hash, spec.precondition_key())"
    )
    ran = forks.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=folder, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return (*ran.stdout.split(), ran.stderr)


def test_the_identity_has_what_decisions_depend_on(lab):
    (lab / "s.toml").write_text((lab / "s.toml").read_text() + '[precondition]\nmethod = "pts"\n')
    first = identity_of(lab, FILE)
    assert first == identity_of(lab, FILE) and first[2] == ""
    # A comment elsewhere in the file changes nothing.
    assert identity_of(lab, FILE + "\n# a remark\n") == first
    changed = [
        identity_of(lab, FILE.replace("WEIGHT = 1", "WEIGHT = 2")),
        identity_of(lab, FILE.replace("[1, 2]", "[1, 3]")),
        identity_of(lab, FILE.replace("lane.valid * WEIGHT", "lane.valid + WEIGHT")),
        identity_of(lab, FILE.replace("if len(full)", "if full.size")),
        identity_of(lab, FILE, weights="2\n"),
    ]
    for number in (0, 1):
        assert len({first[number], *(one[number] for one in changed)}) == 6


WEIGHT = 1


def test_a_spec_has_the_identity_at_the_time_at_which_it_is_loaded(tmp_path):
    global WEIGHT
    file = tmp_path / "weights.txt"
    file.write_text("1\n")

    @nandlab.policy("gc.victim", "weighs", files=[file])
    class Weighs:
        def pick(self, lane):
            return lane.least(lane.valid * WEIGHT)

    def loaded():
        return nandlab.load(SPEC, {"gc.victim": "weighs"}).hash

    first = loaded()
    assert loaded() == first
    WEIGHT = 2
    second = loaded()
    WEIGHT = 1
    assert second != first and loaded() == first
    file.write_text("2\n")
    assert loaded() not in (first, second)
    file.unlink()
    with pytest.raises(nandlab.OutputError, match=r'gc\.victim = "weighs": cannot read .*weights\.txt'):
        loaded()


def test_the_identity_has_closures_and_bases():
    def declare(bound):
        class Base:
            def pick(self, lane):
                return bound

        return nandlab.policy("gc.victim", "user")(type("Child", (Base,), {"__module__": __name__}))

    hashes = []
    for bound in (1, 2, 1):
        declare(bound)
        hashes.append(nandlab.load(SPEC, {"gc.victim": "user"}).hash)
    # `type` leaves no source text, so no two declarations are the same.
    assert len(set(hashes)) == 3


def test_the_identity_has_the_version_of_numba_and_the_functions_that_it_compiles(monkeypatch):
    """A function of numba is an object of its own, with the function that it was made from."""

    def least(valid):
        return int(valid.argmin())

    compiled = type("CPUDispatcher", (), {"__module__": "numba.core.registry"})()
    compiled.py_func = least

    class Compiled:
        def pick(self, lane):
            return compiled(lane.valid)

    def digest(version):
        monkeypatch.setattr(python_policies, "_version", lambda name: version if name == "numba" else "1")
        return python_policies._Identity(Compiled, []).digest()

    first = digest("0.61.0")
    assert digest("0.61.0") == first and digest("0.61.1") != first

    def least(valid):
        return int(valid.argmax())

    compiled.py_func = least
    assert digest("0.61.0") != first


def test_a_policy_without_source_is_never_found_again(lab):
    code = "@nandlab.policy('gc.victim', 'mine')\nclass A:\n    def pick(self, lane): return 0"
    text = f"import nandlab\nexec({code!r})\n"
    first, second = identity_of(lab, text), identity_of(lab, text)
    assert first[0] != second[0] and "no source text" in first[2]


# ------------------------------------------------------------------------------------------------------------ workers


def test_workers_of_a_study_get_classes_by_value(here, command):
    (here / "helper.py").write_text(
        "def least(lane):\n    full = (lane.state == lane.FULL).nonzero()[0]\n"
        "    return int(full[lane.valid[full].argmin()]) if len(full) else None\n"
    )
    (here / "mine.py").write_text(
        "import helper\nimport nandlab\n\n\n@nandlab.policy('gc.victim')\nclass Mine:\n"
        "    def pick(self, lane):\n        return helper.least(lane)\n"
    )
    study = (here / "s.toml").read_text().replace('"gc.victim" = "fifo"', '"gc.victim" = "mine"')
    (here / "s.toml").write_text(study.replace('title = "First in, first out"\n', ""))
    ran = command("study", "s.toml", "--policy", "mine.py", "--workers", "2", "--json")
    assert ran.returncode == 0, ran.stderr
    refused = command("study", "s.toml")
    assert refused.returncode == 2 and "--policy FILE" in refused.stderr
    kept = command("study", "s.toml", "--policy", "mine.py", "--workers", "2")
    assert "0 runs done" in kept.stdout
    (here / "helper.py").write_text((here / "helper.py").read_text() + "\n# changed\n")
    again = command("study", "s.toml", "--policy", "mine.py", "--workers", "2")
    assert "0 runs done" not in again.stdout


def test_the_exception_of_a_policy_arrives_from_a_worker_with_its_traceback(here, command):
    (here / "mine.py").write_text(
        "import nandlab\n\n\nclass Odd(Exception):\n    def __init__(self, one, two):\n        super().__init__(one)\n"
        "\n\n"
        "@nandlab.policy('gc.victim')\nclass Mine:\n    def pick(self, lane):\n        raise Odd('no victim', 2)\n"
    )
    (here / "s.toml").write_text((here / "s.toml").read_text().replace('"gc.victim" = "fifo"', '"gc.victim" = "mine"'))
    ran = command("study", "s.toml", "--policy", "mine.py", "--workers", "2")
    assert ran.returncode == 2, ran.stderr
    assert "Odd: no victim" in ran.stderr and 'mine.py", line 12, in pick' in ran.stderr
    assert "bug in nandlab" not in ran.stderr


def test_a_worker_with_other_versions_is_refused(monkeypatch):
    data = python_policies.packed(nandlab.load(SPEC, {"gc.victim": "greedy-in-python"}).policies)
    assert [policy.name for policy in python_policies.unpack(data)] == ["greedy-in-python"]
    monkeypatch.setattr(python_policies, "_versions", lambda _: {"python": "3.11.0", "numpy": "1.0"})
    with pytest.raises(nandlab.OutputError, match=r"and this process has python 3\.11\.0, numpy 1\.0"):
        python_policies.unpack(data)


def test_a_spec_travels_with_its_policies():
    spec = nandlab.load(SPEC, {"gc.victim": {"random-in-python": {"k": 3}}})
    again = pickle.loads(pickle.dumps(spec))
    assert again.canonical_json() == spec.canonical_json()
    assert nandlab.run(again).summary_text == nandlab.run(spec).summary_text


# ------------------------------------------------------------------------------------------------------ random drives


@st.composite
def drives(draw):
    """Settings of a small drive, and pairs of a policy in Python and the built-in one in some of its slots."""
    is_old = draw(st.booleans())
    sets = {
        **(OLD if is_old else {}),
        "seed": draw(st.integers(0, 1 << 32)),
        "drive.channels": draw(st.integers(1, 3)),
        "drive.planes_per_die": draw(st.sampled_from([1, 2])),
        "drive.blocks_per_plane": draw(st.integers(40, 70)),
        "drive.op": draw(st.sampled_from([0.3, 0.5])),
        "workload.synthetic.requests": draw(st.integers(500, 3000)),
        "workload.synthetic.read_fraction": draw(st.sampled_from([0.0, 0.5])),
        "precondition.method": draw(st.sampled_from(["none", "fill", "pts"])),
        "cache.size": draw(st.sampled_from(["128KiB", "512KiB"])),
        "cache.sync": "punctual",
        "cache.dirty_budget": 0.5,
        "migration.policy": {"rcopyback": {"limit": 1}},
        "workload.arrival": {"iops": draw(st.sampled_from([500, 5000]))},
    }
    if draw(st.booleans()):
        sets["power.cut_at"] = draw(st.sampled_from(["20ms", "60ms"]))
    slots = {}
    pairs = [one for one in PAIRS if is_old or one[1] != "ecc.start"]
    for one in draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=4)):
        slots[one[1]] = one[2:]
    return sets, {slot: pair[0] for slot, pair in slots.items()}, {slot: pair[1] for slot, pair in slots.items()}


@settings(max_examples=25, deadline=None, database=None, derandomize=True)
@given(drives())
def test_random_drives_give_the_same_results_with_policies_in_python(drive):
    sets, ours, theirs = drive
    found = []
    for chosen in (ours, theirs):
        try:
            spec = nandlab.load(SPEC, {**sets, **chosen})
            result = nandlab.run(spec, name="run", verify=True)
        except (nandlab.SpecError, nandlab.RunError) as error:
            found.append(str(error))
            continue
        with tempfile.TemporaryDirectory() as folder:
            found.append(outcome(result, Path(folder) / "out"))
    assert found[0] == found[1]
