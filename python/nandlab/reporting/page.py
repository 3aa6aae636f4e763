"""The page of a run: its sections, in their order."""

from __future__ import annotations

import tomllib

from nandlab.presentation import of_run
from nandlab.reporting.pieces import body, details, document, header, section
from nandlab.reporting.plots import (
    capacitor,
    dies,
    evenness,
    gc,
    latency,
    over_time,
    read_levels,
    steady,
    waf,
    wear,
)
from nandlab.reporting.series import honest, thin, with_extremes
from nandlab.reporting.settings import what
from nandlab.results import RunResult


def page(result: RunResult) -> str:
    """The whole HTML file."""
    shown, summary = of_run(result), result.summary
    series = thin(with_extremes(honest(result.numpy("series")))) if "series" in result.tables else {}
    spec = what(tomllib.loads(result.spec_toml))

    def said(title: str, *plots: str) -> str:
        return section(title, body(shown.section(title), *plots))

    sections = [
        header(shown),
        section("What was run", spec, details("The whole spec, every default written out", result.spec_toml)),
        said("Latency", *latency(result)),
        said("Read levels", read_levels(summary)),
        said("Link"),
        said("Mapping cache"),
        said("Write cache"),
        said("Power loss"),
        said("Capacitor", capacitor(series, result.spec_toml) if summary.capacitor is not None else ""),
        section("Throughput and latency over time", evenness(series), over_time(series)),
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
