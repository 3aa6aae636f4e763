"""Measures the processor time of a request in NBD servers: the memory server of nandlab-live, and nbdkit.

python tools/live_cpu.py SERVER [--requests N] [--rounds N] [--depths 1,32] [--json FILE]

SERVER is the program `examples/memory` of nandlab-live. fio's engine nbd sends requests of 4 KiB at random offsets of
256 MiB, a fixed number of them in each round; the servers take turns, so that other load on the machine meets both. The
time is user and system time of the server process, from /proc/PID/stat.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIZE = 256 << 20


def processor_seconds(pid: int) -> float:
    """User and system time of a process, with its threads, also of those that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def send(uri: str, operation: str, depth: int, requests: int) -> float:
    """Sends requests with fio; returns its own IOPS."""
    command = [
        "fio",
        "--name=x",
        "--ioengine=nbd",
        f"--uri={uri}",
        f"--rw={operation}",
        "--bs=4k",
        f"--iodepth={depth}",
    ]
    command += [f"--size={SIZE}", f"--number_ios={requests}", f"--io_size={requests * 4096}", "--norandommap"]
    command += ["--refill_buffers", "--randrepeat=0", "--output-format=json"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    job = json.loads(output[output.index("{") :])["jobs"][0]
    return float(job["read"]["iops"] + job["write"]["iops"])


def main() -> None:
    """Runs the rounds and prints a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("server")
    parser.add_argument("--requests", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--depths", default="1,32")
    parser.add_argument("--json")
    parser.add_argument("--other", help="a second program to be measured in place of nbdkit")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = f"{folder}/ours", f"{folder}/theirs"
        other = ["nbdkit", "-f", "-U", theirs, "memory", str(SIZE)]
        if arguments.other:
            other = [arguments.other, str(SIZE), "--unix", theirs]
        commands = {"nandlab": (ours, [arguments.server, str(SIZE), "--unix", ours]), "other": (theirs, other)}
        servers = {name: subprocess.Popen(command, stdout=sys.stderr) for name, (_, command) in commands.items()}
        uris = {name: f"nbd+unix:///?socket={path}" for name, (path, _) in commands.items()}
        try:
            while not all(Path(path).exists() for path, _ in commands.values()):
                time.sleep(0.05)
            for uri in uris.values():
                send(uri, "write", 32, SIZE // 4096)
            rows = []
            for operation in ("randread", "randwrite"):
                for depth in map(int, arguments.depths.split(",")):
                    requests = arguments.requests if depth > 1 else arguments.requests // 4
                    rows.append(measure(servers, uris, operation, depth, requests, arguments.rounds))
        finally:
            for server in servers.values():
                server.terminate()
                server.wait()
    for row in rows:
        print(
            f"{row['operation']:9} QD {row['depth']:3}  nandlab {row['nandlab_us']:6.2f} us"
            f"  other {row['other_us']:6.2f} us"
            f"  ratio {row['ratio']:.3f} ({row['ratio_min']:.3f} to {row['ratio_max']:.3f})"
            f"  IOPS {row['nandlab_iops']:,.0f} and {row['other_iops']:,.0f}"
        )
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=1))


def measure(
    servers: dict[str, subprocess.Popen[bytes]],
    uris: dict[str, str],
    operation: str,
    depth: int,
    requests: int,
    rounds: int,
) -> dict[str, float | str]:
    """Medians over rounds in which the servers take turns."""
    times: dict[str, list[float]] = {name: [] for name in servers}
    rates: dict[str, list[float]] = {name: [] for name in servers}
    for number in range(rounds):
        for name in sorted(servers, reverse=number % 2 == 1):
            before = processor_seconds(servers[name].pid)
            rates[name].append(send(uris[name], operation, depth, requests))
            times[name].append((processor_seconds(servers[name].pid) - before) / requests * 1e6)
    ratios = [ours / theirs for ours, theirs in zip(times["nandlab"], times["other"], strict=True)]
    row: dict[str, float | str] = {"operation": operation, "depth": depth, "requests": requests}
    row |= {"ratio": statistics.median(ratios), "ratio_min": min(ratios), "ratio_max": max(ratios)}
    for name in servers:
        row[f"{name}_us"] = statistics.median(times[name])
        row[f"{name}_iops"] = statistics.median(rates[name])
    return row


if __name__ == "__main__":
    main()
