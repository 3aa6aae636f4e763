"""What policies in Python cost: part of `make bench`.

    python tools/bench_policies.py

Each row is a run with a policy in Python and the same run with the built-in policy that decides alike, as a ratio of
the wall times of the simulated requests. Meanwhile another thread of Python is busy for a tenth of the time, as the bar
that shows the progress of a run is. Every ratio is the median of paired runs, which alternate; the interval is from the
second smallest to the second largest of the pairs.

The drive has 8 planes with 512 blocks of 256 pages of 4 KiB, or with 8,192 blocks, and is filled before the run. The
requests are random writes of 4 KiB.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from collections import OrderedDict
from typing import NamedTuple

import nandlab
import numpy as np

PAIRS = 7

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
        valid = np.where(lane.state == lane.FULL, lane.valid, NONE)
        block = int(valid.argmin())
        return block if valid[block] != NONE else None


@nandlab.policy("gc.victim", "bench-cost-benefit")
class CostBenefit:
    """The block with the largest age * (1 - u) / (2 u)."""

    def pick(self, lane: nandlab.Lane) -> int | None:
        full = np.flatnonzero(lane.state == lane.FULL)
        if not len(full):
            return None
        used = lane.valid[full] / lane.units[full]
        age = (lane.now - lane.closed_at[full] + 1).astype(np.float64)
        with np.errstate(divide="ignore"):
            return int(full[np.argmax(age * (1.0 - used) / (2.0 * used))])


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
CASES = [
    Case("gc.victim greedy, numpy, 512 blocks", 1.1, "gc.victim", "bench-greedy", "greedy"),
    Case(
        "gc.victim greedy, numpy, 8192 blocks",
        1.4,
        "gc.victim",
        "bench-greedy",
        "greedy",
        {"drive.blocks_per_plane": 8192},
    ),
    Case("gc.victim cost-benefit, numpy, 512 blocks", 1.2, "gc.victim", "bench-cost-benefit", "cost-benefit"),
    Case("cache.eviction lru, view", None, "cache.eviction", "bench-lru", "lru", CACHE),
    Case("cache.eviction lru, events", 8.0, "cache.eviction", "bench-lru-by-events", "lru", CACHE),
    Case("cache.sync greedy", None, "cache.sync", "bench-greedy", "greedy", {"cache.size": "64MiB"}),
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


class Busy(threading.Thread):
    """A thread of Python that is busy for a tenth of the time."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.is_over = threading.Event()

    def run(self) -> None:
        while not self.is_over.wait(0.09):
            until = time.perf_counter() + 0.01
            while time.perf_counter() < until:
                pass


def seconds(spec: nandlab.Spec) -> float:
    """The wall time of the requests of a run."""
    sim = nandlab.run(spec).sim
    return sim.wall_s - sim.precondition_wall_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=PAIRS, help="paired runs of each row")
    parser.add_argument("--only", default="", help="only the rows whose name contains this text")
    options = parser.parse_args()
    busy = Busy()
    busy.start()
    for case in CASES:
        if options.only not in case.name:
            continue
        ours = nandlab.load(SPEC, {**case.sets, case.slot: case.ours})
        built_in = nandlab.load(SPEC, {**case.sets, case.slot: case.built_in})
        ratios = []
        for number in range(options.pairs):
            pair = {id(spec): seconds(spec) for spec in ((ours, built_in) if number % 2 else (built_in, ours))}
            ratios.append(pair[id(ours)] / pair[id(built_in)])
        ratios.sort()
        inner = ratios[1:-1] or ratios
        bound = "" if case.bound is None else f", at most {case.bound:g} wanted"
        print(f"{case.name}: {statistics.median(ratios):.2f} x the built-in ({inner[0]:.2f} to {inner[-1]:.2f}){bound}")
        sys.stdout.flush()
    busy.is_over.set()


if __name__ == "__main__":
    main()
