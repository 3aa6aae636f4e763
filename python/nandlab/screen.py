"""What a terminal shows: progress on stderr, the summary on stdout."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column, Table
from rich.text import Text

from nandlab.ends import Stop
from nandlab.notes import notes
from nandlab.simulate import DOING
from nandlab.simulate import Progress as Report
from nandlab.units import age, count, duration, number, part, share, size

if TYPE_CHECKING:
    from nandlab.lifetime import Life
    from nandlab.rber import Reliability

#: Nothing shorter than this gets a progress bar.
_QUIET_S = 2.0
#: Between two progress lines where there is no terminal.
_LINE_S = 10.0


class RunProgress:
    """Progress of one run: a bar on a terminal, else a line every ten seconds; nothing for short runs."""

    def __init__(self, name: str, stop: Stop, *, bar: bool) -> None:
        self._stop = stop
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
                waiting = report.phase in DOING and (report.phase != "precondition" or report.share <= 0)
                self._bar.update(
                    self._task,
                    total=None if waiting else 1.0,
                    completed=report.share,
                    facts=self._facts(report),
                )
        elif report.wall_s - self._last_line_s >= _LINE_S:
            self._last_line_s = report.wall_s
            done = f"{report.share:.0%}, " if report.phase in ("precondition", "run", "done") else ""
            print(f"{self._name}: {done}{self._facts(report)}", file=sys.stderr, flush=True)
        return not self._stop

    def _facts(self, report: Report) -> str:
        if report.phase in DOING:
            return f"{DOING[report.phase]}, {duration(report.wall_s)}"
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
        if report.phase in DOING:
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
    "requests_wrapped": ("request", "beyond the drive wrapped into it"),
    "records_skipped": ("malformed trace record", "skipped"),
    "blocks_retired": ("block", "retired"),
}
#: From this latency on, microseconds are too long to read.
_LONG_US = 1e7


#: How a note looks, by its severity.
_NOTE_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def happened(summary: Mapping[str, Any], op: str) -> bool:
    """Whether the host asked for any `op`."""
    return bool(((summary.get("host") or {}).get(op) or {}).get("count"))


def show_summary(summary: Mapping[str, Any], sim: Mapping[str, Any], console: Console) -> None:
    """The headline numbers of a run, on one screen, and the notes on them."""
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
    if levels := read_levels(summary):
        console.print(_levels_table(levels))
    cache_lines = (_map_line(summary), _cache_line(summary), _migration_line(summary), _refresh_line(summary))
    for line in (_link_line(summary), *cache_lines, *_capacitor_lines(summary), *_power_lines(summary)):
        if line is not None:
            console.print(line)
    for key, (what, happening) in _TROUBLE.items():
        if found := summary.get(key):
            console.print(f"[yellow]{count(found)} {what}{'' if found == 1 else 's'} {happening}[/]")
    for note in notes(summary):
        console.print(f"[{_NOTE_STYLES[note.severity]}]{escape(note.text)}[/]")
    if sim.get("wall_s") is not None:
        speed = f", {count(sim['requests_per_s'])} requests/s" if sim.get("requests_per_s") else ""
        console.print(f"[dim]simulated in {duration(sim['wall_s'])}{speed}[/]", highlight=False)


@dataclass(frozen=True)
class LevelRow:
    """Page reads by the read level that decoded them."""

    #: Whose.
    name: str
    #: By level, from level 1.
    counts: list[int]
    uncorrectable: int
    retries: int
    #: First tries above level 1; None when that was not counted.
    soft_starts: int | None

    @property
    def total(self) -> int:
        return sum(self.counts) + self.uncorrectable


def read_levels(summary: Mapping[str, Any]) -> list[LevelRow]:
    """All page reads and those of the host, when the drive has several read levels and read something."""
    ecc = summary.get("ecc") or {}
    if len(ecc.get("levels") or {}) < 2:
        return []
    rows = []
    for name, counts in (("all", ecc), ("host", ecc.get("host") or {})):
        row = LevelRow(
            name,
            list((counts.get("levels") or {}).values()),
            counts.get("uncorrectable") or 0,
            counts.get("retries") or 0,
            counts.get("soft_starts"),
        )
        if row.total:
            rows.append(row)
    return rows


_WHOSE = {"all": "all reads", "host": "host reads"}


def _levels_table(rows: Sequence[LevelRow]) -> Table:
    """Levels that nothing needed are left out at the end."""
    last = max((level for row in rows for level, reads in enumerate(row.counts, 1) if reads), default=1)
    lost = any(row.uncorrectable for row in rows)
    soft = any(row.soft_starts is not None for row in rows)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("read level")
    for level in range(1, last + 1):
        table.add_column(str(level), justify="right")
    if lost:
        table.add_column("lost", justify="right", style="red")
    table.add_column("retries a read", justify="right")
    if soft:
        table.add_column("start above 1", justify="right")
    for row in rows:
        cells = [part(reads, row.total) if reads else "-" for reads in row.counts[:last]]
        cells += [part(row.uncorrectable, row.total)] if lost else []
        cells += [number(row.retries / row.total)]
        cells += ["" if row.soft_starts is None else part(row.soft_starts, row.total)] if soft else []
        table.add_row(_WHOSE[row.name], *cells)
    return table


def _link_line(summary: Mapping[str, Any]) -> str | None:
    """How busy the link between host and drive was."""
    used = summary.get("link")
    if not used:
        return None
    shares = [part(used[direction], 1) for direction in ("to_drive", "to_host")]
    return f"[dim]link[/]  busy to the drive {shares[0]} of the time, to the host {shares[1]}"


def _map_line(summary: Mapping[str, Any]) -> str | None:
    """How the cache of a demand map did."""
    used = summary.get("map")
    if not used:
        return None
    ratios = []
    for op in ("read", "write"):
        hits, misses = used[op]["hits"], used[op]["misses"]
        if hits + misses:
            ratios.append(f"{part(hits, hits + misses)} of {op}s")
    text = f"[dim]mapping cache[/]  {count(used['entries'])} entries; hits: {', '.join(ratios) or 'not used'}"
    if (carried := write_back_entries(used)) is not None:
        text += f"; {count(used['write_backs'])} write-backs of {number(carried)} changed entries"
    return text


def _cache_line(summary: Mapping[str, Any]) -> str | None:
    """How the write cache did."""
    used = summary.get("cache") or {}
    if not used.get("pages"):
        return None
    ratios = []
    for op in ("read", "write"):
        hits, misses = used[f"{op}_hits"], used[f"{op}_misses"]
        if hits + misses:
            ratios.append(f"{part(hits, hits + misses)} of {op}s")
    return (
        f"[dim]write cache[/]  {count(used['pages'])} pages; hits: {', '.join(ratios) or 'not used'}; "
        f"{count(used['write_backs'])} written back, {count(used['dirty_pages_max'])} dirty at most"
    )


def _capacitor_lines(summary: Mapping[str, Any]) -> list[str]:
    """How the capacitor is, and what the detections of the dirty page budget found."""
    found = summary.get("capacitor")
    if not found:
        return []
    state = "worn out, " if found["worn_out"] else ""
    state += f"{part(found['loss_share'], 1)} lost" if found["loss_share"] else "new"
    lines = [
        f"[dim]capacitor[/]  {joules(found['energy_j_full'])} when full ({state}), enough for "
        f"{count(math.floor(found['capability_pages']))} pages, {count(found['budget_pages'])} may be dirty; "
        f"{_several(found['cycles'], 'discharge')}"
    ]
    detections = found["detections"]
    if last := detections["last"]:
        lines.append(
            f"[dim]budget[/]  {_several(detections['count'], 'detection')}, the last one wrote "
            f"{count(last['pages'])} pages in {duration(last['drain_s'])}, enough for {share(last['measured_share'])} "
            f"of the cache: {count(last['budget_pages'])} may be dirty"
        )
    return lines


def _power_lines(summary: Mapping[str, Any]) -> list[str]:
    """What power losses took, and what they cost."""
    lost = summary.get("power")
    if not lost:
        return []
    at = f" at {duration(lost['list'][0]['at_s'])}" if lost["losses"] == 1 else ""
    fast = f" ({part(lost['fast_pages'], lost['flushed_pages'])} fast)" if lost["flushed_pages"] else ""
    lines = [
        f"[dim]power loss[/]  {_several(lost['losses'], 'loss', 'losses')}{at}; "
        f"{count(lost['unflushed_pages'])} pages were unflushed, "
        f"{count(lost['flushed_pages'])} flushed{fast}, "
        f"{_several(lost['lost_writes'], 'acknowledged write')} lost"
    ]
    if lost["flushed_pages"]:
        lines.append(
            f"[dim]flush[/]  {joules(lost['spent_j'])} of {joules(lost['energy_j'])}, {duration(lost['flush_s'])}; "
            f"programs add up to {duration(lost['program_s'])}"
        )
    lines.append(
        f"[dim]recovery[/]  {duration(lost['recovery_s'])}: {count(lost['scanned_pages'])} pages' OOB read, "
        f"{count(lost['merged_pages'])} merged, {count(lost['erased_blocks'])} blocks erased"
    )
    if torn := lost["torn_programs"] + lost["torn_erases"]:
        lines.append(
            f"[dim]torn[/]  {_several(torn, 'operation')}: {_several(lost['torn_programs'], 'program')}, "
            f"{_several(lost['torn_erases'], 'erase')}"
        )
    return lines


def _several(number_: int, one: str, many: str | None = None) -> str:
    return f"{count(number_)} {one if number_ == 1 else many or one + 's'}"


def joules(energy: float) -> str:
    """An energy in the unit that suits it."""
    if energy == 0 or energy >= 1:
        return f"{number(energy)} J"
    return f"{energy * 1e3:.3g} mJ" if energy >= 1e-3 else f"{energy * 1e6:.3g} uJ"


def _migration_line(summary: Mapping[str, Any]) -> str | None:
    """How many pages were copied back."""
    used = summary.get("migration")
    if not used:
        return None
    return (
        f"[dim]copybacks[/]  {count(used['copybacks'])} pages of {count(used['victims_copied_back'])} victims, "
        f"{_longest_row(used)} in a row at most; refused by their limit: {count(used['refused'])}"
    )


def _refresh_line(summary: Mapping[str, Any]) -> str | None:
    """How many blocks were refreshed, and whether in time."""
    used = summary.get("refresh")
    if not used:
        return None
    line = f"[dim]refresh[/]  {count(used['blocks'])} blocks, {count(used['pages'])} pages"
    if partial := used.get("partial"):
        line += (
            f", {count(partial['pages'])} of them partially, to {count(partial['combination_pages'])} combination pages"
        )
    return line + (f"; {count(used['late_blocks'])} blocks were late" if used["late_blocks"] else "")


def _longest_row(used: Mapping[str, Any]) -> int:
    """Most copybacks in a row that happened."""
    return max((int(n) for n, pages in used["by_count"].items() if pages), default=0)


def write_back_entries(used: Mapping[str, Any]) -> float | None:
    """Changed entries that a write-back carries: those that were evicted, and those still cached."""
    backs: int = used["write_backs"]
    return (used["dirty_evictions"] + used["written_entries"]) / backs if backs else None


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
        ("P/E cycles a block", number(erases.get("mean"))),
        ("energy", _joules(summary.get("energy_j"))),
        ("steady state", steady_verdict(summary)),
    ]
    for (name, value), (name_right, value_right) in zip(cells[::2], cells[1::2], strict=True):
        table.add_row(name, value, name_right, value_right)
    return table


def steady_verdict(summary: Mapping[str, Any]) -> str:
    """`steady`, `not steady`, `too short`, or `-` where the host wrote nothing."""
    return str((summary.get("steady_state") or {}).get("verdict") or "-")


def _joules(energy: object) -> str:
    value = energy.get("total") if isinstance(energy, Mapping) else energy
    return "-" if value is None else f"{number(value)} J"


def show_reliability(found: Reliability, console: Console, *, susceptible: bool = False) -> None:
    """RBER and read level by retention and P/E cycles, and what each read level costs."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    conditions = [f"{count(n)} {word}" for n, word in ((found.reads, "reads"), (found.copybacks, "copybacks")) if n]
    after = f" after {' and '.join(conditions)}" if conditions else ""
    for index, kind in enumerate(found.kinds):
        pages = "" if kind == "all" else f" of {kind.upper()} pages"
        console.print(f"\nRBER{pages}{after}, and the read level that decodes it; down: retention, across: P/E cycles")
        _by_condition(found, console, _rber_cells(found, index))
        if susceptible and found.susceptible is not None:
            console.print(f"\nsusceptible bits{pages}, share of a page's")
            _by_condition(
                found, console, [[share(ratio) for ratio in row] for row in found.susceptible[index].tolist()]
            )
    console.print()
    console.print("us to read a page on an idle drive: at once, or from level 1 with ecc.retry full or incremental")
    for name in ("level", "RBER below", "sense", "transfer", "decode", "at once", "full", "incremental"):
        table.add_column(name, justify="right")
    levels = found.levels
    for at in range(len(levels["level"])):
        limit = float(levels["rber_max"][at])
        keys = ("sense_us", "transfer_us", "decode_us", "direct_us", "full_us", "incremental_us")
        times = (f"{float(levels[key][at]):,.6g}" for key in keys)
        table.add_row(str(levels["level"][at]), f"{limit:g}", *times)
    console.print(table)


def _rber_cells(found: Reliability, kind: int) -> list[list[str]]:
    def cell(rber: float, level: int) -> str:
        mantissa, power = f"{rber:.2e}".split("e")
        text = f"{mantissa}e{int(power)}" if rber else "0"
        return f"{text} [bold]{level}[/]" if level else f"[red]{text} lost[/]"

    pairs = zip(found.rber[kind].tolist(), found.level[kind].tolist(), strict=True)
    return [[cell(rber, level) for rber, level in zip(*row, strict=True)] for row in pairs]


def _by_condition(found: Reliability, console: Console, cells: list[list[str]]) -> None:
    """A row a retention and a column a number of P/E cycles; below one another where the screen is too narrow."""
    names = [age(seconds) for seconds in found.retention_s.tolist()]
    heads = [count(cycles) for cycles in found.pe_cycles.tolist()]
    widths = [
        2 + max(len(head), *(Text.from_markup(line[column]).cell_len for line in cells))
        for column, head in enumerate(heads)
    ]
    begin = 0
    while begin < len(heads):
        end, room = begin + 1, console.width - 2 - max(map(len, names)) - widths[begin]
        while end < len(heads) and room >= widths[end]:
            room -= widths[end]
            end += 1
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
        table.add_column("", style="dim", justify="right", no_wrap=True)
        for head in heads[begin:end]:
            table.add_column(head, justify="right", no_wrap=True)
        for name, line in zip(names, cells, strict=True):
            table.add_row(name, *line[begin:end])
        console.print(table)
        begin = end


#: Columns of a life on the screen: heading, name, digits after the point.
_LIFE = (
    ("years", "years", 2),
    ("P/E", "pe_mean", 0),
    ("read us", "read_us_mean", 0),
    ("p99", "read_us_p99", 0),
    ("write us", "write_us_mean", 0),
    ("p99", "write_us_p99", 0),
    ("WAF", "waf", 2),
    ("level", "read_level_mean", 2),
    ("refreshed", "refreshed_per_host_page", 3),
    ("budget", "budget_pages", 0),
)
#: What it means that requests pile up in so many windows.
OVERLOADED = (
    "In {} windows requests came faster than the drive served them, so latency says how long the window was. Fewer "
    "requests a second (workload.arrival, time_scale) settle it."
)
#: Windows shown.
_LIFE_ROWS = 12


def _cell(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}" if math.isfinite(value) else "-"


def show_life(life: Life, console: Console) -> None:
    """A life on one screen: how it ended, some of its windows, how far it is from the same one in full."""
    facts = life.facts
    per_day = facts["drive_writes_per_day"]
    console.print(
        f"{number(facts['years'])} years until {facts['end']}: {number(facts['host_tb_written'])} TB written, "
        f"{count(facts['drive_writes'])} times the drive, {number(per_day)} a day"
        if facts["complete"]
        else f"{number(facts['years'])} years, then {facts['end']}"
    )
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    shown = [column for column in _LIFE if column[1] in life.columns]
    for heading, _, _ in shown:
        table.add_column(heading, justify="right", no_wrap=True)
    windows = len(life.columns["years"])
    rows = min(windows, _LIFE_ROWS)
    for at in (round(k * (windows - 1) / max(rows - 1, 1)) for k in range(rows)):
        table.add_row(*(_cell(life.columns[name][at], digits) for _, name, digits in shown))
    console.print(table)
    console.print(
        f"[dim]{count(facts['windows'])} windows, {part(facts['simulated_share'], 1.0)} of the wear simulated; "
        "refreshed: pages a page of the host's[/]",
        highlight=False,
    )
    if facts["windows_unsteady"]:
        unsteady = facts["windows_unsteady"]
        console.print(
            f"[yellow]In {unsteady} window{'' if unsteady == 1 else 's'} write amplification was still changing: "
            "longer windows (--requests) settle it.[/]"
        )
    if facts["windows_overloaded"]:
        console.print(f"[yellow]{OVERLOADED.format(count(facts['windows_overloaded']))}[/]")
    if facts["first_media_error_years"] is not None:
        years = number(facts["first_media_error_years"])
        console.print(f"[bold red]DATA LOST: the first media error after {years} years[/]")
    if error := facts.get("error"):
        apart = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for heading in ("against the full simulation", "skipping", "in full", "difference", "mean distance"):
            apart.add_column(heading, justify="left" if heading.startswith("against") else "right")
        for name, row in error.items():
            most = f"{100 * row['mean_apart']:.1f} %" if "mean_apart" in row else ""
            apart.add_row(name, number(row["fast"]), number(row["full"]), f"{100 * row['relative']:+.1f} %", most)
        console.print(apart)
