"""`nandlab serve`."""

from __future__ import annotations

import argparse
import json
import math
import re
from pathlib import Path
from typing import Any

from nandlab import _core, live, memory, units
from nandlab.cli.app import End, Parser, stop
from nandlab.cli.output import fail, say, say_data
from nandlab.errors import OutputError
from nandlab.spec import read_spec

#: Units of a time, in nanoseconds.
_TIMES = {"us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}


def add(parser: Parser) -> None:
    """Declare the arguments."""
    parser.define(
        serve,
        "Clients connect over NBD (network block device): qemu, nbdcopy, fio, libnbd, and through nbdfuse every file "
        "system. The URI is the first line of the output. The drive begins as its spec preconditions it; data of "
        "preconditioning reads as zeros. The data is gone when the server ends.",
        "`nandlab live` gives orders to the drive: it cuts power, and shows the results so far. Ctrl-C, SIGTERM or "
        "`nandlab live stop` ends the server, which then prints its results.",
        examples="""
nandlab serve drive.toml
nandlab serve drive.toml --speed max --socket /run/user/1000/nandlab/db.sock
nandlab serve drive.toml --tcp 127.0.0.1:10809
nandlab serve drive.toml --cut-every 30s
""",
    )
    parser.add_argument("spec", type=Path, metavar="SPEC.toml", help="The spec. Its workload is not used.")
    parser.add_sets()
    parser.add_argument(
        "--socket",
        type=Path,
        metavar="PATH",
        help="The Unix socket of the clients, for this user alone; in the folder of this user's sockets when absent.",
    )
    parser.add_argument("--tcp", metavar="ADDRESS:PORT", help="Also listen on this TCP address; port 0: any free one.")
    parser.add_argument(
        "--allow-remote",
        action="store_true",
        help="Allow a TCP address that other machines can reach. NBD has no passwords.",
    )
    parser.add_argument(
        "--speed",
        default="1",
        metavar="max|F",
        help="Simulated seconds a second, 1 when absent. max: simulated time waits for the clients, so that their work "
        "takes no simulated time.",
    )
    parser.add_argument(
        "--spin",
        action="store_true",
        help="Poll in place of sleeping: replies are less late, and a processor is busy all the time.",
    )
    parser.add_argument(
        "--gather",
        type=int,
        metavar="N",
        help="With --speed max: answer N completions together, 1 when absent. Takes less processor time; the drive "
        "sees fewer outstanding requests.",
    )
    parser.add_argument(
        "--patience",
        metavar="T",
        help="With --speed max: the longest time of this machine for which simulated time waits for a client that "
        "sends nothing, 10ms when absent (us, ms, s, min, h). A busy machine needs more.",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="A folder for the data that exceeds half of the memory that the drive leaves free; without it such data "
        "is refused.",
    )
    parser.add_argument(
        "--cut-every",
        metavar="T",
        help="Power fails, and returns at once, each time so much simulated time has passed, such as 30s (us, ms, s, "
        "min, h).",
    )
    parser.add_argument(
        "--cut-after", type=int, metavar="N", help="Power fails once, and returns at once, after N completed requests."
    )
    parser.add_json()


def serve(options: argparse.Namespace) -> End:
    """Run the command."""
    speed = _speed(options.speed)
    if speed is not None and options.gather is not None:
        raise OutputError("--gather: replies wait for each other only with --speed max\n  remedy: leave out --gather")
    if speed is not None and options.patience is not None:
        raise OutputError(
            "--patience: simulated time waits for clients only with --speed max\n  remedy: leave out --patience"
        )
    for name, value in (("--gather", options.gather), ("--cut-after", options.cut_after)):
        if value is not None and not 1 <= value < 2**31:
            raise OutputError(f"{name}: {value} is not from 1 to 2^31 - 1")
    spec = read_spec(options.spec, options.sets)
    settings = json.loads(spec.canonical_json())
    _check(settings, options)
    needed = memory.check(spec, serve=True)
    if "workload" in settings:
        fail("note: the workload of the spec is not used: the clients make the requests")
    path = options.socket or live.folder() / f"{options.spec.stem}.sock"
    orders = live.orders_path(path)
    _make_folder(path.parent)
    free = memory.available()
    values = {
        "socket": path,
        "tcp": options.tcp,
        "allow_remote": options.allow_remote,
        "orders": orders,
        "speed": speed,
        "gather": options.gather,
        "spin": options.spin,
        "memory": (free - needed if free is not None else 1 << 33) // 2,
        "data": options.data,
        "cut_every_ns": None if options.cut_every is None else _nanoseconds("--cut-every", options.cut_every),
        "patience_ns": None if options.patience is None else _nanoseconds("--patience", options.patience),
        "cut_after": options.cut_after,
    }

    def ready(uris: list[str]) -> None:
        for uri in uris:
            print(uri, flush=True)

    result: dict[str, Any] = json.loads(_core.serve(spec, values, ready))
    if options.json:
        say_data(json.dumps(result, indent=2))
    else:
        for line in summary(result):
            say(line)
    return End(stop.status if stop else 0)


def _check(settings: dict[str, Any], options: argparse.Namespace) -> None:
    """Refuse settings and options that do not go together."""
    if settings.get("precondition", {}).get("map_reads"):
        raise OutputError(
            "precondition.map_reads: what clients will read is not known when a drive is served\n"
            "  remedy: --set precondition.map_reads=false, and precondition.method to fill the drive"
        )
    if options.cut_after is not None and settings.get("power", {}).get("cut_at"):
        raise OutputError("--cut-after: power.cut_at lets power fail at a time\n  remedy: choose one of them")
    if options.data is not None and not options.data.is_dir():
        raise OutputError(f"--data: {options.data} is no folder\n  remedy: create it, or name another")


def _make_folder(folder: Path) -> None:
    """Make the parents of the folder of a socket; the server makes the folder itself, for this user alone."""
    if not folder.parent.is_dir():
        raise OutputError(f"--socket: there is no folder {folder.parent}\n  remedy: create it, or name another socket")


def _speed(text: str) -> float | None:
    """The simulated seconds a second; `None` for `max`."""
    if text == "max":
        return None
    try:
        speed = float(text)
    except ValueError:
        speed = math.nan
    if not 1e-6 <= speed <= 1e6:
        raise OutputError(f"--speed: {text} is neither max nor a number from 0.000001 to 1,000,000")
    return speed


def _nanoseconds(option: str, text: str) -> int:
    """The value of an option that is a time with a unit, at least a millisecond."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([a-z]+)", text)
    if found is None or found[2] not in _TIMES:
        raise OutputError(
            f"{option}: {text} is no time with a unit\n  remedy: write for example 30s (us, ms, s, min, h)"
        )
    nanoseconds = round(float(found[1]) * _TIMES[found[2]])
    if not 1_000_000 <= nanoseconds < 2**60:
        raise OutputError(f"{option}: {text} is not from 1 ms to 36 years")
    return nanoseconds


def summary(stat: dict[str, Any]) -> list[str]:
    """The results of a live drive, in lines for the screen."""
    server = stat["server"]
    lines = [
        f"requests  {units.count(server['requests'])}: {units.count(server['reads'])} reads, "
        f"{units.count(server['writes'])} writes, "
        f"{units.count(server['trims'] + server['zeroings'])} trims and zeroings, "
        f"{units.count(server['flushes'])} flushes; {units.count(server['failed'])} failed",
        f"simulated  {units.duration(stat['simulated_s'])}, of which {units.duration(stat['busy_s'])} with requests: "
        f"{units.count(stat['iops'])} requests/s at a mean depth of {units.number(float(stat['depth']))}",
    ]
    for op in ("read", "write"):
        if stat["host"][op]["count"]:
            of = stat["latency_us"][op]
            lines.append(f"{op} latency  p50 {units.number(of['p50'])} us, p99 {units.number(of['p99'])} us")
    if stat["power_losses"]:
        lines.append(f"power losses  {stat['power_losses']}")
    if stat["failure"]:
        lines.append(f"the drive has failed: {stat['failure']}")
    late = stat["lateness"]
    if late and late["late_us"]["count"]:
        lines.append(
            f"lateness  p50 {units.number(late['late_us']['p50'])} us, p99 {units.number(late['late_us']['p99'])} us; "
            f"a timer alone: p50 {units.number(late['timer_us']['p50'])} us, "
            f"p99 {units.number(late['timer_us']['p99'])} us"
        )
        if not late["keeps_up"]:
            possible = stat["speed"] / late["slower_by"]
            lines.append(
                f"this machine does not keep up: replies were late by {units.share(late['late_share'])} of their time "
                f"on average; with --speed {possible:.2g} it would be 10 %, and --speed max does not depend on the "
                "machine"
            )
    return lines
