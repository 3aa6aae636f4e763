"""The sections that tell: headline numbers, what was run, operations by cause, energy, SMART, counters."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from nandlab.reporting import svg
from nandlab.reporting.pieces import CAUSES, columns, escape, fact_table, figure, nothing, number_table, words
from nandlab.reporting.svg import Line
from nandlab.screen import happened, read_levels, write_back_entries
from nandlab.units import count, duration, number, part, share, size


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


#: What says nothing, and so has no row.
_OFF = {
    "host.link": "none",
    "ecc.start": "first",
    "ecc.retry": "full",
    "reliability.read_disturb": 0.0,
    "reliability.copyback_error": 0.0,
    "reliability.retention": "0ns",
    "reliability.clock_scale": 1.0,
    "cache.dirty_budget": 1.0,
    "capacitor.capacitance": "0F",
    "power.cut_after_requests": 0,
}


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
        ("link to the host", "host.link"),
        ("read / program / erase", "timing.read timing.program timing.erase"),
        ("scheduler", "timing.scheduler"),
        ("mapping", "ftl.map"),
        ("allocation", "ftl.allocation"),
        ("wear levelling", "ftl.wear_levelling"),
        ("GC victim", "gc.victim"),
        ("GC starts (background / foreground)", "gc.background_free gc.foreground_free"),
        ("read levels", "ecc.levels"),
        ("a read starts at / retries", "ecc.start ecc.retry"),
        ("bit errors", "reliability.rber"),
        ("RBER that a read of the block adds", "reliability.read_disturb"),
        ("RBER that a copyback adds", "reliability.copyback_error"),
        ("wear at the start, P/E cycles", "reliability.pe_cycles"),
        ("age of the data at the start", "reliability.retention"),
        ("ages run faster by", "reliability.clock_scale"),
        ("refresh", "refresh.policy"),
        ("migration", "migration.policy"),
        ("write cache", "cache.size"),
        ("cache sync", "cache.sync"),
        ("share of the cache that may be dirty", "cache.dirty_budget"),
        ("capacitor", "capacitor.capacitance"),
        ("its temperature, degrees Celsius / age", "capacitor.temperature capacitor.age"),
        ("emergency flush", "capacitor.flush"),
        ("power fails after requests", "power.cut_after_requests"),
        ("power fails at", "power.cut_at"),
        ("preconditioning", "precondition"),
        ("workload", "workload"),
        ("seed", "seed"),
    ]
    if at("capacitor.capacitance") in (None, "0F"):
        wanted = [entry for entry in wanted if not entry[1].startswith("capacitor.")]
    for name, paths in wanted:
        if all(path in _OFF and at(path) == _OFF[path] for path in paths.split()):
            continue
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
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer() and abs(value) >= 1000):
        return f"{value:,.0f}"
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


def levels(summary: Mapping[str, Any]) -> str:
    """At which read levels pages were decoded, and what it took."""
    rows = read_levels(summary)
    if not rows:
        return ""
    host = (summary.get("ecc") or {}).get("host") or {}
    lost = any(row.uncorrectable for row in rows)
    names = [*(f"level {level}" for level in range(1, len(rows[0].counts) + 1)), *(["lost"] if lost else [])]
    colours = {"all": ("all page reads", "c-host"), "host": ("the host's page reads", "c-read")}
    drawn = []
    for row in rows:
        counts = [*row.counts, *([row.uncorrectable] if lost else [])]
        name, colour = colours[row.name]
        drawn.append(Line(name, 100 * np.array(counts, dtype=float) / row.total, colour))
    says = "Page reads by the read level that decoded them"
    needed = list((host.get("needed") or {}).values())
    if needed and needed != list(host["levels"].values()) and (total := sum(needed) + rows[-1].uncorrectable):
        counts = [*needed, *([rows[-1].uncorrectable] if lost else [])]
        drawn.append(Line("the level they need", 100 * np.array(counts, dtype=float) / total, "c-gc"))
        says += ", and by the least level that would have decoded those of the host"
    plot = svg.grouped_bars(names, drawn, y_title="share of page reads, %")
    left = figure(plot, f"{says}. Each colour adds up to 100 %.")
    facts: list[tuple[str, list[str]]] = [
        ("page reads", [count(row.total) for row in rows]),
        ("retries", [count(row.retries) for row in rows]),
        ("retries a read", [number(row.retries / row.total) for row in rows]),
        ("not decoded by any level", [count(row.uncorrectable) for row in rows]),
        ("started above level 1", ["-" if r.soft_starts is None else part(r.soft_starts, r.total) for r in rows]),
    ]
    if host.get("flash_read_us") is not None and len(rows) == 2:
        facts.append(("flash time a read, us", ["-", number(host["flash_read_us"])]))
    table = number_table(["", *(colours[row.name][0] for row in rows)], [[name, *cells] for name, cells in facts])
    retry = "A retry senses, transfers and decodes again, one level higher."
    if facts[-1][0].startswith("flash time"):
        retry += " The flash time is that of all tries, without waiting."
    return columns("two", left, figure(table, retry))


def mapping(summary: Mapping[str, Any]) -> str:
    """The cache of a demand map: hits, misses, write-backs."""
    used = summary.get("map")
    if not used:
        return ""
    rows = []
    for op in ("read", "write"):
        hits, misses = used[op]["hits"], used[op]["misses"]
        if hits + misses:
            cells = [count(hits + misses), count(hits), count(misses), part(hits, hits + misses)]
            rows.append([f'<i class="sw c-{op}"></i>page {op}s of the host', *cells])
    lookups = number_table(["", "lookups", "hits", "misses", "hit ratio"], rows)
    left = (
        figure(lookups, "A miss reads a translation page from flash before the request can go on.")
        if rows
        else nothing("The host read and wrote nothing.")
    )
    carried = write_back_entries(used)
    facts = [
        ("entries cached / at most", f"{count(used['cached'])} / {count(used['entries'])}"),
        ("evictions, of them dirty", f"{count(used['evictions'])}, {count(used['dirty_evictions'])}"),
        ("translation pages written back", count(used["write_backs"])),
        ("changed entries a write-back", "-" if carried is None else number(carried)),
        ("misses that waited for write-backs", count(used["waiting_misses"])),
    ]
    return columns("two", left, f"<figure>{fact_table(facts)}</figure>")


def write_cache(summary: Mapping[str, Any]) -> str:
    """The write cache: hits, evictions, write-backs, dirty pages."""
    used = summary.get("cache") or {}
    if not used.get("pages"):
        return ""
    rows = []
    for op in ("read", "write"):
        hits, misses = used[f"{op}_hits"], used[f"{op}_misses"]
        if hits + misses:
            cells = [count(hits), count(misses), part(hits, hits + misses)]
            rows.append([f'<i class="sw c-{op}"></i>page {op}s', *cells])
    lookups = number_table(["", "hits", "misses", "hit ratio"], rows)
    left = (
        figure(lookups, "A read hits when all its sectors are there, a write when its page is.")
        if rows
        else nothing("The host read and wrote nothing.")
    )
    facts = [
        ("pages that fit, that may be dirty", f"{count(used['pages'])}, {count(used['budget_pages'])}"),
        ("dirty pages at most, at the end", f"{count(used['dirty_pages_max'])}, {count(used['dirty_pages'])}"),
        (
            "pages written back, of them for a flush or in idle time",
            f"{count(used['write_backs'])}, {count(used['syncs'])}",
        ),
        ("evictions of clean, of dirty pages", f"{count(used['evictions'])}, {count(used['dirty_evictions'])}"),
        ("writes that waited for room", count(used["waiting_writes"])),
        ("updates that waited for their page's write-back", count(used["blocked_updates"])),
    ]
    return columns("two", left, f"<figure>{fact_table(facts)}</figure>")


def migration(summary: Mapping[str, Any]) -> str:
    """Copybacks: how many in a row, what was moved off-chip instead, what the counters take."""
    used = summary.get("migration")
    if not used:
        return ""
    total = used["copybacks"]
    rows = [[f"number {n}", count(pages), part(pages, total)] for n, pages in used["by_count"].items()]
    left = (
        figure(
            number_table(["copyback in a row", "pages", "share"], [*rows, ["all", count(total), ""]]),
            "A copyback moves a page inside its plane, errors and all; off-chip it is corrected, and begins anew.",
        )
        if total
        else nothing("No page was copied back.")
    )
    facts = [
        ("victims copied back", count(used["victims_copied_back"])),
        ("victims that the policy moved off-chip", count(used["victims_off_chip"])),
        ("victims moved off-chip for want of free blocks", count(used["victims_without_room"])),
        ("pages that their limit sent off-chip", count(used["refused"])),
        ("counters, one a block", size(used["counter_bytes_by_block"])),
        ("counters, were there one a page", size(used["counter_bytes_by_page"])),
    ]
    return columns("two", left, f"<figure>{fact_table(facts)}</figure>")


def _load(load: float | None) -> str:
    return "-" if load is None else f"{load:.2g} x"


def refresh(summary: Mapping[str, Any]) -> str:
    """Blocks refreshed and when; of partial refresh, what became of their pages and what it takes."""
    used = summary.get("refresh")
    if not used:
        return ""
    facts = [
        ("blocks refreshed, valid pages in them", f"{count(used['blocks'])}, {count(used['pages'])}"),
        ("a block takes, on average", duration(used["block_mean_s"]) if used["blocks"] else "-"),
        ("longest overdue, on the scaled clock", duration(used["overdue_max_s"])),
        ("blocks refreshed later than their grace", count(used["late_blocks"])),
        ("blocks overdue by more than their grace at the end", count(used.get("overdue_blocks"))),
        ("blocks come due, to blocks refreshed in that time", _load(used.get("load"))),
        ("put before host writes, their grace running out", count(used["promoted"])),
    ]
    partial = used.get("partial")
    if not partial:
        return f"<figure>{fact_table(facts)}</figure>"
    total = used["pages"]
    fates = [
        ("susceptible bits moved, page stays", partial["pages"]),
        ("read often: written elsewhere", partial["hot_pages"]),
        ("too many susceptible bits: written elsewhere", partial["too_susceptible_pages"]),
        ("no room in the VSM: written elsewhere", partial["pages_without_room"]),
    ]
    rest = total - sum(pages for _, pages in fates)
    fates.append(("their block was not refreshed partially, or they were written meanwhile", max(rest, 0)))
    rows = [[name, count(pages), part(pages, total)] for name, pages in fates]
    left = (
        figure(
            number_table(["valid pages of due blocks", "pages", "share"], rows),
            "A partially refreshed page is read together with its part of a combination page.",
        )
        if total
        else nothing("No block with data was due.")
    )
    facts += [
        ("blocks refreshed partially", count(partial["blocks"])),
        ("not, because free blocks were few", count(partial["blocks_while_off"])),
        ("share of the time with enough free blocks", share(partial["on_share"])),
        ("susceptible data", size(partial["susceptible_bytes"])),
        (
            "combination pages, of that empty",
            f"{count(partial['combination_pages'])}, {size(partial['padding_bytes'])}",
        ),
        ("host reads of two pages", count(partial["host_preads"])),
        ("pages made whole again by GC or refresh", count(partial["promoted_pages"])),
        ("pages linked at the end, at most", f"{count(partial['linked_pages'])}, {count(partial['linked_pages_max'])}"),
        ("RAM of links, of the VSM, at most", f"{size(partial['mapping_bytes'])}, {size(partial['vsm_bytes'])}"),
    ]
    return columns("two", left, f"<figure>{fact_table(facts)}</figure>")


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
