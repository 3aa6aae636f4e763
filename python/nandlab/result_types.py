"""What is in `summary.json`, `power.json` and a row of `life.parquet`, typed.

Written by tools/result_types.py from what the core declares; `make result-types` writes this file anew.
"""

from __future__ import annotations

from typing import Literal

from nandlab.record import Record

#: What a flash operation is done for, by the name of its cause.
CAUSES = {
    "host": "the host",
    "gc": "garbage collection",
    "wear": "wear levelling",
    "refresh": "refresh",
    "mapping": "the mapping table",
    "sync": "cache sync",
    "flush": "the emergency flush",
}


class Summary(Record, frozen=True):
    """`summary.json`.

    `requests` are all that have ended, whether done or failed. `host`, `latency_us`, `iops` and `mb_per_s` count those
    that the drive has done.
    """

    nandlab: str
    """Version of nandlab."""
    spec_hash: str
    """Hash of the resolved spec."""
    complete: bool
    """Whether the workload was played to its end."""
    requests: int
    """Requests that have ended, whether done or failed."""
    requests_unfinished: int
    """Requests that were under way at the end."""
    requests_failed: FailedRequests
    """Requests that failed, by reason."""
    requests_wrapped: int
    """Requests beyond the drive, taken modulo its capacity."""
    records_skipped: int
    """Malformed records of the trace that were skipped."""
    duration_s: float
    """Simulated time; down time is part of it. In seconds."""
    host: HostRequests
    """Requests that the drive has done."""
    latency_us: LatencyByOp
    """Latency of the requests that the drive has done."""
    iops: float
    """Reads and writes done in a second. In requests/s."""
    mb_per_s: float
    """Bytes read and written in a second. In MB/s."""
    waf: float | None
    """Write amplification: bytes programmed by bytes of writes; None before the first write."""
    waf_pages: float | None
    """Write amplification in pages, a partly written page counted as one; None before the first write."""
    flash: FlashOperations
    """Flash operations."""
    ecc: EccSummary
    """Read levels and tries of all page reads."""
    map: MapSummary | None
    """The cache of the demand map; None with the page map."""
    cache: CacheSummary
    """The write cache."""
    capacitor: CapacitorSummary | None
    """The capacitor at the end; None without one."""
    power: PowerSummary | None
    """Power losses; None when power never failed."""
    migration: MigrationSummary | None
    """Copybacks; None where the policy makes none."""
    refresh: RefreshSummary | None
    """Refresh; None without it."""
    space: SpaceSummary
    """What the mechanisms need of every plane, and what over-provisioning they leave."""
    erases: EraseSummary
    """P/E cycles of the blocks."""
    gc: GcSummary
    """Garbage collection."""
    counters: CounterSummary
    """What is counted of pages and victims."""
    mapped_pages: int
    """Pages of the host that hold data."""
    blocks_retired: int
    """Blocks retired."""
    energy_j: float
    """Energy of all operations and transfers, and idle power over the whole time. In joules."""
    steady_state: SteadySummary | None
    """The SNIA steady-state test; None where the host has written nothing."""
    notes: tuple[Note, ...]
    """What a reader of the numbers has to know, those notes first that matter most."""
    link: LinkSummary | None = None
    """How busy the link between host and drive was; absent without a link."""
    precondition: PreconditionSummary | None = None
    """Preconditioning by the SNIA performance test specification; absent without it."""
    verified: VerifiedSummary | None = None
    """What a verified run has checked; absent otherwise."""


class PowerRecord(Record, frozen=True):
    """`power.json`: every power loss with the acknowledged writes it took, and every detection of the dirty page
    budget.
    """

    page_bytes: int
    """Bytes of a page."""
    losses: tuple[LossRecord, ...]
    """Power losses, in order."""
    detections: tuple[DetectionSummary, ...]
    """Detections, in order."""


class LossRecord(Record, frozen=True):
    """A power loss with the acknowledged writes that it took."""

    at_s: float
    """When power failed. In seconds."""
    capacitor_loss_share: float
    """Share of the rated capacitance that was lost by then."""
    aborted_requests: int
    """Requests that were not completed."""
    dirty_pages: int
    """Dirty pages in the write cache."""
    unflushed_pages: int
    """Of these the pages with acknowledged writes that flash lacked."""
    flushed_pages: int
    """Pages that the emergency flush wrote."""
    vsm_lines: int
    """Lines of susceptible data in the VSM."""
    vsm_lines_saved: int
    """Of these the lines that were saved."""
    fast_pages: int
    """Pages of the emergency flush that were LSB pages of two-bit cells, or in the lower half of the layers."""
    lost_pages: int
    """Pages whose newest acknowledged write was in the write cache alone and is gone."""
    lost_with_wordline: int
    """Pages whose newest acknowledged write was in flash and is gone with its wordline."""
    lost_writes: int
    """Acknowledged writes that are gone: the newest one of each page."""
    torn_programs: int
    """Programs that were torn. In pages."""
    torn_erases: int
    """Erases that were torn."""
    scanned_pages: int
    """Pages whose OOB was read in recovery."""
    merged_pages: int
    """Pages of the emergency flush that lacked sectors and were completed from older ones."""
    erased_blocks: int
    """Blocks erased again."""
    closed_blocks: int
    """Blocks partly programmed that take no more programs."""
    stale_translation_pages: int
    """Translation pages that were out of date."""
    finish_s: float
    """From the power loss until the last operation under way had ended. In seconds."""
    flush_s: float
    """From the power loss until the last page was written (T_total of Eq. 4). In seconds."""
    program_s: float
    """Program times of all pages written (T_program of Eq. 5). In seconds."""
    recovery_s: float
    """How long recovery took. In seconds."""
    energy_j: float
    """What the capacitor held. In joules."""
    spent_j: float
    """What the flush took of it (Eq. 3 to 5). In joules."""
    lost_from_cache: tuple[LostWrite, ...]
    """Lost writes that were in the write cache alone."""
    lost_from_flash: tuple[LostWrite, ...]
    """Lost writes that were on the wordline of a torn program."""


class LostWrite(Record, frozen=True):
    """The newest acknowledged write of a page that a power loss took."""

    lpn: int
    """The page."""
    offset: int
    """First byte of the page. In bytes."""
    sequence: int
    """Sequence number of the write, by which page writes of the host are counted from 1; 0 where it is not known."""


class DetectionSummary(Record, frozen=True):
    """A detection of the dirty page budget (DPBD), in the results."""

    due_s: float
    """When the detection was due, or commanded. In seconds."""
    began_s: float
    """When the detection began with writing dirty pages back. In seconds."""
    measured_share: float
    """The pages of a flush that the measured energy is enough for, as a share of the cache."""
    budget_share: float
    """The budget that follows from the measurement, as a share of the cache."""
    budget_pages: int
    """The budget in pages."""
    pages: int
    """Pages written while the capacitor was drained."""
    host_pages: int
    """Of these the pages that the host wrote."""
    energy_j: float
    """What the capacitor held. In joules."""
    drained_j: float
    """What was taken from the capacitor, by the controller's time and the programs'. In joules."""
    waited_s: float
    """From the due time to the beginning. In seconds."""
    sync_s: float
    """How long dirty pages were written back. In seconds."""
    drain_s: float
    """How long the drive ran on the capacitor. In seconds."""
    recharge_s: float
    """From the empty capacitor to the full one. In seconds."""


class LifeRow(Record, frozen=True):
    """A stretch of a drive's life: a row of `life.parquet`."""

    years: float
    """Age of the drive at the end, on the scaled clock. In years."""
    pe_mean: float
    """Mean of the blocks at the end. In P/E cycles."""
    pe_min: float
    """Of the block with the fewest at the end. In P/E cycles."""
    pe_max: float
    """Of the block with the most at the end. In P/E cycles."""
    simulated_s: float
    """Simulated time. In seconds."""
    lived_s: float
    """Time lived, on the scaled clock. In seconds."""
    reads: float
    """Reads done. In requests."""
    read_bytes: float
    """Bytes of these."""
    read_us_mean: float
    """Mean latency of reads. In microseconds."""
    read_us_p99: float
    """99th percentile of the latency of reads. In microseconds."""
    writes: float
    """Writes done. In requests."""
    write_bytes: float
    """Bytes of these."""
    write_us_mean: float
    """Mean latency of writes. In microseconds."""
    write_us_p99: float
    """99th percentile of the latency of writes. In microseconds."""
    host_pages: float
    """Pages of writes that the drive has done, a partly written page counted as one."""
    waf: float
    """Write amplification: bytes programmed by bytes of writes; not a number without writes."""
    waf_pages: float
    """Write amplification in pages; not a number without writes."""
    program_host: float
    """Pages programmed for the host."""
    program_gc: float
    """Pages programmed for garbage collection."""
    program_wear: float
    """Pages programmed for wear levelling."""
    program_refresh: float
    """Pages programmed for refresh."""
    program_mapping: float
    """Pages programmed for the mapping table."""
    program_sync: float
    """Pages programmed for cache sync."""
    program_flush: float
    """Pages programmed for the emergency flush."""
    copybacks: float
    """Pages moved by copyback."""
    refused_copybacks: float
    """Pages that went off-chip because of their limit."""
    erases: float
    """Blocks erased."""
    outstanding: float
    """Requests under way at the end."""
    read_level_mean: float
    """Level that decoded the host's page reads, on average."""
    read_level_needed_mean: float
    """Least level that decodes the host's page reads, on average."""
    tries_per_read: float
    """Tries of a page read of the host's, on average."""
    uncorrectable: float
    """Page reads that no level decoded. In pages."""
    media_errors: float
    """Pages that host requests could not have because no read level decodes them."""
    failed_pages: float
    """Page writes that failed because the drive had no room left at all. In pages."""
    refreshed_blocks: float
    """Blocks that were due and held valid data."""
    refreshed_pages: float
    """Valid pages in them when their refresh began."""
    partial_pages: float
    """Pages whose susceptible bits alone were moved."""
    late_blocks: float
    """Blocks that were refreshed more than the grace after they were due."""
    energy_j: float
    """Energy. In joules."""
    die_busy_share: float
    """Share of the time in which a die was busy, on average."""
    capacitor_loss_share: float | None = None
    """Share of the rated capacitance lost at the end; absent without a capacitor."""
    capability_pages: float | None = None
    """Pages of the write cache that the full capacitor could save at the end; absent without one."""
    cache_pages: float | None = None
    """Pages of the write cache; absent without one."""
    budget_pages: float | None = None
    """Pages of the write cache that may be dirty at the end; absent without one."""
    dirty_pages: float | None = None
    """Dirty pages of the write cache at the end; absent without one."""


class FailedRequests(Record, frozen=True):
    """Requests that failed, by reason."""

    uncorrectable: int
    """Requests that need a page which no read level decodes, or which has been lost."""
    worn_out: int
    """Requests for which no block was left."""
    power_lost: int
    """Requests that were outstanding when power failed."""


class HostRequests(Record, frozen=True):
    """Requests that the drive has done, by operation."""

    read: OpRequests
    """Reads."""
    write: OpRequests
    """Writes."""
    trim: OpRequests
    """TRIMs."""
    flush: OpRequests
    """Flushes."""


class OpRequests(Record, frozen=True):
    """Requests of an operation that the drive has done."""

    count: int
    """Requests."""
    bytes: int
    """Bytes of the requests."""


class LatencyByOp(Record, frozen=True):
    """Latency by operation."""

    read: LatencyUs
    """Reads."""
    write: LatencyUs
    """Writes."""
    trim: LatencyUs
    """TRIMs."""
    flush: LatencyUs
    """Flushes."""
    all: LatencyUs
    """Reads and writes."""


class LatencyUs(Record, frozen=True):
    """Latencies of an operation."""

    mean: float
    """Mean. In microseconds."""
    p50: float
    """Median. In microseconds."""
    p95: float
    """95th percentile. In microseconds."""
    p99: float
    """99th percentile. In microseconds."""
    p999: float
    """99.9th percentile. In microseconds."""
    max: float
    """Maximum. In microseconds."""


class FlashOperations(Record, frozen=True):
    """Flash operations by kind and cause."""

    read: ByCause
    """Pages read, by copyback or not."""
    program: ByCause
    """Pages programmed, by copyback or not."""
    erase: ByCause
    """Blocks erased."""
    copyback: ByCause
    """Pages moved by copyback."""


class ByCause(Record, frozen=True):
    """Flash operations by cause."""

    host: int
    """For the host."""
    gc: int
    """For garbage collection."""
    wear: int
    """For wear levelling."""
    refresh: int
    """For refresh."""
    mapping: int
    """For the mapping table."""
    sync: int
    """For cache sync."""
    flush: int
    """For the emergency flush."""


class EccSummary(Record, frozen=True):
    """Read levels and tries of all page reads."""

    levels: dict[int, int]
    """Page reads by the level that decoded them. In pages."""
    retries: int
    """Tries beyond the first, of all page reads."""
    uncorrectable: int
    """Page reads that no level decoded. In pages."""
    host: HostEccSummary
    """The host's page reads."""


class HostEccSummary(Record, frozen=True):
    """Read levels and tries of the host's page reads."""

    levels: dict[int, int]
    """Page reads of the host by the level that decoded them. In pages."""
    needed: dict[int, int]
    """Page reads of the host by the least level that decodes them. In pages."""
    retries: int
    """Tries beyond the first, of the host's page reads."""
    uncorrectable: int
    """Page reads of the host's that no level decoded. In pages."""
    soft_starts: int
    """Host page reads whose first try was above level 1. In pages."""
    flash_read_us: float
    """Mean of sensing, transfer and decoding of a page read, all tries; waiting is not counted. In microseconds."""


class MapSummary(Record, frozen=True):
    """The cache of a demand map."""

    entries: int
    """Entries that the cache has room for."""
    cached: int
    """Entries in the cache at the end."""
    read: MapRead
    """The counters under `read`."""
    write: MapWrite
    """The counters under `write`."""
    evictions: int
    """Entries that left for another."""
    dirty_evictions: int
    """Of these the dirty ones. In entries."""
    write_backs: int
    """Translation pages programmed to write changes back; GC's moves of translation pages are not among them."""
    written_entries: int
    """Dirty cached entries that became clean by that."""
    waiting_misses: int
    """Misses that had to wait because too much was being written back. In pages."""
    given_up: int
    """Write-backs given up because the drive has worn out. In pages."""


class CacheSummary(Record, frozen=True):
    """The write cache."""

    size_bytes: int
    """Size of the cache; 0 without one. In bytes."""
    pages: int
    """Pages that fit."""
    budget_pages: int
    """Pages that may be dirty."""
    read_hits: int
    """Reads that found all their sectors. In pages."""
    read_misses: int
    """Reads that did not. In pages."""
    write_hits: int
    """Writes of cached pages."""
    write_misses: int
    """Writes of pages that were not."""
    evictions: int
    """Clean pages that left for others."""
    dirty_evictions: int
    """Dirty pages that had to be written back first."""
    syncs: int
    """Pages written back because the drive was idle or the host asked for a flush."""
    write_backs: int
    """Pages written back, whatever the reason."""
    waiting_writes: int
    """Writes that waited for a slot or for the dirty budget. In pages."""
    blocked_updates: int
    """Writes that waited because their page was being written back (write protection). In pages."""
    dirty_pages: int
    """Dirty pages at the end."""
    dirty_pages_max: int
    """Most dirty pages at a time."""


class CapacitorSummary(Record, frozen=True):
    """The capacitor at the end of a run."""

    stage: str
    """`charged`, or where a detection or a recharge is: `syncing`, `draining`, `settling`, `recharging`."""
    energy_j: float
    """What an emergency flush could use. In joules."""
    energy_j_full: float
    """What the capacitor holds when full. In joules."""
    energy_j_rated: float
    """What the capacitor held when new. In joules."""
    loss_share: float
    """Share of the rated capacitance that is lost."""
    worn_out: bool
    """Whether so much is lost that nothing may count on the capacitor."""
    cycles: int
    """Full discharges."""
    capability_pages: float
    """Pages of the write cache that the full capacitor can save."""
    budget_pages: int
    """Pages of the write cache that may be dirty."""
    detections: Detections
    """Detections of the dirty page budget."""


class Detections(Record, frozen=True):
    """Detections of the dirty page budget."""

    count: int
    """Detections."""
    last: DetectionSummary | None
    """The last detection; None before the first."""


class PowerSummary(Record, frozen=True):
    """Power losses: their numbers added up, and the first hundred of them."""

    losses: int
    """Power losses."""
    down_s: float
    """Time without power and until the drive was ready again. In seconds."""
    aborted_requests: int
    """Requests that were not completed."""
    dirty_pages: int
    """Dirty pages in the write cache."""
    unflushed_pages: int
    """Of these the pages with acknowledged writes that flash lacked."""
    flushed_pages: int
    """Pages that the emergency flush wrote."""
    vsm_lines: int
    """Lines of susceptible data in the VSM."""
    vsm_lines_saved: int
    """Of these the lines that were saved."""
    fast_pages: int
    """Pages of the emergency flush that were LSB pages of two-bit cells, or in the lower half of the layers."""
    lost_pages: int
    """Pages whose newest acknowledged write was in the write cache alone and is gone."""
    lost_with_wordline: int
    """Pages whose newest acknowledged write was in flash and is gone with its wordline."""
    lost_writes: int
    """Acknowledged writes that are gone: the newest one of each page."""
    torn_programs: int
    """Programs that were torn. In pages."""
    torn_erases: int
    """Erases that were torn."""
    scanned_pages: int
    """Pages whose OOB was read in recovery."""
    merged_pages: int
    """Pages of the emergency flush that lacked sectors and were completed from older ones."""
    erased_blocks: int
    """Blocks erased again."""
    closed_blocks: int
    """Blocks partly programmed that take no more programs."""
    stale_translation_pages: int
    """Translation pages that were out of date."""
    finish_s: float
    """From the power loss until the last operation under way had ended. In seconds."""
    flush_s: float
    """From the power loss until the last page was written (T_total of Eq. 4). In seconds."""
    program_s: float
    """Program times of all pages written (T_program of Eq. 5). In seconds."""
    recovery_s: float
    """How long recovery took. In seconds."""
    energy_j: float
    """What the capacitor held. In joules."""
    spent_j: float
    """What the flush took of it (Eq. 3 to 5). In joules."""
    list: tuple[LossSummary, ...]
    """The first hundred losses, in order."""


class LossSummary(Record, frozen=True):
    """A power loss."""

    at_s: float
    """When power failed. In seconds."""
    capacitor_loss_share: float
    """Share of the rated capacitance that was lost by then."""
    aborted_requests: int
    """Requests that were not completed."""
    dirty_pages: int
    """Dirty pages in the write cache."""
    unflushed_pages: int
    """Of these the pages with acknowledged writes that flash lacked."""
    flushed_pages: int
    """Pages that the emergency flush wrote."""
    vsm_lines: int
    """Lines of susceptible data in the VSM."""
    vsm_lines_saved: int
    """Of these the lines that were saved."""
    fast_pages: int
    """Pages of the emergency flush that were LSB pages of two-bit cells, or in the lower half of the layers."""
    lost_pages: int
    """Pages whose newest acknowledged write was in the write cache alone and is gone."""
    lost_with_wordline: int
    """Pages whose newest acknowledged write was in flash and is gone with its wordline."""
    lost_writes: int
    """Acknowledged writes that are gone: the newest one of each page."""
    torn_programs: int
    """Programs that were torn. In pages."""
    torn_erases: int
    """Erases that were torn."""
    scanned_pages: int
    """Pages whose OOB was read in recovery."""
    merged_pages: int
    """Pages of the emergency flush that lacked sectors and were completed from older ones."""
    erased_blocks: int
    """Blocks erased again."""
    closed_blocks: int
    """Blocks partly programmed that take no more programs."""
    stale_translation_pages: int
    """Translation pages that were out of date."""
    finish_s: float
    """From the power loss until the last operation under way had ended. In seconds."""
    flush_s: float
    """From the power loss until the last page was written (T_total of Eq. 4). In seconds."""
    program_s: float
    """Program times of all pages written (T_program of Eq. 5). In seconds."""
    recovery_s: float
    """How long recovery took. In seconds."""
    energy_j: float
    """What the capacitor held. In joules."""
    spent_j: float
    """What the flush took of it (Eq. 3 to 5). In joules."""


class MigrationSummary(Record, frozen=True):
    """How victims and pages were moved."""

    copybacks: int
    """Pages copied back."""
    by_count: dict[int, int]
    """Pages copied back, by how many copybacks in a row they had made with that."""
    refused: int
    """Pages that went off-chip because of their limit."""
    victims_copied_back: int
    """Victims whose pages were to be copied back. In blocks."""
    victims_off_chip: int
    """Victims that might have been, and that the policy moved off-chip. In blocks."""
    victims_without_room: int
    """Victims that went off-chip because their plane had too few free blocks to open another one."""
    counter_bytes_by_block: int
    """RAM of the counters of copybacks in a row, one for each block. In bytes."""
    counter_bytes_by_page: int
    """The same with one for each page. In bytes."""


class RefreshSummary(Record, frozen=True):
    """Blocks refreshed, and how well that kept to its times."""

    blocks: int
    """Blocks that were due and held valid data."""
    pages: int
    """Valid pages in them when their refresh began."""
    load: float | None
    """Blocks that came due, by blocks refreshed in that time; None where that is not known. A share."""
    late_blocks: int
    """Blocks that were refreshed more than the grace after they were due."""
    overdue_blocks: int
    """Blocks overdue by more than the grace at the end."""
    overdue_max_s: int
    """The longest that one was overdue, on the scaled clock. In seconds."""
    busy_s: float
    """From the beginning of each block's refresh to its end, added up. In seconds."""
    block_mean_s: float
    """From the beginning of a block's refresh to its end, on average. In seconds."""
    promoted: int
    """Refreshes that were put before the host's writes because their grace was running out. In blocks."""
    blocks_in_place: int
    """Blocks refreshed in place."""
    pages_in_place: int
    """Pages of these that were reprogrammed; the others were written elsewhere."""
    ec_cache: ErrorCacheState | None
    """The cache of known errors; None without one."""
    partial: PartialState | None
    """Partial refresh; None without it."""


class ErrorCacheState(Record, frozen=True):
    """The size of the cache of known errors."""

    entries: int
    """Number of pages whose error positions are known."""
    bytes: int
    """Size of all entries in bytes; at most the cache's size."""
    hits: int
    """Host reads of pages with known errors."""
    lower_level_reads: int
    """Of these the reads that decoded at a lower level than they would have without. In pages."""
    evictions: int
    """Pages whose known errors had to make room for others'."""


class PartialState(Record, frozen=True):
    """The use of the controller's RAM by partial refresh, and the share of time in which it was on."""

    blocks: int
    """Blocks refreshed partially."""
    blocks_while_off: int
    """Blocks refreshed conventionally because free blocks were few."""
    pages: int
    """Pages whose susceptible bits alone were moved."""
    hot_pages: int
    """Pages of partially refreshed blocks that were written elsewhere because they are read often."""
    too_susceptible_pages: int
    """Pages of partially refreshed blocks that were written elsewhere because too many of their bits are susceptible.
    """
    pages_without_room: int
    """Pages of partially refreshed blocks that were written elsewhere because the VSM had no room."""
    susceptible_bytes: int
    """Susceptible data. In bytes."""
    combination_pages: int
    """Combination pages that it went to."""
    padding_bytes: int
    """Bytes of these left empty."""
    host_preads: int
    """Host reads of partially refreshed pages."""
    promoted_pages: int
    """Partially refreshed pages that GC, wear levelling or refresh made whole."""
    linked_pages: int
    """Number of pages that are partially refreshed now."""
    linked_pages_max: int
    """Highest number of partially refreshed pages so far."""
    mapping_bytes: int
    """The secondary mapping table at its largest, in bytes: a bit for each page, and the links."""
    vsm_bytes: int
    """Highest fill level of the VSM so far, in bytes."""
    on_share: float
    """Share of the time in which there were enough free blocks for partial refresh, 0 to 1."""


class SpaceSummary(Record, frozen=True):
    """What the mechanisms need of every plane, and what over-provisioning they leave."""

    needs: SpaceNeeds
    """What the mechanisms need of every plane."""
    spare_share: float
    """Effective over-provisioning: what the needs leave of a plane beyond its valid pages. A share."""
    waf_uniform_fifo: float | None
    """Write amplification of uniform random writes with FIFO victims at that; None without spare space."""
    op_for_waf_5: float | None
    """`drive.op` at which it would be 5; None where none would do. A share."""


class SpaceNeeds(Record, frozen=True):
    """What the mechanisms need of every plane."""

    open_blocks: int
    """Blocks that are being filled."""
    free_blocks: int
    """Blocks kept free."""
    gain_blocks: int
    """Blocks' worth of garbage that GC gains by."""
    by: NeedsByMechanism
    """The needs by mechanism."""


class NeedsByMechanism(Record, frozen=True):
    """What each mechanism needs of every plane."""

    gc: NeedSummary
    """Garbage collection."""
    wear: NeedSummary
    """Static wear levelling."""
    mapping: NeedSummary
    """The demand map."""
    copyback: NeedSummary
    """Copybacks."""
    combination: NeedSummary
    """Partial refresh."""
    flush: NeedSummary
    """The emergency flush."""


class NeedSummary(Record, frozen=True):
    """What a mechanism needs of every plane."""

    open: int
    """Blocks that its streams may be filling while the host waits."""
    free: int
    """Free blocks that the host's stream leaves to it."""
    valid_pages: int
    """Valid pages that it adds to those of the host, at most."""


class EraseSummary(Record, frozen=True):
    """P/E cycles of the blocks."""

    mean: float
    """Mean. In P/E cycles."""
    max: int
    """Of the block with the most. In P/E cycles."""
    min: int
    """Of the block with the fewest. In P/E cycles."""


class GcSummary(Record, frozen=True):
    """Garbage collection."""

    victims: int
    """Victims emptied by GC. In blocks."""
    victim_valid_mean: float
    """Valid pages in victims when they were chosen, on average. A share."""


class CounterSummary(Record, frozen=True):
    """What is counted of pages and victims."""

    host_pages_written: int
    """Pages of writes that the drive has done, a partly written page counted as one."""
    partial_writes: int
    """Pages the host wrote only partly."""
    merge_reads: int
    """Pages read to complete a partly written one (read-modify-write)."""
    unmapped_reads: int
    """Page reads of LPNs that hold nothing; answered without flash. In pages."""
    buffered_reads: int
    """Page reads answered from the controller's buffer, their program being under way. In pages."""
    trimmed_pages: int
    """Mapped pages deallocated by TRIM."""
    waiting_writes: int
    """Page writes that had to wait for GC to make room. In pages."""
    failed_pages: int
    """Page writes that failed because the drive had no room left at all. In pages."""
    media_errors: int
    """Pages that host requests could not have because no read level decodes them."""
    gc_victims: int
    """Victims emptied by GC. In blocks."""
    gc_victims_forced: int
    """Victims that GC took because the plane was down to what it must keep, in place of the policy's. In blocks."""
    dead_blocks: int
    """Blocks without valid pages that were erased beside GC."""
    gc_victim_valid_pages: int
    """Valid pages in GC's victims when they were chosen."""


class SteadySummary(Record, frozen=True):
    """The SNIA steady-state test."""

    verdict: Literal["too short", "steady", "not steady"]
    """What the rounds say of the drive."""
    rounds: int
    """Rounds of the run."""
    round_host_bytes_min: int
    """Bytes that are programmed for the host in a round, at least."""
    round_bytes_min: int
    """Bytes that are programmed for all causes in a round, at least."""
    window_begin_s: float | None
    """Beginning of the window; None while there are fewer than five rounds. In seconds."""
    window_end_s: float | None
    """End of the window. In seconds."""
    erased_share: float | None
    """Pages erased in the window by pages programmed in it. A share."""
    waf: SteadyQuantity
    """Write amplification."""
    bytes_per_s: SteadyQuantity | None
    """Throughput; None in an open loop, where the load does not follow the drive. In bytes/s."""
    requests_needed: int | None
    """Requests that five rounds take, and a tenth more; None where there are five rounds."""
    repeat_needed: int | None
    """`workload.repeat` that five rounds take, and a tenth more; None where there are five rounds."""


class SteadyQuantity(Record, frozen=True):
    """A quantity by round, and the verdict on the last five of them; null while there are fewer."""

    met: bool | None
    """Whether range and slope are within their limits."""
    mean: float | None
    """Mean of the window."""
    range: float | None
    """Largest less smallest round of the window, by the mean. A share."""
    slope: float | None
    """Rise of the fitted line over the window, by the mean. A share."""
    rounds: tuple[float | None, ...]
    """The quantity in each round; None where the round has none."""


class Note(Record, frozen=True):
    """A statement that a reader of a result has to know."""

    severity: Literal["error", "warning", "info"]
    """The severity of the note."""
    code: str
    """The subject of the note, as an identifier for programs."""
    text: str
    """The text: what has happened, the spec keys concerned, and the remedy."""


class LinkSummary(Record, frozen=True):
    """How busy the link between host and drive was."""

    to_drive: float
    """Share of the time in which data crossed to the drive."""
    to_host: float
    """Share of the time in which data crossed to the host."""


class PreconditionSummary(Record, frozen=True):
    """Preconditioning by the SNIA performance test specification."""

    waf_by_round: tuple[float, ...]
    """Write amplification of each round."""
    steady: bool | None
    """Whether the last five rounds are steady; None without a round."""


class VerifiedSummary(Record, frozen=True):
    """What a verified run has checked."""

    page_reads_checked: int
    """Page reads compared with the reference model. In pages."""


class MapRead(Record, frozen=True):
    """The counters under `read`."""

    hits: int
    """Page reads of the host that found their entry cached. In pages."""
    misses: int
    """Page reads that did not. In pages."""


class MapWrite(Record, frozen=True):
    """The counters under `write`."""

    hits: int
    """Page writes that found their entry cached. In pages."""
    misses: int
    """Page writes that did not. In pages."""
