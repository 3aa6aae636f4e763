"""The metrics of a comparison: values of summary.json and arithmetic over them, with their names in words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nandlab.results import RunResult
from nandlab.study.expression import Expression
from nandlab.study.metrics import flat

#: Names of values that identify the run, that follow from the spec alone, or that judge the run, and the beginnings of
#: such names (those that end in `.` or `_`); they are no outcomes.
_NO_OUTCOMES = (
    "nandlab",
    "spec_hash",
    "notes",
    "space.",
    "steady_state.",
    "verified.",
    "cache.size_bytes",
    "cache.pages",
    "cache.budget_pages",
    "map.entries",
    "migration.counter_bytes_",
    "capacitor.energy_j",
    "capacitor.capability_pages",
    "capacitor.budget_pages",
)
#: Means that are written as 0 where nothing happened, with the value that is then 0.
_MEANS = {
    "gc.victim_valid_mean": "gc.victims",
    "gc.victim_ms.copies": "gc.victims",
    "gc.victim_ms.waiting": "gc.victims",
    "gc.victim_ms.erase": "gc.victims",
    "refresh.block_mean_s": "refresh.blocks",
    "ecc.host.flash_read_us": "ecc.host.flash_read_us",
}


@dataclass(frozen=True)
class Metric:
    """A metric that a comparison describes in words."""

    name: str
    #: The subject of "... is 12 % lower".
    words: str
    #: `"us"`, `"J"`, ...; `"share"` for a share (0 to 1); empty for a number.
    unit: str
    expression: Expression


def _latencies(op: str, words: str, parts: Iterable[str]) -> Iterator[tuple[str, str, str, str]]:
    said = {
        "mean": f"mean latency of {words}",
        "p50": f"median latency of {words}",
        "p99": f"p99 of {words}",
        "p999": f"p99.9 of {words}",
        "max": f"longest latency of {words}",
    }
    yield from ((f"latency_us.{op}.{part}", said[part], "us", "") for part in parts)


#: Name, words, unit, and the expression where the name is not that of a value of summary.json.
_TABLE = (
    *_latencies("read", "reads", ("mean", "p50", "p99", "p999", "max")),
    *_latencies("write", "writes", ("mean", "p50", "p99", "p999", "max")),
    *_latencies("flush", "flushes", ("mean", "p99")),
    *_latencies("trim", "TRIMs", ("mean", "p99")),
    ("iops", "IOPS", "", ""),
    ("mb_per_s", "throughput", "MB/s", ""),
    ("waf", "write amplification", "", ""),
    ("erases.mean", "mean number of P/E cycles of a block", "", ""),
    ("erases.max", "number of P/E cycles of the most worn block", "", ""),
    (
        "erases_per_gb_written",
        "number of blocks erased per GB of host writes",
        "",
        "total(flash.erase) / (host.write.bytes / 1e9)",
    ),
    ("blocks_retired", "number of worn-out blocks", "", ""),
    (
        "requests_failed",
        "number of failed requests",
        "",
        "requests_failed.uncorrectable + requests_failed.worn_out + requests_failed.power_lost",
    ),
    ("energy_j", "energy", "J", ""),
    ("die_busy_share", "die utilisation", "share", ""),
    ("channel_busy_share", "channel utilisation", "share", ""),
    ("link.to_drive", "utilisation of the link to the drive", "share", ""),
    ("link.to_host", "utilisation of the link to the host", "share", ""),
    ("controller.busy", "utilisation of the controller's processors", "share", ""),
    ("suspensions.programs", "number of suspensions of programs", "", ""),
    ("suspensions.erases", "number of suspensions of erases", "", ""),
    ("suspensions.suspended_s", "time for which operations are suspended", "s", ""),
    ("gc.victims", "number of victims of GC", "", ""),
    ("gc.victim_valid_mean", "mean valid share of a victim of GC", "share", ""),
    ("gc.victim_ms.copies", "mean time of the copies of a victim of GC", "ms", ""),
    ("gc.victim_ms.waiting", "mean time for which an emptied victim of GC waits for its erase", "ms", ""),
    ("gc.victim_ms.erase", "mean time of the erase of a victim of GC", "ms", ""),
    ("flash.program.gc", "number of pages that GC programs", "", ""),
    ("flash.program.wear", "number of pages that wear levelling programs", "", ""),
    ("ecc.retries", "number of tries of page reads beyond the first", "", ""),
    ("ecc.decoder_busy_s", "time of decoding page reads, of all decoders together", "s", ""),
    ("ecc.decoder_wait_s", "time that page reads waited for a decoder", "s", ""),
    ("ecc.uncorrectable", "number of page reads that no read level decodes", "", ""),
    ("ecc.host.flash_read_us", "mean flash time of a host page read", "us", ""),
    (
        "map.read.hit_share",
        "share of page reads that hit the mapping cache",
        "share",
        "map.read.hits / (map.read.hits + map.read.misses)",
    ),
    (
        "map.write.hit_share",
        "share of page writes that hit the mapping cache",
        "share",
        "map.write.hits / (map.write.hits + map.write.misses)",
    ),
    ("map.write_backs", "number of translation pages written back", "", ""),
    (
        "cache.read_hit_share",
        "share of host page reads that hit the write cache",
        "share",
        "cache.read_hits / (cache.read_hits + cache.read_misses)",
    ),
    (
        "cache.write_hit_share",
        "share of host page writes that hit the write cache",
        "share",
        "cache.write_hits / (cache.write_hits + cache.write_misses)",
    ),
    ("cache.write_backs", "number of pages written back from the write cache", "", ""),
    ("cache.waiting_writes", "number of page writes that wait for the write cache", "", ""),
    ("cache.dirty_pages_max", "highest number of dirty pages", "", ""),
    ("migration.copybacks", "number of pages copied back", "", ""),
    ("migration.refused", "number of pages whose copyback is refused", "", ""),
    ("refresh.blocks", "number of refreshed blocks", "", ""),
    ("refresh.late_blocks", "number of blocks refreshed late", "", ""),
    ("flash.program.refresh", "number of pages that refresh programs", "", ""),
    ("refresh.block_mean_s", "mean duration of the refresh of a block", "s", ""),
    ("reclaim.blocks", "number of blocks that read reclaim empties", "", ""),
    ("slc.cached_share", "share of host pages written in SLC mode", "share", "slc.cached / (slc.cached + slc.direct)"),
    ("slc.blocks", "number of blocks in SLC mode that are folded", "", ""),
    ("capacitor.detections.count", "number of budget detections", "", ""),
    ("power.lost_covered", "number of lost writes that a flush or FUA covers", "", ""),
    ("power.lost_writes", "number of lost writes", "", ""),
    ("power.dirty_pages", "number of dirty pages when power fails", "", ""),
    ("power.flush_s", "time of the emergency flush", "s", ""),
    ("power.spent_j", "energy of the emergency flush", "J", ""),
    ("power.recovery_s", "time of the recovery", "s", ""),
)
#: The metrics that a comparison shows first, in this order: write amplification, latency, throughput, lifetime. The
#: names that end in a point stand for all metrics that begin so.
FIRST = (
    *("waf", "latency_us.read.", "latency_us.write.", "latency_us.", "iops", "mb_per_s"),
    *("erases.", "erases_per_gb_written", "blocks_retired", "requests_failed"),
)
#: The metrics of which more is better, and those of which less is; of others neither is better by itself.
_HIGHER_IS_BETTER = (
    *("iops", "mb_per_s", "map.read.hit_share", "map.write.hit_share", "cache.read_hit_share", "cache.write_hit_share"),
)
_LOWER_IS_BETTER = (
    *("waf", "latency_us.", "erases.", "erases_per_gb_written", "blocks_retired", "requests_failed", "energy_j"),
    *("ecc.retries", "ecc.decoder_busy_s", "ecc.decoder_wait_s", "ecc.uncorrectable", "ecc.host.flash_read_us"),
    *("flash.program.", "cache.waiting_writes", "refresh.late_blocks", "power.lost_covered", "power.lost_writes"),
    *("power.flush_s", "power.spent_j", "power.recovery_s", "migration.refused"),
)


def better(metric: str) -> str:
    """The better direction of a metric: `"lower"`, `"higher"`, or empty where neither is better by itself."""
    if metric in _HIGHER_IS_BETTER:
        return "higher"
    return "lower" if _stands_for(_LOWER_IS_BETTER, metric) is not None else ""


def place(metric: str) -> int:
    """The place of a metric among the first ones; `len(FIRST)` for the others."""
    found = _stands_for(FIRST, metric)
    return len(FIRST) if found is None else found


def _stands_for(names: tuple[str, ...], metric: str) -> int | None:
    """The index of the first name that is the metric, or that ends in a point and begins it."""
    return next(
        (at for at, name in enumerate(names) if metric == name or (name[-1] == "." and metric.startswith(name))), None
    )


METRICS = tuple(Metric(name, words, unit, Expression.parse(text or name)) for name, words, unit, text in _TABLE)
#: Values that the metrics above stand for.
_NAMED = frozenset(name.removesuffix("*") for metric in METRICS for name in metric.expression.names)


def is_outcome(name: str) -> bool:
    """Whether a value of summary.json is an outcome of the run, by its dotted name."""
    return not name.startswith(_NO_OUTCOMES)


def outcomes(result: RunResult) -> dict[str, float]:
    """The numbers of summary.json that are outcomes of the run, by their dotted names."""
    summary = json.loads(result.summary_text)
    # Without requests of a kind its latencies are written as 0.
    unused = tuple(f"latency_us.{op}." for op, of in summary["host"].items() if not of["count"])
    found = {
        name: value
        for name, value in flat(summary)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and is_outcome(name)
    }
    return {
        name: value
        for name, value in found.items()
        if not name.startswith(unused) and found.get(_MEANS.get(name, ""), 1)
    }


def is_further(name: str) -> bool:
    """Whether an outcome is none of the metrics with words, nor a part of one."""
    return not any(name == named or (named.endswith(".") and name.startswith(named)) for named in _NAMED)
