"""`nandlab serve`."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import time
from pathlib import Path
from typing import Any

from nandlab import _core, live, memory, units
from nandlab.cli.app import End, Parser, stop
from nandlab.cli.output import fail, say, say_data
from nandlab.cli.quantities import nanoseconds, size_bytes
from nandlab.errors import OutputError
from nandlab.results import Measured, OutputDirectory, RunResult
from nandlab.simulate import peak_rss_bytes
from nandlab.spec import read_live

#: The recording of the session in the folder of --data.
JOURNAL = "session.rec"
#: The drive with its data there, from which the session goes on.
CHECKPOINT = "checkpoint"


def add(parser: Parser) -> None:
    """Declare the arguments."""
    parser.define(
        serve,
        "Clients connect over NBD (network block device): qemu, nbdcopy, fio, libnbd, and through nbdfuse every file "
        "system. The URI is the first line of the output. The drive begins as its spec preconditions it; data of "
        "preconditioning reads as zeros. The data is gone when the server ends, unless --data names a folder for it.",
        "`nandlab live` gives orders to the drive: it cuts power, and shows the results so far. Ctrl-C, SIGTERM or "
        "`nandlab live stop` ends the server, which then prints its results.",
        examples="""
nandlab serve drive.toml
nandlab serve drive.toml --speed max --socket /run/user/1000/nandlab/db.sock
nandlab serve drive.toml --tcp 127.0.0.1:10809
nandlab serve drive.toml --http 127.0.0.1:8080    # a page that shows what the drive does
nandlab serve drive.toml --cut-every 30s
nandlab serve drive.toml --record session.rec    # nandlab run session.rec: the same results again
nandlab serve drive.toml --data ~/db-drive       # the next call goes on with the drive
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
        "--http",
        metavar="ADDRESS:PORT",
        help="Serve a page that shows what the drive does, such as 127.0.0.1:8080; port 0: any free one. The address "
        "with its token is printed below the URIs.",
    )
    parser.add_argument(
        "--no-explain",
        action="store_true",
        help="With --http: slow requests are not explained, which saves processor time with each request.",
    )
    parser.add_argument(
        "--allow-remote",
        action="store_true",
        help="Allow addresses of --tcp and --http that other machines can reach. NBD has no passwords, and HTTP sends "
        "the token in the clear.",
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
        help="A folder that keeps the drive: it holds the data, and the recording of the session, with which the next "
        "call goes on, after a server that was killed too. Without a folder the data is in memory, and refused where "
        "it exceeds half of the memory that the drive leaves free.",
    )
    parser.add_argument(
        "--replay-max",
        metavar="T",
        help="With --data: save the drive by itself when going on with it would take longer than this time of this "
        "machine beside reading what is saved, 1500ms when absent (us, ms, s, min, h).",
    )
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="Record the session in a new file: all requests with their data, power failures and orders. `nandlab run "
        "FILE` plays it again, and for other drives it is a trace.",
    )
    parser.add_argument(
        "--record-limit",
        metavar="SIZE",
        help="The longest recording, such as 10GiB; the server ends before it would be longer.",
    )
    parser.add_argument(
        "--sync",
        action="store_true",
        help="The recording is on the disk before the reply to a flush or a write with FUA leaves, so that it outlives "
        "this machine, and not only the server.",
    )
    parser.add_argument(
        "--ack",
        type=Path,
        metavar="PIPE",
        help="A named pipe (mkfifo): each line that programs write to it is recorded as acknowledged at the simulated "
        "time at which it is read.",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="Write the results of the session to this directory, as `nandlab run` does.",
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
    parser.add_force()


def serve(options: argparse.Namespace) -> End:
    """Run the command."""
    speed = _speed(options.speed)
    if speed is not None and options.gather is not None:
        raise OutputError("--gather: replies wait for each other only with --speed max\n  remedy: leave out --gather")
    if speed is not None and options.patience is not None:
        raise OutputError(
            "--patience: simulated time waits for clients only with --speed max\n  remedy: leave out --patience"
        )
    if options.no_explain and options.http is None:
        raise OutputError("--no-explain: no page explains requests\n  remedy: leave it out, or add --http")
    _check_recording(options)
    for name, value in (("--gather", options.gather), ("--cut-after", options.cut_after)):
        if value is not None and not 1 <= value < 2**31:
            raise OutputError(f"{name}: {value} is not from 1 to 2^31 - 1")
    spec = read_live(options.spec, options.sets)
    if options.cut_after is not None:
        _check_cut_after(json.loads(spec.canonical_json()))
        spec = spec.with_([f"power.cut_after_requests={options.cut_after}"])
    settings = json.loads(spec.canonical_json())
    _check(settings, options)
    needed = memory.check(spec, serve=True, explain=options.http is not None and not options.no_explain)
    if "workload" in settings:
        fail("note: the workload of the spec is not used: the clients make the requests")
    path = options.socket or live.folder() / f"{options.spec.stem}.sock"
    orders = live.orders_path(path)
    _make_folder(path.parent)
    free = memory.available()
    journal = None if options.data is None else options.data / JOURNAL
    values = {
        "socket": path,
        "tcp": options.tcp,
        "http": options.http,
        "explain": not options.no_explain,
        "allow_remote": options.allow_remote,
        "orders": orders,
        "speed": speed,
        "gather": options.gather,
        "spin": options.spin,
        "memory": (free - needed if free is not None else 1 << 33) // 2,
        "cut_every_ns": None if options.cut_every is None else nanoseconds("--cut-every", options.cut_every),
        "patience_ns": None if options.patience is None else nanoseconds("--patience", options.patience),
        "record": options.record,
        "journal": journal,
        "replay_max_ns": None
        if options.replay_max is None
        else nanoseconds("--replay-max", options.replay_max, at_least=0),
        "checkpoint": None if options.data is None else options.data / CHECKPOINT,
        "record_limit": None
        if options.record_limit is None
        else size_bytes("--record-limit", options.record_limit, 1 << 16),
        "acks": options.ack,
        "sync": options.sync,
        "results": options.out is not None,
        "folder": str(options.spec.parent.absolute()),
    }

    def ready(uris: list[str], resumed: tuple[int, int, bool] | None) -> None:
        if resumed is not None:
            for line in _resumed(journal, *resumed):
                fail(line)
        # A program that waits for the URI may end the server at once.
        for uri in uris:
            print(uri, flush=True)

    begin = time.perf_counter()
    with OutputDirectory(options.out, force=options.force) if options.out else contextlib.nullcontext() as output:
        stat, outcome = _core.serve(spec, values, ready, lambda text: fail(f"note: {text}"))
        if output is not None and outcome is not None:
            _write(output, outcome, options.spec.stem, time.perf_counter() - begin)
    result: dict[str, Any] = json.loads(stat)
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
    if options.data is not None and not options.data.is_dir():
        raise OutputError(f"--data: {options.data} is no folder\n  remedy: create it, or name another")


def _check_cut_after(settings: dict[str, Any]) -> None:
    if settings.get("power", {}).get("cut_at"):
        raise OutputError("--cut-after: power.cut_at lets power fail at a time\n  remedy: choose one of them")


def _check_recording(options: argparse.Namespace) -> None:
    """Refuse options of recordings that do not go together."""
    if options.record is not None and options.data is not None:
        raise OutputError(
            f"--record: {options.data} of --data holds a recording already\n  remedy: leave out --record, and name "
            f"{options.data / JOURNAL} where a recording is wanted"
        )
    if options.replay_max is not None and options.data is None:
        raise OutputError("--replay-max: the drive is not kept\n  remedy: add --data DIR, or leave out --replay-max")
    for name, value in (("--record-limit", options.record_limit), ("--sync", options.sync or None)):
        if value is not None and options.record is None and options.data is None:
            raise OutputError(f"{name}: nothing is recorded\n  remedy: add --record FILE or --data DIR")


def _resumed(journal: Path | None, records: int, torn: int, was_clean: bool) -> list[str]:
    """What is said of a session that goes on."""
    lines = [f"note: {journal}: the drive goes on after {units.count(records)} records"] if records else []
    if torn:
        lines.append(
            f"note: {units.count(torn)} bytes of a record that was not whole were dropped: no reply was sent for it"
        )
    if not was_clean:
        lines.append("note: the last server was killed: its requests were completed, and then power failed")
    return lines


def _write(output: OutputDirectory, outcome: _core.Result, name: str, wall_s: float) -> None:
    """Write the results of the session."""
    counted = json.loads(outcome.sim)
    measured = Measured(
        page_operations=counted["page_operations"],
        requests=counted["requests"],
        wall_s=round(wall_s, 6),
        precondition_wall_s=0.0,
        requests_per_s=round(counted["requests"] / wall_s, 3),
        page_ops_per_s=round(counted["page_operations"] / wall_s, 3),
        peak_rss_mb=round(peak_rss_bytes() / 1e6, 3),
    )
    RunResult.from_core(outcome, name, measured).write_to(output)


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


def _saved(checkpoints: dict[str, Any] | None) -> str:
    """What is said of the checkpoints of a kept drive beside its recording."""
    if checkpoints is None:
        return ""
    text = f", which takes {units.duration(checkpoints['replay_s'])} to play"
    if checkpoints["count"]:
        pauses = units.duration(checkpoints["pause_max_s"])
        text += f", since the last of {units.count(checkpoints['count'])} checkpoints; pauses of at most {pauses}"
    if checkpoints["failed"]:
        text += f"; {units.count(checkpoints['failed'])} checkpoints have failed"
    return text


def _handles(placement: dict[str, Any]) -> list[str]:
    """The placement handles of a live drive, a line for each."""
    lines = [f"MBMW / HBMW  {units.number(placement['waf'])}"]
    for identifier, of in placement["handles"].items():
        lines.append(
            f"placement {identifier}  {units.size(of['host_bytes'])} written, {units.size(of['copied_bytes'])} copied, "
            f"WAF {units.number(of['waf'])}, {units.count(of['erases'])} superblocks erased"
        )
    if writes := placement["events"]["invalid_identifier"]:
        lines.append(f"{units.count(writes)} writes with an unknown placement, written to placement 0")
    return lines


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
            lines.append(f"{op} latency  p50 {units.number(of['p50'])} µs, p99 {units.number(of['p99'])} µs")
    if "placement" in stat:
        lines += _handles(stat["placement"])
    if stat["recording"]:
        lines.append(f"recording  {units.count(stat['recording']['bytes'])} bytes" + _saved(stat["checkpoints"]))
    if stat["power_losses"]:
        lines.append(f"power losses  {stat['power_losses']}")
    if stat["failure"]:
        lines.append(f"the drive has failed: {stat['failure']}")
    late = stat["lateness"]
    if late and late["late_us"]["count"]:
        lines.append(
            f"lateness  p50 {units.number(late['late_us']['p50'])} µs, p99 {units.number(late['late_us']['p99'])} µs; "
            f"a timer alone: p50 {units.number(late['timer_us']['p50'])} µs, "
            f"p99 {units.number(late['timer_us']['p99'])} µs"
        )
        if not late["keeps_up"]:
            possible = stat["speed"] / late["slower_by"]
            lines.append(
                f"this machine does not keep up: replies were late by {units.share(late['late_share'])} of their time "
                f"on average; with --speed {possible:.2g} it would be 10 %, and --speed max does not depend on the "
                "machine"
            )
    return lines
