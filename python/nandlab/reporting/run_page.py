"""The report of a run: its sections in order."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence

from nandlab.presentation import of_run
from nandlab.presentation.outage import fsync
from nandlab.reporting.content import Block, Fold, Page, parts_of, sections_of
from nandlab.reporting.explained import where_time_went
from nandlab.reporting.run_charts import (
    capacitor,
    dies,
    gc,
    latency,
    over_time,
    read_levels,
    slc_cache,
    slowest,
    steady,
    waf,
    wear,
)
from nandlab.reporting.series import series_of
from nandlab.reporting.settings import settings_of
from nandlab.result_types import Summary
from nandlab.results import RunResult
from nandlab.units import count, duration, number


def run_page(result: RunResult) -> Page:
    """The page of a run."""
    shown, summary = of_run(result), result.summary
    series = series_of(result)

    def said(title: str, *drawn: Block | None) -> tuple[str, list[Block]]:
        return title, parts_of(shown.section(title), *drawn)

    drawn_capacitor = capacitor(series, result.spec_toml) if summary.capacitor is not None else None
    outage = [said("Power loss"), said("Capacitor", drawn_capacitor)]
    has_lost_power = summary.power is not None
    sections: list[tuple[str, Sequence[Block | None]]] = [
        *(outage if has_lost_power else []),
        ("Settings", [*settings_of(tomllib.loads(result.spec_toml)), spec_of(result.spec_toml)]),
        said("Warm-up"),
        said("Latency", *latency(result)),
        ("Where did the time go?", where_time_went(result)),
        said("Clients"),
        said("Read levels", read_levels(summary)),
        said("Link"),
        said("Mapping cache"),
        said("Write cache"),
        *([] if has_lost_power else outage),
        # Charts beside each other, the values below them.
        ("SLC cache", [slc_cache(series), *said("SLC cache")[1]]),
        ("Throughput and latency over time", [slowest(series), over_time(series)]),
        ("Write amplification", [waf(series, summary)]),
        said("Steady state", *steady(summary)),
        ("Garbage collection", [gc(series, summary)]),
        said("Migration"),
        said("Refresh"),
        *(said(section.title) for section in shown.sections if section.title not in _PLACED),
        ("Dies", [dies(result)]),
        ("Wear", [wear(result)]),
        *(said(title) for title in _LAST),
    ]
    return Page(
        kind="power_loss" if has_lost_power else "run",
        title=result.name,
        lead=lead_of(summary),
        badges=tuple((note.text, "bad" if note.severity == "error" else "warn") for note in shown.failures),
        tiles=shown.headline,
        notes=shown.notes,
        sections=sections_of(sections),
        footer=f"spec {result.spec_hash}",
        version=summary.nandlab,
    )


_LAST = ("Flash operations by cause", "Energy", "SMART", "Counters", "The simulator itself")
#: The sections that the page places; it shows others before the dies.
_PLACED = frozenset(
    {
        *(
            "Warm-up",
            "Latency",
            "Clients",
            "Read levels",
            "Link",
            "Mapping cache",
            "Write cache",
            "SLC cache",
            "Power loss",
            "Capacitor",
        ),
        *("Steady state", "Migration", "Refresh", *_LAST),
    }
)


def spec_of(spec_toml: str) -> Fold:
    """The whole spec, folded."""
    return Fold("The whole spec, with all defaults", text=spec_toml)


def lead_of(summary: Summary) -> str:
    """What happened, and what to look at."""
    latency = summary.latency_us
    asked = [(op, of) for op, of in (("reads", latency.read), ("writes", latency.write)) if of.max > 0]
    slow = " and ".join(f"99 % of the {op} took at most {duration(of.p99 * 1e-6)}" for op, of in asked)
    ended = "completed" if summary.complete else "completed before the run was stopped"
    text = f"{count(summary.requests)} requests {ended} in {duration(summary.duration_s)} of simulated time"
    text += f"; {slow}" if slow else ""
    text += f"; write amplification was {number(summary.waf)}." if summary.waf is not None else "."
    return f"{text} {_look(summary)}".strip()


def _look(summary: Summary) -> str:
    """The sentence on what to look at first."""
    power = summary.power
    if power is not None:
        losses = "Power failed once" if power.losses == 1 else f"Power failed {count(power.losses)} times"
        has_lost = power.lost_covered + power.lost_acknowledged > 0
        look = "Look first at Power loss." if has_lost else "Power loss has the emergency flush and the recovery."
        return f"{losses}. {fsync(power)} {look}"
    if not summary.complete:
        return "The run was stopped, so all numbers are of its first part."
    if summary.requests_failed.worn_out:
        return "The drive wore out: look first at Wear."
    if summary.requests_failed.uncorrectable or summary.ecc.uncorrectable:
        return "Some pages could not be decoded: look first at Read levels."
    if any(note.severity != "info" for note in summary.notes):
        return "Look first at the notes."
    steady = summary.steady_state
    if steady is not None and steady.verdict == "steady":
        return "The drive was in steady state by the SNIA criterion: look first at Latency."
    if steady is not None:
        state = (
            "The run is too short to judge its steady state"
            if steady.verdict == "too short"
            else "The run is not steady"
        )
        return f"{state}: look at Steady state before you compare runs."
    return "Look first at Latency."
