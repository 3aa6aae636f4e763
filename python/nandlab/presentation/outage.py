"""What a run says of the capacitor and of power losses."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Sequence

from nandlab.presentation.model import Figure, Row, Section, Table, several
from nandlab.result_types import (
    CapacitorSummary,
    DetectionSummary,
    LossSummary,
    PowerRecord,
    PowerSummary,
)
from nandlab.units import count, duration, joules, part, share

#: Losses, detections and lost writes that are shown; `power.json` has all.
_ROWS = 20


def clock_scale(spec_toml: str) -> float:
    """How much faster ages run than simulated time."""
    reliability = tomllib.loads(spec_toml).get("reliability", {})
    return float(reliability.get("clock_scale", 1.0))


def capacitor(found: CapacitorSummary | None, power: PowerRecord | None, scale: float) -> Section | None:
    if found is None:
        return None
    state = "worn out, " if found.worn_out else ""
    state += f"{part(found.loss_share, 1)} lost" if found.loss_share else "new"
    text = (
        f"{joules(found.energy_j_full)} when full ({state}), enough for {count(math.floor(found.capability_pages))} "
        f"pages, {count(found.budget_pages)} may be dirty; {several(found.cycles, 'discharge')}"
    )
    glance = [Figure("capacitor", text)]
    detections = found.detections
    if (last := detections.last) is not None:
        text = (
            f"{several(detections.count, 'detection')}, the last one wrote {count(last.pages)} pages in "
            f"{duration(last.drain_s)}, enough for {share(last.measured_share)} of the cache: "
            f"{count(last.budget_pages)} may be dirty"
        )
        glance.append(Figure("budget", text))
    figures = (
        Figure("energy when full", joules(found.energy_j_full)),
        Figure("when it was new", joules(found.energy_j_rated)),
        Figure("rated capacitance lost", share(found.loss_share) + (" (worn out)" if found.worn_out else "")),
        Figure("full discharges", count(found.cycles)),
        Figure("pages it can save", count(int(found.capability_pages))),
        Figure("pages that may be dirty", count(found.budget_pages)),
        Figure("at the end it is", found.stage),
        Figure("budget detections", count(detections.count)),
    )
    tables = (_detections(power.detections, scale),) if power is not None and power.detections else ()
    return Section("Capacitor", tuple(glance), tables, figures)


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
    heads = ("began at", *(["on the scaled clock"] if scale != 1 else []), "waited", "writing back", "emptying")
    heads += ("until recharged", "pages written", "of them by the host", "energy", "measured", "budget, pages")
    rest = len(detections) - len(rows)
    more = f" These are the last; the {count(rest)} before them are in power.json." if rest else ""
    caption = (
        "A detection waits for an idle time as long as it may, writes all dirty pages back, and then writes on until "
        f"the capacitor is empty. Durations are simulated time; shares are of the cache.{more}"
    )
    return Table(heads, tuple(rows), caption, "Detections of the dirty page budget")


def power_loss(found: PowerSummary | None, power: PowerRecord | None) -> Section | None:
    if found is None:
        return None
    at = f" at {duration(found.list[0].at_s)}" if found.losses == 1 else ""
    fast = f" ({part(found.fast_pages, found.flushed_pages)} fast)" if found.flushed_pages else ""
    glance = [
        Figure(
            "power loss",
            f"{several(found.losses, 'loss', 'losses')}{at}; {count(found.unflushed_pages)} pages were unflushed, "
            f"{count(found.flushed_pages)} flushed{fast}, {several(found.lost_writes, 'acknowledged write')} lost",
        )
    ]
    if found.flushed_pages:
        text = f"{joules(found.spent_j)} of {joules(found.energy_j)}, {duration(found.flush_s)}"
        glance.append(Figure("flush", f"{text}; programs add up to {duration(found.program_s)}"))
    text = (
        f"{duration(found.recovery_s)}: {count(found.scanned_pages)} pages' OOB read, {count(found.merged_pages)} "
        f"merged, {count(found.erased_blocks)} blocks erased"
    )
    glance.append(Figure("recovery", text))
    if torn := found.torn_programs + found.torn_erases:
        parts = f"{several(found.torn_programs, 'program')}, {several(found.torn_erases, 'erase')}"
        glance.append(Figure("torn", f"{several(torn, 'operation')}: {parts}"))
    tables = _losses(found)
    if found.lost_writes and power is not None:
        tables += (_lost_writes(found, power),)
    return Section("Power loss", tuple(glance), tables)


#: A row of a table of losses: its name, and its cell for a loss.
_LossRow = tuple[str, Callable[[LossSummary | PowerSummary], str]]


def _losses(found: PowerSummary) -> tuple[Table, ...]:
    """What each power loss took, and what saving the rest and coming back cost."""
    listed: list[LossSummary | PowerSummary] = list(found.list[:_ROWS])
    names = [f"at {duration(loss.at_s)}" for loss in found.list[:_ROWS]]
    if found.losses > 1:
        listed, names = [found, *listed], [f"all {count(found.losses)}", *names]
    took: list[_LossRow] = [
        (
            "dirty pages, of them acknowledged and unflushed",
            lambda x: f"{count(x.dirty_pages)}, {count(x.unflushed_pages)}",
        ),
        ("pages flushed", lambda x: count(x.flushed_pages)),
        ("of them to fast pages", lambda x: part(x.fast_pages, x.flushed_pages)),
        ("acknowledged writes lost", lambda x: count(x.lost_writes)),
        ("of them in flash, with their wordline", lambda x: count(x.lost_with_wordline)),
        ("requests ended", lambda x: count(x.aborted_requests)),
        ("programs, erases torn", lambda x: f"{count(x.torn_programs)}, {count(x.torn_erases)}"),
    ]
    cost: list[_LossRow] = [
        ("energy in the capacitor", lambda x: joules(x.energy_j)),
        ("energy that the flush took", lambda x: joules(x.spent_j)),
        ("flush, from the loss to the last page (T_total)", lambda x: duration(x.flush_s)),
        ("its programs, added up (T_program)", lambda x: duration(x.program_s)),
        ("operations under way ended after", lambda x: duration(x.finish_s)),
        ("recovery", lambda x: duration(x.recovery_s)),
        ("OOBs read", lambda x: count(x.scanned_pages)),
        ("partial pages merged", lambda x: count(x.merged_pages)),
        ("blocks erased, closed", lambda x: f"{count(x.erased_blocks)}, {count(x.closed_blocks)}"),
    ]
    if found.stale_translation_pages:
        cost.append(("translation pages out of date", lambda x: count(x.stale_translation_pages)))
    rest = found.losses - min(found.losses, _ROWS)
    more = f" {count(rest)} further losses are in power.json." if rest else ""
    captions = (
        "A page is unflushed when flash lacks an acknowledged write of it. Fast are LSB pages and the lower half of "
        f"the layers.{more}",
        "The controller draws power for T_total (Eq. 4), the programs for T_program (Eq. 5). The requests that follow "
        "come later by the time the drive was down, so that no latency is that of the outage.",
    )
    return tuple(
        Table(("", *names), tuple(Row(name, tuple(cell(loss) for loss in listed)) for name, cell in rows), caption)
        for rows, caption in zip((took, cost), captions, strict=True)
    )


def _lost_writes(found: PowerSummary, power: PowerRecord) -> Table:
    """The first of the acknowledged writes that are gone."""
    rows: list[Row] = []
    for loss in power.losses:
        for writes, where in (
            (loss.lost_from_cache, "write cache"),
            (loss.lost_from_flash, "flash, with its wordline"),
        ):
            for write in writes[: _ROWS - len(rows)]:
                sequence = count(write.sequence) if write.sequence else "not known"
                rows.append(Row(duration(loss.at_s), (count(write.lpn), count(write.offset), sequence, where)))
    rest = found.lost_writes - len(rows)
    more = f" {count(rest)} more are in power.json." if rest else ""
    heads = ("power loss at", "LPN", "byte offset", "page write of the host", "it was in")
    caption = f"The newest acknowledged write of each page that power loss took.{more}"
    return Table(heads, tuple(rows), caption, "What was lost")
