"""What a reader of a result should know before believing its numbers."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from typing import Any

from nandlab.results import RunResult
from nandlab.screen import joules
from nandlab.units import count, duration, part, share

#: Below this share of unmapped page reads there is nothing to say.
_UNMAPPED = 0.03
#: More requests than a host has under way: its queues hold 128 or 256.
_WAITING = 300


def notes(result: RunResult) -> list[str]:
    """One sentence or two for each thing that makes the headline numbers other than they look."""
    summary, spec = result.summary, tomllib.loads(result.spec_toml)
    found = [_lost_writes(summary), _never_cut(summary, spec), _worn_out(summary)]
    found.append(_no_budget(summary, spec))
    found += [_lost(summary), _as_new(summary, spec), _whole_map(summary, spec), _unmapped(summary, spec)]
    found.append(_backlog(summary, spec))
    return [text for text in found if text is not None]


def unmapped_share(summary: Mapping[str, Any]) -> float:
    """The share of the host's page reads that met a page holding nothing."""
    counters = summary.get("counters") or {}
    flash = ((summary.get("flash") or {}).get("read") or {}).get("host") or 0
    unmapped = counters.get("unmapped_reads") or 0
    # The host's flash reads include those that complete a partly written page.
    pages = flash - (counters.get("merge_reads") or 0) + unmapped + (counters.get("buffered_reads") or 0)
    return unmapped / pages if pages > 0 else 0.0


def _unmapped(summary: Mapping[str, Any], spec: Mapping[str, Any]) -> str | None:
    part = unmapped_share(summary)
    if part <= _UNMAPPED:
        return None
    text = (
        f"{share(part)} of the page reads met pages that hold no data: they are answered without flash, in 0 us, "
        "and pull the read latency down."
    )
    if (spec.get("precondition") or {}).get("map_reads"):
        return text
    return text + " With precondition.map_reads = true what the workload reads is there before it starts."


def _lost_writes(summary: Mapping[str, Any]) -> str | None:
    power = summary.get("power") or {}
    lost = power.get("lost_writes") or 0
    if not lost:
        return None
    text = f"DATA LOST: power loss took {count(lost)} acknowledged write{'' if lost == 1 else 's'}"
    cached, with_wordline = power["lost_pages"], power["lost_with_wordline"]
    reasons = []
    if cached:
        reasons.append(f"{count(cached)} in the write cache alone")
    if with_wordline:
        reasons.append(f"{count(with_wordline)} in flash, on the wordline of a torn program")
    text += f" ({', '.join(reasons)}); power.json names them. "
    capacitor = summary.get("capacitor")
    if capacitor is None:
        return text + "The drive has no capacitor: set capacitor.capacitance."
    if capacitor["worn_out"]:
        return text + 'The capacitor has lost more than 30 %: set cache.dirty_budget = "measured", or renew it.'
    if power["spent_j"] < 0.5 * power["energy_j"]:
        return text + "There was energy left."
    return text + (
        f"The capacitor held {joules(power['energy_j'])}, and {joules(power['spent_j'])} went into "
        f"{count(power['flushed_pages'])} pages: raise capacitor.capacitance or capacitor.margin, or lower "
        "cache.dirty_budget."
    )


def _never_cut(summary: Mapping[str, Any], spec: Mapping[str, Any]) -> str | None:
    wanted = spec.get("power") or {}
    after, at = wanted.get("cut_after_requests") or 0, wanted.get("cut_at")
    if summary.get("power") or not summary.get("complete") or (not after and at is None):
        return None
    when = f"power.cut_after_requests = {after}" if after else f'power.cut_at = "{at}"'
    return (
        f"Power never failed: the run was over before {when}, after {count(summary.get('requests'))} requests and "
        f"{duration(summary.get('duration_s'))}."
    )


def _worn_out(summary: Mapping[str, Any]) -> str | None:
    capacitor = summary.get("capacitor") or {}
    if not capacitor.get("worn_out"):
        return None
    return (
        f"The capacitor has lost {part(capacitor['loss_share'], 1)} of its rated capacitance and is worn out "
        "(the limit is 30 %): a measured budget is 0."
    )


def _no_budget(summary: Mapping[str, Any], spec: Mapping[str, Any]) -> str | None:
    capacitor, cache = summary.get("capacitor") or {}, summary.get("cache") or {}
    is_measured = (spec.get("cache") or {}).get("dirty_budget") == "measured"
    if not is_measured or capacitor.get("worn_out") or capacitor.get("stage") != "charged" or cache["budget_pages"]:
        return None
    can_save = math.floor(capacitor["capability_pages"])
    return (
        "No page may be dirty, so every write waits for flash: "
        f"the capacitor can save {count(can_save)} of the {count(cache['pages'])} pages of the write cache, and with "
        "capacitor.steps and capacitor.margin that is too few for a budget. Raise capacitor.capacitance, lower "
        'cache.size, or set capacitor.steps = "continuous".'
    )


def _lost(summary: Mapping[str, Any]) -> str | None:
    ecc = summary.get("ecc") or {}
    lost = ecc.get("uncorrectable") or 0
    if not lost:
        return None
    reads = sum((ecc.get("levels") or {}).values()) + lost
    failed = summary.get("requests_failed") or 0
    return (
        f"{part(lost, reads)} of the page reads ({count(lost)}) were decoded by no read level, and {count(failed)} "
        "requests failed: the data is too old for the drive's wear. Lower reliability.pe_cycles, "
        "reliability.retention or reliability.clock_scale, or set ecc.levels with a higher last rber_max; "
        "`nandlab reliability` shows which level decodes what."
    )


def _as_new(summary: Mapping[str, Any], spec: Mapping[str, Any]) -> str | None:
    ecc = summary.get("ecc") or {}
    levels = list((ecc.get("levels") or {}).values())
    if len(levels) < 2 or not levels[0] or any(levels[1:]) or ecc.get("uncorrectable"):
        return None
    if (spec.get("reliability") or {}).get("rber") == "none":
        return "Every page was decoded at read level 1, since the spec has no bit errors: set reliability.rber."
    return (
        "Every page was decoded at read level 1, so the read levels changed nothing. reliability.pe_cycles and "
        "reliability.retention age the drive; `nandlab reliability` shows what asks for which level."
    )


def _whole_map(summary: Mapping[str, Any], spec: Mapping[str, Any]) -> str | None:
    entries = (summary.get("map") or {}).get("entries") or 0
    drive = spec.get("drive") or {}
    names = ("channels", "chips_per_channel", "dies_per_chip", "planes_per_die", "blocks_per_plane", "pages_per_block")
    pages = math.floor(math.prod(drive.get(name) or 0 for name in names) / (1 + (drive.get("op") or 0)))
    if not 0 < pages <= entries:
        return None
    return (
        f"The mapping cache has room for the whole map ({count(entries)} entries): no entry ever leaves it, whatever "
        "the eviction policy. A smaller ftl.map.demand.cache would show the policy."
    )


def _backlog(summary: Mapping[str, Any], spec: Mapping[str, Any]) -> str | None:
    if (
        isinstance((spec.get("workload") or {}).get("arrival"), Mapping)
        and "queue_depth" in spec["workload"]["arrival"]
    ):
        return None
    mean_s = (((summary.get("latency_us") or {}).get("all") or {}).get("mean") or 0.0) * 1e-6
    waiting = mean_s * (summary.get("iops") or 0.0)
    if waiting <= _WAITING:
        return None
    return (
        f"The drive did not keep up: {count(waiting)} requests were waiting on average, for {duration(mean_s)}, so the "
        "latencies are those of a queue that no host would let grow. Stretch the arrivals with workload.time_scale, "
        "give workload.arrival = { queue_depth = 32 }, or take a faster drive."
    )
