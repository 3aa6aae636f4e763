"""The page: its sections, in their order."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

from nandlab.notes import failed, notes
from nandlab.reporting.facts import (
    counters,
    energy,
    levels,
    mapping,
    migration,
    operations,
    refresh,
    simulator,
    smart,
    tiles,
    what,
    write_cache,
)
from nandlab.reporting.outage import capacitor, power_loss
from nandlab.reporting.pieces import details, document, escape, section
from nandlab.reporting.plots import dies, evenness, gc, latency, over_time, steady, waf, wear
from nandlab.reporting.series import honest, thin, with_extremes
from nandlab.results import RunResult
from nandlab.units import count, duration, size


def page(result: RunResult) -> str:
    """The whole HTML file."""
    summary = result.summary
    series = thin(with_extremes(honest(result.numpy("series")))) if "series" in result.tables else {}
    spec = tomllib.loads(result.spec_toml)
    sections = [
        _head(result, summary),
        tiles(summary),
        "".join(f'<p class="note {escape(note.severity)}">{escape(note.text)}</p>' for note in notes(summary)),
        section("What was run", what(spec), details("The whole spec, every default written out", result.spec_toml)),
        section("Latency", latency(result)),
        section("Read levels", levels(summary)),
        section("Mapping cache", mapping(summary)),
        section("Write cache", write_cache(summary)),
        section("Power loss", power_loss(summary, result.power)),
        section("Capacitor", capacitor(summary, result.power, series, spec)),
        section("Throughput and latency over time", evenness(series), over_time(series)),
        section("Write amplification", waf(series, summary)),
        section("Steady state", steady(summary)),
        section("Garbage collection", gc(series, summary)),
        section("Migration", migration(summary)),
        section("Refresh", refresh(summary)),
        section("Dies", dies(result)),
        section("Wear", wear(result)),
        section("Flash operations by cause", operations(summary)),
        section("Energy", energy(summary)),
        section("SMART", smart(result.smart)),
        section("Counters", counters(summary)),
        section("The simulator itself", simulator(result.sim)),
    ]
    return document(result.name, sections, f"spec {result.spec_hash}", summary.get("nandlab", ""))


def _head(result: RunResult, summary: Mapping[str, Any]) -> str:
    badges = ""
    if not result.complete:
        badges += '<span class="badge bad">not complete: the run was stopped</span>'
    verdict = (summary.get("steady_state") or {}).get("verdict")
    if verdict is not None:
        text = {"steady": "steady", "not steady": "not steady", "too short": "too short for a steady state"}[verdict]
        badges += f'<span class="badge {"good" if verdict == "steady" else "warn"}">{text}</span>'
    for found, name in (
        (failed(summary, "uncorrectable"), "requests failed: uncorrectable"),
        (failed(summary, "worn_out"), "requests failed: drive worn out"),
        ((summary.get("ecc") or {}).get("uncorrectable"), "page reads not decoded"),
        ((summary.get("power") or {}).get("lost_writes"), "acknowledged writes lost"),
    ):
        if found:
            badges += f'<span class="badge bad">{count(found)} {name}</span>'
    host = summary.get("host") or {}
    read, written = ((host.get(op) or {}).get("bytes") for op in ("read", "write"))
    lead = (
        f"{count(summary.get('requests'))} requests in {duration(summary.get('duration_s'))} of simulated time: "
        f"{size(read)} read, {size(written)} written by the host."
    )
    return f'<header><h1>{escape(result.name)}</h1>{badges}</header><p class="lead">{escape(lead)}</p>'
