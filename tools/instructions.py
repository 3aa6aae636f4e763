"""The instructions of a page operation, by phase: measures them and compares them with those on file.

    python tools/instructions.py            fails when a number is more than 2 % off, or grows with a backlog
    python tools/instructions.py --bless    writes crates/nandlab/benches/instructions.json

callgrind of valgrind counts the instructions of 100,000 requests on a drive of 1 GiB: those of the standing benchmark
(`plain`), the same with an observer that explains each request (`explained`), those with four placement handles
(`placement`), those on a drive with mapping units of 4 KiB (`units`), the same with an SLC cache through which each
write goes (`SLC cache`), and with LaLDPC (`LaLDPC`), and those on the drive of examples/combined.toml with all four
schemes (`all four`). Preconditioning is not counted. The phase of an instruction is that of the source file from which
it was compiled, also where the function is inlined. Instructions of libraries and of the room `base` belong to the
phase of the function into which they were inlined, otherwise to `other`.

No cost may grow with a backlog. The load of each mechanism (crates/nandlab/tests/common/mechanisms.rs) takes at a
queue depth of 4,096 at most 1.1 times the instructions at a depth of 64: those of a page operation, or those of a
request. A cost that grows with the backlog makes both grow. Only the first grows where a deep queue has fewer page
operations: writes that wait replace data before GC copies it, and a copy takes fewer instructions than a host write.
(Static wear levelling, from depth 16 to 8,192: 2,052 to 2,304 instructions of a page operation, 3.05 to 2.63 page
operations and 6,249 to 6,056 instructions of a request.) Reads of 16 and 128 MiB take at most 1.1 times those of
reads of 1 MiB. These ratios are not on file.

The same program always executes the same number of instructions, so a busy machine changes nothing. Another compiler
does: with another toolchain than that on file, differences are printed and are no failure.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypedDict

from bench import this_checkout

FILE = Path(__file__).absolute().parents[1] / "crates/nandlab/benches/instructions.json"
CASES = ("plain", "explained", "placement", "units", "SLC cache", "LaLDPC", "all four")
#: Greatest difference of a number, as a share of it.
TOLERANCE = 0.02
#: Differences below this share of the whole page operation do not count: they are as large in phases of a few
#: instructions when the compiler arranges a function anew.
SMALL = 0.004

#: The phase of each room, a folder of crates/nandlab/src. Statistics of any room are results.
PHASES = {
    "host": ("host", "runner", "write_cache"),
    "drive": ("drive",),
    "device": ("core", "sched", "flash", "read_levels"),
    "map": ("ftl", "demand_map"),
    "gc": ("background", "migration", "reclaim", "refresh", "slc"),
    "results": ("report", "probe", "stats"),
    "other": (),
}
_PHASE_OF = {room: phase for phase, rooms in PHASES.items() for room in rooms}
_STATISTICS = re.compile(r"crates/nandlab/src/.*stats\.rs$|/hdrhistogram-")
_FILE = re.compile(r"crates/nandlab/src/(?!base/)(\w+)")
_FUNCTION = re.compile(r"nandlab::(\w+)::")


class Case(TypedDict):
    """The instructions of a page operation, by phase."""

    page_operations: int
    instructions: dict[str, float]


class Compared(TypedDict):
    """What the benchmark compares."""

    names: list[str]
    depths: list[int]
    sizes_mib: list[int]
    most: float


class Measured(TypedDict):
    """The content of the file."""

    toolchain: str
    cases: dict[str, Case]


def phase(file: str, function: str) -> str:
    if _STATISTICS.search(file):
        return "results"
    room = _FILE.search(file) or _FUNCTION.search(function)
    return _PHASE_OF.get(room[1], "other") if room else "other"


def by_phase(profile: str) -> Counter[str]:
    """The instructions of each phase in a profile of callgrind without compressed names."""
    counts: Counter[str] = Counter()
    file = function = ""
    is_call = False
    for line in profile.splitlines():
        key, separator, value = line.partition("=")
        if separator:
            if key in ("fl", "fi", "fe"):
                file = value
            elif key == "fn":
                function = value
            is_call = key == "calls"
        elif line[:1].isdigit():
            # The line after `calls=` has the instructions of the function called, which are counted there.
            if not is_call:
                counts[phase(file, function)] += int(line.split()[1])
            is_call = False
    return counts


def profile(program: str, *arguments: str) -> tuple[Counter[str], int]:
    """The instructions of each phase, and the number of page operations."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        options = ["--toggle-collect=*standing::counted*", "--compress-strings=no", "--compress-pos=no"]
        command = ["valgrind", "--tool=callgrind", "--quiet", f"--callgrind-out-file={out}", *options, program]
        told = subprocess.run([*command, *arguments], stdout=subprocess.PIPE, check=True, text=True)
        counts = by_phase(out.read_text(encoding="utf-8", errors="replace"))
    return counts, int(json.loads(told.stdout)["operations"])


def count(program: str, scheme: str) -> Case:
    counts, operations = profile(program, f"--counted={scheme}")
    return {
        "page_operations": operations,
        "instructions": {phase: round(counts[phase] / operations, 2) for phase in PHASES},
    }


def growths(program: str) -> list[str]:
    """Compare the instructions of a page operation with small and large backlogs; return what grows."""
    told = subprocess.run([program, "--mechanisms"], stdout=subprocess.PIPE, check=True, text=True).stdout
    compared: Compared = json.loads(told)
    rows = {
        name: [[f"--counted-mechanism={name}", f"--depth={depth}"] for depth in compared["depths"]]
        for name in compared["names"]
    }
    sizes = compared["sizes_mib"]
    rows |= {f"read of {mib} MiB": [[f"--counted-reads={size}"] for size in (sizes[0], mib)] for mib in sizes[1:]}

    def measure(arguments: list[str]) -> tuple[int, int]:
        counts, operations = profile(program, *arguments)
        return counts.total(), operations

    runs = [arguments for row in rows.values() for arguments in row]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        measured = iter(pool.map(measure, runs))
        return [
            text
            for name in rows
            if (text := growth(name, next(measured), next(measured), compared["most"])) is not None
        ]


def growth(name: str, small: tuple[int, int], large: tuple[int, int], most: float) -> str | None:
    """Print the instructions of a page operation with a small and with a large backlog; return what grows.

    `small` and `large` are the instructions and page operations of the same bytes of requests.
    """
    few, many = small[0] / small[1], large[0] / large[1]
    of_all = large[0] / small[0]
    grows = min(many / few, of_all) > most
    print(
        f"{name:>45} {few:9.1f} {many:9.1f} {many / few:6.3f} {of_all:6.3f}{'  <--' if grows else ''}",
        flush=True,
    )
    return f"{name}: {few:.1f} instructions, {many:.1f} with the larger backlog" if grows else None


def toolchain() -> str:
    def said(*command: str) -> str:
        return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.strip()

    return f"{said('rustc', '--version')}, {said('valgrind', '--version')}"


def differences(name: str, filed: Case, now: Case) -> list[str]:
    """Print a case beside that on file; return what differs."""
    found = []
    whole = sum(filed["instructions"].values())
    rows = {phase: (filed["instructions"].get(phase, 0.0), now["instructions"][phase]) for phase in PHASES}
    rows["all"] = (whole, sum(now["instructions"].values()))
    for phase, (before, after) in rows.items():
        is_off = abs(after - before) > max(TOLERANCE * before, SMALL * whole)
        change = f"{100 * (after / before - 1):+.1f} %" if before else "new"
        print(f"{name:>9} {phase:>8} {before:9.2f} {after:9.2f} {change:>9}{'  <--' if is_off else ''}")
        if is_off:
            found.append(f"{name}, {phase}: {before:.2f} on file, {after:.2f} measured")
    if filed["page_operations"] != now["page_operations"]:
        found.append(f"{name}: {filed['page_operations']} page operations on file, {now['page_operations']} measured")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--bless", action="store_true", help="write the file instead of comparing with it")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("skipped: make instructions needs valgrind, which counts instructions (apt-get install valgrind)")
        return
    program = this_checkout().bench
    now: Measured = {
        "toolchain": toolchain(),
        "cases": {scheme: count(program, scheme) for scheme in CASES},
    }
    if arguments.bless:
        FILE.write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8")
        for name, case in now["cases"].items():
            differences(name, case, case)
        return
    filed: Measured = json.loads(FILE.read_text(encoding="utf-8"))
    print(f"{'case':>9} {'phase':>8} {'on file':>9} {'measured':>9}   instructions of a page operation")
    found = [text for name in CASES for text in differences(name, filed["cases"][name], now["cases"][name])]
    if found and filed["toolchain"] != now["toolchain"]:
        print(f"not judged: on file with {filed['toolchain']}; measured with {now['toolchain']}")
        found = []
    if found:
        found.append("If the change is meant, write the file: make instructions BLESS=1")
    print(f"{'case':>45} {'small':>9} {'large':>9}  ratio    all   instructions of a page operation by backlog")
    found += growths(program)
    if found:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
