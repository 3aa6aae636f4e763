"""The table of the most important settings of a spec."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from nandlab.reporting.content import Block, Columns, Facts
from nandlab.units import size

#: Values that switch a mechanism off or are the usual choice; they have no row.
_OFF = {
    "drive.bad_blocks": 0.0,
    "drive.program_order": "page",
    "ftl.mapping_unit": "page",
    "ftl.superblock": "plane",
    "ftl.buffer": "0B",
    "ftl.streams": "none",
    "placement.handles": 1,
    "placement.groups": 1,
    "placement.isolation": "initial",
    "placement.reclaim_unit": 1,
    "host.link": "none",
    "host.controller": "none",
    "timing.multi_plane": False,
    "timing.plane_reads": "together",
    "timing.suspend": "none",
    "ecc.start": "first",
    "ecc.retry": "full",
    "ecc.decoders": "unlimited",
    "reliability.read_disturb": 0.0,
    "reliability.copyback": "constant",
    "reliability.copyback_error": 0.0,
    "reliability.retention": "0ns",
    "reliability.clock_scale": 1.0,
    "migration.in_flight": 4,
    "migration.first_block": "own",
    "migration.copyback": "whole",
    "cache.eviction": "lru",
    "cache.dirty_budget": 1.0,
    "cache.read_room": "skip",
    "capacitor.capacitance": "0F",
    "power.cut_after_requests": 0,
}


def settings_of(spec: Mapping[str, object]) -> list[Block]:
    """The most important settings of a resolved spec."""

    def at(path: str) -> object:
        value: object = spec
        for key in path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    rows: list[tuple[str, str]] = []
    names = ("channels", "chips_per_channel", "dies_per_chip", "planes_per_die", "blocks_per_plane", "pages_per_block")
    counts = [number for name in names if isinstance(number := at(f"drive.{name}"), int)]
    if len(counts) == len(names):
        words = ("channels", "chips", "dies", "planes", "blocks", "pages")
        parts = [f"{number} {word if number != 1 else word[:-1]}" for number, word in zip(counts, words, strict=True)]
        page_bytes = _bytes(at("drive.page_size"))
        if page_bytes:
            parts.append(size(page_bytes))
            raw = page_bytes * math.prod(counts)
            op = at("drive.op")
            included = " with the bad blocks" if at("drive.bad_blocks") else ""
            capacity = f"{size(raw)} raw{included}" + (
                f", {size(raw / (1 + op))} for the host" if isinstance(op, (int, float)) else ""
            )
            rows.append(("capacity", capacity))
        rows.insert(0, ("geometry", " \u00d7 ".join(parts)))
    wanted = [
        ("preset", "drive.preset"),
        ("cell", "drive.cell"),
        ("over-provisioning", "drive.op"),
        ("endurance, P/E cycles", "drive.endurance"),
        ("share of blocks that are bad from the factory", "drive.bad_blocks"),
        ("program order", "drive.program_order"),
        ("superblock", "ftl.superblock"),
        ("link to the host", "host.link"),
        ("firmware of the controller", "host.controller"),
        ("read / program / erase", "timing.read timing.program timing.erase"),
        ("scheduler", "timing.scheduler"),
        ("multi-plane operations", "timing.multi_plane"),
        ("reads of the planes", "timing.plane_reads"),
        ("suspension for host reads", "timing.suspend"),
        ("mapping", "ftl.map"),
        ("mapping unit", "ftl.mapping_unit"),
        ("write buffer", "ftl.buffer"),
        ("allocation", "ftl.allocation"),
        ("streams of the host", "ftl.streams"),
        ("wear levelling", "ftl.wear_levelling"),
        ("placement handles", "placement.handles"),
        ("reclaim groups", "placement.groups"),
        ("isolation of the handles", "placement.isolation"),
        ("reclaim unit, blocks of a plane", "placement.reclaim_unit"),
        ("GC victim", "gc.victim"),
        ("GC starts (background / foreground)", "gc.background_free gc.foreground_free"),
        ("read levels", "ecc.levels"),
        ("start level / retry", "ecc.start ecc.retry"),
        ("decoders", "ecc.decoders"),
        ("bit errors", "reliability.rber"),
        ("RBER added by a read of the block", "reliability.read_disturb"),
        ("errors that a copyback takes over", "reliability.copyback"),
        ("RBER added by a copyback", "reliability.copyback_error"),
        ("wear at the start, P/E cycles", "reliability.pe_cycles"),
        ("age of the data at the start", "reliability.retention"),
        ("clock scale", "reliability.clock_scale"),
        ("refresh", "refresh.policy"),
        ("read reclaim", "reclaim.policy"),
        ("SLC cache (static / share of free blocks)", "slc.static slc.dynamic"),
        ("writes to a full SLC cache", "slc.when_full"),
        ("tR / tPROG / tBERS in SLC mode", "slc.read slc.program slc.erase"),
        ("migration", "migration.policy"),
        ("copies of a job under way", "migration.in_flight"),
        ("open block of pages that GC moves off-chip", "migration.first_block"),
        ("host reads amid copybacks", "migration.copyback"),
        ("write cache", "cache.size"),
        ("cache sync", "cache.sync"),
        ("cache eviction", "cache.eviction"),
        ("share of the cache that may be dirty", "cache.dirty_budget"),
        ("reads that find no slot in the cache", "cache.read_room"),
        ("capacitor", "capacitor.capacitance"),
        ("capacitor temperature, degrees Celsius / age", "capacitor.temperature capacitor.age"),
        ("emergency flush", "capacitor.flush"),
        ("power cut after requests", "power.cut_after_requests"),
        ("power cut at", "power.cut_at"),
        ("power cut again in recovery, after", "power.cut_in_recovery"),
        ("preconditioning", "precondition"),
        ("workload", "workload"),
        ("seed", "seed"),
    ]
    if at("slc.static") in (None, "0B") and at("slc.dynamic") in (None, 0.0):
        wanted = [entry for entry in wanted if not entry[1].startswith("slc.")]
    if at("capacitor.capacitance") in (None, "0F"):
        wanted = [entry for entry in wanted if not entry[1].startswith("capacitor.")]
    for name, paths in wanted:
        if all(path in _OFF and at(path) == _OFF[path] for path in paths.split()):
            continue
        values = [_inline(value) for path in paths.split() if (value := at(path)) is not None]
        if values:
            rows.append((name, " / ".join(values)))
    half = -(-len(rows) // 2)
    return [Columns((Facts(tuple(rows[:half])), Facts(tuple(rows[half:]))))] if len(rows) > 1 else [Facts(tuple(rows))]


def _inline(value: object) -> str:
    """A TOML value on one line; a table without its braces."""
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


def _bytes(value: object) -> int | None:
    if isinstance(value, int):
        return value
    match = re.fullmatch(r"(\d+)\s*(B|KiB|MiB)", str(value))
    return int(match[1]) * {"B": 1, "KiB": 1024, "MiB": 1 << 20}[match[2]] if match else None
