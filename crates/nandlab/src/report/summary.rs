//! `summary.json`.

use super::notes::{WAF_REMEDY, notes};
use crate::base::note::Note;
use crate::base::numbers::{number, ratio};
use crate::drive::spec::op_for_waf;
use crate::drive::spec::{RefreshPolicySpec, Spec};
use crate::drive::stats::{
    CacheSummary, CapacitorSummary, Counters, EccStats, EccSummary, GcStats, LatencyUs, MapSummary,
    MigrationSummary, PowerLoss, PowerSummary, RefreshSummary, SteadySummary,
};
use crate::drive::{Drive, FailReason, LinkDirection};
use crate::flash::BlockState;
use crate::ftl::needs::{BlockNeeds, GAIN_BLOCKS, Need, waf_uniform_fifo};
use crate::host::Op;
use crate::probe::Probe;
use crate::sched::{Cause, FlashOp};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// What the runner knows of a run and the drive does not.
#[derive(Clone, Debug, Default)]
pub struct RunFacts {
    /// Whether the workload was played to its end.
    pub complete: bool,
    /// The resolved spec's hash.
    pub spec_hash: String,
    /// Requests taken modulo the capacity.
    pub wrapped: u64,
    /// Malformed records skipped.
    pub skipped: u64,
}

/// Requests of an operation that the drive has done.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OpRequests {
    /// Requests.
    #[schemars(extend("unit" = "requests"))]
    pub count: u64,
    /// Bytes of the requests.
    #[schemars(extend("unit" = "bytes"))]
    pub bytes: u64,
}

/// Requests that the drive has done, by operation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HostRequests {
    /// Reads.
    pub read: OpRequests,
    /// Writes.
    pub write: OpRequests,
    /// TRIMs.
    pub trim: OpRequests,
    /// Flushes.
    pub flush: OpRequests,
}

/// Latency by operation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyByOp {
    /// Reads.
    pub read: LatencyUs,
    /// Writes.
    pub write: LatencyUs,
    /// TRIMs.
    pub trim: LatencyUs,
    /// Flushes.
    pub flush: LatencyUs,
    /// Reads and writes.
    pub all: LatencyUs,
}

/// Requests that failed, by reason.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FailedRequests {
    /// Requests that need a page which no read level decodes, or which has been lost.
    #[schemars(extend("unit" = "requests"))]
    pub uncorrectable: u64,
    /// Requests for which no block was left.
    #[schemars(extend("unit" = "requests"))]
    pub worn_out: u64,
    /// Requests that were outstanding when power failed.
    #[schemars(extend("unit" = "requests"))]
    pub power_lost: u64,
}

/// Flash operations by cause, in the order of [`Cause::ALL`].
#[derive(Clone, Debug, PartialEq)]
pub struct ByCause([u64; Cause::ALL.len()]);

impl Serialize for ByCause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Cause::ALL.into_iter().map(Cause::name).zip(self.0))
    }
}

impl JsonSchema for ByCause {
    fn schema_name() -> Cow<'static, str> {
        "ByCause".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let property = |cause: Cause| {
            let doc = format!("For {}.", cause.words());
            (
                cause.name().to_owned(),
                json!({ "description": doc, "type": "integer", "words": cause.words() }),
            )
        };
        json_schema!({
            "description": "Flash operations by cause.",
            "type": "object",
            "properties": Cause::ALL.into_iter().map(property).collect::<Map<_, _>>(),
            "required": Cause::ALL.map(Cause::name),
        })
    }
}

/// Flash operations by kind and cause.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FlashOperations {
    /// Pages read, by copyback or not.
    #[schemars(extend("unit" = "pages"))]
    pub read: ByCause,
    /// Pages programmed, by copyback or not.
    #[schemars(extend("unit" = "pages"))]
    pub program: ByCause,
    /// Blocks erased.
    #[schemars(extend("unit" = "blocks"))]
    pub erase: ByCause,
    /// Pages moved by copyback.
    #[schemars(extend("unit" = "pages"))]
    pub copyback: ByCause,
}

/// What a mechanism needs of every plane.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NeedSummary {
    /// Blocks that its streams may be filling while the host waits.
    #[schemars(extend("unit" = "blocks"))]
    pub open: u64,
    /// Free blocks that the host's stream leaves to it.
    #[schemars(extend("unit" = "blocks"))]
    pub free: u64,
    /// Valid pages that it adds to those of the host, at most.
    #[schemars(extend("unit" = "pages"))]
    pub valid_pages: u64,
}

/// What each mechanism needs of every plane.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NeedsByMechanism {
    /// Garbage collection.
    pub gc: NeedSummary,
    /// Static wear levelling.
    pub wear: NeedSummary,
    /// The demand map.
    pub mapping: NeedSummary,
    /// Copybacks.
    pub copyback: NeedSummary,
    /// Partial refresh.
    pub combination: NeedSummary,
    /// The emergency flush.
    pub flush: NeedSummary,
}

/// What the mechanisms need of every plane.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SpaceNeeds {
    /// Blocks that are being filled.
    #[schemars(extend("unit" = "blocks"))]
    pub open_blocks: u64,
    /// Blocks kept free.
    #[schemars(extend("unit" = "blocks"))]
    pub free_blocks: u64,
    /// Blocks' worth of garbage that GC gains by.
    #[schemars(extend("unit" = "blocks"))]
    pub gain_blocks: u64,
    /// The needs by mechanism.
    pub by: NeedsByMechanism,
}

/// What the mechanisms need of every plane, and what over-provisioning they leave.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SpaceSummary {
    /// What the mechanisms need of every plane.
    pub needs: SpaceNeeds,
    /// Effective over-provisioning: what the needs leave of a plane beyond its valid pages.
    #[schemars(extend("unit" = "share"))]
    pub spare_share: f64,
    /// Write amplification of uniform random writes with FIFO victims at that; null without spare space.
    pub waf_uniform_fifo: Option<f64>,
    /// `drive.op` at which it would be 5; null where none would do.
    #[schemars(extend("unit" = "share"))]
    pub op_for_waf_5: Option<f64>,
}

/// P/E cycles of the blocks.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EraseSummary {
    /// Mean.
    #[schemars(extend("unit" = "P/E cycles"))]
    pub mean: f64,
    /// Of the block with the most.
    #[schemars(extend("unit" = "P/E cycles"))]
    pub max: u32,
    /// Of the block with the fewest.
    #[schemars(extend("unit" = "P/E cycles"))]
    pub min: u32,
}

/// Garbage collection.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GcSummary {
    /// Victims emptied by GC.
    #[schemars(extend("unit" = "blocks"))]
    pub victims: u64,
    /// Valid pages in victims when they were chosen, on average.
    #[schemars(extend("unit" = "share"))]
    pub victim_valid_mean: f64,
}

/// What is counted of pages and victims.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CounterSummary {
    /// The host's.
    #[serde(flatten)]
    pub host: Counters,
    /// GC's.
    #[serde(flatten)]
    pub gc: GcStats,
}

/// How busy the link between host and drive was.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LinkSummary {
    /// Share of the time in which data crossed to the drive.
    #[schemars(extend("unit" = "share"))]
    pub to_drive: f64,
    /// Share of the time in which data crossed to the host.
    #[schemars(extend("unit" = "share"))]
    pub to_host: f64,
}

/// Preconditioning by the SNIA performance test specification.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PreconditionSummary {
    /// Write amplification of each round.
    pub waf_by_round: Vec<f64>,
    /// Whether the last five rounds are steady; null without a round.
    pub steady: Option<bool>,
}

/// What a verified run has checked.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VerifiedSummary {
    /// Page reads compared with the reference model.
    #[schemars(extend("unit" = "pages"))]
    pub page_reads_checked: u64,
}

/// `summary.json`.
///
/// `requests` are all that have ended, whether done or failed. `host`, `latency_us`, `iops` and `mb_per_s` count those that
/// the drive has done.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Summary {
    /// Version of nandlab.
    pub nandlab: &'static str,
    /// Hash of the resolved spec.
    pub spec_hash: String,
    /// Whether the workload was played to its end.
    pub complete: bool,
    /// Requests that have ended, whether done or failed.
    #[schemars(extend("unit" = "requests"))]
    pub requests: u64,
    /// Requests that were under way at the end.
    #[schemars(extend("unit" = "requests"))]
    pub requests_unfinished: u32,
    /// Requests that failed, by reason.
    pub requests_failed: FailedRequests,
    /// Requests beyond the drive, taken modulo its capacity.
    #[schemars(extend("unit" = "requests"))]
    pub requests_wrapped: u64,
    /// Malformed records of the trace that were skipped.
    #[schemars(extend("unit" = "records"))]
    pub records_skipped: u64,
    /// Simulated time; down time is part of it.
    #[schemars(extend("unit" = "s"))]
    pub duration_s: f64,
    /// Requests that the drive has done.
    pub host: HostRequests,
    /// Latency of the requests that the drive has done.
    pub latency_us: LatencyByOp,
    /// Reads and writes done in a second.
    #[schemars(extend("unit" = "requests/s"))]
    pub iops: f64,
    /// Bytes read and written in a second.
    #[schemars(extend("unit" = "MB/s"))]
    pub mb_per_s: f64,
    /// Write amplification: bytes programmed by bytes of writes; null before the first write.
    pub waf: Option<f64>,
    /// Write amplification in pages, a partly written page counted as one; null before the first write.
    pub waf_pages: Option<f64>,
    /// Flash operations.
    pub flash: FlashOperations,
    /// Read levels and tries of all page reads.
    pub ecc: EccSummary,
    /// The cache of the demand map; null with the page map.
    pub map: Option<MapSummary>,
    /// The write cache.
    pub cache: CacheSummary,
    /// The capacitor at the end; null without one.
    pub capacitor: Option<CapacitorSummary>,
    /// Power losses; null when power never failed.
    pub power: Option<PowerSummary>,
    /// Copybacks; null where the policy makes none.
    pub migration: Option<MigrationSummary>,
    /// Refresh; null without it.
    pub refresh: Option<RefreshSummary>,
    /// What the mechanisms need of every plane, and what over-provisioning they leave.
    pub space: SpaceSummary,
    /// P/E cycles of the blocks.
    pub erases: EraseSummary,
    /// Garbage collection.
    pub gc: GcSummary,
    /// What is counted of pages and victims.
    pub counters: CounterSummary,
    /// Pages of the host that hold data.
    #[schemars(extend("unit" = "pages"))]
    pub mapped_pages: u32,
    /// Blocks retired.
    #[schemars(extend("unit" = "blocks"))]
    pub blocks_retired: usize,
    /// Energy of all operations and transfers, and idle power over the whole time.
    #[schemars(extend("unit" = "j"))]
    pub energy_j: f64,
    /// The SNIA steady-state test; null where the host has written nothing.
    pub steady_state: Option<SteadySummary>,
    /// What a reader of the numbers has to know, those notes first that matter most.
    pub notes: Vec<Note>,
    /// How busy the link between host and drive was; absent without a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkSummary>,
    /// Preconditioning by the SNIA performance test specification; absent without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precondition: Option<PreconditionSummary>,
    /// What a verified run has checked; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<VerifiedSummary>,
}

/// Energy in joules: operations and transfers from the counts, idle power over the whole time.
pub(crate) fn energy_j<P: Probe>(drive: &Drive<P>) -> f64 {
    let (stats, energy) = (drive.stats(), &drive.spec().energy);
    let [reads, programs, erases, copybacks] =
        [FlashOp::Read, FlashOp::Program, FlashOp::Erase, FlashOp::Copyback]
            .map(|kind| stats.flash_total(kind) as f64);
    let page_bytes = f64::from(drive.geometry().page_bytes);
    // Every try senses and transfers.
    let reads = reads + stats.ecc.retries as f64;
    (reads + copybacks) * energy.read_j
        + (programs + copybacks) * energy.program_j
        + erases * energy.erase_j
        + (reads + programs) * page_bytes * energy.transfer_j_per_byte
        + drive.now().seconds() * energy.idle_w
}

/// Operations of these kinds, by cause; `flash` has them by kind and cause.
fn by_cause(flash: &[[u64; Cause::ALL.len()]; 4], kinds: &[FlashOp]) -> ByCause {
    let count = |cause: Cause| kinds.iter().map(|&kind| flash[kind as usize][cause as usize]).sum::<u64>();
    ByCause(Cause::ALL.map(count))
}

/// `space` of the summary.
fn space(spec: &Spec, needs: &BlockNeeds) -> SpaceSummary {
    let need = |Need { open, free, valid_pages, .. }| NeedSummary { open, free, valid_pages };
    let [gc, wear, mapping, copyback, combination, flush] = needs.all().map(need);
    let spare_share = needs.spare_share(spec.drive.blocks_per_plane.into());
    SpaceSummary {
        needs: SpaceNeeds {
            open_blocks: needs.open(),
            free_blocks: needs.free(),
            gain_blocks: GAIN_BLOCKS,
            by: NeedsByMechanism { gc, wear, mapping, copyback, combination, flush },
        },
        spare_share: number(spare_share),
        waf_uniform_fifo: waf_uniform_fifo(spare_share).map(number),
        op_for_waf_5: op_for_waf(spec, WAF_REMEDY).map(number),
    }
}

/// `capacitor` of the summary.
fn capacitor<P: Probe>(drive: &Drive<P>) -> Option<CapacitorSummary> {
    let [cache_pages, budget_pages, _] = drive.cache_pages();
    let detections = drive.stats().power.detections;
    let summary =
        drive.capacitor()?.summary(drive.capability_pages(), [cache_pages, budget_pages], detections);
    Some(summary)
}

/// `ecc` of the summary.
fn ecc<P: Probe>(drive: &Drive<P>) -> EccSummary {
    let stats = drive.stats();
    if drive.ecc().has_levels() {
        return stats.ecc.summary(drive.ecc().levels());
    }
    let cost = drive.device().timing().read(1, false);
    let host = stats.flash[FlashOp::Read as usize][Cause::Host as usize];
    let read_ns = cost.sense_ns + cost.transfer_ns + cost.decode_ns;
    EccStats::without_levels(stats.flash_total(FlashOp::Read), host, read_ns).summary(drive.ecc().levels())
}

/// `refresh` of the summary.
fn refresh<P: Probe>(drive: &Drive<P>) -> Option<RefreshSummary> {
    (drive.spec().refresh.policy != RefreshPolicySpec::None).then(|| {
        drive.stats().refresh.summary(
            drive.refresh_load(),
            drive.overdue_blocks(),
            drive.error_cache(),
            drive.partial_refresh(),
        )
    })
}

impl Summary {
    /// The summary of a drive whose statistics are finished.
    pub fn of<P: Probe>(drive: &Drive<P>, run: &RunFacts) -> Self {
        let stats = drive.stats();
        let seconds = drive.now().seconds();
        let of = |op: Op| &stats.host[op as usize];
        let mut all = of(Op::Read).clone();
        all.merge(of(Op::Write));
        let moved = of(Op::Read).bytes + of(Op::Write).bytes;
        let [read, write, trim, flush] =
            Op::ALL.map(|op| OpRequests { count: of(op).count, bytes: of(op).bytes });
        let host = HostRequests { read, write, trim, flush };
        let [read, write, trim, flush] = Op::ALL.map(|op| of(op).summary());
        let latency_us = LatencyByOp { read, write, trim, flush, all: all.summary() };
        let [uncorrectable, worn_out, power_lost] =
            FailReason::ALL.map(|reason| stats.failed[reason as usize]);
        let blocks = &drive.array().blocks;
        let worn = |f: fn(u32, u32) -> u32| blocks.iter().map(|b| b.pe_cycles).reduce(f).unwrap_or(0);
        let mean = ratio(blocks.iter().map(|b| f64::from(b.pe_cycles)).sum(), blocks.len() as f64);
        let most = drive.spec().migration.copybacks_max();
        let geometry = drive.geometry();
        let steady_state = drive.steady_state();
        let victim_pages = stats.gc.victims as f64 * f64::from(geometry.pages_per_block);
        Self {
            nandlab: env!("CARGO_PKG_VERSION"),
            spec_hash: run.spec_hash.clone(),
            complete: run.complete,
            requests: stats.requests(),
            requests_unfinished: drive.outstanding(),
            requests_failed: FailedRequests { uncorrectable, worn_out, power_lost },
            requests_wrapped: run.wrapped,
            records_skipped: run.skipped,
            duration_s: number(seconds),
            host,
            latency_us,
            iops: number(ratio(all.count as f64, seconds)),
            mb_per_s: number(ratio(moved as f64 * 1e-6, seconds)),
            waf: stats.waf().map(number),
            waf_pages: stats.waf_pages().map(number),
            flash: FlashOperations {
                read: by_cause(&stats.flash, &[FlashOp::Read, FlashOp::Copyback]),
                program: by_cause(&stats.flash, &[FlashOp::Program, FlashOp::Copyback]),
                erase: by_cause(&stats.flash, &[FlashOp::Erase]),
                copyback: by_cause(&stats.flash, &[FlashOp::Copyback]),
            },
            ecc: ecc(drive),
            map: drive.demand_map().map(|map| stats.map.summary(map.cache.capacity(), map.cache.len())),
            cache: stats.cache.summary(drive.spec().cache.size_bytes, drive.cache_pages()),
            capacitor: capacitor(drive),
            power: PowerLoss::summary_of_all(stats.power.losses, stats.power.down_ns),
            migration: (most > 0).then(|| stats.migration.summary(most, geometry.blocks, geometry.pages)),
            refresh: refresh(drive),
            space: space(drive.spec(), &drive.ftl().needs),
            erases: EraseSummary { mean: number(mean), max: worn(u32::max), min: worn(u32::min) },
            gc: GcSummary {
                victims: stats.gc.victims,
                victim_valid_mean: number(ratio(stats.gc.victim_valid_pages as f64, victim_pages)),
            },
            counters: CounterSummary { host: stats.counters.clone(), gc: stats.gc.clone() },
            mapped_pages: drive.ftl().host_pages_mapped(),
            blocks_retired: blocks.iter().filter(|b| b.state == BlockState::Retired).count(),
            energy_j: number(energy_j(drive)),
            notes: notes(drive, run, steady_state.as_ref()),
            steady_state,
            link: drive.link().map(|link| {
                let busy_share = |direction: LinkDirection| number(ratio(direction.busy.seconds(), seconds));
                LinkSummary { to_drive: busy_share(link.to_drive), to_host: busy_share(link.to_host) }
            }),
            precondition: None,
            verified: None,
        }
    }
}

/// `summary.json` of a drive whose statistics are finished.
pub fn summary<P: Probe>(drive: &Drive<P>, run: &RunFacts) -> Value {
    serde_json::to_value(Summary::of(drive, run)).expect("a summary is JSON")
}
