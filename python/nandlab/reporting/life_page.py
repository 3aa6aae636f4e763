"""The report of a life: latency, write amplification, read levels, refresh, capacitor and wear over years."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence

import numpy as np

from nandlab.lifetime import Life
from nandlab.presentation import CAUSES, of_life
from nandlab.reporting import svg
from nandlab.reporting.pieces import body, columns, details, document, figure, header, section
from nandlab.reporting.settings import settings_table
from nandlab.reporting.svg import Line

_AGAINST = "Against the full simulation"
#: Name of a column, name in the plot, colour.
_Series = tuple[str, str, str]


def life_page(life: Life) -> str:
    """The whole HTML file."""
    shown, spec = of_life(life), tomllib.loads(life.spec_toml)
    sections = [
        header(shown),
        section("Settings", settings_table(spec), details("The whole spec, with all defaults", life.spec_toml)),
        section("Latency over the years", columns("two", _latency(life, "read"), _latency(life, "write"))),
        section("Read levels", _levels(life)),
        section("Write amplification", _amplification(life)),
        section("Refresh", _refresh(life)),
        section("Migration", _migration(life)),
        section("Capacitor", _capacitor(life)),
        section("Wear and energy", _wear(life)),
        section(_AGAINST, body(shown.section(_AGAINST))),
    ]
    return document(life.name, sections, f"spec {life.spec_hash}", life.facts.nandlab)


def _plot(life: Life, shown: Sequence[_Series], y_title: str, caption: str, title: str, scale: float = 1.0) -> str:
    """Columns over years; the columns of the full simulation are dashed."""
    there = [entry for entry in shown if entry[0] in life.columns]
    if not there:
        return ""
    xs = life.columns["years"].astype(float)
    lines = [Line(name, scale * life.columns[key].astype(float), colour) for key, name, colour in there]
    if life.full is not None:
        known = life.full.columns
        grid = known["years"].astype(float)
        far = (xs < grid[0]) | (xs > grid[-1])
        lines += [
            Line(f"{name}, in full", np.where(far, np.nan, scale * np.interp(xs, grid, known[key])), c, dashed=True)
            for key, name, c in there
            if key in known
        ]
    return figure(
        svg.lines(xs, lines, x_title="years", y_title=y_title, x_unit="years", markers=len(xs) <= 40), caption, title
    )


def _latency(life: Life, op: str) -> str:
    shown = [(f"{op}_us_mean", "mean", f"c-{op}"), (f"{op}_us_p99", "99th percentile", "c-all")]
    if not life.columns[f"{op}s"].any():
        return ""
    return _plot(life, shown, "latency, \u00b5s", f"Latency of {op}s in each window.", f"{op.capitalize()}s")


def _levels(life: Life) -> str:
    if not np.any(life.columns["read_level_mean"] > 1):
        return ""
    shown = [
        ("read_level_needed_mean", "the least level that decodes", "c-host"),
        ("read_level_mean", "the level that decoded", "c-read"),
        ("tries_per_read", "tries per read", "c-refresh"),
    ]
    caption = (
        "Mean read level of host page reads. The level that decoded exceeds the least where a read started too high."
    )
    parts = [_plot(life, shown, "level, tries", caption, "Read levels and tries")]
    if np.any(life.columns["uncorrectable"]):
        lost = [("uncorrectable", "pages", "c-flush"), ("media_errors", "of host requests", "c-all")]
        parts.append(_plot(life, lost, "pages", "Pages that no level decoded, in each window.", "Not decoded"))
    return columns("two", *parts)


def _amplification(life: Life) -> str:
    table = life.columns
    if not table["write_bytes"].any():
        return ""
    causes = [key for key in table if key.startswith("program_") and table[key].any()]
    causes.sort(key=lambda key: list(CAUSES).index(key[8:]) if key[8:] in CAUSES else len(CAUSES))
    a_program = table["waf"] / np.maximum(sum(table[key] for key in causes), 1)
    stack = [Line(CAUSES.get(key[8:], key[8:]), table[key] * a_program, f"c-{key[8:]}") for key in causes]
    by_cause = svg.lines(
        table["years"].astype(float),
        stack,
        x_title="years",
        y_title="bytes programmed per host byte",
        stacked=True,
        x_unit="years",
    )
    return columns(
        "two",
        _plot(life, [("waf", "WAF", "c-main")], "WAF", "Bytes programmed per byte that the host wrote.", "WAF"),
        figure(by_cause, "Programs by cause; the height of the stack is the WAF.", "Programs by cause"),
    )


def _refresh(life: Life) -> str:
    if not np.any(life.columns["refreshed_pages"]):
        return ""
    work = [("refreshed_per_host_page", "refreshed", "c-refresh")]
    how = [("partial_share", "partially", "c-refresh")]
    caption = (
        "Pages refreshed per page that the host wrote. The refresh interval shortens with wear, so the work grows."
    )
    parts = [_plot(life, work, "pages per host page", caption, "Refresh work")]
    if np.any(life.columns["partial_share"]):
        caption = "Share of the refreshed pages of which only the susceptible bits were moved."
        parts.append(_plot(life, how, "share, %", caption, "Partial refresh", 100))
    return columns("two", *parts)


def _migration(life: Life) -> str:
    if not np.any(life.columns["copybacks"]):
        return ""
    shown = [("copyback_share", "copied back", "c-gc")]
    caption = "Share of copybacks in the pages moved by GC and wear levelling. The limits fall with wear."
    return columns("two", _plot(life, shown, "share, %", caption, "Copybacks", 100))


def _capacitor(life: Life) -> str:
    if "capability_pages" not in life.columns:
        return ""
    loss = [("capacitor_loss_share", "lost", "c-flush")]
    caption = "Share of the rated capacitance lost by temperature, time and discharges."
    parts = [_plot(life, loss, "share, %", caption, "Ageing", 100)]
    pages = [
        ("capability_pages", "capability", "c-host"),
        ("budget_pages", "budget", "c-sync"),
        ("cache_pages", "cache", "c-all"),
    ]
    caption = "Pages that the full capacitor can save (capability), that may be dirty (budget), and of the write cache."
    parts.append(_plot(life, pages, "pages", caption, "Capability and budget"))
    return columns("two", *parts)


def _wear(life: Life) -> str:
    cycles = [("pe_mean", "mean", "c-wear"), ("pe_max", "most worn", "c-all"), ("pe_min", "least worn", "c-host")]
    energy = [("energy_j_per_gb", "energy", "c-main")]
    return columns(
        "two",
        _plot(life, cycles, "P/E cycles", "P/E cycles of the blocks at the end of each window.", "Wear"),
        _plot(life, energy, "J per GB", "Energy per gigabyte that the host read or wrote.", "Energy"),
    )
