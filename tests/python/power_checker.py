"""A check of durability by a caller of `nandlab.Drive`: power fails at random, and each unit is read again.

A write must survive once it is promised: `covered`, completed with FUA or before a flush that has completed was
submitted, or `acknowledged`, completed. The check needs nothing but the completions of the drive: the id of each write,
and the id of the write that a read returned.
"""

import random

import nandlab


class Checker:
    """Writes, flushes and reads single units of a drive, and cuts its power."""

    def __init__(self, spec, promise, seed, units=40):
        self.drive = nandlab.Drive(spec, versions=True)
        self.bytes = spec.page_bytes
        self.promise = promise
        self.random = random.Random(seed)
        #: By unit the writes that a read may return, oldest first, and the index of the oldest that may still be
        #: returned.
        self.writes = {unit: [None] for unit in range(units)}
        self.oldest = dict.fromkeys(self.writes, 0)
        #: Outstanding requests: id of a write with its unit and FUA, id of a flush with the writes that it covers.
        self.under_way = {}
        self.flushes = {}
        self.completed = set()
        self.broken = []

    def promised(self, unit, write):
        """A write of a unit may not be lost any more."""
        self.oldest[unit] = max(self.oldest[unit], self.writes[unit].index(write))

    def take(self):
        """Take completions: what they promise."""
        for done in self.drive.completions():
            if done.id in self.flushes and not done.failed:
                for write, unit in self.flushes.pop(done.id):
                    self.promised(unit, write)
            elif done.id in self.under_way and not done.failed:
                unit, fua = self.under_way.pop(done.id)
                self.completed.add((done.id, unit))
                if fua or self.promise == "acknowledged":
                    self.promised(unit, done.id)

    def act(self):
        """Submit a request. A unit has one write at a time, so that its writes have one order."""
        chance = self.random.random()
        if chance < 0.05:
            self.flushes[self.drive.flush()] = set(self.completed)
        else:
            busy = {unit for unit, _ in self.under_way.values()}
            unit = self.random.choice([unit for unit in self.writes if unit not in busy] or [None])
            if unit is not None:
                fua = chance > 0.9
                write = self.drive.write(unit * self.bytes, self.bytes, fua=fua)
                self.under_way[write] = (unit, fua)
                self.writes[unit].append(write)
        self.drive.advance(self.drive.now_ns + self.random.randrange(200_000))
        self.take()

    def cut(self):
        """Cut power, and read each unit: what it returns is the base of the next cut."""
        self.take()
        self.drive.cut_power()
        self.drive.completions()
        reads = {self.drive.read(unit * self.bytes, self.bytes): unit for unit in self.writes}
        self.drive.run_until_idle()
        for done in self.drive.completions():
            unit = reads[done.id]
            writes, oldest = self.writes[unit], self.oldest[unit]
            if done.failed or done.version not in writes[oldest:]:
                self.broken.append((unit, done.version, writes[oldest:], done.reason))
            self.writes[unit], self.oldest[unit] = [done.version], 0
        self.under_way, self.flushes, self.completed = {}, {}, set()

    def run(self, cuts):
        """The broken promises of many cuts: unit, what was read, and what could have been."""
        for _ in range(cuts):
            for _ in range(self.random.randrange(1, 30)):
                self.act()
            self.cut()
        return self.broken
