"""The sections on the capacitor and on power losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from nandlab.presentation.model import Figure, Row, Section, Table, counted
from nandlab.result_types import (
    CapacitorSummary,
    DetectionSummary,
    LossRecord,
    LossSummary,
    LostWrite,
    PowerRecord,
    PowerSummary,
)
from nandlab.units import count, duration, joules, part, share

#: The most losses, detections and lost writes that are shown; `power.json` has all of them.
_ROWS = 20


def clock_scale(spec_toml: str) -> float:
    """The speed of the scaled clock relative to simulated time."""
    import tomllib

    reliability = tomllib.loads(spec_toml).get("reliability", {})
    return float(reliability.get("clock_scale", 1.0))


def capacitor(found: CapacitorSummary | None, power: PowerRecord | None, spec_toml: str) -> Section | None:
    if found is None:
        return None
    state = "worn out, " if found.worn_out else ""
    state += f"{part(found.loss_share, 1)} of the capacitance lost" if found.loss_share else "new"
    text = (
        f"{joules(found.energy_j_full)} when full ({state}), enough for {count(math.floor(found.capability_pages))} "
        f"pages, of which {count(found.budget_pages)} may be dirty; {counted(found.cycles, 'full discharge')}"
    )
    short = [Figure("capacitor", text)]
    detections = found.detections
    if (last := detections.last) is not None:
        text = (
            f"{counted(detections.count, 'detection')}, the last one wrote {count(last.pages)} pages in "
            f"{duration(last.drain_s)}, enough for {share(last.measured_share)} of the cache: "
            f"{count(last.budget_pages)} may be dirty"
        )
        short.append(Figure("budget", text))
    figures = (
        Figure("energy when full", joules(found.energy_j_full)),
        Figure("energy when new", joules(found.energy_j_rated)),
        Figure("rated capacitance lost", share(found.loss_share) + (" (worn out)" if found.worn_out else "")),
        Figure("full discharges", count(found.cycles)),
        Figure("pages that the full capacitor can save", count(int(found.capability_pages))),
        Figure("pages that may be dirty", count(found.budget_pages)),
        Figure("stage at the end", found.stage),
        Figure("budget detections", count(detections.count)),
    )
    tables = (_detections(power.detections, clock_scale(spec_toml)),) if power is not None and power.detections else ()
    return Section("Capacitor", tuple(short), tables, figures)


def _detections(detections: Sequence[DetectionSummary], scale: float) -> Table:
    rows = [
        Row(
            duration(found.began_s),
            (
                *([duration(found.began_s * scale)] if scale != 1 else []),
                duration(found.waited_s),
                duration(found.sync_s),
                duration(found.drain_s),
                duration(found.recharge_s),
                count(found.pages),
                count(found.host_pages),
                joules(found.energy_j),
                share(found.measured_share),
                f"{share(found.budget_share)}, {count(found.budget_pages)}",
            ),
        )
        for found in detections[-_ROWS:]
    ]
    heads = ("began at", *(["on the scaled clock"] if scale != 1 else []), "waited", "writing back", "draining")
    heads += ("recharging", "pages written", "of them by the host", "energy", "measured", "budget, pages")
    rest = len(detections) - len(rows)
    more = f" The table shows the last detections; {count(rest)} earlier ones are in power.json." if rest else ""
    caption = (
        "A detection waits for an idle time up to its limit, writes all dirty pages back, and then writes pages until "
        f"the capacitor is empty. Durations are in simulated time, shares are relative to the cache.{more}"
    )
    return Table(heads, tuple(rows), caption, "Detections of the dirty page budget")


def fsync(found: PowerSummary) -> str:
    """The answer to "did an fsync break?", as a sentence."""
    if not found.lost_covered:
        return "No fsync broke: every write covered by a completed flush or FUA reads back."
    what = "write or TRIM" if found.lost_trims else "write"
    lost = "page was" if found.lost_covered == 1 else "pages were"
    return (
        f"The {what} of {count(found.lost_covered)} {lost} lost, although a completed flush or FUA covers it: an fsync "
        "broke."
    )


def losses_by_promise(found: LossSummary | PowerSummary) -> str:
    """The numbers of pages with lost writes, by what the drive had promised."""
    return (
        f"{count(found.lost_covered)} covered by a completed flush or FUA, {count(found.lost_acknowledged)} "
        f"acknowledged only, {count(found.lost_in_flight)} in flight"
    )


def power_loss(found: PowerSummary | None, power: PowerRecord | None) -> Section | None:
    if found is None:
        return None
    at = f" at {duration(found.list[0].at_s)}" if found.losses == 1 else ""
    fast = f" ({part(found.fast_pages, found.flushed_pages)} fast)" if found.flushed_pages else ""
    short = [
        Figure(
            "power loss",
            f"{counted(found.losses, 'loss', 'losses')}{at}; {count(found.unflushed_pages)} pages were unflushed, "
            f"{count(found.flushed_pages)} flushed{fast}",
        ),
        Figure("lost", f"{losses_by_promise(found)}. {fsync(found)}"),
    ]
    if found.flushed_pages:
        text = f"{joules(found.spent_j)} of {joules(found.energy_j)}, {duration(found.flush_s)}"
        short.append(Figure("flush", f"{text}; programs add up to {duration(found.program_s)}"))
    text = (
        f"{duration(found.recovery_s)}: OOB of {count(found.scanned_pages)} pages read, {count(found.merged_pages)} "
        f"merged, {count(found.erased_blocks)} blocks erased"
    )
    short.append(Figure("recovery", text))
    if cuts := found.recovery_cuts:
        parts = f"{counted(cuts.torn_programs, 'program')}, {counted(cuts.torn_erases, 'erase')}"
        short.append(Figure("power loss in recovery", f"{counted(cuts.cuts, 'time')}; torn: {parts}"))
    if torn := found.torn_programs + found.torn_erases:
        parts = f"{counted(found.torn_programs, 'program')}, {counted(found.torn_erases, 'erase')}"
        short.append(Figure("torn", f"{counted(torn, 'operation')}: {parts}"))
    tables = _losses(found)
    if found.lost_covered + found.lost_acknowledged + found.lost_in_flight and power is not None:
        tables += (_lost_writes(found, power),)
    return Section("Power loss", tuple(short), tables)


#: A row of a table of losses: name, and cell for a loss.
_LossRow = tuple[str, Callable[[LossSummary | PowerSummary], str]]


def _losses(found: PowerSummary) -> tuple[Table, ...]:
    """The tables of the losses: destroyed data, and cost of emergency flush and recovery."""
    listed: list[LossSummary | PowerSummary] = list(found.list[:_ROWS])
    names = [f"at {duration(loss.at_s)}" for loss in found.list[:_ROWS]]
    if found.losses > 1:
        listed, names = [found, *listed], [f"all {count(found.losses)}", *names]
    destroyed: list[_LossRow] = [
        (
            "dirty pages, of them acknowledged and unflushed",
            lambda x: f"{count(x.dirty_pages)}, {count(x.unflushed_pages)}",
        ),
        ("pages flushed", lambda x: count(x.flushed_pages)),
        ("of them to fast pages", lambda x: part(x.fast_pages, x.flushed_pages)),
        ("pages lost, covered by a completed flush or FUA", lambda x: count(x.lost_covered)),
        ("of them with a lost TRIM", lambda x: count(x.lost_trims)),
        ("pages lost, acknowledged only", lambda x: count(x.lost_acknowledged)),
        (
            "of these and the covered ones in flash, destroyed with their wordline",
            lambda x: count(x.lost_with_wordline),
        ),
        ("pages in flight that are not there, never acknowledged", lambda x: count(x.lost_in_flight)),
        ("requests aborted", lambda x: count(x.aborted_requests)),
        ("programs, erases torn", lambda x: f"{count(x.torn_programs)}, {count(x.torn_erases)}"),
    ]
    cost: list[_LossRow] = [
        ("energy in the capacitor", lambda x: joules(x.energy_j)),
        ("energy that the flush took", lambda x: joules(x.spent_j)),
        ("flush, from the loss to the last page (T_total)", lambda x: duration(x.flush_s)),
        ("sum of the flush's program times (T_program)", lambda x: duration(x.program_s)),
        ("operations under way at the loss ended after", lambda x: duration(x.finish_s)),
        ("recovery", lambda x: duration(x.recovery_s)),
        ("OOBs read, pages read", lambda x: f"{count(x.scanned_pages)}, {count(x.read_pages)}"),
        ("partial pages merged", lambda x: count(x.merged_pages)),
        ("blocks erased, closed", lambda x: f"{count(x.erased_blocks)}, {count(x.closed_blocks)}"),
    ]
    if found.recovery_cuts:
        cost.append(("power losses in recovery; programs, erases torn", _recovery_cuts))
    if found.stale_translation_pages:
        cost.append(("translation pages out of date", lambda x: count(x.stale_translation_pages)))
    rest = found.losses - min(found.losses, _ROWS)
    more = f" {count(rest)} further losses are in power.json." if rest else ""
    captions = (
        "A page is unflushed when an acknowledged write of the page is not in flash. Fast pages are LSB pages and the "
        f"lower half of the layers.{more}",
        "The controller draws power for T_total, the programs for T_program (Eq. 4 and 5 of the aging-capacitor "
        "paper). Later requests are delayed by the down time of the drive, so that no latency includes the outage.",
    )
    return tuple(
        Table(("", *names), tuple(Row(name, tuple(cell(loss) for loss in listed)) for name, cell in rows), caption)
        for rows, caption in zip((destroyed, cost), captions, strict=True)
    )


def _recovery_cuts(found: LossSummary | PowerSummary) -> str:
    cuts = found.recovery_cuts
    return f"{count(cuts.cuts)}; {count(cuts.torn_programs)}, {count(cuts.torn_erases)}" if cuts else "0; 0, 0"


def _lost_writes(found: PowerSummary, power: PowerRecord) -> Table:
    """The table of the first lost writes and TRIMs, the strongest promises first."""
    promises: tuple[tuple[str, Callable[[LossRecord], Sequence[LostWrite]]], ...] = (
        ("covered", lambda loss: loss.covered),
        ("acknowledged", lambda loss: loss.acknowledged),
        ("in flight", lambda loss: loss.in_flight),
    )
    rows: list[Row] = []
    for promise, of in promises:
        for loss in power.losses:
            for write in of(loss)[: _ROWS - len(rows)]:
                sequence = count(write.sequence) if write.sequence else "none"
                cells = (promise, count(write.lpn), count(write.offset), sequence, _where(write))
                rows.append(Row(duration(loss.at_s), cells))
    rest = found.lost_covered + found.lost_acknowledged + found.lost_in_flight - len(rows)
    more = f" {count(rest)} more are in power.json." if rest else ""
    heads = ("power loss at", "promise", "LPN", "byte offset", "sequence number", "lost from")
    caption = (
        "Each page counts once, under the strongest promise: a completed flush or FUA covers the write; its request "
        "had completed; its request was outstanding, so nothing was promised. Data of preconditioning, and pages "
        f"in flight that the drive had not admitted, have no sequence number.{more}"
    )
    return Table(heads, tuple(rows), caption, "Lost writes")


def _where(write: LostWrite) -> str:
    if write.is_trim:
        return "RAM, a TRIM: older data is back"
    return "flash, destroyed with its wordline" if write.was_in_flash else "RAM"
