"""What requests waited for: `explained.json` of a run with `output.explain`, typed."""

from __future__ import annotations

from collections.abc import Mapping

from nandlab.record import Record
from nandlab.result_types import CAUSES

#: The parts of a latency that are no other operation, in a few words each.
OWN = {
    "link": "link to the host",
    "controller": "controller",
    "dram": "DRAM of the write cache",
    "transfer": "commands and transfers",
    "bus": "wait for the channel",
    "sense": "own senses",
    "decode": "own decoding",
    "decoder": "wait for a decoder",
    "retry": "further tries of reads",
    "program": "own programs",
    "units": "own units before, on the same die",
    "suspend": "suspension of a program or erase",
    "gather": "wait for other requests",
    "timer": "wait for a time of the drive",
    "kept": "die kept for other work",
    "other": "not observed",
}
_KINDS = {"read": "reads", "program": "programs", "erase": "erases", "copyback": "copybacks"}


def words(part: str | None) -> str:
    """A part in words; `part` is a key of `parts_ns`, such as `sense` or `erase_gc`, or that of a `Step`."""
    if part is None:
        return "earlier stretches, not listed"
    if part in OWN:
        return OWN[part]
    kind, _, cause = part.partition("_")
    return f"{_KINDS.get(kind, kind)} for {CAUSES.get(cause, cause)}"


class Step(Record, frozen=True):
    """A stretch of what a request waited for; times in nanoseconds from its arrival."""

    from_ns: int
    to_ns: int
    #: `None` for the stretch before those that are listed.
    part: str | None
    #: The die of the operation concerned, and the LPN of its data; `None` without an operation on a die.
    die: int | None
    lpn: int | None


class Explained(Record, frozen=True):
    """One of the slowest requests. Its parts sum to its latency."""

    request: int
    op: str
    offset: int
    length: int
    arrival_ns: int
    latency_ns: int
    parts_ns: dict[str, int]
    steps: tuple[Step, ...]


class Sum(Record, frozen=True):
    """All requests of one kind that completed without failure. The parts sum to the sum of the latencies."""

    op: str
    requests: int
    latency_ns: int
    parts_ns: dict[str, int]


class Explanation(Record, frozen=True):
    """Where the time went: by kind of request, and in the slowest requests, slowest first."""

    sums: tuple[Sum, ...]
    slowest: tuple[Explained, ...]

    def sum_of(self, op: str) -> Sum:
        """The sum over the requests of a kind: `read`, `write`, `trim` or `flush`."""
        return next(sum_ for sum_ in self.sums if sum_.op == op)


def largest(parts_ns: Mapping[str, int], count: int = 3) -> list[tuple[str, int]]:
    """The longest parts with their times, longest first."""
    return sorted(parts_ns.items(), key=lambda part: (-part[1], part[0]))[:count]
