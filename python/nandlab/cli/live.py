"""`nandlab live`."""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nandlab import live, units
from nandlab.cli.app import End, Parser
from nandlab.cli.output import fail, say, say_data
from nandlab.cli.quantities import nanoseconds
from nandlab.errors import OutputError

_ORDERS = {
    "stat": "Show requests, simulated IOPS and latencies, and lateness so far.",
    "smart": "Print the SMART log as JSON.",
    "cut": "Power fails now: complete replies are sent, then all connections end.",
    "restore": "Power returns: show the recovery, what the capacitor saved, and what is lost.",
    "detect": "Begin a detection of the dirty budget.",
    "save": "Save a drive with a folder of --data, so that its next server begins soon, however long the session was.",
    "stop": "End the server, and show its results when the drive is saved and can be served again.",
}
#: The most ranges of lost bytes that are listed.
_LISTED_MAX = 20


def add(parser: Parser) -> None:
    """Declare the arguments."""
    parser.define(
        parser.get_default("command"),
        "The drive is the only one that this user serves, unless --socket names another.",
        examples="""
nandlab live stat
nandlab live cut && nandlab live restore
nandlab live stat --socket /run/user/1000/nandlab/db.sock --json | jq .iops
""",
    )
    for order, help_text in _ORDERS.items():
        command = parser.add_command(order, help_text)
        command.define(functools.partial(_give, order))
        _add_socket(command)
        if order == "cut":
            command.add_argument(
                "--in-recovery",
                metavar="T",
                help="While power is off: power returns, and fails again after so much simulated time, such as 300us.",
            )
        command.add_json()
    top = parser.add_command("top", "Show what the drive does, again each second, until Ctrl-C.")
    top.define(_top)
    _add_socket(top)
    top.add_argument("--every", default="1s", metavar="T", help="The time from one look to the next, such as 500ms.")
    top.add_argument("--times", type=int, metavar="N", help="End after so many looks.")
    _add_fdp(parser.add_command("fdp", "Print the logs of placement handles, as nvme-cli does; update a handle."))
    mark = parser.add_command("mark", "Write a mark into the recording of the session.")
    mark.define(_mark)
    mark.add_argument("text", nargs="?", default="", metavar="TEXT", help="A text of one line.")
    _add_socket(mark)
    mount = parser.add_command(
        "mount",
        "Mount the drive's file system through nbdfuse and a loop device, again after a power loss; needs root.",
    )
    mount.define(_mount)
    mount.add_argument("place", type=Path, metavar="DIR", help="An existing folder.")
    mount.add_argument(
        "--fs", default="ext4", metavar="KIND", help="The file system of a drive without one: mkfs.KIND."
    )
    unmount = parser.add_command("unmount", "Unmount the drive's file system.")
    unmount.define(_unmount)
    for command in (mount, unmount):
        _add_socket(command)


def _add_socket(parser: Parser) -> None:
    parser.add_argument("--socket", type=Path, metavar="PATH", help="The socket of the drive's clients.")


def _add_fdp(parser: Parser) -> None:
    from nandlab.cli.fdp import add_logs, show_log

    def show(name: str, options: argparse.Namespace) -> End:
        return show_log(name, _drive(options).fdp(), options)

    def update(options: argparse.Namespace) -> End:
        _drive(options).update_handle(options.placement)
        return End()

    add_logs(parser, _add_socket, show)
    command = parser.add_command("update", "Let a placement identifier go on in a fresh reclaim unit.")
    command.define(update)
    command.add_argument("placement", type=int, metavar="PLACEMENT", help="The placement identifier.")
    _add_socket(command)


def _mount(options: argparse.Namespace) -> End:
    if not options.place.is_dir():
        raise OutputError(f"{options.place} is no folder\n  remedy: create it, or name another")
    _drive(options).mount(options.place, options.fs)
    return End()


def _mark(options: argparse.Namespace) -> End:
    marked = _drive(options).mark(options.text)
    say(f"marked at {units.duration(marked['at_s'])} of simulated time")
    return End()


def _top(options: argparse.Namespace) -> End:
    from nandlab.cli.top import watch
    from nandlab.progress import rich_console

    every_s = nanoseconds("--every", options.every) * 1e-9
    if options.times is not None and options.times < 1:
        raise OutputError(f"--times: {options.times} is below 1")
    drive = _drive(options)
    try:
        watch(drive, rich_console(stderr=False), every_s=every_s, times=options.times)
    except KeyboardInterrupt:
        # That is how it is ended.
        return End()
    return End()


def _unmount(options: argparse.Namespace) -> End:
    _drive(options).unmount()
    return End()


def _give(order: str, options: argparse.Namespace) -> End:
    drive = _drive(options)
    if getattr(options, "in_recovery", None) is not None:
        after_ns = nanoseconds("--in-recovery", options.in_recovery, at_least=0)
        result = drive.cut(in_recovery_s=after_ns * 1e-9)
    elif order == "stop":
        result = drive.stop(waiting=lambda waited_s: fail(f"note: {waited_s:.0f} s: the drive is being saved"))
    else:
        result = getattr(drive, order)()
    if options.json or order == "smart":
        say_data(json.dumps(result, indent=2))
        return End()
    shown: dict[str, Callable[[dict[str, Any]], list[str]]] = {
        "stat": _stat,
        "stop": _stat,
        "cut": _cut,
        "restore": _restored,
        "save": lambda saved: [
            f"saved at {units.duration(saved['at_s'])} of simulated time, in {units.count(saved['bytes'])} bytes"
        ],
        "detect": lambda found: [f"a detection has begun: the capacitor is {found['stage']}"],
    }
    for line in shown[order](result):
        say(line)
    return End()


def _drive(options: argparse.Namespace) -> live.Drive:
    """The drive that --socket names, or the only one."""
    return live.Drive(options.socket or _only())


def _only() -> Path:
    """The socket of the only drive that is served."""
    found = live.running()
    if len(found) == 1:
        return found[0]
    if not found:
        raise OutputError(
            "no drive is served by this user\n"
            "  remedy: start one with `nandlab serve`, or name its socket with --socket"
        )
    names = ", ".join(str(path) for path in found)
    raise OutputError(f"several drives are served: {names}\n  remedy: name one with --socket")


def _stat(stat: dict[str, Any]) -> list[str]:
    from nandlab.cli.serve import summary

    return [f"power  {stat['power']}", *summary(stat)]


def _cut(found: dict[str, Any]) -> list[str]:
    if found["power"] == "on":
        return ["recovery had ended before", *_restored(found["loss"])]
    return ["power is off"]


def _restored(loss: dict[str, Any]) -> list[str]:
    lines = [
        f"power is on; recovery took {units.duration(loss['recovery_s'])} of simulated time",
        f"capacitor  {units.count(loss['flushed_pages'])} of {units.count(loss['dirty_pages'])} dirty units saved, "
        f"{loss['spent_j']:.3g} of {loss['energy_j']:.3g} J used",
    ]
    for promise, meaning in (
        ("covered", "lost although a flush covers them; they read as errors"),
        ("acknowledged", "lost, acknowledged and not flushed"),
        ("in_flight", "in flight, not there"),
    ):
        lost = loss[promise]
        lines.append(f"{promise.replace('_', ' ')}  {units.count(len(lost))} units" + (f" {meaning}" if lost else ""))
        lines += [f"  LPN {of['lpn']} at byte {of['offset']}" for of in lost[:_LISTED_MAX]]
        if len(lost) > _LISTED_MAX:
            lines.append(f"  and {units.count(len(lost) - _LISTED_MAX)} more (--json lists all)")
    return lines
