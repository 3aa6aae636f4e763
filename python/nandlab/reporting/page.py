"""The report of a run: its sections in order."""

from __future__ import annotations

import tomllib

from nandlab.presentation import of_run
from nandlab.reporting.pieces import body, details, document, header, section
from nandlab.reporting.plots import (
    capacitor,
    dies,
    gc,
    latency,
    over_time,
    read_levels,
    slowest,
    steady,
    waf,
    wear,
)
from nandlab.reporting.series import thin, with_extremes, without_empty
from nandlab.reporting.settings import settings_table
from nandlab.results import RunResult


def page(result: RunResult) -> str:
    """The whole HTML file."""
    shown, summary = of_run(result), result.summary
    series = thin(with_extremes(without_empty(result.numpy("series")))) if "series" in result.tables else {}
    spec = settings_table(tomllib.loads(result.spec_toml))

    def said(title: str, *plots: str) -> str:
        return section(title, body(shown.section(title), *plots))

    sections = [
        header(shown),
        section("Settings", spec, details("The whole spec, with all defaults", result.spec_toml)),
        said("Latency", *latency(result)),
        said("Read levels", read_levels(summary)),
        said("Link"),
        said("Mapping cache"),
        said("Write cache"),
        said("Power loss"),
        said("Capacitor", capacitor(series, result.spec_toml) if summary.capacitor is not None else ""),
        section("Throughput and latency over time", slowest(series), over_time(series)),
        section("Write amplification", waf(series, summary)),
        said("Steady state", *steady(summary)),
        section("Garbage collection", gc(series, summary)),
        said("Migration"),
        said("Refresh"),
        section("Dies", dies(result)),
        section("Wear", wear(result)),
        *(
            said(title)
            for title in ("Flash operations by cause", "Energy", "SMART", "Counters", "The simulator itself")
        ),
    ]
    return document(result.name, sections, f"spec {result.spec_hash}", summary.nandlab)
