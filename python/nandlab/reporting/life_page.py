"""The report of a life: latency, write amplification, read levels, refresh, capacitor and wear over years."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence

import numpy as np

from nandlab.lifetime import Life
from nandlab.presentation import CAUSES, of_life
from nandlab.reporting import svg
from nandlab.reporting.pieces import body, columns, details, document, figure, header, section
from nandlab.reporting.settings import what
from nandlab.reporting.svg import Line

_AGAINST = "Against the full simulation"
#: Name of a column, its name in the plot, its colour.
_Series = tuple[str, str, str]


def life_page(life: Life) -> str:
    """The whole HTML file."""
    shown, spec = of_life(life), tomllib.loads(life.spec_toml)
    sections = [
        header(shown),
        section("What lived", what(spec), details("The whole spec, every default written out", life.spec_toml)),
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
    """Columns over years; those of the life in full are dashed."""
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
        ("read_level_needed_mean", "the least that decodes", "c-host"),
        ("read_level_mean", "that decoded", "c-read"),
        ("tries_per_read", "tries a read", "c-refresh"),
    ]
    caption = "Mean read level of the host's page reads. A level that decoded above the least began too high."
    parts = [_plot(life, shown, "level, tries", caption, "Read levels and tries")]
    if np.any(life.columns["uncorrectable"]):
        lost = [("uncorrectable", "pages", "c-flush"), ("media_errors", "of the host's", "c-all")]
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
        y_title="bytes programmed a byte of the host's",
        stacked=True,
        x_unit="years",
    )
    return columns(
        "two",
        _plot(life, [("waf", "WAF", "c-main")], "WAF", "Bytes programmed for each byte that the host wrote.", "WAF"),
        figure(
            by_cause, "The same by what asked for the programs: the stack's height is the WAF.", "Programs by cause"
        ),
    )


def _refresh(life: Life) -> str:
    if not np.any(life.columns["refreshed_pages"]):
        return ""
    work = [("refreshed_per_host_page", "refreshed", "c-refresh")]
    how = [("partial_share", "partially", "c-refresh")]
    caption = "Pages refreshed for each page the host wrote. The interval shortens with wear, so the work grows."
    parts = [_plot(life, work, "pages a page of the host's", caption, "Refresh work")]
    if np.any(life.columns["partial_share"]):
        caption = "Refreshed pages of which only the susceptible bits were moved."
        parts.append(_plot(life, how, "share, %", caption, "How", 100))
    return columns("two", *parts)


def _migration(life: Life) -> str:
    if not np.any(life.columns["copybacks"]):
        return ""
    shown = [("copyback_share", "copied back", "c-gc")]
    caption = "Share of the pages moved by GC and wear levelling that did not leave their plane. Limits fall with wear."
    return columns("two", _plot(life, shown, "share, %", caption, "Copybacks", 100))


def _capacitor(life: Life) -> str:
    if "capability_pages" not in life.columns:
        return ""
    loss = [("capacitor_loss_share", "lost", "c-flush")]
    caption = "Loss of the rated capacitance, by temperature, time and discharges."
    parts = [_plot(life, loss, "share, %", caption, "Ageing", 100)]
    pages = [
        ("capability_pages", "it could save", "c-host"),
        ("budget_pages", "may be dirty", "c-sync"),
        ("cache_pages", "of the cache", "c-all"),
    ]
    caption = "Pages of the write cache that a full capacitor could save, and those that may be dirty (the budget)."
    parts.append(_plot(life, pages, "pages", caption, "What it saves"))
    return columns("two", *parts)


def _wear(life: Life) -> str:
    cycles = [("pe_mean", "mean", "c-wear"), ("pe_max", "most worn", "c-all"), ("pe_min", "least worn", "c-host")]
    energy = [("energy_j_per_gb", "energy", "c-main")]
    return columns(
        "two",
        _plot(life, cycles, "P/E cycles", "P/E cycles of the blocks at the end of each window.", "Wear"),
        _plot(life, energy, "J a GB of the host's", "Energy for each gigabyte that the host read or wrote.", "Energy"),
    )
