"""What policies in Python cost: part of `make bench`.

    python tools/bench_policies.py

Each row is a run with a policy in Python and the same run with the built-in policy that decides alike, as two ratios:
of the wall times of the simulated requests, and of the CPU times of the thread that simulates them. Other work on the
machine changes the first ratio more than the second one, which has no waiting for the interpreter's lock. Meanwhile
another thread of Python is busy for a share of the time (`--busy`): by default 2 %, which is twice what a bar of `rich`
takes that is drawn ten times a second. Every ratio is the median of paired runs, which alternate; the interval is from
the second smallest to the second largest of the pairs.

Rows with numba are measured if numba is installed.

The drive has 8 planes with 512 blocks of 256 pages of 4 KiB, or with 8,192 blocks, and is filled before the run. The
requests are random writes of 4 KiB.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import nandlab
import numpy as np
from nandlab import _core
from nandlab.simulate import BEFORE_THE_RUN

PAIRS = 7
#: The longest slice of a run, in milliseconds, as in `nandlab.run`.
STEP_MS = 100

_Function = TypeVar("_Function", bound=Callable[..., object])

SPEC = """\
[drive]
channels = 4
chips_per_channel = 2
dies_per_chip = 1
planes_per_die = 1
blocks_per_plane = 512
pages_per_block = 256
page_size = "4KiB"
op = 0.15
[precondition]
used = 0.99
[workload.synthetic]
requests = 400000
read_fraction = 0.0
size = "4KiB"
address = "uniform"
"""

NONE = np.uint32(0xFFFF_FFFF)


@nandlab.policy("gc.victim", "bench-greedy")
class Greedy:
    """The block with the fewest valid units."""

    def pick(self, lane: nandlab.Lane) -> int | None:
        return lane.least(lane.valid)


@nandlab.policy("gc.victim", "bench-greedy-masked")
class GreedyMasked:
    """The block with the fewest valid units, by functions of numpy alone."""

    def pick(self, lane: nandlab.Lane) -> int | None:
        valid = np.where(lane.state == lane.FULL, lane.valid, NONE)
        block = int(valid.argmin())
        return block if valid[block] != NONE else None


@nandlab.policy("gc.victim", "bench-cost-benefit")
class CostBenefit:
    """The block with the largest age * (1 - u) / (2 u)."""

    def __init__(self) -> None:
        units = 256
        used = np.arange(units + 1) / units
        with np.errstate(divide="ignore"):
            #: The factor of the age, by valid units.
            self.gain = (1.0 - used) / (2.0 * used)

    def pick(self, lane: nandlab.Lane) -> int | None:
        return lane.greatest((lane.now + 1 - lane.closed_at) * self.gain.take(lane.valid))


@nandlab.policy("gc.victim", "bench-cost-benefit-masked")
class CostBenefitMasked:
    """The block with the largest age * (1 - u) / (2 u), by functions of numpy alone."""

    def pick(self, lane: nandlab.Lane) -> int | None:
        full = np.flatnonzero(lane.state == lane.FULL)
        if not len(full):
            return None
        used = lane.valid[full] / lane.units[full]
        age = (lane.now - lane.closed_at[full] + 1).astype(np.float64)
        with np.errstate(divide="ignore"):
            return int(full[np.argmax(age * (1.0 - used) / (2.0 * used))])


@nandlab.policy("ecc.start", "bench-last-good")
class LastGood:
    """The level that last decoded a page of the block."""

    def start(self, read: nandlab.FlashRead) -> int:
        return read.block_level or 1


@nandlab.policy("ecc.start", "bench-last-good-by-events")
class LastGoodByEvents:
    """The level that last decoded a page of the block, from the events."""

    def __init__(self) -> None:
        self.good: dict[int, int] = {}

    def on_decoded(self, block: int, level: int) -> None:
        self.good[block] = level

    def on_erased(self, block: int, _: int) -> None:
        self.good.pop(block, None)

    def start(self, read: nandlab.FlashRead) -> int:
        return self.good.get(read.block, 1)


@nandlab.policy("cache.eviction", "bench-lru")
class Lru:
    """The least recently used unit, from the view of the cache."""

    def pick(self, cache: nandlab.Cache) -> int | None:
        return cache.least_recently_used


@nandlab.policy("cache.eviction", "bench-lru-by-events")
class LruByEvents:
    """The least recently used unit, from the events."""

    def __init__(self) -> None:
        self.used: OrderedDict[int, int] = OrderedDict()

    def on_insert(self, slot: int, lpn: int) -> None:
        self.used[slot] = lpn

    def on_hit(self, slot: int, lpn: int) -> None:
        self.used.move_to_end(slot)

    def on_remove(self, slot: int, lpn: int) -> None:
        del self.used[slot]

    def pick(self, cache: nandlab.Cache) -> int | None:
        return next(iter(self.used), None)


@nandlab.policy("cache.sync", "bench-greedy")
class SyncGreedy:
    """All dirty units are written back when the drive is idle."""

    def syncs_when_idle(self, cache: nandlab.CacheCounts) -> bool:
        return True


@nandlab.policy("migration.policy", "bench-greedy")
class CopybackGreedy:
    """Copyback whenever the limit allows it."""

    def copies_back(self, is_urgent: bool, buffer: float) -> bool:
        return True


@nandlab.policy("ftl.map.demand.eviction", "bench-lru")
class MapLru:
    """The least recently used entry."""

    def __init__(self) -> None:
        self.used: OrderedDict[int, int] = OrderedDict()

    def on_insert(self, lpn: int, level: int) -> None:
        self.used[lpn] = level

    def on_hit(self, lpn: int, _: int) -> None:
        self.used.move_to_end(lpn)

    def evict(self) -> int:
        return self.used.popitem(last=False)[0]


class Case(NamedTuple):
    """A policy in Python beside the built-in one."""

    name: str
    #: The most that the ratio should be; `None` for a figure without a bound.
    bound: float | None
    slot: str
    ours: object
    built_in: object
    sets: dict[str, object] = {}  # noqa: RUF012


CACHE: dict[str, object] = {"cache.size": "64MiB", "cache.sync": "punctual"}
LARGE: dict[str, object] = {"drive.blocks_per_plane": 8192}
#: Reads alone, of data that has aged for a year: read levels 1 to 6.
OLD: dict[str, object] = {
    "ecc.levels": "laldpc",
    "drive.endurance": 20000,
    "reliability.rber.vth.cell_to_cell": 0.05,
    "reliability.pe_cycles": 9000,
    "reliability.retention": "365d",
    "workload.synthetic.read_fraction": 1.0,
}
CASES = [
    Case("gc.victim greedy, numpy, 512 blocks", 1.1, "gc.victim", "bench-greedy", "greedy"),
    Case("gc.victim greedy, numpy, 8192 blocks", 1.4, "gc.victim", "bench-greedy", "greedy", LARGE),
    Case("gc.victim greedy masked, numpy, 512 blocks", None, "gc.victim", "bench-greedy-masked", "greedy"),
    Case("gc.victim greedy masked, numpy, 8192 blocks", None, "gc.victim", "bench-greedy-masked", "greedy", LARGE),
    Case("gc.victim cost-benefit, numpy, 512 blocks", 1.2, "gc.victim", "bench-cost-benefit", "cost-benefit"),
    Case("gc.victim cost-benefit masked, 512 blocks", None, "gc.victim", "bench-cost-benefit-masked", "cost-benefit"),
    Case("cache.eviction lru, view", None, "cache.eviction", "bench-lru", "lru", CACHE),
    Case("cache.eviction lru, events", 8.0, "cache.eviction", "bench-lru-by-events", "lru", CACHE),
    Case("cache.sync greedy", None, "cache.sync", "bench-greedy", "greedy", {"cache.size": "64MiB"}),
    Case("ecc.start last-good", None, "ecc.start", "bench-last-good", "last-good", OLD),
    Case("ecc.start last-good, events", None, "ecc.start", "bench-last-good-by-events", "last-good", OLD),
    Case(
        "migration.policy rcopyback-greedy",
        None,
        "migration.policy",
        {"bench-greedy": {"limit": 2}},
        {"rcopyback-greedy": {"limit": 2}},
    ),
    Case(
        "ftl.map.demand.eviction lru, events",
        None,
        "ftl.map.demand",
        {"cache": "1MiB", "eviction": "bench-lru"},
        {"cache": "1MiB", "eviction": "lru"},
        {"workload.synthetic.requests": 100_000},
    ),
]


def declare_with_numba() -> list[Case]:
    """Declares the policies with numba; returns their rows, none if numba is not installed."""
    if importlib.util.find_spec("numba") is None:
        return []
    import numba  # type: ignore[import-not-found, unused-ignore]

    compiled: Callable[[_Function], _Function] = numba.njit

    @compiled
    def least(valid: Any, state: Any, full: int) -> int:
        found = -1
        for block in range(len(valid)):
            if state[block] == full and (found < 0 or valid[block] < valid[found]):
                found = block
        return found

    @nandlab.policy("gc.victim", "bench-greedy-numba")
    class GreedyNumba:
        """The block with the fewest valid units, by a compiled loop."""

        def pick(self, lane: nandlab.Lane) -> int | None:
            block = least(lane.valid, lane.state, lane.FULL)
            return block if block >= 0 else None

    @compiled
    def follow(kinds: Any, slots: Any, links: Any) -> int:
        """Apply events to a list in the order of use; returns its first slot. The last link is that of both ends."""
        end = len(links) - 1
        for number in range(len(kinds)):
            slot = slots[number]
            if kinds[number] != 0:
                before, after = links[slot]
                links[before, 1], links[after, 0] = after, before
            if kinds[number] != 2:
                last = links[end, 0]
                links[slot, 0], links[slot, 1] = last, end
                links[last, 1], links[end, 0] = slot, slot
        return int(links[end, 1])

    @nandlab.policy("cache.eviction", "bench-lru-numba")
    class LruNumba:
        """The least recently used unit, from batches of events."""

        def __init__(self) -> None:
            units = 1 << 14
            self.links = np.full((units + 1, 2), units)
            self.first = units

        def on_events(self, kinds: Any, slots: Any, lpns: Any) -> None:
            self.first = follow(kinds, slots, self.links)

        def pick(self, cache: nandlab.Cache) -> int | None:
            return self.first if self.first < len(self.links) - 1 else None

    return [
        Case("gc.victim greedy, numba, 512 blocks", 1.1, "gc.victim", "bench-greedy-numba", "greedy"),
        Case("gc.victim greedy, numba, 8192 blocks", None, "gc.victim", "bench-greedy-numba", "greedy", LARGE),
        Case("cache.eviction lru, events, numba", 2.0, "cache.eviction", "bench-lru-numba", "lru", CACHE),
    ]


class Busy(threading.Thread):
    """A thread of Python that is busy for a share of the time, ten times a second."""

    def __init__(self, share: float) -> None:
        super().__init__(daemon=True)
        self.share = share
        self.is_over = threading.Event()

    def run(self) -> None:
        while not self.is_over.wait(0.1 * (1 - self.share)):
            until = time.thread_time() + 0.1 * self.share
            while time.thread_time() < until:
                pass


class Cost(NamedTuple):
    """The times of the requests of a run, in seconds."""

    wall: float
    cpu: float


def cost(spec: nandlab.Spec) -> Cost:
    """The cost of the requests of a run, which this thread simulates."""
    run = _core.Run(spec, False, None, False, None)
    begin: Cost | None = None
    while True:
        report = run.step(STEP_MS)
        if begin is None and report["phase"] not in BEFORE_THE_RUN:
            begin = Cost(time.perf_counter(), time.thread_time())
        if report["done"]:
            break
    assert begin is not None
    return Cost(time.perf_counter() - begin.wall, time.thread_time() - begin.cpu)


def compare(case: Case, pairs: int) -> None:
    """Measure a row and print it."""
    specs = [nandlab.load(SPEC, {**case.sets, case.slot: choice}) for choice in (case.ours, case.built_in)]
    wall, cpu = [], []
    for number in range(pairs):
        found = {which: cost(specs[which]) for which in ((0, 1) if number % 2 else (1, 0))}
        wall.append(found[0].wall / found[1].wall)
        cpu.append(found[0].cpu / found[1].cpu)

    def shown(ratios: list[float]) -> str:
        ratios = sorted(ratios)
        inner = ratios[1:-1] or ratios
        return f"{statistics.median(ratios):.2f} ({inner[0]:.2f} to {inner[-1]:.2f})"

    bound = "" if case.bound is None else f", at most {case.bound:g} wanted"
    print(f"{case.name}: {shown(wall)} x the built-in's wall time, {shown(cpu)} x its CPU time{bound}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=PAIRS, help="paired runs of each row")
    parser.add_argument("--only", default="", help="only the rows whose name contains this text")
    parser.add_argument("--busy", type=float, default=0.02, help="share of the time for which a thread is busy")
    options = parser.parse_args()
    busy = Busy(options.busy)
    busy.start()
    for case in [*CASES, *declare_with_numba()]:
        if options.only in case.name:
            compare(case, options.pairs)
    busy.is_over.set()


if __name__ == "__main__":
    main()
