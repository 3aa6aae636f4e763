"""The instants of a recorded session at which power is cut."""

from __future__ import annotations

import bisect
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

#: The marks of a session: the beginning and the end of the workload, and what is synced after it.
BEGIN, END, SYNCED = "powertest: begin", "powertest: end", "powertest: synced"
#: The longest distance from the completion of a flush that counts as around it, in nanoseconds.
_AROUND_NS = 200_000


@dataclass(frozen=True)
class Moments:
    """What happens in a session; all times are simulated, in nanoseconds."""

    #: Beginning and end of the workload, and the time at which everything is synced.
    begin: int
    end: int
    synced: int
    #: Times of acknowledged lines, and the lines.
    acknowledged: list[tuple[int, str]]
    #: Time, operation, offset, length in bytes, FUA.
    requests: list[tuple[int, str, int, int, bool]]
    #: By request: when it was acknowledged, and when a write was in flash as a whole.
    reached: list[tuple[int | None, int | None]]
    programs: list[tuple[int, int]]
    flushes: list[int]
    #: Times between which the session has no power.
    off: list[tuple[int, int]]

    @staticmethod
    def of(found: dict[str, Any]) -> Moments:
        """The moments of `_core.recording_moments`; without the marks the whole session is the workload."""
        marks = {text: at for at, text in found["marks"]}
        end = found["end"]
        begin = marks.get(BEGIN, 0)
        cuts = found["cuts"]
        return Moments(
            begin=begin,
            end=marks.get(END, end),
            synced=marks.get(SYNCED, end),
            acknowledged=found["acknowledged"],
            requests=found["requests"],
            reached=found["reached"],
            programs=[of for of in found["programs"] if of[1] >= begin],
            flushes=[at for at in found["flushes"] if at >= begin],
            off=list(zip(cuts[::2], [*cuts[1::2], end], strict=False)),
        )

    def lines_until(self, at: int) -> list[str]:
        """The lines that were acknowledged up to a time."""
        return [
            line for _, line in self.acknowledged[: bisect.bisect_right(self.acknowledged, at, key=lambda of: of[0])]
        ]

    def request_of(self, offset: int, length: int, at: int, promise: str) -> int | None:
        """The number, from 0, of the newest write or TRIM of a byte of the unit, of those with a promise at a time.

        `promise` is `covered`, `acknowledged` or `in_flight`, as of a lost unit.
        """
        flushed = -1
        for number in range(bisect.bisect_right(self.requests, at, key=lambda of: of[0]) - 1, -1, -1):
            _, op, first, size, fua = self.requests[number]
            acknowledged = self.reached[number][0]
            is_complete = acknowledged is not None and acknowledged <= at
            if op == "flush" and is_complete:
                flushed = max(flushed, self.requests[number][0])
            if op not in ("write", "trim") or first >= offset + length or offset >= first + size:
                continue
            is_covered = is_complete and (fua or (acknowledged or 0) <= flushed)
            if is_covered or (is_complete and promise == "acknowledged") or promise == "in_flight":
                return number
        return None

    def events(self, after: int, before: int) -> list[int]:
        """The times between two times at which something happens that a cut can meet."""
        times = {at for at, *_ in self.requests} | set(self.flushes)
        times |= {at for program in self.programs for at in program}
        return sorted(at for at in times if after < at < before)


def choose(moments: Moments, number: int, seed: int) -> list[int]:
    """So many instants after the beginning of the workload, in order of time.

    A third each is uniform over the time of the workload, around completions of flushes and writes with FUA, and within
    programs. Without flushes or programs their share is uniform.
    """
    draw = random.Random(f"power cuts {seed}")
    begin, end = moments.begin, moments.end
    flushes = [at for at in moments.flushes if begin < at <= end]
    programs = [of for of in moments.programs if begin < of[1] and of[0] < end]

    def uniform() -> int:
        return draw.randint(begin, end)

    def around(times: Sequence[int]) -> int:
        # The instants before a completion and after it matter most.
        at = draw.choice(times)
        return at + draw.choice([-1, 0, 1, draw.randint(-_AROUND_NS, _AROUND_NS)])

    def within() -> int:
        first, last = draw.choice(programs)
        return draw.randint(first, last)

    chosen: list[int] = []
    for count in range(number):
        kind = count % 3
        at = around(flushes) if kind == 1 and flushes else within() if kind == 2 and programs else uniform()
        at = min(max(at, begin), end)
        off = next((of for of in moments.off if of[0] <= at <= of[1]), None)
        chosen.append(max(begin, off[0] - 1) if off else at)
    return sorted(chosen)
