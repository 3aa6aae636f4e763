"""The process that plays a session once and forks at each instant: `python -m nandlab.power_test.forker`.

The process has one thread, because a child of `fork` has only the thread that forked. So this module imports nothing
that starts threads. The job is JSON on stdin; each cut is a line of JSON on stdout.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nandlab import _core
from nandlab.power_test.checks import How, Image, Outcome, check, file_of, note

#: The strengths of promises that are put back for the third question.
ACKNOWLEDGED = ("covered", "acknowledged")


def _threads() -> int:
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return 1
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("Threads:")))


def _second(job: dict[str, Any], number: int) -> int | None:
    """The time after the return of power at which power fails again in recovery."""
    longest: int | None = job["second_ns"]
    return None if longest is None else random.Random(f"second cut {job['seed']} {number}").randint(0, longest)


class Images:
    """The images of one cut, in a folder of its own."""

    def __init__(self, cutter: _core.Cutter, job: dict[str, Any], acked: list[str], number: int) -> None:
        self.cutter = cutter
        self.how = How(**job["how"])
        self.folder = Path(tempfile.mkdtemp(prefix=f"cut-{number}-", dir=job["folder"]))
        # A check may start a program of another user in the files of the drive.
        self.folder.chmod(0o711)
        self.cut = cutter.cut(_second(job, number))
        self.acked = self.folder / "acked"
        note(self.acked, "".join(f"{line}\n" for line in acked))
        self.count = 0

    def broken(self) -> list[int]:
        """The numbers of the lost units that the drive may not lose: covered, or acknowledged and destroyed in flash.

        A write that no flush covers may be lost. Then the unit has its older data, but it does not become unreadable.
        """
        units = enumerate(self.cut["lost"])
        return [number for number, unit in units if unit["promise"] == "covered" or _is_destroyed(unit)]

    def numbers(self, promises: tuple[str, ...]) -> list[int]:
        """The numbers of the lost units about which such a promise is broken."""
        return [number for number, unit in enumerate(self.cut["lost"]) if unit["promise"] in promises]

    def check(self, put_back: list[int], *, with_fsck: bool = False) -> Outcome:
        """Check the image with these lost units put back."""
        self.count += 1
        image = self._image(self.folder / f"image-{self.count}", put_back)
        outcome = check(image, self.how, self.acked, self.folder, with_fsck=with_fsck)
        image.path.unlink(missing_ok=True)
        return outcome

    def _image(self, path: Path, put_back: list[int]) -> Image:
        """Write an image with these lost units put back, which can be read then."""
        self.cutter.image(os.fspath(path), put_back)
        there = {self.cut["lost"][number]["offset"] for number in put_back}
        unreadable = [offset for offset in self.cut["unreadable"] if offset not in there]
        return Image(path, self.cut["unit_bytes"], unreadable)

    def name(self, units: list[dict[str, Any]], put_back: list[int]) -> None:
        """Name the files of ext4 whose blocks the units are."""
        image = self.folder / "named"
        self.cutter.image(os.fspath(image), put_back)
        for unit in units:
            unit["file"] = file_of(image, unit["offset"])
        image.unlink()

    def keep(self, place: Path) -> None:
        """Keep the image as it was at the cut, with the acknowledged lines and the unreadable ranges."""
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.acked, place / "acked.txt")
        (place / "image").unlink(missing_ok=True)
        image = self._image(place / "image", [])
        note(place / "lost.txt", image.ranges())

    def remove(self) -> None:
        """Remove what is in the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _is_destroyed(unit: dict[str, Any]) -> bool:
    """Whether a lost unit was acknowledged, had reached flash, and reads as an error since the cut."""
    return unit["promise"] == "acknowledged" and unit["destroyed"] and not unit["trim"]


#: Mount options with which a file system sends no flush.
_NO_FLUSH = ("barrier=0", "nobarrier")


def _blame(images: Images, first: Outcome, facts: dict[str, Any]) -> dict[str, Any]:
    """Ask the four questions about a cut that breaks the check."""
    how = images.how
    again = images.check([], with_fsck=True)
    evidence: dict[str, Any] = {"repeats": not again.passed, "fsck": again.dirty, "with_covered": None}
    if again.passed:
        return {"verdict": "check", "evidence": evidence}
    dirty = again.dirty or first.dirty
    covered = images.broken()
    evidence["put_back"] = len(covered)
    if covered:
        restored = images.check(covered, with_fsck=True)
        evidence["with_covered"] = restored.passed
        if restored.passed:
            return {"verdict": "drive", "evidence": evidence}
        # What the drive has lost is no damage by the file system.
        evidence["fsck"] = dirty = restored.dirty
    acknowledged = images.numbers(ACKNOWLEDGED)
    whole = images.check(acknowledged) if len(acknowledged) > len(covered) else None
    evidence["with_acknowledged"] = None if whole is None else whole.passed
    if how.fs == "none":
        return {"verdict": "program", "evidence": evidence}
    options = (facts.get("mount_options") or "").split(",")
    evidence["no_flush"] = next((option for option in _NO_FLUSH if option in options), None)
    evidence["fsyncs"], evidence["flushes"] = facts.get("fsyncs"), facts.get("flushes")
    is_missing = evidence["with_acknowledged"] is True
    if dirty or (is_missing and evidence["no_flush"]):
        return {"verdict": "file system", "evidence": evidence}
    if evidence["fsyncs"] == 0:
        return {"verdict": "program", "evidence": evidence}
    if is_missing and evidence["fsyncs"] is not None and evidence["flushes"] == 0:
        return {"verdict": "file system", "evidence": evidence}
    return {"verdict": "program or file system", "evidence": evidence}


def _minimise(images: Images, tries_max: int, deadline_s: float | None = None) -> dict[str, Any]:
    """The smallest set of lost writes that still breaks the check: the others are put back (delta debugging).

    The search ends after so many images, and at the time `deadline_s` of this machine's clock.
    """
    every = images.numbers(ACKNOWLEDGED)
    tries = 0

    def has_ended() -> bool:
        return tries >= tries_max or (deadline_s is not None and time.monotonic() >= deadline_s)

    def breaks(lost: list[int]) -> bool:
        nonlocal tries
        tries += 1
        missing = set(lost)
        return not images.check([number for number in every if number not in missing]).passed

    if not every or breaks([]):
        lost = [images.cut["lost"][number] for number in every]
        return {"lost": [], "also_lost": lost, "tries": tries, "bounded": False, "needs_no_loss": True}
    left, parts = every, 2
    while len(left) > 1 and not has_ended():
        size = -(-len(left) // parts)
        groups = [left[at : at + size] for at in range(0, len(left), size)]
        rests = [[number for number in left if number not in set(group)] for group in groups]
        candidates = groups if parts == 2 else [*groups, *rests]
        smaller = next((one for one in candidates if not has_ended() and one and breaks(one)), None)
        if smaller is not None:
            parts = 2 if smaller in groups else max(parts - 1, 2)
            left = smaller
        elif parts >= len(left):
            break
        else:
            parts = min(2 * parts, len(left))
    units = [images.cut["lost"][number] for number in left]
    if images.how.fs == "ext4":
        images.name(units, every)
    others = [images.cut["lost"][number] for number in every if number not in set(left)]
    bounded = len(left) > 1 and has_ended()
    return {"lost": units, "also_lost": others, "tries": tries, "bounded": bounded, "needs_no_loss": False}


def _one(cutter: _core.Cutter, job: dict[str, Any], number: int, at: int, acked: list[str]) -> dict[str, Any]:
    """Cut the power in this child, and check the image."""
    begin = time.process_time()
    images = Images(cutter, job, acked, number)
    lost = images.cut["lost"]
    result: dict[str, Any] = {
        "number": number,
        "at_ns": at,
        "acked": len(acked),
        "lost": {promise: len(images.numbers((promise,))) for promise in ("covered", "acknowledged", "in_flight")},
        "unreadable": len(images.cut["unreadable"]),
        "unit_bytes": images.cut["unit_bytes"],
        "recovery_ns": images.cut["recovery_ns"],
        "cut_again": images.cut["cut_again"],
        "verdict": None,
        "evidence": None,
    }
    try:
        if job["mode"] == "keep":
            images.keep(Path(job["kept"]) / f"cut-{number}")
            result["lost_units"] = [lost[n] for n in images.numbers(ACKNOWLEDGED)][: job["units_max"]]
            return result
        # Nothing is lost in a control.
        outcome = images.check(images.numbers(ACKNOWLEDGED) if job["mode"] == "control" else [])
        own = time.process_time() - begin
        result |= {"passed": outcome.passed, "status": outcome.status, "output": outcome.output}
        result |= {"reason": outcome.reason, "cpu_s": own}
        if not outcome.passed and job["mode"] == "cuts":
            result |= _blame(images, outcome, job["facts"])
            result["lost_units"] = lost[: job["units_max"]]
        if job["mode"] == "minimise" and not outcome.passed:
            result["smallest"] = _minimise(images, job["tries_max"], job["deadline_s"])
        return result
    finally:
        images.remove()


def _child(work: Callable[[], dict[str, Any]], out: Path) -> None:
    """Do the work of a child, which ends here."""
    status = 1
    try:
        part = out.with_suffix(".part")
        note(part, json.dumps(work()))
        part.rename(out)
        status = 0
    except BaseException:
        with contextlib.suppress(OSError):
            note(out.with_suffix(".error"), traceback.format_exc())
    finally:
        sys.stdout.flush()
        os._exit(status)


def main() -> None:
    """Run the job on stdin."""
    job = json.load(sys.stdin)
    text, origin, _ = _core.recording_header(job["recording"])
    spec = _core.Spec.load(text, Path(job["recording"]).name, origin, [])
    cutter = _core.Cutter(job["recording"], spec, job["memory"])
    if _threads() != 1:
        raise RuntimeError("the process that forks has further threads: this is a fault in nandlab")
    running: dict[int, Path] = {}
    folder = Path(job["folder"])

    def reap(at_most: int) -> None:
        while len(running) > at_most:
            pid, status = os.waitpid(-1, 0)
            out = running.pop(pid)
            if status == 0:
                print(out.read_text(), flush=True)
                out.unlink()
            else:
                error = out.with_suffix(".error")
                why = error.read_text() if error.exists() else f"ended with status {status}"
                print(json.dumps({"failed": why, "number": int(out.stem)}), flush=True)

    acked: list[str] = job["acked"]
    deadline_s = job["deadline_s"]
    for number, at in job["instants"]:
        # Checks that are running end, and a search ends by itself.
        if job["mode"] != "minimise" and deadline_s is not None and time.monotonic() >= deadline_s:
            break
        is_on, count = cutter.advance(at)
        if not is_on:
            continue
        if job["mode"] == "control" and number == 0:
            # Lines of the time at which the workload begins may be of the workload.
            count = job["acked_before"]
        reap(job["jobs"] - 1)
        out = folder / f"{number}.json"
        pid = os.fork()
        if pid == 0:
            _child(functools.partial(_one, cutter, job, number, at, acked[:count]), out)
        running[pid] = out
    reap(0)


if __name__ == "__main__":
    main()
