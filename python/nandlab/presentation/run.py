"""The presentation of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from nandlab.presentation.mechanisms import mapping, migration, read_levels, refresh, slc_cache, write_cache
from nandlab.presentation.model import Figure, Part, Presentation, Row, Section, Table, counted
from nandlab.presentation.outage import capacitor, fsync, power_loss
from nandlab.presentation.placement import invalid, placement
from nandlab.record import Record
from nandlab.result_types import CAUSES, ByCause, LatencyUs, Note, SteadySummary, Summary
from nandlab.units import count, duration, number, part, share, size

if TYPE_CHECKING:
    from nandlab.results import Measured, RunResult, Smart

#: From this latency on, the table has larger units than microseconds.
_LONG_US = 1e7
#: Sections of the summary that have a section of their own, or are part of the headline or of the failures.
_SHOWN = frozenset(
    {
        "requests_failed",
        "host",
        "latency_us",
        "flash",
        "ecc",
        "map",
        "cache",
        "capacitor",
        "power",
        "migration",
        "refresh",
        "slc",
        "space",
        "erases",
        "gc",
        "counters",
        "steady_state",
        "link",
        "controller",
        "suspensions",
        "bad_blocks",
        "precondition",
        "verified",
        "warm_up",
        "placement",
    }
)
#: Colours of operations, where their name differs from the operation's.
_COLOURS = {"flush": "flush-op"}


def of_run(result: RunResult) -> Presentation:
    """The presentation of a run."""
    summary = result.summary
    sections = (
        _warm_up(summary),
        _latency(summary),
        _clients(summary),
        placement(summary, result.spec_toml),
        read_levels(summary.ecc),
        _link(summary),
        _controller(summary),
        _suspensions(summary),
        _bad_blocks(summary),
        mapping(summary.map),
        write_cache(summary.cache),
        slc_cache(summary.slc),
        migration(summary.migration),
        refresh(summary.refresh),
        *_others(summary),
        capacitor(summary.capacitor, result.power, result.spec_toml),
        power_loss(summary.power, result.power),
        _steady_state(summary.steady_state),
        _operations(summary),
        _energy(summary),
        _smart(result.smart),
        _counters(summary),
        _simulator(result.sim),
    )
    return Presentation(
        name=result.name,
        lead="",
        headline=tuple(_headline(summary)),
        failures=tuple(_failures(summary)),
        notes=summary.notes,
        sections=tuple(section for section in sections if section is not None),
    )


def _headline(summary: Summary) -> Iterable[Figure]:
    yield Figure("requests", count(summary.requests))
    yield Figure("simulated", duration(summary.duration_s))
    yield Figure("IOPS", number(summary.iops))
    yield Figure("throughput", number(summary.mb_per_s), "MB/s")
    yield Figure("read", size(summary.host.read.bytes))
    yield Figure("written", size(summary.host.write.bytes))
    yield Figure("WAF", number(summary.waf))
    if summary.placement is not None:
        yield Figure("MBMW / HBMW", number(summary.placement.waf))
        yield Figure("placement identifiers", count(len(summary.placement.handles)))
    yield Figure("mean P/E cycles", number(summary.erases.mean))
    yield Figure("energy", number(summary.energy_j), "J")
    yield Figure("steady state", summary.steady_state.verdict if summary.steady_state is not None else "-")


def _failures(summary: Summary) -> Iterable[Note]:
    failed, power = summary.requests_failed, summary.power
    if not summary.complete:
        yield Note("warning", "stopped", "not complete: the run was stopped")
    if failed.uncorrectable:
        yield Note("error", "uncorrectable", f"{counted(failed.uncorrectable, 'request')} failed: uncorrectable")
    if failed.worn_out:
        yield Note("error", "worn-out", f"{counted(failed.worn_out, 'request')} failed: drive worn out")
    if summary.ecc.uncorrectable:
        yield Note("error", "not-decoded", f"{counted(summary.ecc.uncorrectable, 'page read')} not decoded")
    if power is not None and power.lost_covered:
        yield Note("error", "lost-covered", fsync(power))
    if power is not None and power.lost_acknowledged:
        lost = counted(power.lost_acknowledged, "acknowledged write")
        yield Note("warning", "lost-acknowledged", f"{lost} lost that no completed flush or FUA covers")
    if summary.placement is not None and (text := invalid(summary.placement)):
        yield Note("warning", "invalid-placement", text)
    for found, what, happening in (
        (summary.requests_unfinished, "request", "had not completed when the run ended"),
        (summary.blocks_retired, "block", "retired"),
    ):
        if found:
            yield Note("warning", what, f"{counted(found, what)} {happening}")


def _latency(summary: Summary) -> Section | None:
    host, latency = summary.host, summary.latency_us
    asked = (
        ("read", host.read.count, latency.read),
        ("write", host.write.count, latency.write),
        ("trim", host.trim.count, latency.trim),
        ("flush", host.flush.count, latency.flush),
    )
    shown: list[tuple[str, LatencyUs]] = [(op, values) for op, requests, values in asked if requests]
    if not shown:
        return None
    if len(shown) > 1:
        shown.append(("all", latency.all))
    is_long = any(values.max >= _LONG_US for _, values in shown)
    heads = ("latency" if is_long else "latency, µs", "mean", "p50", "p95", "p99", "p99.9", "max")
    rows = tuple(
        Row(op, tuple(_time(us, is_long) for us in (v.mean, v.p50, v.p95, v.p99, v.p999, v.max)), _COLOURS.get(op, op))
        for op, v in shown
    )
    table = Table(heads, rows)
    return Section("Latency", table, (table,))


def _clients(summary: Summary) -> Section | None:
    clients = summary.clients
    if clients is None:
        return None
    is_long = any(of.latency_us.all.max >= _LONG_US for of in clients.values())
    rows = []
    for name, of in clients.items():
        for op in ("read", "write", "trim", "flush"):
            latency: LatencyUs = getattr(of.latency_us, op)
            requests = getattr(of.host, op).count
            if requests:
                cells = (
                    _time(us, is_long) for us in (latency.mean, latency.p50, latency.p99, latency.p999, latency.max)
                )
                per_s = number(requests / summary.duration_s) if summary.duration_s else "-"
                rows.append(Row(f"{name} {op}", (per_s, *cells), _COLOURS.get(op, op)))
        waiting = of.waiting
        if waiting is not None:
            waits = (_time(waiting.mean_us, is_long), "-", "-", "-", _time(waiting.max_us, is_long))
            rows.append(Row(f"{name} waits", ("-", *waits)))
    heads = ("client" if is_long else "client, µs", "per s", "mean", "p50", "p99", "p99.9", "max")
    caption = "Latencies of the requests that completed without failure, by client and operation."
    if any(of.waiting is not None for of in clients.values()):
        caption += (
            " Waits: from the time at which a request was due to its submission, over all requests of the client."
        )
    table = Table(heads, tuple(rows), caption)
    figures = tuple(Figure(name, f"{number(of.iops)} IOPS, {number(of.mb_per_s)} MB/s") for name, of in clients.items())
    return Section("Clients", table, (table,), figures)


def _time(us: float, is_long: bool) -> str:
    if not is_long:
        return number(us)
    return f"{number(us * 1e-6)} s" if us >= 1e6 else duration(us * 1e-6)


def _of_parts(title: str, label: str, text: str, parts: Mapping[str, str]) -> Section:
    """A section that is one line in short, and the parts of this line in full."""
    return Section(title, (Figure(label, text),), figures=tuple(Figure(name, part) for name, part in parts.items()))


def _warm_up(summary: Summary) -> Section | None:
    warm_up = summary.warm_up
    if warm_up is None:
        return None
    requests, time = counted(warm_up.requests, "request"), duration(warm_up.duration_s)
    parts = {"requests": count(warm_up.requests), "simulated": time}
    return _of_parts("Warm-up", "left out", f"{requests} in {time}", parts)


def _link(summary: Summary) -> Section | None:
    link = summary.link
    if link is None:
        return None
    to_drive, to_host = part(link.to_drive, 1), part(link.to_host, 1)
    text = f"utilisation {to_drive} to the drive, {to_host} to the host"
    return _of_parts("Link", "link", text, {"utilisation to the drive": to_drive, "utilisation to the host": to_host})


def _controller(summary: Summary) -> Section | None:
    controller = summary.controller
    if controller is None:
        return None
    busy = part(controller.busy, 1)
    text = f"utilisation of its processors {busy}"
    return _of_parts("Controller", "firmware", text, {"utilisation of its processors": busy})


def _suspensions(summary: Summary) -> Section | None:
    found = summary.suspensions
    if found is None:
        return None
    programs, erases, time = count(found.programs), count(found.erases), duration(found.suspended_s)
    text = f"{programs} of programs, {erases} of erases; {time} suspended in all"
    parts = {"of programs": programs, "of erases": erases, "time suspended": time}
    return _of_parts("Suspensions for host reads", "suspensions", text, parts)


def _bad_blocks(summary: Summary) -> Section | None:
    found = summary.bad_blocks
    if found is None:
        return None
    bad, unused, left = count(found.flash_blocks), count(found.unused), count(found.blocks)
    text = f"{bad} bad from the factory; {unused} good ones that no superblock uses; {left} superblocks left"
    parts = {"bad from the factory": bad, "good, but used by no superblock": unused, "superblocks of the drive": left}
    return _of_parts("Bad blocks", "bad blocks", text, parts)


_RULE = (
    "Criterion of the SNIA PTS: over the last five rounds the range is at most 20 % of the mean, and the fitted line "
    "changes by at most 10 % of the mean. In a round at least {host} are programmed for the host and {all} in all, so "
    "that five rounds program the drive once; in a long run rounds are longer."
)


def _steady_state(found: SteadySummary | None) -> Section:
    title = "Steady state"
    if found is None:
        return Section(title, sentences=("The host wrote nothing, so there is no steady state to judge.",))
    rows = []
    for name, judged, scale, unit in (
        ("write amplification", found.waf, 1.0, ""),
        ("throughput", found.bytes_per_s, 1e-6, " MB/s"),
    ):
        if judged is not None and judged.mean is not None:
            met = "met" if judged.met else "not met"
            rows.append(Row(name, (number(judged.mean * scale) + unit, share(judged.range), share(judged.slope), met)))
    rule = _RULE.format(host=size(found.round_host_bytes_min), all=size(found.round_bytes_min))
    tables = (Table(("in the window", "mean", "range", "slope", ""), tuple(rows)),) if rows else ()
    return Section(title, tables=tables, sentences=(_verdict(found), rule))


def _verdict(found: SteadySummary) -> str:
    if found.verdict == "too short":
        text = f"Too short: {found.rounds} of at least five rounds."
        if found.requests_needed is None:
            return f"{text} No page was programmed for the host yet."
        times = f", for example with workload.repeat = {count(found.repeat_needed)}"
        return f"{text} About {count(found.requests_needed)} requests are enough{times}."
    span = f"in the window, from {duration(found.window_begin_s)} to {duration(found.window_end_s)}"
    if found.verdict == "steady":
        return f"Steady {span}."
    judged = (("write amplification", found.waf), ("throughput", found.bytes_per_s))
    reasons = [f"{name} still changes" for name, of in judged if of is not None and not of.met]
    if found.erased_share is not None and found.erased_share < 0.9:
        reasons.append(
            f"the erased pages are only {share(found.erased_share)} of the programmed pages, so the drive is still "
            "being filled"
        )
    return (
        f"Not steady {span}: {' and '.join(reasons)}. The numbers of this run include the transient. Use a longer "
        "run, or more preconditioning."
    )


def _by_cause(of: ByCause) -> dict[str, int]:
    return {cause: pages for cause, pages in of.items() if isinstance(pages, int)}


def _operations(summary: Summary) -> Section:
    flash = summary.flash
    kinds = [
        ("pages read", _by_cause(flash.read)),
        ("pages programmed", _by_cause(flash.program)),
        ("blocks erased", _by_cause(flash.erase)),
    ]
    if any(_by_cause(flash.copyback).values()):
        kinds.append(("of them by copyback", _by_cause(flash.copyback)))
    totals = [sum(counts.values()) for _, counts in kinds]
    rows = []
    for cause, name in CAUSES.items():
        counts = [of[cause] for _, of in kinds]
        if any(counts):
            cells = [
                Part(count(found), found / total) if found else "-" for found, total in zip(counts, totals, strict=True)
            ]
            rows.append(Row(name, tuple(cells), cause))
    title = "Flash operations by cause"
    if not rows:
        return Section(title, sentences=("The run has no flash operations.",))
    rows.append(Row("all", tuple(map(count, totals))))
    idle = [name for cause, name in CAUSES.items() if not any(of[cause] for _, of in kinds)]
    caption = "Every flash operation has one cause."
    caption += f" Causes without operations: {', '.join(idle)}." if idle else ""
    return Section(title, tables=(Table(("", *(name for name, _ in kinds)), tuple(rows), caption),))


def _energy(summary: Summary) -> Section:
    energy_j, moved = summary.energy_j, summary.host.read.bytes + summary.host.write.bytes
    text = f"{number(energy_j)} J"
    if summary.duration_s:
        text += f", {number(energy_j / summary.duration_s)} W on average"
    if moved:
        text += f", {number(energy_j / (moved / 1e9))} J per GB that the host read or wrote"
    return Section("Energy", sentences=(f"{text}.",))


def _smart(smart: Smart) -> Section:
    titles = {"nvme_smart_log": "NVMe health log", "ocp_smart_log": "OCP C0h log"}
    tables = tuple(
        Table((), tuple(Row(name, (number(value),)) for name, value in log.items()), title=titles.get(key, words(key)))
        for key, log in smart.items()
    )
    return Section("SMART", tables=tables)


def _others(summary: Summary) -> Iterable[Section]:
    """The other sections of the summary, each with its values by name."""
    for name, section in summary.items():
        if name in _SHOWN or not isinstance(section, Record):
            continue
        values = [(key, value) for key, value in section.items() if isinstance(value, int | float)]
        if not values:
            continue
        figures = tuple(Figure(words(key), number(value)) for key, value in values)
        glance = Figure(words(name), ", ".join(f"{figure.value} {figure.label}" for figure in figures))
        yield Section(words(name).capitalize(), (glance,), figures=figures)


def words(key: str) -> str:
    """A key with spaces in place of underscores."""
    return key.replace("_", " ")


def _counters(summary: Summary) -> Section:
    counters = ((words(key), value) for key, value in summary.counters.items() if isinstance(value, int))
    return Section("Counters", figures=tuple(Figure(name, count(value)) for name, value in counters))


def _simulator(sim: Measured) -> Section:
    text = duration(sim.wall_s)
    text += f", {count(sim.requests_per_s)} requests/s" if sim.requests_per_s else ""
    figures = (
        Figure("flash operations on pages", count(sim.page_operations)),
        Figure("requests", count(sim.requests)),
        Figure("wall time", duration(sim.wall_s)),
        Figure("wall time before the first request", duration(sim.precondition_wall_s)),
        Figure("requests/s", _rate(sim.requests_per_s)),
        Figure("flash operations on pages/s", _rate(sim.page_ops_per_s)),
        Figure("peak memory", number(sim.peak_rss_mb), "MB"),
    )
    return Section("The simulator itself", (Figure("simulated in", text),), figures=figures)


def _rate(value: float) -> str:
    return count(value) if abs(value) >= 100 else number(value)
