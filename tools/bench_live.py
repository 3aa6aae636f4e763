"""Measures the server of live drives: its processor time a request, and how late its replies are.

    python tools/bench_live.py MEMORY [--requests N] [--rounds N] [--json FILE]

MEMORY is the program `examples/memory` of nandlab-live: the server without a simulated drive. Beside it are nbdkit's
memory plugin, and `nandlab serve --speed max --gather 32`. fio's engine nbd sends requests of 4 KiB at random offsets
of 256 MiB. The servers take turns in each round, so that other load on the machine meets all of them. The time is
user and system time of the server's process, from /proc/PID/stat. The time of a request in `nandlab run` is that of
the same drive and load without a server: the difference between a run of twice the requests and a run of them, so
that the start does not count.

The window is measured by three servers of the same drive: without it, with it and `--no-explain`, and with it as it is
by default, its page read each second. They get the same requests in each round; the time is that of the process's
clock, and what is printed is the median of the rounds' ratios with the interval of it that 95 % of such samples have.

The lateness is that of replies at `--speed 1`, at queue depth 1, from due to handed to the system, beside a timer of
the same machine to which nothing else is done. Nothing here fails because a machine is slow: the goals are printed
beside the values.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import nandlab
from nandlab import live

SIZE = 256 << 20
DEPTH = 32
#: The most that the window may add to the processor time of the server, in percent.
WINDOW_MAX = 2.0
DRIVE = """\
seed = 1
[drive]
channels = 2
chips_per_channel = 2
dies_per_chip = 1
planes_per_die = 2
pages_per_block = 128
page_size = "4KiB"
cell = "slc"
capacity = "400MiB"
endurance = 1000000
[timing]
read = "50us"
program = "300us"
erase = "1ms"
[precondition]
used = 0.8
valid = 0.9
"""


class Served(NamedTuple):
    """A server that clients can reach."""

    pid: int
    uri: str


def processor_seconds(pid: int) -> float:
    """User and system time of a process, with its threads, also of those that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def clock_seconds(pid: int) -> float:
    """The processor time of a process by its clock, in nanoseconds resolution (CPUCLOCK_SCHED of Linux)."""
    return time.clock_gettime((~pid << 3) | 2)


def send(uri: str, operation: str, depth: int, requests: int, seed: int | None = None) -> None:
    """Sends requests with fio: with a seed the same ones each time."""
    command = ["fio", "--name=x", "--ioengine=nbd", f"--uri={uri}", f"--rw={operation}", "--bs=4k"]
    command += [f"--iodepth={depth}", f"--size={SIZE}", f"--number_ios={requests}", f"--io_size={requests * 4096}"]
    command += ["--norandommap", "--refill_buffers"]
    command += ["--randrepeat=0"] if seed is None else [f"--randseed={seed}"]
    subprocess.run(command, check=True, capture_output=True)


@contextlib.contextmanager
def process(command: list[str], path: Path) -> Iterator[Served]:
    """A server on a Unix socket while the block runs."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=sys.stderr) as server:
        try:
            while not path.exists():
                time.sleep(0.05)
            yield Served(server.pid, f"nbd+unix:///?socket={path}")
        finally:
            server.terminate()


@contextlib.contextmanager
def simulated(folder: Path, speed: str, *options: str) -> Iterator[live.Drive]:
    """A simulated drive while the block runs."""
    spec = folder / "drive.toml"
    spec.write_text(DRIVE)
    with live.serve(spec, *options, speed=speed) as drive:
        yield drive


def run_us(folder: Path, operation: str, requests: int) -> float:
    """The processor time of a request in `nandlab run`, in µs."""

    def seconds(count: int) -> float:
        synthetic = {"requests": count, "read_fraction": float(operation == "randread"), "size": "4KiB"}
        synthetic["address"] = "uniform"
        sets = {"workload.synthetic": synthetic, "workload.arrival": {"queue_depth": DEPTH}}
        spec = nandlab.load(folder / "drive.toml", sets=sets)
        before = resource.getrusage(resource.RUSAGE_SELF)
        nandlab.run(spec)
        after = resource.getrusage(resource.RUSAGE_SELF)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return (seconds(2 * requests) - seconds(requests)) / requests * 1e6


def processor_rows(folder: Path, memory: str, requests: int, rounds: int) -> list[dict[str, float | str]]:
    """The processor time of a request in each server, in µs: medians over rounds in which the servers take turns."""
    ours, theirs = folder / "ours.sock", folder / "theirs.sock"
    with contextlib.ExitStack() as stack:
        servers = {"memory": stack.enter_context(process([memory, str(SIZE), "--unix", str(ours)], ours))}
        if shutil.which("nbdkit"):
            command = ["nbdkit", "-f", "-U", str(theirs), "memory", str(SIZE)]
            servers["nbdkit"] = stack.enter_context(process(command, theirs))
        else:
            print("skipped: nbdkit is not installed (Debian: nbdkit)")
        drive = stack.enter_context(simulated(folder, "max", "--gather", str(DEPTH)))
        assert drive.pid is not None
        servers["simulated"] = Served(drive.pid, drive.uri)
        for server in servers.values():
            send(server.uri, "write", DEPTH, SIZE // 4096)
        rows: list[dict[str, float | str]] = []
        for operation in ("randread", "randwrite"):
            times: dict[str, list[float]] = {name: [] for name in servers}
            for number in range(rounds):
                for name in sorted(servers, reverse=number % 2 == 1):
                    before = processor_seconds(servers[name].pid)
                    send(servers[name].uri, operation, DEPTH, requests)
                    times[name].append((processor_seconds(servers[name].pid) - before) / requests * 1e6)
            row: dict[str, float | str] = {"operation": operation}
            row |= {name: statistics.median(of) for name, of in times.items()}
            row["run"] = statistics.median(run_us(folder, operation, requests) for _ in range(rounds))
            rows.append(row)
    return rows


@contextlib.contextmanager
def watched(folder: Path, name: str, *options: str) -> Iterator[Served]:
    """A simulated drive at `--speed max`; the page of its window, if it has one, is read each second."""
    (folder / "drive.toml").write_text(DRIVE)
    words = ["serve", str(folder / "drive.toml"), "--socket", str(folder / f"{name}.sock")]
    words += ["--speed", "max", "--gather", str(DEPTH), *options]
    command = [sys.executable, "-m", "nandlab", *words]
    has_ended = threading.Event()

    def read(address: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        while not has_ended.wait(1.0):
            with urllib.request.urlopen(urllib.request.Request(f"{address}snapshot", headers=headers)) as answer:
                answer.read()

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        reader = None
        try:
            assert server.stdout is not None
            uri = server.stdout.readline().strip()
            if "--http" in options:
                address, _, token = server.stdout.readline().strip().rpartition("#")
                reader = threading.Thread(target=read, args=(address, token))
                reader.start()
            yield Served(server.pid, uri)
        finally:
            has_ended.set()
            if reader is not None:
                reader.join()
            server.terminate()


def median_and_interval(values: list[float]) -> tuple[float, float, float]:
    """The median of a sample, and the order statistics between which the median of what it is from is, at 95 %."""
    ordered, count = sorted(values), len(values)
    below, rank = 0.5**count, 0
    while rank + 1 < count // 2 and below + math.comb(count, rank + 1) * 0.5**count <= 0.025:
        rank += 1
        below += math.comb(count, rank) * 0.5**count
    return statistics.median(ordered), ordered[rank], ordered[count - 1 - rank]


def window_rows(folder: Path, requests: int, rounds: int) -> list[dict[str, str | list[float]]]:
    """The processor time of a request without a window, with one that explains nothing, and with one: by round, us."""
    window = ("--http", "127.0.0.1:0")
    options = {"without": (), "unexplained": (*window, "--no-explain"), "window": window}
    with contextlib.ExitStack() as stack:
        servers = {name: stack.enter_context(watched(folder, name, *words)) for name, words in options.items()}
        for server in servers.values():
            send(server.uri, "write", DEPTH, SIZE // 4096)
        rows: list[dict[str, str | list[float]]] = []
        for operation in ("randread", "randwrite"):
            times: dict[str, list[float]] = {name: [] for name in servers}
            for number in range(rounds):
                for name in sorted(servers, reverse=number % 2 == 1):
                    before = clock_seconds(servers[name].pid)
                    send(servers[name].uri, operation, DEPTH, requests, seed=number + 1)
                    times[name].append((clock_seconds(servers[name].pid) - before) / requests * 1e6)
            rows.append({"operation": operation, **times})
    return rows


def say_window(rows: list[dict[str, str | list[float]]]) -> None:
    """Prints what the window costs."""
    print(f"what the window adds to the processor time of the server, % (goal: at most {WINDOW_MAX:g})")
    for row in rows:
        of = {name: values for name, values in row.items() if not isinstance(values, str)}
        shown = [f"{row['operation']:9}  without {statistics.median(of['without']):.2f} us"]
        for name in ("unexplained", "window"):
            more = [100 * (b / a - 1) for a, b in zip(of["without"], of[name], strict=True)]
            shown.append("{} {:+.1f} ({:+.1f} to {:+.1f})".format(name, *median_and_interval(more)))
        print("  ".join(shown))


def lateness(folder: Path, requests: int, *options: str) -> dict[str, dict[str, float]]:
    """The lateness of reads at queue depth 1 and `--speed 1`, and of a timer alone, in µs."""
    with simulated(folder, "1", *options) as drive:
        send(drive.uri, "randread", 1, requests)
        late = drive.stat()["lateness"]
    return {"late": late["late_us"], "timer": late["timer_us"]}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("memory")
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--window-rounds", type=int, default=15)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if shutil.which("fio") is None:
        print("skipped: make bench-live needs fio with its engine nbd (Debian: fio)")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = processor_rows(folder, options.memory, options.requests, options.rounds)
        window = window_rows(folder, options.requests, options.window_rounds)
        late = {
            "sleeping": lateness(folder, options.requests // 20),
            "--spin": lateness(folder, options.requests // 20, "--spin"),
        }
    print(f"processor time of a request of 4 KiB at queue depth {DEPTH}, µs")
    for row in rows:
        shown = "  ".join(f"{name} {value:.2f}" for name, value in row.items() if not isinstance(value, str))
        simulated_us, memory_us, of_run = (float(row[name]) for name in ("simulated", "memory", "run"))
        is_read = row["operation"] == "randread"
        goal = f"at most {memory_us + 1.2 * of_run + 0.5:.2f}" if is_read else "at most 8"
        print(f"{row['operation']:9}  {shown}  (goal: simulated {goal}; is {simulated_us:.2f})")
        if "nbdkit" in row:
            share = memory_us / float(row["nbdkit"])
            print(f"{'':9}  memory / nbdkit {share:.2f} (goal: at most {0.5 if is_read else 0.55})")
    say_window(window)
    print("lateness of reads at queue depth 1, --speed 1, µs")
    for kind, of in late.items():
        reply, timer = of["late"], of["timer"]
        print(
            f"{kind:9}  p50 {reply['p50']:.1f}, a timer alone {timer['p50']:.1f} (goal: at most "
            f"{8 if kind == '--spin' else 10} more); p99 {reply['p99']:.1f}, a timer alone {timer['p99']:.1f} "
            "(goal: at most 1.5 x)"
        )
    if options.json:
        options.json.write_text(json.dumps({"processor_us": rows, "window_us": window, "lateness_us": late}, indent=1))


if __name__ == "__main__":
    main()
