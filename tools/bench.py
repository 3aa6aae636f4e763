"""The same work as a bare loop, and two revisions compared: what `make bench` measures beyond the standing benchmark.

    python tools/bench.py FOLDER                 the command on a trace, as a multiple of a bare loop
    python tools/bench.py FOLDER --base REV      this checkout and the revision REV, pair by pair

The work: a drive of 4 GiB is filled to 65 % by sequential writes of 128 KiB, then takes 1,200,000 random writes of
4 KiB at exponential gaps of 250 µs on average. The requests come from a text trace, which is generated once in FOLDER.
The command parses it in each run (`NANDLAB_CACHE=off`), or has the requests that an earlier run has kept. Measured is
the CPU time of `nandlab run` from exec to exit, user and system, of all threads.

The figure is this CPU time divided by the page operations of the drive and by the time that a bare loop over arrays
takes for one (crates/nandlab/benches/standing.rs), in the same round. There are three loops: that of the standing
benchmark on its arrays of 16 GiB, which are far larger than the processor's cache, the same on arrays of 4 GiB, and one
on the requests of the trace.

Every number is the median of paired measurements, which alternate. The interval is from the second smallest to the
second largest of the pairs; of 11 pairs, it holds the median of all pairs with a probability of 98.8 %.

With --base, REV is built in a worktree in FOLDER, which is kept for the next comparison. A ratio below 1 says that this
checkout is faster. The standing case is the 16 GiB drive of the standing benchmark, by the CPU time of its requests.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).absolute().parents[1]
BENCH = Path("crates/nandlab/benches/standing.rs")
PAIRS = 11
#: Blocks per plane of the standing benchmark's drive of 16 GiB.
MAIN_BLOCKS = 2048

RAW_PAGES = 4 * 2 * 512 * 256
SECTORS_PER_PAGE = 8
FILL_PAGES_PER_REQUEST = 32
FILL_REQUESTS = RAW_PAGES * 65 // 100 // FILL_PAGES_PER_REQUEST
FILL_GAP_NS = 2_500_000
RANDOM_WRITES = 1_200_000
MEAN_GAP_NS = 250_000

LOOPS = ("standing, 16 GiB", "standing, 4 GiB", "same requests")

SPEC = """\
[drive]
channels = 4
chips_per_channel = 2
dies_per_chip = 1
planes_per_die = 1
blocks_per_plane = 512
pages_per_block = 256
page_size = "4KiB"
op = 0.0753

[timing]
read = "50us"
program = "500us"
erase = "3500us"
channel_ns_per_byte = 2.0
decode = "0us"
scheduler = "read-first"

[ftl]
allocation = "CWDP"
wear_levelling = "none"

[gc]
victim = "greedy"
foreground_free = 0.1395
background_free = 0.15
idle_after = "1h"

[workload]
trace = "same-work.trace"
format = "mqsim"
arrival = "trace"
"""


class Interval(NamedTuple):
    """The median of paired measurements, and their second smallest and second largest."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.3f} ({self.low:.3f} to {self.high:.3f})"


def interval(values: list[float]) -> Interval:
    ordered = sorted(values)
    inner = ordered[1:-1] if len(ordered) > 2 else ordered
    return Interval(statistics.median(ordered), inner[0], inner[-1])


def write_trace(path: Path) -> None:
    """Write the trace in the MQSim format: time in ns, device, first sector, sectors, 0 for a write."""
    stream = random.Random(1)
    partial = path.with_suffix(".partial")
    with open(partial, "w", encoding="ascii") as file:
        sectors = FILL_PAGES_PER_REQUEST * SECTORS_PER_PAGE
        for number in range(FILL_REQUESTS):
            file.write(f"{number * FILL_GAP_NS} 0 {number * sectors} {sectors} 0\n")
        time_ns = FILL_REQUESTS * FILL_GAP_NS
        pages = FILL_REQUESTS * FILL_PAGES_PER_REQUEST
        for _ in range(RANDOM_WRITES):
            time_ns += int(-math.log(1.0 - stream.random()) * MEAN_GAP_NS)
            file.write(f"{time_ns} 0 {int(stream.random() * pages) * SECTORS_PER_PAGE} {SECTORS_PER_PAGE} 0\n")
    partial.rename(path)


def cpu_s(command: list[str], cwd: Path, cache: str) -> float:
    """Run a command; return the CPU time of the process and its children that it has waited for."""
    # An installed package has its modules compiled.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["NANDLAB_CACHE"] = cache
    process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"failed with status {process.returncode}: {' '.join(command)}")
    return usage.ru_utime + usage.ru_stime


class Checkout:
    """A built checkout of the repository."""

    def __init__(self, root: Path, environment: dict[str, str]) -> None:
        self.root = root
        self.nandlab = root / ".venv/bin/nandlab"
        self.has_once = '"--once="' in (root / BENCH).read_text(encoding="utf-8")
        build = ["cargo", "bench", "-p", "nandlab", "--bench", "standing", "--no-run", "--message-format=json"]
        told = subprocess.run(build, cwd=root, env=environment, stdout=subprocess.PIPE, check=True, text=True).stdout
        programs = [json.loads(line).get("executable") for line in told.splitlines()]
        self.bench = next(program for program in programs if program is not None)

    def measure(self, *options: str) -> dict[str, float]:
        """One measurement of the bench program, which prints it as JSON."""
        told = subprocess.run([self.bench, *options], cwd=self.root, stdout=subprocess.PIPE, check=True, text=True)
        measured: dict[str, float] = json.loads(told.stdout)
        return measured

    def command_s(self, spec: Path, cache: str = "off") -> float:
        """The CPU time of the command on a spec. `cache`: the folder of kept traces."""
        command = [str(self.nandlab), "run", str(spec), "--out", str(spec.with_suffix("")), "--force"]
        return cpu_s(command, spec.parent, cache)

    def standing_s(self, _: Path) -> float:
        """The CPU time of a page operation in the standing benchmark."""
        measured = self.measure(f"--once={MAIN_BLOCKS}")
        return measured["cpu_s"] / measured["operations"]


def this_checkout() -> Checkout:
    return Checkout(REPOSITORY, dict(os.environ))


def base_checkout(folder: Path, revision: str) -> Checkout:
    """Build a revision in a worktree of its own."""
    git = ["git", "-C", str(REPOSITORY)]
    told = subprocess.run([*git, "rev-parse", "--verify", f"{revision}^{{commit}}"], stdout=subprocess.PIPE, text=True)
    if told.returncode != 0:
        sys.exit(f"BASE={revision} is not a revision of this repository; name a commit, a branch or a tag")
    root = folder / f"base-{told.stdout.strip()[:12]}"
    if not root.exists():
        subprocess.run([*git, "worktree", "prune"], check=True)
        subprocess.run([*git, "worktree", "add", "--quiet", "--detach", str(root), revision], check=True)
    # The variables of the `make` that runs this tool are not for the other checkout.
    environment = {
        k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")
    }
    environment["CARGO_TARGET_DIR"] = str(root / "target")
    subprocess.run(["make", "--no-print-directory", "build"], cwd=root, env=environment, check=True)
    return Checkout(root, environment)


def same_work(spec: Path, trace: Path, pairs: int) -> dict[str, object]:
    """Measure the command and the bare loops in turn; print and return the figures."""
    here = this_checkout()
    caches = {"text": "off", "kept": str(spec.parent / "traces")}
    here.command_s(spec, caches["kept"])  # compiles the modules of Python, and keeps the trace
    commands: dict[str, list[float]] = {name: [] for name in caches}
    loops: dict[str, list[float]] = {name: [] for name in LOOPS}
    for _ in range(pairs):
        for name, cache in caches.items():
            commands[name].append(here.command_s(spec, cache))
        bare = here.measure(f"--bare={trace}")
        loops["same requests"].append(bare["cpu_s"] / bare["operations"])
        for name, blocks in (("standing, 4 GiB", MAIN_BLOCKS // 4), ("standing, 16 GiB", MAIN_BLOCKS)):
            once = here.measure(f"--once={blocks}")
            loops[name].append(once["bare_cpu_s"] / once["bare_operations"])
    sim = json.loads((spec.with_suffix("") / "sim.json").read_text(encoding="utf-8"))
    operations = sim["page_operations"]
    print(f"same work: {operations} page operations; medians and intervals of {pairs} rounds")
    figures: dict[str, object] = {}
    for trace_name, command in commands.items():
        multiples = {
            name: interval([ours / (operations * loop) for ours, loop in zip(command, times, strict=True)])
            for name, times in loops.items()
        }
        print(f"    the command on a {trace_name} trace: {interval(command)} s of CPU time")
        for name, multiple in multiples.items():
            bare_ns = 1e9 * statistics.median(loops[name])
            print(f"        {multiple} times the bare loop, {name} ({bare_ns:.1f} ns an operation)")
        figures[trace_name] = {
            "cpu_s": command,
            "multiple_of_bare": {name: multiple._asdict() for name, multiple in multiples.items()},
        }
    return {
        "page_operations": operations,
        "bare_ns": {name: [1e9 * time for time in times] for name, times in loops.items()},
        **figures,
    }


def compare(spec: Path, folder: Path, revision: str, pairs: int) -> dict[str, object]:
    """Measure this checkout and a revision in turn; print and return the ratios of their CPU times."""
    here, base = this_checkout(), base_checkout(folder, revision)
    cases: dict[str, Callable[[Checkout, Path], float]] = {"same work": Checkout.command_s}
    if base.has_once:
        cases["standing"] = Checkout.standing_s
    else:
        print(f"standing: not compared, since the standing benchmark of {revision} has no --once")
    figures: dict[str, object] = {}
    for name, measure in cases.items():
        runs: list[tuple[float, float]] = []
        measure(here, spec), measure(base, spec)  # not counted: the first run compiles the modules of Python
        for number in range(pairs):
            if number % 2 == 0:
                ours, theirs = measure(here, spec), measure(base, spec)
            else:
                theirs, ours = measure(base, spec), measure(here, spec)
            runs.append((ours, theirs))
        ratio = interval([ours / theirs for ours, theirs in runs])
        print(f"{name}: {ratio} times the CPU time of {revision}; median and interval of {pairs} pairs")
        figures[name] = {"ratio": ratio._asdict(), "cpu_s": [list(run) for run in runs]}
    return {"base": revision, **figures}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path, help="a scratch folder: trace, results, worktrees")
    parser.add_argument("--base", metavar="REV", help="compare with this revision")
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"number of pairs; default {PAIRS}")
    arguments = parser.parse_args()
    folder = arguments.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    spec, trace = folder / "same-work.toml", folder / "same-work.trace"
    spec.write_text(SPEC, encoding="utf-8")
    if not trace.exists():
        write_trace(trace)
    if arguments.base:
        name, figures = "compared.json", compare(spec, folder, arguments.base, arguments.pairs)
    else:
        name, figures = "figures.json", same_work(spec, trace, arguments.pairs)
    (folder / name).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    print(f"    {folder / name}")


if __name__ == "__main__":
    main()
