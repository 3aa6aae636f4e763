"""What a terminal shows: progress on stderr, the summary on stdout."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column, Table
from rich.text import Text

from nandlab.simulate import Progress as Report
from nandlab.units import count, duration, number, size

#: Nothing shorter than this gets a progress bar.
_QUIET_S = 2.0
#: Between two progress lines where there is no terminal.
_LINE_S = 10.0


class RunProgress:
    """Progress of one run: a bar on a terminal, else a line every ten seconds; nothing for short runs."""

    def __init__(self, name: str, *, bar: bool) -> None:
        self.stop = False
        self._name = name
        self._bar: Progress | None = None
        self._want_bar = bar and sys.stderr.isatty()
        self._last_line_s = 0.0
        self._rate = _Rate()

    def __enter__(self) -> RunProgress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, report: Report) -> bool:
        self._rate.add(report)
        if self._want_bar:
            if self._bar is None and report.wall_s >= _QUIET_S:
                self._bar = Progress(
                    TextColumn("{task.description}"),
                    BarColumn(bar_width=24),
                    _Facts(table_column=Column(no_wrap=True, overflow="ellipsis")),
                    console=Console(stderr=True),
                    transient=True,
                )
                self._task = self._bar.add_task(self._name, total=1.0)
                self._bar.start()
            if self._bar is not None:
                waiting = report.phase == "precondition" and report.share <= 0
                self._bar.update(
                    self._task,
                    total=None if waiting else 1.0,
                    completed=report.share,
                    facts=self._facts(report),
                )
        elif report.wall_s - self._last_line_s >= _LINE_S:
            self._last_line_s = report.wall_s
            print(f"{self._name}: {report.share:.0%}, {self._facts(report)}", file=sys.stderr, flush=True)
        return not self.stop

    def _facts(self, report: Report) -> str:
        if report.phase == "precondition":
            return f"preconditioning, {duration(report.wall_s)}"
        facts = [f"{count(report.requests)} requests", f"{duration(report.sim_time_s)} simulated"]
        if self._rate.requests_per_s > 0:
            facts.append(f"{count(self._rate.requests_per_s)} requests/s")
        if report.share >= 1:
            facts.append("all submitted")
        elif self._rate.share_per_s > 0:
            facts.append(f"{duration((1 - report.share) / self._rate.share_per_s)} left")
        return ", ".join(facts)


class _Rate:
    """Rates over the last few seconds."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, int, float]] = []
        self.requests_per_s = 0.0
        self.share_per_s = 0.0

    def add(self, report: Report) -> None:
        if report.phase == "precondition":
            return
        self._seen.append((time.perf_counter(), report.requests, report.share))
        while self._seen[-1][0] - self._seen[0][0] > 10:
            del self._seen[0]
        (begin_s, requests, share), (end_s, requests_end, share_end) = self._seen[0], self._seen[-1]
        if end_s > begin_s:
            self.requests_per_s = (requests_end - requests) / (end_s - begin_s)
            self.share_per_s = (share_end - share) / (end_s - begin_s)


class _Facts(ProgressColumn):
    def render(self, task: Task) -> Text:
        percent = f"{task.percentage:3.0f} %  " if task.total else ""
        facts = percent + str(task.fields.get("facts", ""))
        return Text(facts, style="progress.remaining", no_wrap=True, overflow="ellipsis")


#: Counts of the summary that need a word when they are not zero: for one, for many.
_TROUBLE = {
    "requests_unfinished": ("request", "had not completed when the run ended"),
    "requests_failed": ("request", "failed"),
    "requests_wrapped": ("request", "beyond the drive wrapped into it"),
    "records_skipped": ("malformed trace record", "skipped"),
    "blocks_retired": ("block", "retired"),
}
#: From this latency on, microseconds are too long to read.
_LONG_US = 1e7


def happened(summary: Mapping[str, Any], op: str) -> bool:
    """Whether the host asked for any `op`."""
    return bool(((summary.get("host") or {}).get(op) or {}).get("count"))


def show_summary(
    summary: Mapping[str, Any], sim: Mapping[str, Any], console: Console, notes: Sequence[str] = ()
) -> None:
    """The headline numbers of a run, on one screen, and the `notes` on them."""
    console.print(_headline(summary))
    latency = summary.get("latency_us") or {}
    ops = [op for op in ("read", "write", "trim", "flush") if happened(summary, op)]
    rows = [(op, latency[op]) for op in (*ops, *(["all"] if len(ops) > 1 else [])) if latency.get(op)]
    if rows:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        long = any((values.get("max") or 0) >= _LONG_US for _, values in rows)
        table.add_column("latency" if long else "latency, us")
        keys = [key for key in ("mean", "p50", "p95", "p99", "p999", "max") if any(key in v for _, v in rows)]
        for key in keys:
            table.add_column("p99.9" if key == "p999" else key, justify="right")
        for op, values in rows:
            table.add_row(op, *(_latency(values.get(key), long) for key in keys))
        console.print(table)
    for key, (what, happening) in _TROUBLE.items():
        if found := summary.get(key):
            console.print(f"[yellow]{count(found)} {what}{'' if found == 1 else 's'} {happening}[/]")
    for note in notes:
        console.print(f"[yellow]{escape(note)}[/]")
    uncorrectable = (summary.get("ecc") or {}).get("uncorrectable") or 0
    if uncorrectable:
        console.print(f"[red]{count(uncorrectable)} pages could not be read (media errors)[/]")
    if sim.get("wall_s") is not None:
        speed = f", {count(sim['requests_per_s'])} requests/s" if sim.get("requests_per_s") else ""
        console.print(f"[dim]simulated in {duration(sim['wall_s'])}{speed}[/]", highlight=False)


def _latency(us: float | None, long: bool) -> str:
    if not long or us is None:
        return number(us)
    return f"{number(us * 1e-6)} s" if us >= 1e6 else duration(us * 1e-6)


def _headline(summary: Mapping[str, Any]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column(justify="right", style="bold")
    table.add_column(style="dim")
    table.add_column(justify="right", style="bold")
    host = summary.get("host") or {}
    moved = {op: (host.get(op) or {}) for op in ("read", "write")}
    erases = summary.get("erases") or {}
    cells = [
        ("requests", count(summary.get("requests"))),
        ("simulated", duration(summary.get("duration_s"))),
        ("IOPS", number(summary.get("iops"))),
        ("MB/s", number(summary.get("mb_per_s"))),
        ("read", size(moved["read"].get("bytes"))),
        ("written", size(moved["write"].get("bytes"))),
        ("WAF", number(summary.get("waf"))),
        ("erases a block", number(erases.get("mean"))),
        ("energy", _joules(summary.get("energy_j"))),
        ("steady state", steady_verdict(summary)),
    ]
    for (name, value), (name_right, value_right) in zip(cells[::2], cells[1::2], strict=True):
        table.add_row(name, value, name_right, value_right)
    return table


def steady_verdict(summary: Mapping[str, Any]) -> str:
    """`reached`, `not reached` or `-`."""
    met = (summary.get("steady_state") or {}).get("met")
    return "-" if met is None else "reached" if met else "not reached"


def _joules(energy: object) -> str:
    value = energy.get("total") if isinstance(energy, Mapping) else energy
    return "-" if value is None else f"{number(value)} J"
