"""The frames of a measurement, in parts that are kept in a file as soon as they are done.

A part is a range of frame numbers at one point. Its counts follow from code, point, seed and range alone, so parts may
be computed in any order and by any number of threads, and a measurement that was stopped goes on with the parts it
lacks.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

from nandlab import _core
from nandlab.errors import OutputError
from nandlab.whole import write_file

#: Frames of a part: a fraction of a second of one processor.
PART = 250


class At(NamedTuple):
    """Where frames are sent: at an RBER with a number of references, or at a number of errors (0: an RBER)."""

    references: int
    rber: float
    errors: int


class Counts(NamedTuple):
    """Counts of frames, which add up."""

    frames: int = 0
    failed: int = 0
    iterations: int = 0
    iterations_decoded: int = 0
    squares_decoded: int = 0

    def plus(self, other: Counts) -> Counts:
        """The counts of both."""
        return Counts(*(mine + others for mine, others in zip(self, other, strict=True)))


class Parts:
    """The parts of a measurement, in a folder."""

    def __init__(
        self,
        folder: Path,
        code: _core.Codec,
        identity: dict[str, object],
        *,
        spacing: float | None,
        seed: int,
        workers: int,
    ) -> None:
        self._code, self._spacing, self._seed, self._workers = code, spacing, seed, workers
        self._path = folder / "parts.jsonl"
        self._kept: dict[tuple[At, int], Counts] = {}
        self.done = 0
        folder.mkdir(parents=True, exist_ok=True)
        head = json.dumps(identity, sort_keys=True)
        if self._path.exists():
            self._read(head)
        else:
            write_file(self._path, f"{head}\n".encode())

    @property
    def kept(self) -> int:
        """Parts of earlier calls."""
        return len(self._kept) - self.done

    def _read(self, head: str) -> None:
        lines = self._path.read_text(encoding="utf-8").splitlines(keepends=True)
        if not lines or lines[0].rstrip("\n") != head:
            raise OutputError(
                f"{self._path}: these are the frames of another code, placement, seed or number of iterations\n"
                "  remedy: choose another --out, or remove the folder"
            )
        whole = 0
        for line in lines:
            # The last line may have been cut off.
            if not line.endswith("\n"):
                break
            if whole:
                entry = json.loads(line)
                self._kept[At(*entry[:3]), entry[3]] = Counts(*entry[4:])
            whole += len(line.encode())
        os.truncate(self._path, whole)

    def measure(self, asked: Iterable[tuple[At, int]], report: Callable[[int, int], None]) -> dict[At, Counts]:
        """The counts of `frames` frames at each point; `report` is called with parts that are done and all parts."""
        asked = list(asked)
        numbers = {at: range(-(-frames // PART)) for at, frames in asked}
        lacking = [(at, number) for at, of in numbers.items() for number in of if (at, number) not in self._kept]
        total = sum(map(len, numbers.values()))
        with ThreadPoolExecutor(self._workers) as pool, self._path.open("a", encoding="utf-8") as file:
            waiting = iter(lacking)
            running: dict[Future[Counts], tuple[At, int]] = {}
            left = len(lacking)
            try:
                while left:
                    while len(running) < 2 * self._workers and (part := next(waiting, None)) is not None:
                        running[pool.submit(self._compute, *part)] = part
                    for future in wait(running, 0.1, FIRST_COMPLETED).done:
                        part = running.pop(future)
                        self._kept[part] = future.result()
                        file.write(json.dumps([*part[0], part[1], *self._kept[part]]) + "\n")
                        file.flush()
                        self.done += 1
                        left -= 1
                    report(total - left, total)
            finally:
                for future in running:
                    future.cancel()
        found = {}
        for at, of in numbers.items():
            counts = Counts()
            for number in of:
                counts = counts.plus(self._kept[at, number])
            found[at] = counts
        return found

    def _compute(self, at: At, number: int) -> Counts:
        frames = number * PART, (number + 1) * PART
        if at.errors:
            return Counts(*self._code.measure_errors(at.errors, self._seed, frames))
        return Counts(*self._code.measure(at.rber, at.references, self._spacing, self._seed, frames))
