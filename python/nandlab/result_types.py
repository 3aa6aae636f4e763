"""What is in `summary.json`, `power.json` and a row of `life.parquet`, typed.

Written by tools/result_types.py from what the core declares; `make result-types` writes this file anew.
"""

from typing import Literal

from nandlab.record import Record

#: What a flash operation is done for, by the name of its cause.
CAUSES = {
    "host": "the host",
    "gc": "garbage collection",
    "wear": "wear levelling",
    "refresh": "refresh",
    "reclaim": "read reclaim",
    "fold": "folding",
    "mapping": "the mapping table",
    "sync": "cache sync",
    "flush": "the emergency flush",
}


class FailedRequests(Record, frozen=True):
    """Requests that failed, by reason."""

    uncorrectable: int
    """Requests that needed a unit that no read level decodes, or that was lost earlier."""
    worn_out: int
    """Requests with a unit that got no room because of wear: no superblock could be emptied with a gain."""
    power_lost: int
    """Requests that were outstanding when power failed."""


class OpRequests(Record, frozen=True):
    """Requests of one kind that completed without failure."""

    count: int
    """Number of requests."""
    bytes: int
    """Sum of the lengths of the requests. In bytes."""


class HostRequests(Record, frozen=True):
    """Requests that completed without failure, by kind."""

    read: OpRequests
    """Reads that completed without failure."""
    write: OpRequests
    """Writes that completed without failure."""
    trim: OpRequests
    """TRIMs that completed without failure."""
    flush: OpRequests
    """Host flushes that completed without failure."""


class LatencyUs(Record, frozen=True):
    """Latencies of completed requests of one operation."""

    mean: float
    """Mean latency. In microseconds."""
    p50: float
    """Median latency. In microseconds."""
    p95: float
    """95th percentile of the latency. In microseconds."""
    p99: float
    """99th percentile of the latency. In microseconds."""
    p999: float
    """99.9th percentile of the latency. In microseconds."""
    max: float
    """Longest latency. In microseconds."""


class LatencyByOp(Record, frozen=True):
    """Latency of the requests that completed without failure, by kind."""

    read: LatencyUs
    """Latency of reads."""
    write: LatencyUs
    """Latency of writes."""
    trim: LatencyUs
    """Latency of TRIMs."""
    flush: LatencyUs
    """Latency of host flushes."""
    all: LatencyUs
    """Latency of reads and writes together."""


class ByCause(Record, frozen=True):
    """Flash operations of one kind, by cause."""

    host: int
    """Host requests, including the reads of read-modify-writes."""
    gc: int
    """Garbage collection."""
    wear: int
    """Static wear levelling."""
    refresh: int
    """Refresh of ageing data."""
    reclaim: int
    """Read reclaim."""
    fold: int
    """Folding: moves out of superblocks in SLC mode."""
    mapping: int
    """Translation pages of the demand map."""
    sync: int
    """Write-backs from the write cache."""
    flush: int
    """Emergency flushes, recoveries and budget detections."""


class FlashOperations(Record, frozen=True):
    """Flash operations by kind and cause."""

    read: ByCause
    """Pages read, including those sensed for copybacks; neither retries nor the reads of recoveries are counted."""
    program: ByCause
    """Pages programmed, including padding and the pages programmed by copybacks."""
    erase: ByCause
    """Blocks erased; each block of a superblock counts."""
    copyback: ByCause
    """Pages moved by copyback."""


class HostEccSummary(Record, frozen=True):
    """Read levels and tries of host page reads."""

    levels: dict[int, int]
    """Number of host page reads by the read level that decoded them. In pages."""
    needed: dict[int, int]
    """Number of host page reads by needed level, the lowest read level that decodes the page. In pages."""
    retries: int
    """Tries of host page reads beyond the first try."""
    uncorrectable: int
    """Host page reads that no read level decoded. In pages."""
    soft_starts: int
    """Host page reads whose first try was above read level 1. In pages."""
    flash_read_us: float
    """Mean time of sensing, transfer and decoding of a host page read, for all its tries; waiting is not counted. In
    microseconds.
    """


class EccSummary(Record, frozen=True):
    """Read levels and tries of page reads for all causes."""

    levels: dict[int, int]
    """Number of page reads by the read level that decoded them. In pages."""
    retries: int
    """Tries of page reads beyond the first try."""
    uncorrectable: int
    """Page reads that no read level decoded. In pages."""
    host: HostEccSummary
    """Read levels and tries of host page reads."""
    decoder_busy_s: float
    """Time of decoding page reads, for all causes and tries; of several decoders the sum. In seconds."""
    decoder_wait_s: float
    """Time that page reads waited for a decoder. In seconds."""


class MapRead(Record, frozen=True):
    """The counters under `read`."""

    hits: int
    """Lookups of the map for reads of units that found the map entry cached. In pages."""
    misses: int
    """Lookups of the map for reads of units that did not find the map entry cached. In pages."""


class MapWrite(Record, frozen=True):
    """The counters under `write`."""

    hits: int
    """Lookups of the map for writes of units that found the map entry cached. In pages."""
    misses: int
    """Lookups of the map for writes of units that did not find the map entry cached. In pages."""


class MapSummary(Record, frozen=True):
    """The mapping cache of a demand map."""

    entries: int
    """Number of map entries for which the mapping cache has room."""
    cached: int
    """Number of map entries in the mapping cache at the end of the run."""
    read: MapRead
    """The counters under `read`."""
    write: MapWrite
    """The counters under `write`."""
    evictions: int
    """Map entries evicted from the mapping cache."""
    dirty_evictions: int
    """Dirty map entries evicted from the mapping cache."""
    write_backs: int
    """Translation pages programmed to write back changes; moves of translation pages by GC do not count."""
    written_entries: int
    """Dirty map entries that became clean because their translation page was written back."""
    waiting_misses: int
    """Misses that waited because too many translation pages were being written back."""
    given_up: int
    """Write-backs abandoned because the lane of the translation page was worn out. In pages."""


class CacheSummary(Record, frozen=True):
    """The write cache."""

    size_bytes: int
    """Size of the write cache (`cache.size`); less than a unit: the drive has no write cache. In bytes."""
    pages: int
    """Units that fit into the write cache. In pages."""
    budget_pages: int
    """Dirty budget at the end: the number of dirty units allowed in the write cache, and in the write buffer beside it.
    In pages.
    """
    read_hits: int
    """Host unit reads that found all their sectors in the write cache. In pages."""
    read_misses: int
    """Host unit reads that did not find all their sectors in the write cache. In pages."""
    write_hits: int
    """Host unit writes to a unit that had a slot in the write cache when the write was admitted. In pages."""
    write_misses: int
    """Host unit writes to a unit that had no slot in the write cache when the write was admitted. In pages."""
    evictions: int
    """Clean units evicted from the write cache. In pages."""
    dirty_evictions: int
    """Dirty units chosen for eviction: they leave the write cache when they have been written back. In pages."""
    syncs: int
    """Write-backs begun ahead of eviction: by the sync policy in idle time or at once, for a host flush, or for a
    budget detection. Write-backs that make room in the dirty budget for a waiting write do not count. In pages.
    """
    write_backs: int
    """Units programmed to flash from the write cache, for any reason. In pages."""
    waiting_writes: int
    """Host unit writes that waited for a slot of the write cache or for room in the dirty budget. In pages."""
    waiting_reads: int
    """Host unit reads that missed and waited for a slot of the write cache. In pages."""
    blocked_updates: int
    """Host unit writes that waited because their unit was being written back (write protection). In pages."""
    dirty_pages: int
    """Dirty units at the end in the write cache, and in the write buffer beside it. In pages."""
    dirty_pages_max: int
    """Highest number of dirty units at a time in the write cache, and in the write buffer beside it. In pages."""


class DetectionSummary(Record, frozen=True):
    """A detection of the dirty budget (DPBD: dirty page budget detection)."""

    due_s: float
    """Simulated time when the detection was due, or was commanded. In seconds."""
    began_s: float
    """Simulated time when the detection began to write dirty units back. In seconds."""
    measured_share: float
    """Units that a flush could program with the drained energy, as a share of the cache or the buffer."""
    budget_share: float
    """Dirty budget that follows from the detection, as a share of the cache or the buffer."""
    budget_pages: int
    """Dirty budget that follows from the detection, in units. In pages."""
    pages: int
    """Programs on the capacitor's energy, of the detection and for host writes. In pages."""
    host_pages: int
    """Programs on the capacitor's energy for host writes. In pages."""
    energy_j: float
    """Energy of the full capacitor when draining began. In joules."""
    drained_j: float
    """Energy that controller and programs took from the capacitor. In joules."""
    waited_s: float
    """Time that the due detection waited until it began. In seconds."""
    sync_s: float
    """Time in which dirty units were written back before draining. In seconds."""
    drain_s: float
    """Time in which the drive ran on the capacitor. In seconds."""
    recharge_s: float
    """Time from the empty capacitor to the full one. In seconds."""


class Detections(Record, frozen=True):
    """Detections of the dirty budget."""

    count: int
    """Number of detections that have ended."""
    last: DetectionSummary | None
    """The last detection that has ended; None if none has."""


class CapacitorSummary(Record, frozen=True):
    """The capacitor at the end of a run."""

    stage: str
    """`charged`, or the stage of a detection or a recharge: `syncing`, `draining`, `settling`, `recharging`."""
    energy_j: float
    """Energy that an emergency flush could use at the end. In joules."""
    energy_j_full: float
    """Energy of the full capacitor at its age at the end. In joules."""
    energy_j_rated: float
    """Energy of the full capacitor when new. In joules."""
    loss_share: float
    """Share of the rated capacitance that is lost."""
    worn_out: bool
    """Whether the capacitor has lost more than 30 % of its rated capacitance; a measured budget is then 0."""
    cycles: int
    """Full discharges of the capacitor so far."""
    capability_pages: float
    """Units of the write cache or the write buffer that the full capacitor can save at its age at the end. In pages."""
    budget_pages: int
    """Units of the write cache or the write buffer that may be dirty at the end. In pages."""
    detections: Detections
    """Detections of the dirty budget."""


class RecoveryCuts(Record, frozen=True):
    """Power losses during recoveries. The counters of a recovery, such as `scanned_pages`, are sums over all its
    beginnings. The operations torn in recovery are counted here alone.
    """

    cuts: int
    """Times that power failed during recovery, so that recovery began anew. In losses."""
    torn_programs: int
    """Programs of recovery torn by these power losses."""
    torn_erases: int
    """Erases of recovery torn by these power losses."""


class LossSummary(Record, frozen=True):
    """A power loss."""

    at_s: float
    """Simulated time of the power loss. In seconds."""
    capacitor_loss_share: float
    """Share of its rated capacitance that the capacitor had lost when power failed."""
    aborted_requests: int
    """Requests that were outstanding when power failed; they have failed."""
    dirty_pages: int
    """Dirty units in the write cache, or in the write buffer, when power failed. In pages."""
    unflushed_pages: int
    """Dirty units with acknowledged writes that were not in flash when power failed. In pages."""
    flushed_pages: int
    """Dirty units that the emergency flush wrote. In pages."""
    trim_pages: int
    """Units of TRIM records that were only in RAM when power failed, backed up by the capacitor. In pages."""
    trim_pages_saved: int
    """Units of TRIM records that the emergency flush wrote. In pages."""
    vsm_lines: int
    """Lines of susceptible bits in the VSM that were not in flash when power failed."""
    vsm_lines_saved: int
    """Lines of the VSM that the emergency flush wrote."""
    fast_pages: int
    """Dirty units that the emergency flush wrote to fast pages: SLC pages, LSB pages of planar MLC, and on 3D flash
    pages in the faster half of the layers. With one-shot programs every page of planar flash.
    """
    lost_covered: int
    """Units with a lost write or TRIM that a completed flush, or a completed FUA write, covers: an fsync broke. In
    pages.
    """
    lost_acknowledged: int
    """Units with a lost write whose request had completed, and which no completed flush or FUA write covers. In pages.
    """
    lost_in_flight: int
    """Units of write requests that were outstanding, whose data is not there after recovery. They were never
    acknowledged. In pages.
    """
    lost_pages: int
    """Units with a lost write of a completed request that was only in RAM. In pages."""
    lost_with_wordline: int
    """Units with a lost write of a completed request that was in flash: destroyed by the torn program of the MSB page
    of its wordline, or by a torn reprogram in place. In pages.
    """
    lost_writes: int
    """Lost writes of completed requests: the sum of `lost_pages` and `lost_with_wordline`, and of `lost_covered` and
    `lost_acknowledged` less `lost_trims`.
    """
    lost_trims: int
    """Units whose TRIM is lost, so that older data is back: a completed flush covers the TRIM, its record was only in
    RAM, and the capacitor should have saved it. In pages.
    """
    torn_programs: int
    """Programs torn by the power loss. In pages."""
    torn_erases: int
    """Erases torn by the power loss."""
    scanned_pages: int
    """Pages whose OOB was read in recovery."""
    read_pages: int
    """Pages that recovery read as a whole, to complete partial units and to make room for that. They are among the
    reads of the cause `flush`; the pages of `scanned_pages` are not.
    """
    merged_pages: int
    """Partial units of the emergency flush that recovery completed with the missing sectors from older units. In pages.
    """
    erased_blocks: int
    """Superblocks that recovery erased because their erase was torn, or because they had only copies of units and free
    superblocks were few.
    """
    closed_blocks: int
    """Partly programmed superblocks that recovery closed because no stream continued in them."""
    stale_translation_pages: int
    """Translation pages that recovery found out of date in flash."""
    finish_s: float
    """Time from the power loss until the operations under way at the power loss had ended. In seconds."""
    flush_s: float
    """Time from the power loss until the emergency flush, with its GC, had ended its last operation (T_total of Eq. 4
    of the aging-capacitor paper). In seconds.
    """
    gc_pages: int
    """Units that GC moved during the emergency flush (`power.gc_in_flush`). In pages."""
    gc_erases: int
    """Blocks that GC erased during the emergency flush. In erases."""
    program_s: float
    """Sum of the times of all programs of the emergency flush and of its GC (T_program of Eq. 5 of the aging-capacitor
    paper). In seconds.
    """
    recovery_s: float
    """Duration of the recovery. In seconds."""
    energy_j: float
    """Energy in the capacitor when power failed. In joules."""
    spent_j: float
    """Energy that the emergency flush took (Eq. 3 to 5 of the aging-capacitor paper). In joules."""
    recovery_cuts: RecoveryCuts | None = None
    """Power losses during the recovery; absent without one."""


class PowerSummary(Record, frozen=True):
    """Power losses: the sums of their counters, and a list of the first hundred."""

    losses: int
    """Number of power losses."""
    down_s: float
    """Total time from power losses until the drive was ready again. In seconds."""
    aborted_requests: int
    """Requests that were outstanding when power failed; they have failed."""
    dirty_pages: int
    """Dirty units in the write cache, or in the write buffer, when power failed. In pages."""
    unflushed_pages: int
    """Dirty units with acknowledged writes that were not in flash when power failed. In pages."""
    flushed_pages: int
    """Dirty units that the emergency flush wrote. In pages."""
    trim_pages: int
    """Units of TRIM records that were only in RAM when power failed, backed up by the capacitor. In pages."""
    trim_pages_saved: int
    """Units of TRIM records that the emergency flush wrote. In pages."""
    vsm_lines: int
    """Lines of susceptible bits in the VSM that were not in flash when power failed."""
    vsm_lines_saved: int
    """Lines of the VSM that the emergency flush wrote."""
    fast_pages: int
    """Dirty units that the emergency flush wrote to fast pages: SLC pages, LSB pages of planar MLC, and on 3D flash
    pages in the faster half of the layers. With one-shot programs every page of planar flash.
    """
    lost_covered: int
    """Units with a lost write or TRIM that a completed flush, or a completed FUA write, covers: an fsync broke. In
    pages.
    """
    lost_acknowledged: int
    """Units with a lost write whose request had completed, and which no completed flush or FUA write covers. In pages.
    """
    lost_in_flight: int
    """Units of write requests that were outstanding, whose data is not there after recovery. They were never
    acknowledged. In pages.
    """
    lost_pages: int
    """Units with a lost write of a completed request that was only in RAM. In pages."""
    lost_with_wordline: int
    """Units with a lost write of a completed request that was in flash: destroyed by the torn program of the MSB page
    of its wordline, or by a torn reprogram in place. In pages.
    """
    lost_writes: int
    """Lost writes of completed requests: the sum of `lost_pages` and `lost_with_wordline`, and of `lost_covered` and
    `lost_acknowledged` less `lost_trims`.
    """
    lost_trims: int
    """Units whose TRIM is lost, so that older data is back: a completed flush covers the TRIM, its record was only in
    RAM, and the capacitor should have saved it. In pages.
    """
    torn_programs: int
    """Programs torn by the power loss. In pages."""
    torn_erases: int
    """Erases torn by the power loss."""
    scanned_pages: int
    """Pages whose OOB was read in recovery."""
    read_pages: int
    """Pages that recovery read as a whole, to complete partial units and to make room for that. They are among the
    reads of the cause `flush`; the pages of `scanned_pages` are not.
    """
    merged_pages: int
    """Partial units of the emergency flush that recovery completed with the missing sectors from older units. In pages.
    """
    erased_blocks: int
    """Superblocks that recovery erased because their erase was torn, or because they had only copies of units and free
    superblocks were few.
    """
    closed_blocks: int
    """Partly programmed superblocks that recovery closed because no stream continued in them."""
    stale_translation_pages: int
    """Translation pages that recovery found out of date in flash."""
    finish_s: float
    """Time from the power loss until the operations under way at the power loss had ended. In seconds."""
    flush_s: float
    """Time from the power loss until the emergency flush, with its GC, had ended its last operation (T_total of Eq. 4
    of the aging-capacitor paper). In seconds.
    """
    gc_pages: int
    """Units that GC moved during the emergency flush (`power.gc_in_flush`). In pages."""
    gc_erases: int
    """Blocks that GC erased during the emergency flush. In erases."""
    program_s: float
    """Sum of the times of all programs of the emergency flush and of its GC (T_program of Eq. 5 of the aging-capacitor
    paper). In seconds.
    """
    recovery_s: float
    """Duration of the recovery. In seconds."""
    energy_j: float
    """Energy in the capacitor when power failed. In joules."""
    spent_j: float
    """Energy that the emergency flush took (Eq. 3 to 5 of the aging-capacitor paper). In joules."""
    list: tuple[LossSummary, ...]
    """The first hundred power losses, in the order of time."""
    recovery_cuts: RecoveryCuts | None = None
    """Power losses during all recoveries; absent without one."""


class MigrationSummary(Record, frozen=True):
    """Victims and pages moved by copyback or off-chip."""

    copybacks: int
    """Pages copied back."""
    by_count: dict[int, int]
    """Pages copied back, by the number of the copyback in a row: 1 is the first copyback after a correction."""
    refused: int
    """Pages of victims chosen for copyback that were moved off-chip because the limit allowed no copyback of them."""
    too_few_valid: int
    """Pages of victims chosen for copyback that were moved off-chip because too few of their units were valid
    (`migration.valid_min`).
    """
    left_over: int
    """Pages of victims chosen for copyback that were moved off-chip because too few others filled a programming unit
    with them.
    """
    dead_units: int
    """Units without valid data that were copied back with the valid units of their page."""
    victims_copied_back: int
    """Victims chosen for copyback; the limit may have refused some of their pages. In blocks."""
    victims_off_chip: int
    """Victims that the policy moved off-chip although the highest limit would have allowed a copyback. In blocks."""
    victims_without_gain: int
    """Victims that were moved off-chip because copybacks would have copied so many units without valid data that the
    erase would have gained nothing. In blocks.
    """
    victims_without_room: int
    """Victims that were moved off-chip because their lane had too few free superblocks to open one for copybacks."""
    counter_bytes_by_block: int
    """RAM needed to count copybacks in a row with one counter per superblock. In bytes."""
    counter_bytes_by_page: int
    """RAM needed to count copybacks in a row with one counter per unit. In bytes."""


class ErrorCacheState(Record, frozen=True):
    """The size of the cache of known errors."""

    entries: int
    """Number of units whose error positions are in the cache. In pages."""
    bytes: int
    """Size of all entries of the cache, in bytes; at most `refresh.policy.ec-cache.size`."""
    hits: int
    """Host reads of units whose errors were known from earlier reads (EC-Cache). In pages."""
    lower_level_reads: int
    """Host reads that decoded at a lower read level because errors of their unit were known (EC-Cache). In pages."""
    evictions: int
    """Units whose known errors were evicted for those of other units (EC-Cache). In pages."""


class PartialState(Record, frozen=True):
    """The use of the controller's RAM by partial refresh, and the share of time in which it was on."""

    blocks: int
    """Superblocks whose partial refresh has begun."""
    blocks_while_off: int
    """Due superblocks not refreshed partially because too few superblocks were free or the lane was short of space. A
    superblock may be counted again while the superblock waits for its job.
    """
    pages: int
    """Units refreshed partially: only their susceptible bits were moved. In pages."""
    hot_pages: int
    """Units of partially refreshed superblocks that were written elsewhere because they are read often. In pages."""
    too_susceptible_pages: int
    """Units of partially refreshed superblocks that were written elsewhere because too many of their bits were
    susceptible. In pages.
    """
    pages_without_room: int
    """Units of partially refreshed superblocks that were written elsewhere because the VSM had no room. In pages."""
    susceptible_bytes: int
    """Encoded size of all susceptible bits moved by partial refresh. In bytes."""
    combination_pages: int
    """Combination pages programmed from the VSM; neither copies nor pages of emergency flushes are counted."""
    padding_bytes: int
    """Bytes left empty in the combination pages programmed from the VSM."""
    host_preads: int
    """Host reads of partially refreshed units, each together with its combination page (preads). In pages."""
    merge_preads: int
    """Preads that complete a partly written unit (read-modify-write); they are counted as host preads too. In pages."""
    promoted_pages: int
    """Partially refreshed units that GC, wear levelling or refresh read with their combination pages and wrote
    elsewhere as whole units.
    """
    linked_pages: int
    """Number of partially refreshed units (units with a link to a combination page) at the end. In pages."""
    linked_pages_max: int
    """Highest number of partially refreshed units at a time. In pages."""
    mapping_bytes: int
    """Largest size of the secondary mapping table: a bit for each unit of the drive, and 52 bits for each link. In
    bytes.
    """
    vsm_bytes: int
    """Highest fill level of the virtual shadow memory (VSM). In bytes."""
    on_share: float
    """Share of the simulated time in which there were enough free superblocks for partial refresh, 0 to 1."""


class RefreshSummary(Record, frozen=True):
    """Refresh: superblocks and units refreshed, durations and delays."""

    blocks: int
    """Superblocks whose refresh has begun. Due superblocks without valid units are not counted."""
    pages: int
    """Valid units of all refreshed superblocks, counted when the refresh of their superblock began. In pages."""
    load: float | None
    """Rate at which superblocks come due per rate at which they are refreshed: mean duration of a refresh job per
    interval, summed over the superblocks with valid data of a lane; highest value of all lanes; None before the first
    refresh. A share.
    """
    late_blocks: int
    """Superblocks whose refresh ended after their grace was over."""
    overdue_blocks: int
    """Superblocks with valid data that are overdue by more than their grace at the end."""
    overdue_max_s: int
    """Longest time that a refreshed superblock was overdue when its refresh ended, on the scaled clock. In seconds."""
    busy_s: float
    """Sum of the durations of all refresh jobs. In seconds."""
    block_mean_s: float
    """Mean duration of the refresh of a superblock; 0 without a refresh. In seconds."""
    promoted: int
    """Background jobs promoted to the priority of host writes because half of the grace of a due superblock was over.
    In blocks.
    """
    blocks_in_place: int
    """Superblocks whose refresh in place has begun."""
    pages_in_place: int
    """Units reprogrammed in place. The other valid units of superblocks refreshed in place were written elsewhere. In
    pages.
    """
    ec_cache: ErrorCacheState | None
    """The cache of known errors (EC-Cache); None if the refresh policy has none."""
    partial: PartialState | None
    """Partial refresh; None under other refresh policies."""


class ReclaimStats(Record, frozen=True):
    """Read reclaim: superblocks and units moved because of read disturb."""

    blocks: int
    """Superblocks that read reclaim began to empty."""
    pages: int
    """Valid units of reclaimed superblocks when read reclaim began to empty them. In pages."""
    samples: int
    """Sampled reads, whose RBER was predicted. In pages."""


class SlcFolded(Record, frozen=True):
    """The counters under `folded`."""

    idle: int
    """Valid units of the superblocks folded in idle time, when folding began."""
    full: int
    """Valid units of the superblocks folded above the watermark or for a waiting write, when folding began."""
    space: int
    """Valid units of the superblocks folded because a lane was short of space, when folding began."""


class SlcWear(Record, frozen=True):
    """Wear by mode: P/E cycles over the endurance of the mode, mean of the superblocks. The two add up; a superblock
    retires at 1.
    """

    slc: float
    """Wear by cycles in SLC mode. A share."""
    native: float
    """Wear by other cycles. A share."""


class SlcSummary(Record, frozen=True):
    """The SLC cache."""

    cached: int
    """Units of the host programmed in SLC mode."""
    direct: int
    """Units of the host programmed without SLC mode."""
    blocks: int
    """Superblocks that folding began to empty."""
    folded: SlcFolded
    """The counters under `folded`."""
    slc_blocks: int
    """Superblocks in SLC mode at the end of the run."""
    slc_blocks_max: int
    """The number up to which the host may open further superblocks in SLC mode at the end of the run. It falls as
    blocks without SLC mode fill, and blocks in the mode stay in it, so it may be below their number.
    """
    valid_pages: int
    """Valid units in superblocks in SLC mode at the end of the run."""
    cycles_mean: float
    """P/E cycles in SLC mode, mean of the superblocks."""
    wear: SlcWear
    """Wear by mode."""


class NeedSummary(Record, frozen=True):
    """Space that one mechanism needs in every lane."""

    open: int
    """Open superblocks that the mechanism's streams may hold, per lane, while the host has no free superblock left."""
    free: int
    """Free superblocks that host writes leave to the mechanism, per lane."""
    valid_pages: int
    """Largest number of valid units that the mechanism adds to those of the host, per lane. In pages."""


class NeedsByMechanism(Record, frozen=True):
    """Space that each mechanism needs in every lane."""

    gc: NeedSummary
    """Space for garbage collection."""
    wear: NeedSummary
    """Space for static wear levelling."""
    mapping: NeedSummary
    """Space for translation pages of the demand map."""
    copyback: NeedSummary
    """Space for copybacks."""
    combination: NeedSummary
    """Space for combination pages of partial refresh."""
    slc: NeedSummary
    """Space for the SLC cache."""
    flush: NeedSummary
    """Space for the emergency flush."""


class SpaceNeeds(Record, frozen=True):
    """Space that the mechanisms need in every lane."""

    open_blocks: int
    """Superblocks that internal streams may have open, per lane."""
    free_blocks: int
    """Free superblocks that host writes may not take, per lane."""
    gain_blocks: int
    """Garbage that GC always needs in order to gain free units, in superblocks, per lane."""
    by: NeedsByMechanism
    """Space that each mechanism needs in every lane."""


class SpaceSummary(Record, frozen=True):
    """Space that the mechanisms need in every lane, and the over-provisioning that remains."""

    needs: SpaceNeeds
    """Space that the mechanisms need in every lane."""
    spare_share: float
    """Effective over-provisioning: units neither valid nor reserved as `open_blocks` or `free_blocks`, over the maximum
    number of valid units; with bad blocks the mean of all lanes. A share.
    """
    waf_uniform_fifo: float | None
    """WAF of uniform random writes with FIFO victims at over-provisioning `spare_share`, with bad blocks the mean of
    all lanes; None where it is unbounded.
    """
    op_for_waf_5: float | None
    """The lowest `drive.op` at which `waf_uniform_fifo` is at most 5; None if there is none. A share."""


class EraseSummary(Record, frozen=True):
    """P/E cycles of the superblocks at the end, retired superblocks and the cycles before the run included."""

    mean: float
    """Mean P/E cycles of all superblocks."""
    max: int
    """P/E cycles of the most worn superblock."""
    min: int
    """P/E cycles of the least worn superblock."""


class VictimMs(Record, frozen=True):
    """GC's mean time for a victim, over the victims whose erase has ended, by part. The parts follow each other; 0
    without such a victim. The times of two victims of a lane overlap where the last units of one fill a programming
    unit with the first of the next.
    """

    copies: float
    """Mean time from taking a victim to the end of the last program that moves a unit of it, including all waiting for
    dies, channels and host operations between the copies. 0 for a victim without valid units. In milliseconds.
    """
    waiting: float
    """Mean time from then to the queueing of the erase: for reads of the victim's units, and for the programs of host
    writes that have replaced units of it. In milliseconds.
    """
    erase: float
    """Mean time from then to the end of the erase, including its wait in the queue of its die and its suspensions; for
    a victim on several dies to the end of the last erase. In milliseconds.
    """


class GcSummary(Record, frozen=True):
    """Victims of garbage collection."""

    victims: int
    """Superblocks that GC has chosen as victims."""
    victim_valid_mean: float
    """Mean share of a victim's units that were valid when the victim was chosen."""
    victim_ms: VictimMs
    """Mean time for a victim, by part."""


class CounterSummary(Record, frozen=True):
    """Counters of host units and of GC."""

    host_pages_written: int
    """Units of completed host writes; a partly written unit counts as one unit. In pages."""
    partial_writes: int
    """Units that the host wrote only partly; 0 with a write cache, which merges such units itself. In pages."""
    merge_reads: int
    """Units read from flash to complete a partly written unit (read-modify-write); 0 with a write cache. In pages."""
    unmapped_reads: int
    """Unit reads of LPNs without data, which are answered without a flash read. In pages."""
    buffered_reads: int
    """Unit reads answered from the controller's buffer, because the program of the unit was queued or under way. In
    pages.
    """
    trimmed_pages: int
    """Units with data, in flash or in the write cache, that TRIM has deallocated. In pages."""
    waiting_writes: int
    """Unit writes, of the host or of the write cache, that waited for room in flash. In pages."""
    failed_pages: int
    """Unit writes, of the host or of the write cache, that failed because every lane that could take the unit was worn
    out. In pages.
    """
    media_errors: int
    """Units that made host requests fail: no read level decodes their data or map entry, or the data has been lost. In
    pages.
    """
    gc_victims: int
    """Victims that GC began to empty. In blocks."""
    gc_victims_forced: int
    """Forced victims: victims that GC took because they had the fewest valid units, and not the superblock that its
    policy picked. The reasons: the policy's superblock could not be emptied with a gain, or a translation page or a
    write had waited for room in vain. In blocks.
    """
    gc_victims_not_greedy: int
    """Victims other than the superblock that the policy `greedy` would have picked. In blocks."""
    dead_blocks: int
    """Dead superblocks (full, without valid units and pins) that were erased without a GC job."""
    gc_victim_valid_pages: int
    """Valid units of GC's victims, counted when GC took the victim. In pages."""


class SteadyQuantity(Record, frozen=True):
    """A quantity in each round, and the verdict on the window, which is the last five rounds."""

    met: bool | None
    """Whether mean > 0, range <= 0.2 and slope <= 0.1 in the last five rounds; None if the run has fewer."""
    mean: float | None
    """Mean of the last five rounds; None if the run has fewer."""
    range: float | None
    """Range of the last five rounds: (largest - smallest) / mean; None if the run has fewer. A share."""
    slope: float | None
    """Slope of the last five rounds: |rise of the least-squares line| / mean; None if the run has fewer. A share."""
    rounds: tuple[float | None, ...]
    """The quantity in each round of the run; None for a round in which it is undefined."""


class SteadySummary(Record, frozen=True):
    """The SNIA steady-state test."""

    verdict: Literal["too short", "steady", "not steady"]
    """Whether the drive is in a steady state, judged by the last five rounds."""
    rounds: int
    """Number of rounds of the run."""
    round_host_bytes_min: int
    """The least number of bytes programmed for the host in a round."""
    round_bytes_min: int
    """The least number of bytes programmed for all causes in a round."""
    window_begin_s: float | None
    """Beginning of the window, which is the last five rounds; None if the run has fewer. In seconds."""
    window_end_s: float | None
    """End of the window, which is the last five rounds; None if the run has fewer. In seconds."""
    erased_share: float | None
    """Pages of the blocks erased in the last five rounds per page programmed in them; None if the run has fewer rounds.
    A share.
    """
    waf: SteadyQuantity
    """Write amplification by round: bytes programmed per byte of completed host writes."""
    bytes_per_s: SteadyQuantity | None
    """Throughput of host reads and writes by round; None in an open loop, where the load does not follow the drive. In
    bytes/s.
    """
    requests_needed: int | None
    """Number of requests, those of the warm-up included, with which the run would have five rounds, with a tenth added;
    None if the run has five rounds, or nothing was programmed for the host.
    """
    repeat_needed: int | None
    """Value of `workload.repeat` with which the run would have five rounds, with a tenth added; None if the run has
    five rounds, or nothing was programmed for the host.
    """


class Note(Record, frozen=True):
    """A finding about a result."""

    severity: Literal["error", "warning", "info"]
    """The severity of the note."""
    code: str
    """The subject of the note, as an identifier for programs."""
    text: str
    """The finding in words: what has happened, the spec keys concerned, and the remedy."""


class BadBlocksSummary(Record, frozen=True):
    """Blocks that are bad from the factory (`drive.bad_blocks`), and what they leave."""

    flash_blocks: int
    """Blocks of the flash that are bad."""
    unused: int
    """Good blocks of the flash that no superblock uses, because another plane of their lane has fewer; 0 with
    `ftl.superblock = "plane"`.
    """
    blocks: int
    """Superblocks that the drive has; with `ftl.superblock = "plane"` its good blocks."""


class UnitsStats(Record, frozen=True):
    """Programs of several mapping units (`ftl.mapping_unit`, `drive.program_order`)."""

    padding: int
    """Mapping units without data that filled a programming unit whose program could not wait."""


class BufferStats(Record, frozen=True):
    """The write buffer (`ftl.buffer`)."""

    replaced: int
    """Units of host writes that replaced the data of a unit in the write buffer before its program began."""


class SuspendStats(Record, frozen=True):
    """Suspensions of programs and erases for host reads (`timing.suspend`)."""

    programs: int
    """Suspensions of programs and of the programs of copybacks; a multi-plane program counts as one."""
    erases: int
    """Suspensions of erases; a multi-plane erase counts as one."""
    suspended_s: float
    """Time by which suspensions have delayed programs and erases: from the suspension of an operation until the die has
    taken the operation up again. In seconds.
    """


class LinkSummary(Record, frozen=True):
    """Use of the link between host and drive."""

    to_drive: float
    """Share of the time in which data crossed the link to the drive."""
    to_host: float
    """Share of the time in which data crossed the link to the host."""


class ControllerSummary(Record, frozen=True):
    """Use of the controller's processors."""

    busy: float
    """Share of the time for which the processors worked on commands."""


class PreconditionSummary(Record, frozen=True):
    """Result of the preconditioning by the SNIA performance test specification."""

    waf_by_round: tuple[float, ...]
    """Write amplification in each round of random overwrites."""
    steady: bool | None
    """Whether write amplification was steady over the last five rounds; None if there was no round."""


class VerifiedSummary(Record, frozen=True):
    """The checks of a run with `--verify`."""

    page_reads_checked: int
    """Unit reads compared with the reference model. In pages."""


class WarmUpSummary(Record, frozen=True):
    """The warm-up (`workload.warm_up`), which the results leave out."""

    requests: int
    """Requests of the warm-up, including failed ones."""
    duration_s: float
    """Simulated time from the start until the last request of the warm-up had completed. In seconds."""


class OutsidePolicy(Record, frozen=True):
    """A policy from outside."""

    slot: str
    """The spec key of the slot that the policy fills, such as `gc.victim`."""
    name: str
    """The name of the policy."""


class PlacementEvents(Record, frozen=True):
    """Events of placement handles and reclaim units, by type (NVMe's log page 23h)."""

    unit_not_full: int
    """Reclaim units that the host left before they were full (type 0h). In events."""
    time_limit: int
    """Reclaim units that were open for too long (type 1h). In events."""
    controller_reset: int
    """Handles that went on in another reclaim unit after a power loss (type 2h). In events."""
    invalid_identifier: int
    """Host writes with a placement identifier that the drive does not have; they go to identifier 0 (type 3h). In
    events.
    """
    media_reallocated: int
    """Moves of data from one reclaim unit to another (type 80h). In events."""
    handle_modified: int
    """Handles that the drive let go on in another reclaim unit (type 81h). In events."""


class HandleSummary(Record, frozen=True):
    """Data written with one placement identifier."""

    group: int
    """The reclaim group."""
    handle: int
    """The reclaim unit handle."""
    isolation: str
    """What GC does with the data of the handle: `initial` or `persistent`."""
    host_bytes: int
    """Bytes of the units programmed for the host. A write that is overwritten in the write buffer or cache is not
    programmed.
    """
    copied_bytes: int
    """Bytes of the units of this data that were programmed again, because GC or another mechanism moved them."""
    waf: float | None
    """Write amplification of the handle's data: units programmed per unit programmed for the host; None if none was."""
    copied_share: float
    """The handle's share of all copied bytes of the drive."""
    padding_bytes: int
    """Bytes of programs to superblocks with data of this handle alone that no unit fills."""
    erases: int
    """Superblocks erased that had data of this handle alone."""
    reclaim_units: int
    """Reclaim units that the host has begun to fill, in each lane."""


class MixedSummary(Record, frozen=True):
    """Superblocks of a reclaim group in which GC mixes the data of initially isolated handles."""

    copied_bytes: int
    """Bytes of the units moved out of such superblocks; they count with their handles too."""
    padding_bytes: int
    """Bytes of programs to such superblocks that no unit fills."""
    erases: int
    """Such superblocks erased."""


class PlacementSummary(Record, frozen=True):
    """Data written with placement handles (NVMe FDP), with the quantities of NVMe's log page 22h."""

    hbmw: int
    """Host Bytes with Metadata Written: bytes of the host writes that completed without failure."""
    mbmw: int
    """Media Bytes with Metadata Written: bytes of user data programmed, for the host and by copies of it. Padding and
    translation pages are not user data.
    """
    mbe: int
    """Media Bytes Erased: bytes of the blocks erased."""
    waf: float | None
    """Write amplification as FDP has it: MBMW over HBMW; None if no host write completed. `waf` of the summary counts
    padding and translation pages too.
    """
    padding_bytes: int
    """Bytes of programs to superblocks of user data that no unit fills."""
    map_bytes: int
    """Bytes of translation pages programmed."""
    events: PlacementEvents
    """Events of the handles and reclaim units, by type."""
    handles: dict[int, HandleSummary]
    """By placement identifier."""
    mixed: dict[int, MixedSummary]
    """By reclaim group: the superblocks in which GC mixes the data of initially isolated handles."""


class TagSummary(Record, frozen=True):
    """Requests with one queue, or one placement, that completed without failure."""

    host: HostRequests
    """Requests that completed without failure, by kind."""
    latency_us: LatencyByOp
    """Latency of the requests that completed without failure."""


class TagsSummary(Record, frozen=True):
    """Requests that completed without failure, by queue and by placement."""

    queues: dict[int, TagSummary]
    """By the number of the queue."""
    placements: dict[int, TagSummary]
    """By the number of the placement."""


class WaitingSummary(Record, frozen=True):
    """Requests that waited at a client, because it had as many outstanding requests as it may have."""

    requests: int
    """Requests that were submitted after they were due."""
    mean_us: float
    """Mean time from due to submission, over all requests that the client submitted. In microseconds."""
    max_us: float
    """Longest time from due to submission. In microseconds."""


class ClientSummary(Record, frozen=True):
    """Requests of one client that completed without failure."""

    host: HostRequests
    """Requests that completed without failure, by kind."""
    latency_us: LatencyByOp
    """Latency of the requests that completed without failure."""
    iops: float
    """Reads and writes completed without failure, per second of simulated time. In requests/s."""
    mb_per_s: float
    """Data of the reads and writes completed without failure, per second of simulated time. In MB/s."""
    waiting: WaitingSummary | None
    """Requests that waited at the client; None for a client without a limit `outstanding`."""


class Summary(Record, frozen=True):
    """`summary.json`.

    `requests` counts all requests that have ended, including failed ones. `host`, `latency_us`, `iops` and `mb_per_s`
    count only requests that completed without failure. After a warm-up all results begin with its end, except
    `requests_wrapped`, `records_skipped`, `precondition` and `verified`, which cover the whole run, and the state at
    the end.
    """

    nandlab: str
    """Version of nandlab."""
    spec_hash: str
    """Hash of the resolved spec."""
    complete: bool
    """Whether the workload was played to its end."""
    requests: int
    """Requests that have ended, including failed ones."""
    requests_unfinished: int
    """Requests that were outstanding at the end."""
    requests_failed: FailedRequests
    """Requests that failed, by reason."""
    requests_wrapped: int
    """Requests whose address exceeded the logical capacity and was taken modulo it."""
    records_skipped: int
    """Records of the trace that were skipped: damaged ones (`workload.lenient`), and those that state no request. A
    note gives their reasons and share.
    """
    duration_s: float
    """Simulated time of the run after its warm-up, outages included. In seconds."""
    host: HostRequests
    """Requests that completed without failure, by kind."""
    latency_us: LatencyByOp
    """Latency of the requests that completed without failure."""
    iops: float
    """Reads and writes completed without failure, per second of simulated time. In requests/s."""
    mb_per_s: float
    """Data of the reads and writes completed without failure, per second of simulated time. In MB/s."""
    waf: float | None
    """Write amplification: bytes programmed per byte of completed host writes; None if no host write completed."""
    waf_pages: float | None
    """Write amplification in units: units of the pages programmed, padding included, per unit of completed host writes,
    a partly written unit counted as one; None if no host write completed.
    """
    flash: FlashOperations
    """Flash operations by kind and cause."""
    ecc: EccSummary
    """Read levels and tries of all page reads."""
    map: MapSummary | None
    """The mapping cache and the demand map; None if the whole map is in RAM."""
    cache: CacheSummary
    """The write cache."""
    capacitor: CapacitorSummary | None
    """The capacitor at the end; None without a capacitor."""
    power: PowerSummary | None
    """Power losses; None if power never failed."""
    migration: MigrationSummary | None
    """Copybacks; None if `migration.policy` makes no copybacks."""
    refresh: RefreshSummary | None
    """Refresh of ageing data; None without a refresh policy."""
    reclaim: ReclaimStats | None
    """Read reclaim; None without it."""
    slc: SlcSummary | None
    """The SLC cache; None without one."""
    space: SpaceSummary
    """Space that the mechanisms need in every lane, and the over-provisioning that remains."""
    erases: EraseSummary
    """P/E cycles of the superblocks at the end."""
    gc: GcSummary
    """Victims of garbage collection."""
    counters: CounterSummary
    """Counters of host units and of GC."""
    mapped_pages: int
    """Logical units that are mapped to flash at the end. In pages."""
    blocks_retired: int
    """Superblocks that are worn out at the end and no longer used."""
    energy_j: float
    """Energy of all flash operations and transfers, without the reads of recoveries, and of the idle power over the
    whole simulated time. In joules.
    """
    die_busy_share: float
    """Die utilisation: share of the time in which a die executed an operation, mean of all dies."""
    channel_busy_share: float
    """Channel utilisation: share of the time of command cycles and transfers, mean of all channels. A transfer occupies
    its channel until the off-chip path has carried the data as well.
    """
    steady_state: SteadySummary | None
    """Result of the SNIA steady-state test; None if no host write completed."""
    notes: tuple[Note, ...]
    """Findings that a reader of the numbers has to know, the most important first."""
    bad_blocks: BadBlocksSummary | None = None
    """Blocks that are bad from the factory; absent without `drive.bad_blocks`."""
    units: UnitsStats | None = None
    """Padding of programs of several units; absent if a program writes one unit."""
    buffer: BufferStats | None = None
    """The write buffer; absent without `ftl.buffer`."""
    suspensions: SuspendStats | None = None
    """Suspensions of programs and erases for host reads; absent without `timing.suspend`."""
    link: LinkSummary | None = None
    """Use of the link between host and drive; absent without a link."""
    controller: ControllerSummary | None = None
    """Use of the controller's processors; absent if the firmware takes no time."""
    precondition: PreconditionSummary | None = None
    """Result of the preconditioning by the SNIA performance test specification; absent with other preconditioning."""
    verified: VerifiedSummary | None = None
    """The checks of a run with `--verify`; absent in other runs."""
    warm_up: WarmUpSummary | None = None
    """The warm-up, which the results leave out; absent without one."""
    policies: tuple[OutsidePolicy, ...] | None = None
    """Policies from outside, which fill slots in place of the policies that the spec names; absent without them."""
    placement: PlacementSummary | None = None
    """What was written and erased by placement handle; absent without placement handles."""
    by_tag: TagsSummary | None = None
    """The requests by queue and by placement; absent while all requests have queue 0 and placement 0."""
    clients: dict[str, ClientSummary] | None = None
    """The requests of each client (`workload.clients`), by the client's name; absent without clients."""


class LostWrite(Record, frozen=True):
    """A unit with a lost write or TRIM. A unit is listed once, under the strongest promise that is broken."""

    lpn: int
    """Logical page number (LPN) of the unit."""
    offset: int
    """Offset of the first byte of the unit on the drive. In bytes."""
    sequence: int
    """Sequence number of the newest lost write or TRIM to which the promise was given, counted from 1 in the order of
    admission; 0: data from before the workload, or in flight a unit that the drive had not admitted.
    """
    is_trim: bool
    """Whether a TRIM is lost, so that older data is back."""
    was_in_flash: bool
    """Whether the data was in flash, and a torn program or reprogram has destroyed it; otherwise it was only in RAM, or
    had not reached the drive.
    """


class LossRecord(Record, frozen=True):
    """A power loss with its lists of lost writes."""

    at_s: float
    """Simulated time of the power loss. In seconds."""
    capacitor_loss_share: float
    """Share of its rated capacitance that the capacitor had lost when power failed."""
    aborted_requests: int
    """Requests that were outstanding when power failed; they have failed."""
    dirty_pages: int
    """Dirty units in the write cache, or in the write buffer, when power failed. In pages."""
    unflushed_pages: int
    """Dirty units with acknowledged writes that were not in flash when power failed. In pages."""
    flushed_pages: int
    """Dirty units that the emergency flush wrote. In pages."""
    trim_pages: int
    """Units of TRIM records that were only in RAM when power failed, backed up by the capacitor. In pages."""
    trim_pages_saved: int
    """Units of TRIM records that the emergency flush wrote. In pages."""
    vsm_lines: int
    """Lines of susceptible bits in the VSM that were not in flash when power failed."""
    vsm_lines_saved: int
    """Lines of the VSM that the emergency flush wrote."""
    fast_pages: int
    """Dirty units that the emergency flush wrote to fast pages: SLC pages, LSB pages of planar MLC, and on 3D flash
    pages in the faster half of the layers. With one-shot programs every page of planar flash.
    """
    lost_covered: int
    """Units with a lost write or TRIM that a completed flush, or a completed FUA write, covers: an fsync broke. In
    pages.
    """
    lost_acknowledged: int
    """Units with a lost write whose request had completed, and which no completed flush or FUA write covers. In pages.
    """
    lost_in_flight: int
    """Units of write requests that were outstanding, whose data is not there after recovery. They were never
    acknowledged. In pages.
    """
    lost_pages: int
    """Units with a lost write of a completed request that was only in RAM. In pages."""
    lost_with_wordline: int
    """Units with a lost write of a completed request that was in flash: destroyed by the torn program of the MSB page
    of its wordline, or by a torn reprogram in place. In pages.
    """
    lost_writes: int
    """Lost writes of completed requests: the sum of `lost_pages` and `lost_with_wordline`, and of `lost_covered` and
    `lost_acknowledged` less `lost_trims`.
    """
    lost_trims: int
    """Units whose TRIM is lost, so that older data is back: a completed flush covers the TRIM, its record was only in
    RAM, and the capacitor should have saved it. In pages.
    """
    torn_programs: int
    """Programs torn by the power loss. In pages."""
    torn_erases: int
    """Erases torn by the power loss."""
    scanned_pages: int
    """Pages whose OOB was read in recovery."""
    read_pages: int
    """Pages that recovery read as a whole, to complete partial units and to make room for that. They are among the
    reads of the cause `flush`; the pages of `scanned_pages` are not.
    """
    merged_pages: int
    """Partial units of the emergency flush that recovery completed with the missing sectors from older units. In pages.
    """
    erased_blocks: int
    """Superblocks that recovery erased because their erase was torn, or because they had only copies of units and free
    superblocks were few.
    """
    closed_blocks: int
    """Partly programmed superblocks that recovery closed because no stream continued in them."""
    stale_translation_pages: int
    """Translation pages that recovery found out of date in flash."""
    finish_s: float
    """Time from the power loss until the operations under way at the power loss had ended. In seconds."""
    flush_s: float
    """Time from the power loss until the emergency flush, with its GC, had ended its last operation (T_total of Eq. 4
    of the aging-capacitor paper). In seconds.
    """
    gc_pages: int
    """Units that GC moved during the emergency flush (`power.gc_in_flush`). In pages."""
    gc_erases: int
    """Blocks that GC erased during the emergency flush. In erases."""
    program_s: float
    """Sum of the times of all programs of the emergency flush and of its GC (T_program of Eq. 5 of the aging-capacitor
    paper). In seconds.
    """
    recovery_s: float
    """Duration of the recovery. In seconds."""
    energy_j: float
    """Energy in the capacitor when power failed. In joules."""
    spent_j: float
    """Energy that the emergency flush took (Eq. 3 to 5 of the aging-capacitor paper). In joules."""
    covered: tuple[LostWrite, ...]
    """Lost although a completed flush, or a completed FUA write, covers them: an fsync broke."""
    acknowledged: tuple[LostWrite, ...]
    """Lost writes of completed requests that no completed flush or FUA write covers."""
    in_flight: tuple[LostWrite, ...]
    """Units of write requests that were outstanding, whose data is not there after recovery."""
    recovery_cuts: RecoveryCuts | None = None
    """Power losses during the recovery; absent without one."""


class PowerRecord(Record, frozen=True):
    """`power.json`: every power loss with its lost writes, and every detection of the dirty budget."""

    page_bytes: int
    """Size of a mapping unit. In bytes."""
    losses: tuple[LossRecord, ...]
    """Power losses, in order of time."""
    detections: tuple[DetectionSummary, ...]
    """Detections of the dirty budget, in order of time."""


class LifeRow(Record, frozen=True):
    """A stretch of a drive's life: a row of `life.parquet`."""

    years: float
    """Age of the drive at the end of the stretch, on the scaled clock. In years."""
    pe_mean: float
    """Mean P/E cycles of all superblocks at the end of the stretch."""
    pe_min: float
    """P/E cycles of the least worn superblock at the end of the stretch."""
    pe_max: float
    """P/E cycles of the most worn superblock at the end of the stretch."""
    simulated_s: float
    """Simulated time of the stretch. In seconds."""
    lived_s: float
    """Duration of the stretch on the scaled clock. In seconds."""
    reads: float
    """Reads completed without failure. In requests."""
    read_bytes: float
    """Bytes of the reads completed without failure."""
    read_us_mean: float
    """Mean latency of reads. In microseconds."""
    read_us_p99: float
    """99th percentile of the latency of reads. In microseconds."""
    writes: float
    """Writes completed without failure. In requests."""
    write_bytes: float
    """Bytes of the writes completed without failure."""
    write_us_mean: float
    """Mean latency of writes. In microseconds."""
    write_us_p99: float
    """99th percentile of the latency of writes. In microseconds."""
    host_pages: float
    """Units of completed host writes; a partly written unit counts as one unit. In pages."""
    waf: float
    """Write amplification: bytes programmed per byte of completed host writes; NaN if no host write completed."""
    waf_pages: float
    """Write amplification in units: units of the pages programmed per unit of completed host writes; NaN if no host
    write completed.
    """
    program_host: float
    """Pages programmed for `host`: Host requests, including the reads of read-modify-writes."""
    program_gc: float
    """Pages programmed for `gc`: Garbage collection."""
    program_wear: float
    """Pages programmed for `wear`: Static wear levelling."""
    program_refresh: float
    """Pages programmed for `refresh`: Refresh of ageing data."""
    program_reclaim: float
    """Pages programmed for `reclaim`: Read reclaim."""
    program_fold: float
    """Pages programmed for `fold`: Folding: moves out of superblocks in SLC mode."""
    program_mapping: float
    """Pages programmed for `mapping`: Translation pages of the demand map."""
    program_sync: float
    """Pages programmed for `sync`: Write-backs from the write cache."""
    program_flush: float
    """Pages programmed for `flush`: Emergency flushes, recoveries and budget detections."""
    copybacks: float
    """Pages moved by copyback."""
    refused_copybacks: float
    """Pages of victims chosen for copyback that were moved off-chip because the limit allowed no copyback of them."""
    erases: float
    """Blocks erased."""
    outstanding: float
    """Requests outstanding at the end of the stretch."""
    read_level_mean: float
    """Mean read level that decoded a page read of the host."""
    read_level_needed_mean: float
    """Mean needed level of a page read of the host."""
    tries_per_read: float
    """Mean number of tries of a page read of the host."""
    uncorrectable: float
    """Page reads that no read level decoded. In pages."""
    media_errors: float
    """Units that made host requests fail: no read level decodes their data or map entry, or the data has been lost. In
    pages.
    """
    failed_pages: float
    """Unit writes, of the host or of the write cache, that failed because every lane that could take the unit was worn
    out. In pages.
    """
    refreshed_blocks: float
    """Superblocks whose refresh has begun. Due superblocks without valid units are not counted."""
    refreshed_pages: float
    """Valid units of all refreshed superblocks, counted when the refresh of their superblock began. In pages."""
    partial_pages: float
    """Units refreshed partially: only their susceptible bits were moved. In pages."""
    late_blocks: float
    """Superblocks whose refresh ended after their grace was over."""
    energy_j: float
    """Energy of all flash operations and transfers, and of the idle power. In joules."""
    die_busy_share: float
    """Die utilisation: share of the time in which a die executed an operation, mean of all dies."""
    channel_busy_share: float
    """Channel utilisation: share of the time of command cycles and transfers, mean of all channels."""
    reclaimed_blocks: float
    """Superblocks that read reclaim began to empty."""
    reclaimed_pages: float
    """Valid units of reclaimed superblocks when read reclaim began to empty them. In pages."""
    slc_cached: float
    """Units of the host programmed in SLC mode."""
    slc_direct: float
    """Units of the host programmed without SLC mode."""
    slc_folded_blocks: float
    """Superblocks that folding began to empty."""
    capacitor_loss_share: float | None = None
    """Share of the rated capacitance lost by the end of the stretch; absent without a capacitor."""
    capability_pages: float | None = None
    """Units that the full capacitor could save at the end of the stretch; absent without a capacitor. In pages."""
    cache_pages: float | None = None
    """Size of the write cache in units; absent without a write cache. In pages."""
    budget_pages: float | None = None
    """Units that may be dirty in the write cache at the end of the stretch; absent without a write cache. In pages."""
    dirty_pages: float | None = None
    """Dirty units in the write cache at the end of the stretch; absent without a write cache. In pages."""
