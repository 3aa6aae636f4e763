"""`nandlab live top`: what a live drive does, on the terminal."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from nandlab import live, units
from nandlab.errors import OutputError, visible
from nandlab.explained import words

#: The most parts of the waiting time that are listed.
_PARTS = 6

Stat = Mapping[str, Any]


def watch(drive: live.Drive, console: Console, *, every_s: float, times: int | None) -> None:
    """Show the drive every so many seconds, until it is interrupted or has been shown so many times."""
    before = _look(drive)
    last = frame(before, before, 0.0)
    try:
        with Live(last, console=console, auto_refresh=False, screen=console.is_terminal) as shown:
            left = times
            while left is None or left > 1:
                time.sleep(every_s)
                try:
                    now = _look(drive)
                except OutputError:
                    # The server has ended: what it did last stays on the screen.
                    return
                last = frame(before, now, now["at"] - before["at"])
                shown.update(last, refresh=True)
                before = now
                left = None if left is None else left - 1
    finally:
        # What was shown last stays where the other commands are.
        console.print(last if console.is_terminal else "")


def _look(drive: live.Drive) -> dict[str, Any]:
    return {"at": time.monotonic(), "stat": drive.stat(), "state": drive.state()}


def frame(before: Stat, now: Stat, took_s: float) -> RenderableType:
    """What is shown: the results so far as `nandlab live stat` has them, and the rates since the look before."""
    stat, state = now["stat"], now["state"]

    def rate(*path: str) -> str:
        new, old = now["stat"], before["stat"]
        for key in path:
            new, old = new[key], old[key]
        return _rate(new, old, took_s)

    is_on = stat["power"] == "on"
    head = Text.assemble(
        ("power ", "dim"),
        (stat["power"], "bold green" if is_on else "bold red"),
        ("   simulated ", "dim"),
        units.duration(stat["simulated_s"]),
        ("   outstanding ", "dim"),
        units.count(stat["outstanding"]),
        ("   WAF ", "dim"),
        units.number(stat["waf"]),
    )
    requests = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("", "requests", "a second", "MB/s", "p50 µs", "p99 µs", "p99.9 µs"):
        requests.add_column(name, justify="right" if name else "left")
    for op in ("read", "write"):
        latency = stat["latency_us"][op]
        moved = f"bytes_{'read' if op == 'read' else 'written'}"
        new, old = stat["server"][moved], before["stat"]["server"][moved]
        requests.add_row(
            op,
            units.count(stat["host"][op]["count"]),
            rate("host", op, "count"),
            _rate(new, old, took_s, 1e6),
            *(units.number(latency[of]) for of in ("p50", "p99", "p999")),
        )
    tables = [requests]
    if "placement" in stat:
        tables.append(_handles(before["stat"], stat, took_s))
    rows = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    rows.add_column(style="dim")
    rows.add_column()
    rows.add_row("dies", ", ".join(f"{units.count(of)} {work}" for work, of in state["dies"].items() if of))
    blocks = state["superblocks"]
    rows.add_row("superblocks", ", ".join(f"{units.count(of)} {name}" for name, of in blocks.items() if of))
    programmed = _programmed(before["state"], state)
    if programmed:
        total = sum(programmed.values())
        shares = (f"{cause} {units.share(of / total)}" for cause, of in programmed.items())
        rows.add_row("programmed", f"{units.count(total)} pages: {', '.join(shares)}")
    rows.add_row("jobs", f"{units.count(state['jobs'])} lanes at work, {units.count(state['victims'])} victims of GC")
    for key, name in (("buffer", "write buffer"), ("cache", "write cache"), ("dirty", "saved by capacitor")):
        if state[key]:
            of = state[key]
            rows.add_row(name, f"{units.count(of['used'])} of {units.count(of['budget'])} units")
    if state["capacitor"]:
        of = state["capacitor"]
        rows.add_row("capacitor", f"{of['stage']}, {of['energy_j'] * 1e3:.3g} of {of['energy_j_full'] * 1e3:.3g} mJ")
    cycles = state["pe_cycles"]
    rows.add_row("P/E cycles", f"{cycles['min']} to {cycles['max']}, mean {units.number(cycles['mean'])}")
    if state["parts_ns"]:
        total = sum(state["parts_ns"].values())
        for at, (part, ns) in enumerate(list(state["parts_ns"].items())[:_PARTS]):
            rows.add_row("" if at else "waited for", f"{words(part)} {units.share(ns / total)}")
        rows.add_row("", f"({units.count(state['explained'])} reads and writes are explained)")
    if stat["failure"]:
        rows.add_row("failure", visible(stat["failure"]))
    return Group(head, *tables, rows)


def _rate(new: float, old: float, took_s: float, unit: float = 1.0) -> str:
    """What came between two looks, in units a second."""
    return units.number((new - old) / took_s / unit) if took_s > 0 else "-"


def _handles(before: Stat, now: Stat, took_s: float) -> Table:
    """The placement handles: what was written and copied since the look before, and results so far."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("placement", "written MB/s", "copied MB/s", "WAF", "erases", "write p99 µs"):
        table.add_column(name, justify="right" if name != "placement" else "left")
    for identifier, of in now["placement"]["handles"].items():
        old = before["placement"]["handles"][identifier]
        found = (now["by_placement"] or {}).get(identifier)
        p99 = "-" if found is None else units.number(found["latency_us"]["write"]["p99"])
        rates = (_rate(of[key], old[key], took_s, 1e6) for key in ("host_bytes", "copied_bytes"))
        table.add_row(identifier, *rates, units.number(of["waf"]), units.count(of["erases"]), p99)
    return table


def _programmed(before: Stat, now: Stat) -> dict[str, int]:
    """The pages programmed and copied back between two looks, by cause."""
    found: dict[str, int] = {}
    for kind in ("program", "copyback"):
        for cause, count in now["flash"][kind].items():
            more = count - before["flash"][kind][cause]
            if more > 0:
                found[cause] = found.get(cause, 0) + more
    return found
