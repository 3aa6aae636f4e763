"""Built-in policies written in Python, for `test_python_policies.py`."""

from collections import OrderedDict, deque

import nandlab
import numpy as np

NONE = np.uint32(0xFFFF_FFFF)


@nandlab.policy("gc.victim")
class GreedyInPython:
    """The block with the fewest valid units."""

    def pick(self, lane):
        valid = np.where(lane.state == lane.FULL, lane.valid, NONE)
        block = int(valid.argmin())
        return block if lane.state[block] == lane.FULL else None


@nandlab.policy("gc.victim")
class GreedyByLane:
    """The block with the fewest valid units, found by the lane."""

    def pick(self, lane):
        return lane.least(lane.valid)


@nandlab.policy("gc.victim")
class CostBenefitByLane:
    """The block with the largest age * (1 - u) / (2 u), found by the lane."""

    def pick(self, lane):
        used = lane.valid / lane.units
        with np.errstate(divide="ignore"):
            return lane.greatest((lane.now + 1 - lane.closed_at) * (1.0 - used) / (2.0 * used))


@nandlab.policy("gc.victim")
class FifoInPython:
    """The block that was filled first."""

    def __init__(self):
        self.filled = {}

    def on_closed(self, block, lane):
        filled = self.filled.setdefault(lane, deque())
        if block in filled:
            filled.remove(block)
        filled.append(block)

    def pick(self, lane):
        filled = self.filled.get(lane.number, ())
        while filled and lane.state[filled[0]] != lane.FULL:
            filled.popleft()
        return filled[0] if filled else None


@nandlab.policy("gc.victim")
class CostBenefitInPython:
    """The block with the largest age * (1 - u) / (2 u)."""

    def pick(self, lane):
        full = np.flatnonzero(lane.state == lane.FULL)
        if not len(full):
            return None
        used = lane.valid[full] / lane.units[full]
        age = (lane.now - lane.closed_at[full] + 1).astype(np.float64)
        with np.errstate(divide="ignore"):
            return int(full[np.argmax(age * (1.0 - used) / (2.0 * used))])


@nandlab.policy("gc.victim")
class RandomInPython:
    """The least valid of k full blocks drawn at random."""

    k: int = nandlab.param(8, low=1, high=65_536, help="blocks drawn")

    def pick(self, lane):
        is_full = lane.state == lane.FULL
        if not is_full.any():
            return None
        drawn = []
        while len(drawn) < self.k:
            block = self.random.below(len(lane))
            if is_full[block]:
                drawn.append(block)
        return min(drawn, key=lambda block: lane.valid[block])


@nandlab.policy("gc.victim")
class PartialAwareInPython:
    """The block with the fewest valid units and partially refreshed units."""

    linked_cost: float = nandlab.param(0.0, low=0, high=100, help="cost of a partially refreshed unit, in valid units")

    def pick(self, lane):
        full = np.flatnonzero(lane.state == lane.FULL)
        if not len(full):
            return None
        valid, linked = lane.valid[full], lane.linked[full]
        if self.linked_cost > 0:
            return int(full[np.argmin(valid + self.linked_cost * linked)])
        return int(full[np.lexsort((linked, valid))[0]])


@nandlab.policy("cache.eviction")
class LruInPython:
    """The least recently used unit, from the view of the cache."""

    def pick(self, cache):
        return cache.least_recently_used


@nandlab.policy("cache.eviction")
class LruByEvents:
    """The least recently used unit, from the events."""

    def __init__(self):
        self.used = OrderedDict()

    def on_insert(self, slot, lpn):
        self.used[slot] = lpn

    def on_hit(self, slot, lpn):
        assert self.used[slot] == lpn
        self.used.move_to_end(slot)

    def on_remove(self, slot, lpn):
        assert self.used.pop(slot) == lpn

    def pick(self, cache):
        assert len(cache) == len(self.used)
        return next(iter(self.used), None)


@nandlab.policy("cache.eviction")
class LruByBatches:
    """The least recently used unit, from batches of events."""

    def __init__(self):
        self.used = OrderedDict()

    def on_events(self, kinds, slots, lpns):
        for kind, slot, lpn in zip(kinds.tolist(), slots.tolist(), lpns.tolist(), strict=True):
            self.used.pop(slot, None)
            if kind != 2:
                self.used[slot] = lpn

    def pick(self, cache):
        return next(iter(self.used), None)


@nandlab.policy("cache.eviction")
class CflruInPython:
    """The least recently used clean unit of a window, before dirty units."""

    window: float = nandlab.param(0.25, low=0, high=1, help="share of the cache in which clean units are evicted first")

    def pick(self, cache):
        clean = cache.first_clean(int(self.window * cache.capacity + 1e-9))
        return cache.least_recently_used if clean is None else clean


@nandlab.policy("cache.sync")
class NoneInPython:
    """Dirty units are written back when they are evicted."""

    keeps_budget = False


@nandlab.policy("cache.sync")
class EagerInPython:
    """Every dirty unit is written back at once."""

    syncs_at_once = True


@nandlab.policy("cache.sync")
class PunctualInPython:
    """At the budget, one dirty unit is written back per write."""


@nandlab.policy("cache.sync")
class SyncGreedyInPython:
    """All dirty units are written back when the drive is idle."""

    def syncs_when_idle(self, cache):
        return True


@nandlab.policy("cache.sync")
class SmartInPython:
    """In idle time, dirty units are written back near the budget and when they are cold."""

    protects = True
    budget_margin: float = nandlab.param(0.05, low=0, high=1, help="share of the budget kept free")
    cold_share: float = nandlab.param(0.05, low=0, high=1, help="share of the cache that is cold")
    busy_from: float = nandlab.param(1.0, low=0, high=1, help="share of the budget from which dirty units go first")

    def syncs_when_idle(self, cache):
        written = cache.dirty - cache.writing + 1e-9
        return written >= (1 - self.budget_margin) * cache.budget or cache.oldest_is_cold is True

    def evicts_dirty_first(self, cache):
        return cache.dirty + 1e-9 >= self.busy_from * cache.budget


@nandlab.policy("migration.policy")
class RcopybackInPython:
    """Copyback while the write buffer is busy or space is short."""

    watches_buffer = True

    def copies_back(self, is_urgent, buffer):
        return is_urgent or buffer > 0.5


@nandlab.policy("migration.policy")
class RcopybackGreedyInPython:
    """Copyback whenever the limit allows it."""

    def copies_back(self, is_urgent, buffer):
        return True


@nandlab.policy("ftl.map.demand.eviction")
class MapLruInPython:
    """The least recently used entry."""

    def __init__(self):
        self.used = OrderedDict()

    def on_insert(self, lpn, level):
        self.used[lpn] = level

    def on_hit(self, lpn, _):
        self.used.move_to_end(lpn)

    def evict(self):
        return self.used.popitem(last=False)[0]


@nandlab.policy("ftl.map.demand.eviction")
class MapFifo:
    """The entry that was inserted first."""

    def __init__(self):
        self.inserted = deque()

    def on_insert(self, lpn, level):
        self.inserted.append(lpn)

    def evict(self):
        return self.inserted.popleft()


@nandlab.policy("migration.policy")
class CopyWhenUrgent:
    """Copyback only while space is short, whatever the load of the write buffer."""

    def copies_back(self, is_urgent, buffer):
        return is_urgent


@nandlab.policy("migration.policy")
class NeverCopy:
    """No copybacks."""

    def copies_back(self, is_urgent, buffer):
        return False


@nandlab.policy("ecc.start")
class FirstInPython:
    """Level 1."""

    def start(self, read):
        return 1


@nandlab.policy("ecc.start")
class IdealInPython:
    """The needed level."""

    def start(self, read):
        return min(read.needed, read.levels)


@nandlab.policy("ecc.start")
class LastLevelInPython:
    """The level in the unit's map entry."""

    def start(self, read):
        return max(read.unit_level, 1)


@nandlab.policy("ecc.start")
class BlockLevelInPython:
    """The level in the unit's map entry, or else that of its block."""

    loads_block_level = True

    def start(self, read):
        return read.unit_level or read.block_level or 1


@nandlab.policy("ecc.start")
class LastGoodInPython:
    """The level that last decoded a unit of the block."""

    def start(self, read):
        return max(read.block_level, 1)


@nandlab.policy("ecc.start")
class LastGoodByEvents:
    """The level that last decoded a unit of the block, from the events."""

    def __init__(self):
        self.good = {}

    def on_decoded(self, block, level):
        self.good[block] = level

    def on_erased(self, block, _):
        self.good.pop(block, None)

    def start(self, read):
        level = self.good.get(read.block, 1)
        assert level == max(read.block_level, 1)
        return level


@nandlab.policy("ecc.start")
class DriveLevelInPython:
    """The level that last decoded a unit of the drive, from batches of events."""

    def __init__(self):
        self.level = 1

    def on_events(self, kinds, blocks, levels):
        decoded = levels[kinds == 0]
        self.level = int(decoded[-1]) if len(decoded) else self.level

    def start(self, read):
        assert self.level == max(read.drive_level, 1)
        return self.level


@nandlab.policy("ecc.start")
class TableInPython:
    """Level 5 for data that is a week old, level 3 from 9,001 P/E cycles on."""

    def start(self, read):
        if read.age_s >= 7 * 86_400 and read.erases >= 9_000:
            return 5
        return 3 if read.erases >= 9_001 else 2


MASK = (1 << 64) - 1


@nandlab.policy("ftl.streams")
class MultiHashInPython:
    """Data whose counters by hash have all reached a threshold."""

    COUNTERS, HASHES, THRESHOLD, DECAY = 512, 2, 3, 700

    def __init__(self):
        self.salts = [self.random.below(1 << 63) for _ in range(8)]
        self.counters = [0] * self.COUNTERS
        self.since = 0

    def places(self, lpn):
        for salt in self.salts[: self.HASHES]:
            x = lpn ^ salt
            x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
            x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
            yield (x ^ (x >> 31)) % self.COUNTERS

    def stream(self, lpn, written):
        return int(all(self.counters[at] + 1 >= self.THRESHOLD for at in self.places(lpn)))

    def on_written(self, lpn, stream):
        for at in self.places(lpn):
            self.counters[at] = min(self.counters[at] + 1, 15)
        self.since += 1
        if self.since == self.DECAY:
            self.since = 0
            self.counters = [counter // 2 for counter in self.counters]
