"""The sections on power losses and on the capacitor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nandlab.reporting import svg
from nandlab.reporting.pieces import columns, fact_table, figure, nothing, number_table
from nandlab.reporting.series import begin_s
from nandlab.reporting.svg import Line
from nandlab.screen import joules
from nandlab.tables import Columns
from nandlab.units import count, duration, part, share

#: Losses, detections and lost writes that are shown; `power.json` has all.
_ROWS = 20
#: A row of a table of losses: its name, and its cell for a loss.
_Row = tuple[str, Callable[[Mapping[str, Any]], str]]
_DAY_S = 86_400.0
_YEAR_S = 365 * _DAY_S


def power_loss(summary: Mapping[str, Any], power: Mapping[str, Any] | None) -> str:
    """What each power loss took, what saving the rest cost, and how the drive came back."""
    totals = summary.get("power")
    if not totals:
        return ""
    listed: Sequence[Mapping[str, Any]] = totals["list"][:_ROWS]
    names = [f"at {duration(loss['at_s'])}" for loss in listed]
    if totals["losses"] > 1:
        listed, names = [totals, *listed], [f"all {count(totals['losses'])}", *names]
    rows: list[_Row] = [
        (
            "dirty pages, of them acknowledged and unflushed",
            lambda x: f"{count(x['dirty_pages'])}, {count(x['unflushed_pages'])}",
        ),
        ("pages flushed", lambda x: count(x["flushed_pages"])),
        ("of them to fast pages", lambda x: part(x["fast_pages"], x["flushed_pages"])),
        ("acknowledged writes lost", lambda x: _bad(x["lost_writes"])),
        ("of them in flash, with their wordline", lambda x: count(x["lost_with_wordline"])),
        ("requests ended", lambda x: count(x["aborted_requests"])),
        ("programs, erases torn", lambda x: f"{count(x['torn_programs'])}, {count(x['torn_erases'])}"),
    ]
    lost = number_table(["", *names], [[name, *(cell(loss) for loss in listed)] for name, cell in rows])
    costs: list[_Row] = [
        ("energy in the capacitor", lambda x: joules(x["energy_j"])),
        ("energy that the flush took", lambda x: joules(x["spent_j"])),
        ("flush, from the loss to the last page (T_total)", lambda x: duration(x["flush_s"])),
        ("its programs, added up (T_program)", lambda x: duration(x["program_s"])),
        ("operations under way ended after", lambda x: duration(x["finish_s"])),
        ("recovery", lambda x: duration(x["recovery_s"])),
        ("OOBs read", lambda x: count(x["scanned_pages"])),
        ("partial pages merged", lambda x: count(x["merged_pages"])),
        ("blocks erased, closed", lambda x: f"{count(x['erased_blocks'])}, {count(x['closed_blocks'])}"),
    ]
    if totals["stale_translation_pages"]:
        costs.append(("translation pages out of date", lambda x: count(x["stale_translation_pages"])))
    cost = number_table(["", *names], [[name, *(cell(loss) for loss in listed)] for name, cell in costs])
    rest = totals["losses"] - min(totals["losses"], _ROWS)
    more = f" {count(rest)} further losses are in power.json." if rest else ""
    left = figure(
        _scroll(lost),
        "A page is unflushed when flash lacks an acknowledged write of it. Fast are LSB pages and the lower half of "
        f"the layers.{more}",
    )
    right = figure(
        _scroll(cost),
        "The controller draws power for T_total (Eq. 4), the programs for T_program (Eq. 5). The requests that follow "
        "come later by the time the drive was down, so that no latency is that of the outage.",
    )
    # Many losses need the whole width.
    both = columns("two", left, right) if len(names) <= 2 else left + right
    return both + (_lost_writes(totals, power) if totals["lost_writes"] else "")


def _bad(lost: int) -> str:
    return f'<b class="bad">{count(lost)}</b>' if lost else "0"


def _scroll(table: str) -> str:
    return f'<div class="scroll">{table}</div>'


def _lost_writes(totals: Mapping[str, Any], power: Mapping[str, Any] | None) -> str:
    """The first of the acknowledged writes that are gone."""
    if power is None:
        return ""
    rows: list[list[str]] = []
    for loss in power["losses"]:
        for key, where in (("lost_from_cache", "write cache"), ("lost_from_flash", "flash, with its wordline")):
            for write in loss[key][: _ROWS - len(rows)]:
                sequence = count(write["sequence"]) if write["sequence"] else "not known"
                cells = [count(write["lpn"]), count(write["offset"]), sequence, where]
                rows.append([duration(loss["at_s"]), *cells])
    rest = totals["lost_writes"] - len(rows)
    more = f" {count(rest)} more are in power.json." if rest else ""
    table = number_table(["power loss at", "LPN", "byte offset", "page write of the host", "it was in"], rows)
    return figure(table, f"The newest acknowledged write of each page that power loss took.{more}", "What was lost")


def capacitor(
    summary: Mapping[str, Any], power: Mapping[str, Any] | None, series: Columns, spec: Mapping[str, Any]
) -> str:
    """What the capacitor can save, what was detected of it, and how many pages were dirty."""
    found = summary.get("capacitor")
    if not found:
        return ""
    detections = found["detections"]
    facts = [
        ("energy when full", joules(found["energy_j_full"])),
        ("when it was new", joules(found["energy_j_rated"])),
        ("rated capacitance lost", share(found["loss_share"]) + (" (worn out)" if found["worn_out"] else "")),
        ("full discharges", count(found["cycles"])),
        ("pages it can save", count(int(found["capability_pages"]))),
        ("pages that may be dirty", count(found["budget_pages"])),
        ("at the end it is", found["stage"]),
        ("budget detections", count(detections["count"])),
    ]
    left = f"<figure>{fact_table(facts)}</figure>"
    body = columns("wide-narrow", _history(series, spec), left)
    return body + _detections((power or {}).get("detections") or [], _scale(spec))


def _scale(spec: Mapping[str, Any]) -> float:
    return float((spec.get("reliability") or {}).get("clock_scale") or 1.0)


def _history(series: Columns, spec: Mapping[str, Any]) -> str:
    """True capability, detected budget and dirty pages over time."""
    title = "Capability, budget and dirty pages"
    if "capacitor_pages" not in series or len(series["time_s"]) < 2:
        return nothing("The run is too short to show the capacitor over time.", title)
    scale = _scale(spec)
    times = begin_s(series) + series["interval_s"] / 2
    name, unit, per = "simulated time, s", "s", 1.0
    if scale > 1:
        whole_s = float(series["time_s"][-1]) * scale
        name, unit, per = (
            ("scaled clock, years", "years", scale / _YEAR_S)
            if whole_s > 2 * _YEAR_S
            else ("scaled clock, days", "days", scale / _DAY_S)
            if whole_s > 2 * _DAY_S
            else ("scaled clock, s", "s", scale)
        )
    shown = [
        Line("the capacitor can save", series["capacitor_pages"], "c-gc"),
        Line("budget", series["cache_budget_pages"], "c-main"),
        Line("dirty, at most", series["cache_dirty_pages"], "c-write", faint=True),
    ]
    plot = svg.lines(
        times * per, shown, x_title=name, y_title="pages", width=750, height=290, x_unit=unit, unit=" pages"
    )
    return figure(
        plot,
        "Pages that the full capacitor could save by Eq. 1 to 5, pages that may be dirty, and the most that were in "
        "each interval. A budget above what can be saved is data at risk.",
        title,
    )


def _detections(detections: Sequence[Mapping[str, Any]], scale: float) -> str:
    if not detections:
        return ""
    rows = [
        [
            duration(found["began_s"]),
            *([duration(found["began_s"] * scale)] if scale != 1 else []),
            duration(found["waited_s"]),
            duration(found["sync_s"]),
            duration(found["drain_s"]),
            duration(found["recharge_s"]),
            count(found["pages"]),
            count(found["host_pages"]),
            joules(found["energy_j"]),
            share(found["measured_share"]),
            f"{share(found['budget_share'])}, {count(found['budget_pages'])}",
        ]
        for found in detections[-_ROWS:]
    ]
    clock = ["on the scaled clock"] if scale != 1 else []
    names = ["began at", *clock, "waited", "writing back", "emptying", "until recharged", "pages written"]
    names += ["of them by the host", "energy", "measured", "budget, pages"]
    rest = len(detections) - len(rows)
    more = f" These are the last; the {count(rest)} before them are in power.json." if rest else ""
    return figure(
        _scroll(number_table(names, rows)),
        "A detection waits for an idle time as long as it may, writes all dirty pages back, and then writes on until "
        f"the capacitor is empty. Durations are simulated time; shares are of the cache.{more}",
        "Detections of the dirty page budget",
    )
