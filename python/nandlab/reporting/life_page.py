"""The report of a life: latency, write amplification, read levels, refresh, capacitor and wear over years."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence

import numpy as np

from nandlab.lifetime import Life
from nandlab.presentation import CAUSES
from nandlab.presentation.life import of_life
from nandlab.reporting.chart import Axis, Floats, Lines, Series
from nandlab.reporting.colours import CAUSES as CAUSE_COLOURS
from nandlab.reporting.content import Block, Page, beside, parts_of, sections_of
from nandlab.reporting.run_charts import single
from nandlab.reporting.run_page import spec_of
from nandlab.reporting.settings import settings_of
from nandlab.units import lifetime_unit, number

_AGAINST = "Against the full simulation"
#: Name of a column, name in the chart, colour.
_Shown = tuple[str, str, str]
#: From this many windows on, a line has no dots.
_DOTS = 40


def life_page(life: Life) -> Page:
    """The page of a life."""
    shown = of_life(life)
    sections = [
        ("Settings", [*settings_of(tomllib.loads(life.spec_toml)), spec_of(life.spec_toml)]),
        ("Latency over the years", beside([*_latency(life, "read"), *_latency(life, "write")])),
        ("Read levels", beside(_levels(life))),
        ("Write amplification", beside(_amplification(life))),
        ("Refresh", beside(_refresh(life))),
        ("Migration", beside(_migration(life))),
        ("Capacitor", beside(_capacitor(life))),
        ("Wear and energy", beside(_wear(life))),
        (_AGAINST, parts_of(shown.section(_AGAINST))),
    ]
    return Page(
        kind="life",
        title=life.name,
        lead=f"The drive lasted {shown.lead} {_look(life)}",
        badges=tuple((note.text, "bad" if note.severity == "error" else "warn") for note in shown.failures),
        tiles=shown.headline,
        notes=shown.notes,
        sections=sections_of(sections),
        footer=f"spec {life.spec_hash}",
        version=life.facts.nandlab,
    )


def _look(life: Life) -> str:
    """The sentence on what to look at first."""
    if life.facts.first_media_error_years is not None:
        return "Data was lost on the way: look first at Read levels."
    change = _change(life)
    if change is None:
        return "Look first at Write amplification."
    return f"The mean read latency went from {change[0]} to {change[1]} \u00b5s: look first at Latency over the years."


def _change(life: Life) -> tuple[str, str] | None:
    """The mean read latency in the first and in the last window with reads."""
    values = life.columns["read_us_mean"].astype(float)
    known = values[np.isfinite(values) & (life.columns["reads"] > 0)]
    return (number(float(known[0])), number(float(known[-1]))) if known.size > 1 else None


def _times(life: Life) -> tuple[Floats, Axis]:
    """The ages at the ends of the windows, and their axis, in the unit that fits."""
    unit, per_year = lifetime_unit(life.facts.years)
    return life.columns["years"].astype(float) * per_year, Axis(unit, f" {unit}")


def _drawn(life: Life, shown: Sequence[_Shown], y: Axis, caption: str, title: str, scale: float = 1.0) -> list[Block]:
    """Columns over years; the columns of the full simulation are dashed."""
    there = [entry for entry in shown if entry[0] in life.columns]
    if not there:
        return []
    xs, axis = _times(life)
    lines = [Series(name, scale * life.columns[key].astype(float), colour) for key, name, colour in there]
    if life.full is not None:
        known = life.full.columns
        grid = known["years"].astype(float) * lifetime_unit(life.facts.years)[1]
        far = (xs < grid[0]) | (xs > grid[-1])
        lines += [
            Series(
                f"{name}, in full", np.where(far, np.nan, scale * np.interp(xs, grid, known[key])), c, style="dashed"
            )
            for key, name, c in there
            if key in known
        ]
    return [single(Lines(title, axis, y, xs, tuple(lines), dots=len(xs) <= _DOTS), caption)]


def _latency(life: Life, op: str) -> list[Block]:
    colour = "blue" if op == "read" else "rose"
    shown = [(f"{op}_us_mean", "mean", colour), (f"{op}_us_p99", "99th percentile", "ink")]
    if not life.columns[f"{op}s"].any():
        return []
    y = Axis("latency, \u00b5s", " \u00b5s")
    return _drawn(life, shown, y, f"Latency of {op}s in each window.", f"{op.capitalize()}s")


def _levels(life: Life) -> list[Block]:
    if not np.any(life.columns["read_level_mean"] > 1):
        return []
    shown = [
        ("read_level_needed_mean", "the least level that decodes", "slate"),
        ("read_level_mean", "the level that decoded", "blue"),
        ("tries_per_read", "tries per read", "teal"),
    ]
    caption = (
        "Mean read level of host page reads. The level that decoded exceeds the least where a read started too high."
    )
    parts = _drawn(life, shown, Axis("level, tries"), caption, "Read levels and tries")
    if np.any(life.columns["uncorrectable"]):
        lost = [("uncorrectable", "pages", "red"), ("media_errors", "of host requests", "ink")]
        parts += _drawn(life, lost, Axis("pages"), "Pages that no level decoded, in each window.", "Not decoded")
    return parts


def _amplification(life: Life) -> list[Block]:
    table = life.columns
    if not table["write_bytes"].any():
        return []
    causes = [key for key in table if key.startswith("program_") and table[key].any()]
    causes.sort(key=lambda key: list(CAUSES).index(key[8:]) if key[8:] in CAUSES else len(CAUSES))
    a_program = table["waf"] / np.maximum(sum(table[key] for key in causes), 1)
    stack = tuple(
        Series(CAUSES.get(key[8:], key[8:]), table[key] * a_program, CAUSE_COLOURS.get(key[8:], "slate"))
        for key in causes
    )
    xs, axis = _times(life)
    by_cause = Lines(
        "Programs by cause",
        axis,
        Axis("bytes programmed per host byte"),
        xs,
        stack,
        stacked=True,
    )
    return [
        *_drawn(life, [("waf", "WAF", "accent")], Axis("WAF"), "Bytes programmed per byte that the host wrote.", "WAF"),
        single(by_cause, "Programs by cause; the height of the stack is the WAF."),
    ]


def _refresh(life: Life) -> list[Block]:
    if not np.any(life.columns["refreshed_pages"]):
        return []
    work = [("refreshed_per_host_page", "refreshed", "teal")]
    how = [("partial_share", "partially", "teal")]
    caption = (
        "Pages refreshed per page that the host wrote. The refresh interval shortens with wear, so the work grows."
    )
    parts = _drawn(life, work, Axis("pages per host page"), caption, "Refresh work")
    if np.any(life.columns["partial_share"]):
        caption = "Share of the refreshed pages of which only the susceptible bits were moved."
        parts += _drawn(life, how, Axis("share, %", " %"), caption, "Partial refresh", 100)
    return parts


def _migration(life: Life) -> list[Block]:
    if not np.any(life.columns["copybacks"]):
        return []
    shown = [("copyback_share", "copied back", "orange")]
    caption = "Share of copybacks in the pages moved by GC and wear levelling. The limits fall with wear."
    return _drawn(life, shown, Axis("share, %", " %"), caption, "Copybacks", 100)


def _capacitor(life: Life) -> list[Block]:
    if "capability_pages" not in life.columns:
        return []
    loss = [("capacitor_loss_share", "lost", "red")]
    caption = "Share of the rated capacitance lost by temperature, time and discharges."
    parts = _drawn(life, loss, Axis("share, %", " %"), caption, "Ageing", 100)
    pages = [
        ("capability_pages", "capability", "slate"),
        ("budget_pages", "budget", "brown"),
        ("cache_pages", "cache", "ink"),
    ]
    caption = "Pages that the full capacitor can save (capability), that may be dirty (budget), and of the write cache."
    parts += _drawn(life, pages, Axis("pages", " pages"), caption, "Capability and budget")
    return parts


def _wear(life: Life) -> list[Block]:
    cycles = [("pe_mean", "mean", "violet"), ("pe_max", "most worn", "ink"), ("pe_min", "least worn", "slate")]
    energy = [("energy_j_per_gb", "energy", "accent")]
    caption = "P/E cycles of the blocks at the end of each window."
    return [
        *_drawn(life, cycles, Axis("P/E cycles"), caption, "Wear"),
        *_drawn(life, energy, Axis("J per GB", " J"), "Energy per gigabyte that the host read or wrote.", "Energy"),
    ]
