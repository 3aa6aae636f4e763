"""What a reader of a result should know before believing its numbers."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from typing import Any

from nandlab.results import RunResult
from nandlab.screen import joules
from nandlab.units import count, duration, number, part, share

#: Below this share of unmapped page reads there is nothing to say.
_UNMAPPED = 0.03
#: More requests than a host has under way: its queues hold 128 or 256.
_WAITING = 300
#: A drive that amplifies uniform random writes more than that has little spare space.
_WAF_HIGH = 10


def notes(result: RunResult) -> list[str]:
    """One sentence or two for each thing that makes the headline numbers other than they look."""
    summary, spec = result.summary, tomllib.loads(result.spec_toml)
    found = [_lost_writes(summary), _never_cut(summary, spec), _capacitor_worn_out(summary)]
    found.append(_no_budget(summary, spec))
    found += [_uncorrectable(summary), _worn_out(summary, spec), _outstanding(summary)]
    found += [_as_new(summary, spec), _whole_map(summary, spec), _unmapped(summary, spec)]
    found += [_little_spare(summary, spec), _forced_victims(summary, spec), _late_refresh(summary)]
    found.append(_backlog(summary, spec))
    return [text for text in found if text is not None]


def failed(summary: Mapping[str, Any], reason: str) -> int:
    """Requests that failed for a reason: `"uncorrectable"`, `"worn_out"` or `"power_lost"`."""
    by_reason = summary.get("requests_failed")
    return int(by_reason.get(reason) or 0) if isinstance(by_reason, Mapping) else 0


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


def _capacitor_worn_out(summary: Mapping[str, Any]) -> str | None:
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


def _requests(requests: int) -> str:
    return f"{count(requests)} request{'' if requests == 1 else 's'}"


def _uncorrectable(summary: Mapping[str, Any]) -> str | None:
    ecc = summary.get("ecc") or {}
    lost, requests = ecc.get("uncorrectable") or 0, failed(summary, "uncorrectable")
    if not lost and not requests:
        return None
    reads = sum((ecc.get("levels") or {}).values()) + lost
    text = f"{_requests(requests)} failed: no read level decodes their data" if requests else ""
    if summary.get("power") and requests:
        text += ", or power loss took it"
    if not lost:
        return text + "."
    if text:
        text += ". "
    return text + (
        f"{part(lost, reads)} of the page reads ({count(lost)}) were decoded by no read level: the data is too old for "
        "the drive's wear. Lower reliability.pe_cycles, reliability.retention or reliability.clock_scale, or set "
        "ecc.levels with a higher last rber_max; `nandlab reliability` shows which level decodes what."
    )


def _worn_out(summary: Mapping[str, Any], spec: Mapping[str, Any]) -> str | None:
    requests = failed(summary, "worn_out")
    if not requests:
        return None
    return (
        f"{_requests(requests)} failed: the drive has worn out. A block retires at drive.endurance = "
        f"{count((spec.get('drive') or {}).get('endurance'))} P/E cycles, and a plane had no block left that an erase "
        "would have made free again. blocks_retired and the counters of the summary, and avail_spare and percent_used "
        "of SMART say how far the drive got. A higher drive.endurance or drive.op, or fewer writes, would let it last."
    )


def _outstanding(summary: Mapping[str, Any]) -> str | None:
    requests = failed(summary, "power_lost")
    if not requests:
        return None
    return f"{_requests(requests)} {'was' if requests == 1 else 'were'} outstanding when power failed."


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


def _little_spare(summary: Mapping[str, Any], spec: Mapping[str, Any]) -> str | None:
    space = summary.get("space") or {}
    waf = space.get("waf_uniform_fifo")
    writes = ((summary.get("host") or {}).get("write") or {}).get("count") or 0
    if not space or not writes or (waf is not None and waf <= _WAF_HIGH):
        return None
    needs = space["needs"]
    blocks = needs["open_blocks"] + needs["free_blocks"]
    text = (
        f"drive.op = {(spec.get('drive') or {}).get('op')} leaves an effective over-provisioning of "
        f"{part(max(space['spare_share'], 0.0), 1)}, because each plane keeps {count(blocks)} blocks open or free for "
        "GC and other mechanisms: uniform random writes would be amplified "
    )
    text += "without bound" if waf is None else f"{number(waf)} times"
    enough = space.get("op_for_waf_5")
    return text + ("." if enough is None else f"; drive.op = {enough} would make that 5.")


def _forced_victims(summary: Mapping[str, Any], spec: Mapping[str, Any]) -> str | None:
    counters = summary.get("counters") or {}
    forced = counters.get("gc_victims_forced") or 0
    # To greedy they are the victims that it would have named.
    if not forced or (spec.get("gc") or {}).get("victim") == "greedy":
        return None
    return (
        f"GC took the block with the fewest valid pages in {count(forced)} of {count(counters.get('gc_victims'))} "
        "victims, whatever gc.victim says, because a plane was down to the blocks it must keep: the policy's own "
        "victims gained too little. A higher drive.op or gc.foreground_free leaves the choice to the policy."
    )


def _late_refresh(summary: Mapping[str, Any]) -> str | None:
    refresh = summary.get("refresh") or {}
    load, late, overdue = (refresh.get(key) or 0 for key in ("load", "late_blocks", "overdue_blocks"))
    if load <= 1 or not (late or overdue):
        return None
    times = f"{load:.1f}" if load < 100 else count(load)
    return (
        f"Refresh cannot keep up: {times} x. Blocks come due that many times faster than the drive refreshes them; "
        f"{count(late)} were refreshed after their grace, and {count(overdue)} are overdue at the end. Lower "
        "reliability.clock_scale, or lengthen refresh.interval."
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
