"""The sections that tell: headline numbers, what was run, operations by cause, energy, SMART, counters."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from nandlab.reporting.pieces import CAUSES, columns, escape, fact_table, figure, nothing, number_table, words
from nandlab.screen import happened
from nandlab.units import count, duration, number, share, size


def tiles(summary: Mapping[str, Any]) -> str:
    """The headline numbers."""
    latency = summary.get("latency_us") or {}
    erases = summary.get("erases") or {}
    tiles = [("IOPS", number(summary.get("iops")), ""), ("throughput", number(summary.get("mb_per_s")), "MB/s")]
    for op in ("read", "write"):
        if happened(summary, op) and (value := (latency.get(op) or {}).get("p99")) is not None:
            shown, unit = (number(value / 1000), "ms") if value >= 10_000 else (number(value), "\u00b5s")
            tiles.append((f"{op} latency, 99th percentile", shown, unit))
    tiles.append(("write amplification", number(summary.get("waf")), ""))
    tiles.append(("mean P/E cycles a block", number(erases.get("mean")), ""))
    if (energy := _joules(summary)) is not None:
        tiles.append(("energy", number(energy), "J"))
    cells = "".join(
        f'<div class="tile"><b>{escape(value)}<small>{escape(unit)}</small></b><span>{escape(name)}</span></div>'
        for name, value, unit in tiles
    )
    return f'<div class="tiles">{cells}</div>\n'


def what(spec: Mapping[str, Any]) -> str:
    """The settings that a reader asks for first, from the resolved spec."""

    def at(path: str) -> Any:
        value: Any = spec
        for key in path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    drive = spec.get("drive") or {}
    rows: list[tuple[str, str]] = []
    names = ("channels", "chips_per_channel", "dies_per_chip", "planes_per_die", "blocks_per_plane", "pages_per_block")
    if all(isinstance(drive.get(name), int) for name in names):
        words = ("channels", "chips", "dies", "planes", "blocks", "pages")
        parts = [
            f"{drive[name]} {word if drive[name] != 1 else word[:-1]}" for name, word in zip(names, words, strict=True)
        ]
        page_bytes = _bytes(drive.get("page_size"))
        if page_bytes:
            parts.append(size(page_bytes))
            raw = page_bytes * math.prod(drive[name] for name in names)
            op = drive.get("op")
            capacity = f"{size(raw)} raw" + (
                f", {size(raw / (1 + op))} for the host" if isinstance(op, (int, float)) else ""
            )
            rows.append(("capacity", capacity))
        rows.insert(0, ("geometry", " \u00d7 ".join(parts)))
    wanted = [
        ("preset", "drive.preset"),
        ("cell", "drive.cell"),
        ("over-provisioning", "drive.op"),
        ("endurance, P/E cycles", "drive.endurance"),
        ("read / program / erase", "timing.read timing.program timing.erase"),
        ("scheduler", "timing.scheduler"),
        ("mapping", "ftl.map"),
        ("allocation", "ftl.allocation"),
        ("wear levelling", "ftl.wear_levelling"),
        ("GC victim", "gc.victim"),
        ("GC starts (background / foreground)", "gc.background_free gc.foreground_free"),
        ("wear at the start, P/E cycles", "reliability.pe_cycles"),
        ("refresh", "refresh.policy"),
        ("migration", "migration.policy"),
        ("write cache", "cache.size"),
        ("cache sync", "cache.sync"),
        ("preconditioning", "precondition"),
        ("workload", "workload"),
        ("seed", "seed"),
    ]
    for name, paths in wanted:
        values = [_inline(value) for path in paths.split() if (value := at(path)) is not None]
        if values:
            rows.append((name, " / ".join(values)))
    half = -(-len(rows) // 2)
    return columns("two", f"<div>{fact_table(rows[:half])}</div>", f"<div>{fact_table(rows[half:])}</div>")


def _inline(value: Any) -> str:
    """A TOML value in one line; a table without its braces."""
    if isinstance(value, Mapping):
        return ", ".join(
            f"{key} ({_inline(entry)})" if isinstance(entry, Mapping) and entry else f"{key} {_inline(entry)}".strip()
            for key, entry in value.items()
        )
    if isinstance(value, list):
        return "; ".join(_inline(entry) for entry in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def _bytes(value: Any) -> int | None:
    if isinstance(value, int):
        return value
    match = re.fullmatch(r"(\d+)\s*(B|KiB|MiB)", str(value))
    return int(match[1]) * {"B": 1, "KiB": 1024, "MiB": 1 << 20}[match[2]] if match else None


_KINDS = {
    "read": "pages read",
    "program": "pages programmed",
    "erase": "blocks erased",
    "copyback": "of those, by copyback",
}


def operations(summary: Mapping[str, Any]) -> str:
    """Flash operations by kind and cause."""
    flash = summary.get("flash") or {}
    kinds = [kind for kind, counts in flash.items() if isinstance(counts, Mapping)]
    kinds = [kind for kind in kinds if kind in ("read", "program", "erase") or any(flash[kind].values())]
    if not kinds:
        return ""
    totals = {kind: sum(flash[kind].values()) for kind in kinds}
    causes = list(dict.fromkeys([*CAUSES, *(cause for kind in kinds for cause in flash[kind])]))
    rows = []
    for cause in causes:
        values = [flash[kind].get(cause, 0) for kind in kinds]
        if not any(values):
            continue
        cells = []
        for kind, value in zip(kinds, values, strict=True):
            part = value / totals[kind] if totals[kind] else 0.0
            meter = f'<span class="meter c-{escape(cause)}" style="width:{100 * part:.1f}%"></span>'
            cells.append(f"{count(value)} <small>({share(part)})</small>{meter}" if value else "-")
        rows.append([f'<i class="sw c-{escape(cause)}"></i>{escape(CAUSES.get(cause, words(cause)))}', *cells])
    if not rows:
        return nothing("No flash operation was done.")
    rows.append(["all", *(count(totals[kind]) for kind in kinds)])
    idle = [CAUSES.get(cause, cause) for cause in causes if not any(flash[kind].get(cause) for kind in kinds)]
    note = f" Nothing was done for: {', '.join(idle)}." if idle else ""
    table = number_table(["", *(_KINDS.get(kind, words(kind)) for kind in kinds)], rows)
    return figure(table, "Every flash operation is charged to one cause." + note)


def _joules(summary: Mapping[str, Any]) -> float | None:
    energy = summary.get("energy_j")
    if isinstance(energy, Mapping):
        energy = energy.get("total", sum(value for value in energy.values() if isinstance(value, (int, float))))
    return float(energy) if isinstance(energy, (int, float)) else None


_ENERGY_COLOURS = {"read": "c-read", "program": "c-gc", "erase": "c-wear", "transfer": "c-refresh", "idle": "c-host"}


def energy(summary: Mapping[str, Any]) -> str:
    """Joules, and what they were spent on."""
    total = _joules(summary)
    if total is None:
        return ""
    host = summary.get("host") or {}
    moved = sum((host.get(op) or {}).get("bytes") or 0 for op in ("read", "write"))
    seconds = summary.get("duration_s") or 0
    says = f"{number(total)} J"
    if seconds:
        says += f", {number(total / seconds)} W on average"
    if moved:
        says += f", {number(total / (moved / 1e9))} J for each GB that the host read or wrote"
    energy = summary["energy_j"]
    parts = {}
    if isinstance(energy, Mapping):
        parts = {k: float(v) for k, v in energy.items() if k != "total" and isinstance(v, (int, float)) and v > 0}
    if not parts or not total:
        return f"<p>{escape(says)}.</p>"
    colours = {key: _ENERGY_COLOURS.get(key, list(_ENERGY_COLOURS.values())[i % 5]) for i, key in enumerate(parts)}
    strip = "".join(f'<i class="{colours[key]}" style="flex:{value / total:.4f}"></i>' for key, value in parts.items())
    rows = [
        [f'<i class="sw {colours[key]}"></i>{escape(words(key))}', f"{number(value)} J", share(value / total)]
        for key, value in parts.items()
    ]
    return (
        f'<p>{escape(says)}.</p><div class="strip">{strip}</div>{number_table(["spent on", "energy", "share"], rows)}'
    )


def smart(smart: Mapping[str, Any]) -> str:
    """The health logs, under the names that nvme-cli prints."""
    if not smart:
        return ""
    titles = {"nvme_smart_log": "NVMe health log", "ocp_smart_log": "OCP C0h log"}
    groups = {key: value for key, value in smart.items() if isinstance(value, Mapping)}
    loose = {key: value for key, value in smart.items() if key not in groups}
    if loose:
        groups["other"] = loose
    tables = [
        f"<div><h3>{escape(titles.get(key, words(key)))}</h3>"
        + number_table([], [[escape(name), escape(_smart_value(value))] for name, value in _flat(entries)])
        + "</div>"
        for key, entries in groups.items()
    ]
    return columns("two", *tables)


def counters(summary: Mapping[str, Any]) -> str:
    """Everything else that was counted."""
    counters = [(words(key), count(value)) for key, value in (summary.get("counters") or {}).items()]
    if not counters:
        return ""
    half = -(-len(counters) // 2)
    return columns("two", f"<div>{fact_table(counters[:half])}</div>", f"<div>{fact_table(counters[half:])}</div>")


def _flat(entries: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in entries.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _smart_value(value: Any) -> str:
    return (
        number(value)
        if isinstance(value, (int, float))
        else json.dumps(value)
        if isinstance(value, list)
        else str(value)
    )


def simulator(sim: Mapping[str, Any]) -> str:
    """How fast the simulation was; the only part of the page that differs between equal runs."""
    facts = []
    for key, value in sim.items():
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            continue
        if key.endswith("wall_s"):
            facts.append((words(key[:-2]) + " time", duration(value)))
        elif key.endswith("_mb"):
            facts.append((words(key[:-3]), f"{number(value)} MB"))
        else:
            name = words(key[:-6]) + "/s" if key.endswith("_per_s") else words(key)
            facts.append((name, count(value) if abs(value) >= 100 else number(value)))
    half = -(-len(facts) // 2)
    return (
        columns("two", f"<div>{fact_table(facts[:half])}</div>", f"<div>{fact_table(facts[half:])}</div>")
        if facts
        else ""
    )
