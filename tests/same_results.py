"""Checks that two builds of nandlab write equal results, byte for byte or number by number.

    python tests/same_results.py make OUT [--nandlab COMMAND] [--root REPOSITORY] [--traces FOLDER]
    python tests/same_results.py compare OUT_A OUT_B
    python tests/same_results.py compare --numbers [--renamed OLD=NEW ...] OUT_A OUT_B

`make` runs the examples, the studies at smoke size, and small drives under every policy of the schemes; the runs of
the small drives check every read, and write all requests and the first flash operations. `compare` excludes the speed
of the simulator (`sim.json`), a study's records of its runs (`run.json`), the folder names of runs, and the version and
identity of the program; everything else must be equal. `compare --numbers` is for a change of texts and names: it
compares every number and truth value of the JSON files and tables, by key after the renames, and no text. Exit status:
0 all are equal, 1 some differ, 2 runs are missing, or a file or program cannot be read or run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: The list of jobs, which `make` writes last: results without this file are incomplete.
MADE = "made.json"
#: The folder for the output of a command, in the folder of its job.
RESULT = "result"
#: A study's table with the labels of its runs; the table in the result has the identities of the runs instead.
BY_LABEL = "results-by-label.parquet"
#: Files that are not compared: the speed of the simulator, and a study's record of a run.
LEFT_OUT = frozenset({"sim.json", "run.json"})


class Refused(Exception):
    """A file cannot be read, or a program cannot be run; the text is the message for the user."""


# --------------------------------------------------------------------------------------------------------------- jobs


@dataclass(frozen=True)
class Job:
    """Commands that are run one after another in the folder of the job."""

    label: str
    commands: Sequence[Sequence[str]]
    #: By name: the content of the files that are written to the folder before the commands run.
    inputs: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Tools:
    """The build under test, and the repository whose specs it runs."""

    nandlab: Path
    python: Path
    root: Path
    #: The folder of recorded traces, for the studies in `real.toml`; `None` leaves these studies out.
    traces: Path | None

    def example(self, name: str) -> bytes:
        """The content of an example's spec."""
        path = self.root / "examples" / f"{name}.toml"
        try:
            return path.read_bytes()
        except OSError as error:
            raise Refused(f"cannot read {path}: {error.strerror}") from None

    def run(self, spec: str, *sets: str, options: Sequence[str] = (), out: str = RESULT) -> list[str]:
        """The command that runs a spec from the folder of the job."""
        settings = [word for one in sets for word in ("--set", one)]
        return [str(self.nandlab), "run", f"{spec}.toml", "--out", out, "--json", *options, *settings]

    def helper(self, *arguments: str) -> list[str]:
        """The command that runs a subcommand of this script with the Python of the build."""
        return [str(self.python), str(Path(__file__).absolute()), *arguments]


#: Overrides that write all requests and the first flash operations.
CHECKED = ("output.requests=true", "output.timeline_operations=4000")
#: Overrides for many detections of the dirty budget.
DETECTIONS = ('capacitor.detect_every="2h"', 'capacitor.detect_grace="10min"')
#: Overrides of examples/life.toml, which has the four schemes, for a worn drive whose blocks are due at the start.
LATE = (*CHECKED, "reliability.pe_cycles=2500", "workload.synthetic.requests=60000")
#: Overrides for a drive without write cache and capacitor.
NO_CACHE = ("cache.size=0B", "cache.sync=none", "cache.dirty_budget=1.0", "capacitor.capacitance=0F")
#: Overrides of examples/small.toml, a drive without the schemes and with little spare space.
PLAIN = (*CHECKED, "workload.synthetic.requests=80000")

#: By group of jobs: the example, the overrides of all jobs, and by name of a job its own overrides.
VARIANTS: Mapping[str, tuple[str, tuple[str, ...], Mapping[str, tuple[str, ...]]]] = {
    "schemes": (
        "life",
        LATE,
        {
            "all": (),
            "young": ("reliability.pe_cycles=0",),
            "start-first": ("ecc.start=first",),
            "start-ideal": ("ecc.start=ideal",),
            "start-block-level": ("ecc.start=block-level",),
            "start-drive-level": ("ecc.start=drive-level",),
            "start-table": ('ecc.start={ table = { rows = [{ pe = 1000, age = "1d", level = 2 }] } }',),
            "retry-incremental": ("ecc.retry=incremental",),
            "eviction-lru": ("ftl.map.demand.eviction=lru",),
            "miss-each": ("ftl.map.demand.miss=each",),
            "write-back-before-insert": ("ftl.map.demand.write_back=before-insert",),
            "translation-level-cached-only": ("ftl.map.demand.translation_level=cached-only",),
            "map-page": ("ftl.map=page",),
            "read-disturb": ("reliability.read_disturb=1e-7",),
            "page-variation": ("reliability.page_variation=0.3",),
            "slc-direct": ("slc.dynamic=0.5", "precondition.used=0.6"),
            "slc-fold": ("slc.dynamic=0.3", "precondition.used=0.6", "slc.when_full=fold", "slc.static=1MiB"),
            "reclaim-reads": ("reliability.read_disturb=1e-6", "reclaim.policy.reads.limit=300"),
            "reclaim-rber": ("reliability.read_disturb=1e-5", "reclaim.policy.rber={ limit = 0.6, every = 16 }"),
            "refresh-none": ("refresh.policy=none",),
            "refresh-fcr": ("refresh.policy=fcr",),
            "refresh-ec-cache": ("refresh.policy=ec-cache",),
            "refresh-partial-paper": ('refresh.policy.partial.encoding="paper"',),
            "refresh-partial-entries": ('refresh.policy.partial.encoding="entries"',),
            "refresh-often": ('refresh.interval=[{ pe = 4000, every = "4h" }]',),
            "too-old": ("refresh.policy=none", "reliability.rber.vth={ cell_to_cell = 0.11 }"),
            "migration-off-chip": ("migration.policy=off-chip",),
            "migration-table": ("migration.policy=rcopyback",),
            "migration-occupied": ("migration.policy.rcopyback.occupancy=occupied",),
            "migration-greedy": ("migration.policy=rcopyback-greedy",),
            "sync-none": ("cache.sync=none", "cache.dirty_budget=1.0"),
            "sync-eager": ("cache.sync=eager",),
            "sync-punctual": ("cache.sync=punctual", "cache.dirty_budget=0.5"),
            "sync-greedy": ("cache.sync=greedy", "cache.dirty_budget=0.5"),
            "evict-cflru": ("cache.sync=punctual", "cache.dirty_budget=0.5", "cache.eviction=cflru"),
            "budget-fixed": ("cache.dirty_budget=0.5",),
            "detections": DETECTIONS,
            "detections-continuous": (*DETECTIONS, "capacitor.steps=continuous", "capacitor.capacitance=5mF"),
            "no-cache": NO_CACHE,
            "streams-sepbit": ("ftl.streams=sepbit",),
            "streams-multi-hash": ("ftl.streams=multi-hash",),
            "wear-dynamic": ("ftl.wear_levelling=dynamic",),
            "wear-none": ("ftl.wear_levelling=none",),
            "wear-gap": ("ftl.wear_gap=2",),
            "fcfs": ("timing.scheduler=fcfs",),
            "off-chip-path": ("timing.off_chip_mb_per_s=400",),
            "suspend": (
                "timing.suspend={ program = { enter = '20us', resume = '20us', min_progress = '100us', max = 3 } }",
            ),
            "allocation-dynamic": ("ftl.allocation=dynamic",),
            "trim": ("workload.synthetic.trim_fraction=0.1",),
            "closed-loop": ("workload.arrival={ queue_depth = 16 }",),
            "cut-csw": ("power.cut_after_requests=30000",),
            "cut-plain": ("power.cut_after_requests=30000", "capacitor.flush=plain"),
            "cut-newest": (
                "power.cut_after_requests=30000",
                "capacitor.flush_order=newest",
                "capacitor.capacitance=1mF",
                "cache.dirty_budget=0.9",
            ),
            "cut-at": ('power.cut_at="2s"',),
            "cut-without-capacitor": (
                "power.cut_after_requests=30000",
                "capacitor.capacitance=0F",
                "cache.dirty_budget=0.9",
                "cache.sync=smart",
            ),
        },
    ),
    "plain": (
        "small",
        PLAIN,
        {
            "greedy": (),
            "cost-benefit": ("gc.victim=cost-benefit",),
            "fifo": ("gc.victim=fifo",),
            "random": ("gc.victim.random={ k = 8 }",),
            "static": ("ftl.wear_levelling=static", "ftl.wear_gap=1"),
            "demand": ('ftl.map.demand={ cache = "64KiB" }',),
            "dynamic": ("ftl.allocation=dynamic", "timing.scheduler=fcfs"),
            "idle": ('workload.arrival={ bursts = { requests = 500, at_once = 0.9, idle = "50ms" } }',),
            "multi-plane": ("timing.multi_plane=true", "ftl.allocation=PCWD", "workload.synthetic.trim_fraction=0.05"),
            "blocking": ("gc.foreground=blocking", "gc.pacing=none", "workload.arrival={ queue_depth = 16 }"),
            "commands": (
                'timing.command={ read = "1us", program = "2us", erase = "3us", multi_plane_program = "3us" }',
                "timing.multi_plane=true",
                "ftl.allocation=PCWD",
            ),
            "link": ('host.link={ mb_per_s = 500, latency = "3us" }', "power.cut_after_requests=40000"),
            "torn": ("power.cut_after_requests=40000", 'timing.program={ lsb = "300us", msb = "900us" }'),
            "worn-out": ("drive.endurance=2", "drive.blocks_per_plane=24", "drive.op=0.28", "precondition.used=0.8"),
        },
    ),
    "power": (
        "power-loss",
        (*CHECKED, "workload.synthetic.requests=80000", "power.cut_after_requests=40000"),
        {
            "csw": (),
            "plain": ("capacitor.flush=plain",),
            "lost": ("capacitor.capacitance=0F", "cache.dirty_budget=0.9"),
            "worn-capacitor": ('capacitor.age="1500d"', "cache.dirty_budget=0.9", "capacitor.capacitance=30mF"),
            "metadata": (
                "capacitor.flush_order=metadata",
                'capacitor.metadata="8MiB"',
                "capacitor.capacitance=20mF",
                "cache.dirty_budget=0.9",
            ),
        },
    ),
    "refresh": (
        "partial-refresh",
        (*CHECKED, "workload.synthetic.requests=50000"),
        {
            "partial": (),
            "fcr": ("refresh.policy=fcr",),
            "ec-cache": ("refresh.policy=ec-cache",),
        },
    ),
    "combined": ("combined", (*CHECKED, "workload.synthetic.requests=60000"), {"all": ()}),
}


def jobs(tools: Tools) -> Iterator[Job]:
    """All jobs of `make`; the studies, which take longest, are first."""
    yield from study_jobs(tools)
    yield from example_jobs(tools)
    yield from trace_jobs(tools)
    for group, (spec, common, variants) in VARIANTS.items():
        inputs = {f"{spec}.toml": tools.example(spec)}
        for name, sets in variants.items():
            yield Job(f"{group}/{name}", [tools.run(spec, *common, *sets, options=["--verify"])], inputs)
    yield from saved_drive_jobs(tools)
    inputs = {"life.toml": tools.example("life")}
    yield Job("stepping/schemes", [tools.helper("step", "life.toml", RESULT, "reliability.pe_cycles=2500")], inputs)
    inputs = {"power-loss.toml": tools.example("power-loss")}
    yield Job("stepping/power", [tools.helper("step", "power-loss.toml", RESULT)], inputs)


def study_jobs(tools: Tools) -> Iterator[Job]:
    """A job for each study at smoke size; studies of recorded traces (`real.toml`) only with a folder of traces."""
    found = sorted((tools.root / "studies").glob("*/study.toml"))
    if not found:
        raise Refused(f"expected studies in {tools.root}, found none: name a repository of nandlab with --root")
    if tools.traces is not None:
        found += sorted((tools.root / "studies").glob("*/real.toml"))
    for path in found:
        label = f"studies/{path.parent.name}" + ("" if path.stem == "study" else f"-{path.stem}")
        study = [str(tools.nandlab), "study", str(path), "--smoke", "--workers", "1", "--out", RESULT, "--json"]
        yield Job(label, [study, tools.helper("by-label", RESULT, BY_LABEL)])


def example_jobs(tools: Tools) -> Iterator[Job]:
    """A job for each example (`life` by `nandlab life`, `trace` on a generated trace), and for two more lives."""
    for path in sorted((tools.root / "examples").glob("*.toml")):
        inputs = {path.name: path.read_bytes()}
        command = tools.run(path.stem)
        if path.stem == "life":
            command[1] = "life"
        elif path.stem == "trace":
            command = tools.run(path.stem, "workload.trace=hm_0.csv")
            inputs["hm_0.csv"] = msr_trace()
        yield Job(f"examples/{path.stem}", [command], inputs)
    lives = {"no-cache": NO_CACHE, "wear-dynamic": ("ftl.wear_levelling=dynamic", "refresh.policy=fcr")}
    for name, sets in lives.items():
        command = tools.run("life", *sets, options=["--windows", "6", "--requests", "10000"])
        command[1] = "life"
        yield Job(f"life/{name}", [command], {"life.toml": tools.example("life")})


def trace_jobs(tools: Tools) -> Iterator[Job]:
    """Jobs that play a trace with TRIM, flush and FUA: with and without write cache, with and without power loss."""
    sets = (*CHECKED, "workload.trace=mixed.blkparse", "workload.arrival=trace", "reliability.pe_cycles=2500")
    inputs = {"life.toml": tools.example("life"), "mixed.blkparse": mixed_trace()}
    variants: dict[str, tuple[str, ...]] = {
        "cache": (),
        "no-cache": NO_CACHE,
        "cut": ("power.cut_after_requests=10000",),
        "cut-without-capacitor": (
            "power.cut_after_requests=10000",
            "capacitor.capacitance=0F",
            "cache.dirty_budget=0.9",
        ),
    }
    for name, more in variants.items():
        yield Job(f"trace/{name}", [tools.run("life", *sets, *more, options=["--verify"])], inputs)


def saved_drive_jobs(tools: Tools) -> Iterator[Job]:
    """Jobs that save a drive after preconditioning, and then run the saved drive."""
    for spec, requests in (("small", 40_000), ("steady", 40_000), ("life", 20_000)):
        sets = (*CHECKED, f"workload.synthetic.requests={requests}")
        save = tools.run(spec, *sets, options=["--save-drive", "saved.drive"])
        load = tools.run(spec, *sets, "precondition.load=saved.drive", "seed=2", options=["--verify"], out="loaded")
        yield Job(f"saved/{spec}", [save, load], {f"{spec}.toml": tools.example(spec)})


def msr_trace() -> bytes:
    """A trace of reads and writes in the format of the MSR Cambridge traces."""
    dice = random.Random(1)
    ticks, lines = 128_166_372_000_000_000, []
    for _ in range(30_000):
        ticks += int(dice.random() * 20_000)
        op = "Read" if dice.random() < 0.4 else "Write"
        offset, length = int(dice.random() ** 3 * 4_000_000) * 4096, 4096 * (1 + int(dice.random() * 8))
        lines.append(f"{ticks},hm,0,{op},{offset},{length},100\n")
    return "".join(lines).encode()


def mixed_trace() -> bytes:
    """A blkparse trace of reads, writes, FUA writes, TRIMs and flushes in bursts, on 86 MiB."""
    dice = random.Random(2)
    time_us, lines = 0, []
    for number in range(1, 30_001):
        time_us += 5_000_000 if number % 5_000 == 0 else 20_000 if number % 100 == 0 else int(dice.random() * 400)
        drawn = dice.random()
        op = "R" if drawn < 0.4 else "W" if drawn < 0.9 else "WF" if drawn < 0.93 else "D" if drawn < 0.98 else "FN"
        sectors = 8 * (1 + int(dice.random() * (64 if op == "D" else 6)))
        place = "" if op == "FN" else f"{int(dice.random() ** 2 * 22_000) * 8} + {sectors} "
        stamp = f"{time_us // 1_000_000}.{time_us % 1_000_000:06}000"
        lines.append(f"  8,0    0 {number} {stamp} 1  D  {op:>2} {place}[test]\n")
    return "".join(lines).encode()


# --------------------------------------------------------------------------------------------------------------- make


def make(out: Path, tools: Tools, only: str | None) -> None:
    """Run all jobs into `out`, two at a time."""
    for program in (tools.nandlab, tools.python):
        if not program.is_file():
            raise Refused(f"cannot find {program}: build it with `make build`, or name a command with --nandlab")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise Refused(f"expected an empty or a new folder, found {out}")
    wanted = [job for job in jobs(tools) if only is None or re.search(only, job.label)]
    out.mkdir(parents=True, exist_ok=True)
    begin_s = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        under_way = {pool.submit(run_job, out / job.label, job, tools): job for job in wanted}
        try:
            for done in as_completed(under_way):
                print(f"{under_way[done].label}  {done.result():.1f} s", flush=True)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    made = {"jobs": sorted(job.label for job in wanted)}
    (out / MADE).write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    units = read_made(out)
    files = sum(len(unit.files) for unit in units.values())
    took = time.monotonic() - begin_s
    print(f"{files} files of {len(units)} runs, by {len(wanted)} jobs in {took:.0f} s: {out}")


def run_job(folder: Path, job: Job, tools: Tools) -> float:
    """Run the commands of a job; return the duration in seconds."""
    begin_s = time.monotonic()
    folder.mkdir(parents=True)
    for name, content in job.inputs.items():
        (folder / name).write_bytes(content)
    environment = {name: value for name, value in os.environ.items() if name != "NANDLAB_TRACES"}
    if tools.traces is not None:
        environment["NANDLAB_TRACES"] = str(tools.traces)
    for command in job.commands:
        done = subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            errors = "\n".join(done.stderr.strip().splitlines()[-12:])
            raise Refused(f"{job.label}: exit status {done.returncode} of\n  {shlex.join(command)}\n{errors}")
    return time.monotonic() - begin_s


# ------------------------------------------------------------------- subcommands run with the package of the build


def step(spec: Path, out: Path, sets: Sequence[str]) -> None:
    """Send requests one by one to a `nandlab.Drive`, and write its completions and state after each group of them."""
    import nandlab
    from nandlab.tables import to_parquet

    drive = nandlab.Drive(nandlab.load(spec, sets), verify=True)
    out.mkdir()
    dice = random.Random(3)
    answers: list[Any] = []
    for turn in range(64):
        for _ in range(150):
            drawn = dice.random()
            offset, length = int(dice.random() ** 2 * 20_000) * 4096, 4096 * (1 + int(dice.random() * 8))
            if drawn < 0.45:
                drive.read(offset, length)
            elif drawn < 0.92:
                drive.write(offset, length, fua=drawn > 0.9)
            elif drawn < 0.98:
                drive.trim(offset, length)
            else:
                drive.flush()
            drive.advance(drive.now_ns + int(dice.random() * 400_000))
        if turn % 8 == 2:
            answers.append({"detecting": drive.detect_budget()})
        if turn % 8 == 5:
            answers.append({"loss": drive.cut_power()})
        if turn % 8 == 7:
            drive.run_until_idle()
            drive.advance(drive.now_ns + 2_000_000_000)
        answers.append(
            {
                "now_ns": drive.now_ns,
                "outstanding": drive.outstanding,
                "capacitor": drive.capacitor,
                "cache": drive.cache_pages,
                "completions": drive.completions(),
            }
        )
    drive.flush()
    drive.run_until_idle()
    drive.audit()
    answers.append({"now_ns": drive.now_ns, "completions": drive.completions()})
    files = {"steps": answers, "power": drive.power(), "summary": drive.summary(), "smart": drive.smart()}
    for name, content in files.items():
        (out / f"{name}.json").write_text(json.dumps(content, indent=1, default=dict) + "\n", encoding="utf-8")
    for table in ("series", "dies", "latency", "blocks"):
        (out / f"{table}.parquet").write_bytes(to_parquet(drive.table(table)))


def by_label(study: Path, out: Path) -> None:
    """Write a study's table with the labels of its runs in place of their identities."""
    import polars as pl
    from nandlab.tables import to_parquet

    labels = run_labels(study / "runs")
    frame = pl.read_parquet(study / "results.parquet")
    named = pl.Series("run", [labels[run] for run in frame["run"].to_list()], dtype=pl.String)
    out.write_bytes(to_parquet(frame.with_columns(named)))


# ------------------------------------------------------------------------------------------------------------ compare


@dataclass
class Unit:
    """The files of one run: path by name within the run."""

    files: dict[str, Path] = field(default_factory=dict)
    #: By identity: the labels of the runs of the study to which this run belongs.
    labels: Mapping[str, str] = field(default_factory=dict)


def run_labels(runs: Path) -> dict[str, str]:
    """The labels of a study's runs, by identity; empty if there is no folder of runs."""
    labels: dict[str, str] = {}
    for kept in sorted(runs.glob("*/run.json")):
        try:
            facts = json.loads(kept.read_text(encoding="utf-8"))
            labels[kept.parent.name] = str(facts["label"])
        except (OSError, ValueError, KeyError) as error:
            raise Refused(f"cannot read the label of a run from {kept}: {error}") from None
    twice = sorted({label for label in labels.values() if list(labels.values()).count(label) > 1})
    if twice:
        raise Refused(f"{runs}: several runs have the label {', '.join(twice)}")
    return labels


def read_made(out: Path) -> dict[str, Unit]:
    """The files of all runs that `make` has written, by label of the run."""
    try:
        made: list[str] = json.loads((out / MADE).read_text(encoding="utf-8"))["jobs"]
    except (OSError, ValueError, KeyError):
        raise Refused(f"expected finished results in {out}, found no {MADE}: write results with `make`") from None
    units: dict[str, Unit] = {}
    for job in made:
        folder = out / job
        labels = run_labels(folder / RESULT / "runs")
        for path in sorted(folder.rglob("*")):
            if not path.is_file() or path.name in LEFT_OUT:
                continue
            place = path.relative_to(folder)
            label, name = job, place.as_posix()
            if place.parts[:2] == (RESULT, "runs") and len(place.parts) > 3:
                if place.parts[2] not in labels:
                    raise Refused(f"{folder / RESULT / 'runs' / place.parts[2]} has no run.json, which names the run")
                label, name = f"{job}: {labels[place.parts[2]]}", Path(*place.parts[3:]).as_posix()
            units.setdefault(label, Unit(labels=labels)).files[name] = path
    return units


#: By name of a file: the pattern of the version of the program, which is not compared.
VERSION = {
    "summary.json": re.compile(rb'^(\s*"nandlab": ")[^"]*(")', re.MULTILINE),
    "life.json": re.compile(rb'^(\s*"nandlab": ")[^"]*(")', re.MULTILINE),
    "nandlab-result.json": re.compile(rb'^(\s*"version": ")[^"]*(")', re.MULTILINE),
    "report.html": re.compile(rb"(<footer>nandlab )[^,<]*(,)"),
}
#: The identity of a run in the report of a study, where it is shortened, and in its claims.
IDENTITY = {
    "report.html": re.compile(rb"(?<=<code>)[0-9a-f]{12}(?=</code>)"),
    "claims.json": re.compile(rb'(?<=")[0-9a-f]{24}(?=")'),
}


def content(path: Path, labels: Mapping[str, str]) -> bytes:
    """The bytes of a file without the version of the program, and with the labels of a study's runs for identities."""
    data = path.read_bytes()
    if path.name in VERSION:
        data = VERSION[path.name].sub(rb"\1-\2", data, count=1)
    if path.name in IDENTITY:
        named = {name[:length].encode(): label.encode() for name, label in labels.items() for length in (12, 24)}
        data = IDENTITY[path.name].sub(lambda found: named.get(found[0], found[0]), data)
    return data


def compare(out_a: Path, out_b: Path) -> int:
    """Compare two results of `make` and print the differences; return the exit status."""
    ours, theirs = read_made(out_a), read_made(out_b)
    files = differ = 0
    alone = sorted(ours.keys() ^ theirs.keys())
    for label in alone:
        print(f"{label}: only in {out_a if label in ours else out_b}")
    for label in sorted(ours.keys() & theirs.keys()):
        a, b = ours[label], theirs[label]
        found = {}
        for name in sorted(a.files.keys() | b.files.keys()):
            files += 1
            found[name] = difference(name, a, b, out_a, out_b)
        table = f"{RESULT}/results.parquet"
        if found.get(table) is not None and found.get(BY_LABEL, "absent") is None:
            print(f"{label}  {table}: differs only in the identities of runs, which are not compared")
            found[table] = None
        for name, what in found.items():
            if what is not None:
                differ += 1
                print(f"{label}  {name}: {what}")
    verdict = f"{differ} differ" if differ else "all are equal"
    runs = len(ours.keys() & theirs.keys())
    if alone:
        print(f"{files} files of {runs} runs: {verdict}, and {len(alone)} runs are in only one of the results")
        return 2
    print(f"{files} files of {runs} runs: {verdict}")
    return 1 if differ else 0


def difference(name: str, a: Unit, b: Unit, out_a: Path, out_b: Path) -> str | None:
    """A description of the difference of a file between two results; `None` if the file is equal."""
    if name not in a.files or name not in b.files:
        return f"only in {out_a if name in a.files else out_b}"
    one, other = content(a.files[name], a.labels), content(b.files[name], b.labels)
    if one == other:
        return None
    if name.endswith(".json"):
        try:
            return first_difference(json.loads(one), json.loads(other), "") or "equal values in different text"
        except ValueError:
            pass
    pairs = enumerate(zip(one, other, strict=False))
    at = next((place for place, (x, y) in pairs if x != y), min(len(one), len(other)))
    return f"differs from byte {at} on; the files have {len(one)} and {len(other)} bytes"


def first_difference(a: Any, b: Any, key: str) -> str | None:
    """The first key at which two JSON values differ, with both values."""
    if isinstance(a, dict) and isinstance(b, dict):
        if list(a) != list(b):
            missing = [name for name in [*a, *b] if name not in a or name not in b]
            return (
                f"{key or 'the file'} has other keys: {', '.join(missing[:4])}"
                if missing
                else f"{key or 'the file'} has its keys in another order"
            )
        for name in a:
            found = first_difference(a[name], b[name], f"{key}.{name}" if key else name)
            if found is not None:
                return found
        return None
    if isinstance(a, list) and isinstance(b, list):
        for place, (one, other) in enumerate(zip(a, b, strict=False)):
            found = first_difference(one, other, f"{key}[{place}]")
            if found is not None:
                return found
        return None if len(a) == len(b) else f"{key} has {len(a)} and {len(b)} entries"
    if type(a) is type(b) and a == b:
        return None
    return f"{key}: {json.dumps(a)[:60]} and {json.dumps(b)[:60]}"


# -------------------------------------------------------------------------------------------------- compare --numbers


def compare_numbers(out_a: Path, out_b: Path, renamed: Mapping[str, str]) -> int:
    """Compare the numbers of two results of `make` and print the differences; return the exit status."""
    ours, theirs = read_made(out_a), read_made(out_b)
    alone = sorted(ours.keys() ^ theirs.keys())
    for label in alone:
        print(f"{label}: only in {out_a if label in ours else out_b}")
    total = files = differ = 0
    for label in sorted(ours.keys() & theirs.keys()):
        a, b = ours[label], theirs[label]
        for name in sorted(a.files.keys() | b.files.keys()):
            if not name.endswith((".json", ".parquet")):
                continue
            files += 1
            if name not in a.files or name not in b.files:
                what: str | None = f"only in {out_a if name in a.files else out_b}"
            elif name.endswith(".json"):
                one, other = (
                    dict(json_numbers(json.loads(path.read_bytes()), "")) for path in (a.files[name], b.files[name])
                )
                one = {renamed_key(key, renamed): value for key, value in one.items()}
                total += len(other)
                what = first_other_number(one, other)
            else:
                count, what = compare_tables(a.files[name], b.files[name], renamed)
                total += count
            if what is not None:
                differ += 1
                print(f"{label}  {name}: {what}")
    verdict = f"{differ} files differ" if differ else "all are equal"
    print(f"{total} numbers of {files} files of {len(ours.keys() & theirs.keys())} runs: {verdict}")
    return 2 if alone else 1 if differ else 0


def json_numbers(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    """Dotted key and value of each number and truth value in a JSON value, and of the length of each list."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from json_numbers(inner, f"{key}.{name}" if key else name)
    elif isinstance(value, list):
        yield f"{key}[]", len(value)
        for place, inner in enumerate(value):
            yield from json_numbers(inner, f"{key}[{place}]")
    elif isinstance(value, (bool, int, float)):
        yield key, value


def renamed_key(key: str, renamed: Mapping[str, str]) -> str:
    """The key after the renames; a rename applies to the whole key or to its end after a dot."""
    for old, new in renamed.items():
        if key == old or key.endswith(f".{old}"):
            return key[: len(key) - len(old)] + new
    return key


def first_other_number(one: Mapping[str, Any], other: Mapping[str, Any]) -> str | None:
    """A description of the first key whose numbers differ; `None` if all are equal."""
    for key in (*one, *other):
        if key not in one or key not in other:
            return f"{key} is only in the {'first' if key in one else 'second'} result"
        if type(one[key]) is not type(other[key]) or one[key] != other[key]:
            return f"{key}: {one[key]} and {other[key]}"
    return None


def compare_tables(a: Path, b: Path, renamed: Mapping[str, str]) -> tuple[int, str | None]:
    """Compares the columns of two tables that hold no text; returns the count of values and the first difference."""
    import polars as pl

    one, other = pl.read_parquet(a), pl.read_parquet(b)
    one = one.rename({name: renamed_key(name, renamed) for name in one.columns})
    if sorted(one.columns) != sorted(other.columns):
        return 0, f"other columns: {', '.join(sorted({*one.columns} ^ {*other.columns}))}"
    if one.height != other.height:
        return 0, f"{one.height} and {other.height} rows"
    count = 0
    for name in other.columns:
        if one[name].dtype != other[name].dtype:
            return count, f"column {name}: {one[name].dtype} and {other[name].dtype}"
        if other[name].dtype in (pl.String, pl.Categorical) or isinstance(other[name].dtype, pl.Enum):
            continue
        count += other.height
        if not one[name].equals(other[name]):
            return count, f"column {name} differs"
    return count, None


# ------------------------------------------------------------------------------------------------------------ command


def tools_of(arguments: argparse.Namespace) -> Tools:
    """The programs and folders given by the arguments."""
    here = Path(__file__).absolute().parents[1]
    command: Path | None = arguments.nandlab
    if command is not None and len(command.parts) == 1:
        found = shutil.which(command)
        command = Path(found) if found is not None else command
    nandlab = (command or here / ".venv/bin/nandlab").absolute()
    root = arguments.root
    if root is None:
        # A command in .venv/bin belongs to the repository that contains .venv.
        around = nandlab.parents[2] if len(nandlab.parents) > 2 else here
        root = around if (around / "examples").is_dir() else here
    traces = arguments.traces
    if traces is not None and not traces.is_dir():
        raise Refused(f"expected a folder of traces, found no folder {traces}")
    return Tools(nandlab, nandlab.with_name("python"), root.absolute(), None if traces is None else traces.absolute())


def renames_of(words: Sequence[str]) -> dict[str, str]:
    """Keys and their new names, from words of the form OLD=NEW."""
    renames: dict[str, str] = {}
    for word in words:
        old, equals, new = word.partition("=")
        if not (old and equals and new):
            raise Refused(f"--renamed: expected OLD=NEW, found {word}")
        renames[old] = new
    return renames


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    making = verbs.add_parser("make", help="run all jobs and write their results to OUT")
    making.add_argument("out", type=Path, metavar="OUT")
    making.add_argument("--nandlab", type=Path, help="the command; default: .venv/bin/nandlab of this repository")
    making.add_argument(
        "--root", type=Path, help="repository of examples and studies; default: the repository of the command"
    )
    making.add_argument("--traces", type=Path, help="folder of recorded traces: also run the studies in real.toml")
    making.add_argument("--only", metavar="PATTERN", help="run only jobs whose label matches this regular expression")
    comparing = verbs.add_parser("compare", help="compare all files of two results of make")
    comparing.add_argument("out_a", type=Path, metavar="OUT_A")
    comparing.add_argument("out_b", type=Path, metavar="OUT_B")
    comparing.add_argument("--numbers", action="store_true", help="compare only numbers: texts may differ")
    comparing.add_argument(
        "--renamed",
        action="append",
        default=[],
        metavar="OLD=NEW",
        help="with --numbers: a key in OUT_A and its new name in OUT_B",
    )
    stepping = verbs.add_parser("step", help="used by make: send requests to a drive from Python")
    stepping.add_argument("spec", type=Path)
    stepping.add_argument("out", type=Path)
    stepping.add_argument("sets", nargs="*")
    naming = verbs.add_parser("by-label", help="used by make: write a study's table with labels of runs")
    naming.add_argument("study", type=Path)
    naming.add_argument("out", type=Path)
    arguments = parser.parse_args()
    try:
        match arguments.verb:
            case "make":
                make(arguments.out, tools_of(arguments), arguments.only)
            case "compare" if arguments.numbers:
                return compare_numbers(arguments.out_a, arguments.out_b, renames_of(arguments.renamed))
            case "compare" if arguments.renamed:
                raise Refused("--renamed needs --numbers")
            case "compare":
                return compare(arguments.out_a, arguments.out_b)
            case "step":
                step(arguments.spec, arguments.out, arguments.sets)
            case "by-label":
                by_label(arguments.study, arguments.out)
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
