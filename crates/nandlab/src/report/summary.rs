//! `summary.json`.

use super::notes::{WAF_REMEDY, notes};
use super::placement::PlacementSummary;
use crate::base::note::Note;
use crate::base::numbers::{number, ratio};
use crate::base::units::Span;
use crate::drive::spec::op_for_waf;
use crate::drive::spec::{ClientSpec, RefreshPolicySpec};
use crate::drive::stats::{
    BufferStats, CacheSummary, CapacitorSummary, Counters, EccSummary, GcStats, LatencyUs, MapSummary,
    MigrationSummary, PowerLoss, PowerSummary, RefreshSummary, SlcSummary, Stats, SteadySummary,
    SuspendStats, VictimMs,
};
use crate::drive::{Drive, FailReason, LinkDirection};
use crate::flash::SuperblockState;
use crate::ftl::needs::{GAIN_SUPERBLOCKS, Need};
use crate::host::{ByOp, ByTag, Latency, Op};
use crate::probe::Probe;
use crate::sched::{Cause, FlashOp, SuspendSpec};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The properties of a run that the drive does not record.
#[derive(Clone, Debug, Default)]
pub struct RunFacts {
    /// Whether the workload was played to its end.
    pub complete: bool,
    /// Hash of the resolved spec.
    pub spec_hash: String,
    /// Requests whose address was taken modulo the logical capacity.
    pub wrapped: u64,
    /// Requests that were taken out of the source.
    pub fetched: u64,
    /// Records of the trace that were skipped.
    pub skipped: u64,
    /// Notes on the source of the requests.
    pub notes: Vec<Note>,
    /// What waited at each client (`Runner::waits`); empty without clients.
    pub waits: Vec<Waits>,
}

/// What a client has submitted after the warm-up, and the requests that waited at the client because too many others
/// were outstanding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Number of requests that have been submitted.
    pub submitted: u64,
    /// Number of requests that were submitted after they were due.
    pub waited: u64,
    /// Sum of the times from due to submission, in nanoseconds.
    pub sum_ns: u128,
    /// The longest time from due to submission.
    pub max_ns: Span,
}

/// Requests of one kind that completed without failure.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OpRequests {
    /// Number of requests.
    #[schemars(extend("unit" = "requests"))]
    pub count: u64,
    /// Sum of the lengths of the requests.
    #[schemars(extend("unit" = "bytes"))]
    pub bytes: u64,
}

/// Requests that completed without failure, by kind.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HostRequests {
    /// Reads that completed without failure.
    pub read: OpRequests,
    /// Writes that completed without failure.
    pub write: OpRequests,
    /// TRIMs that completed without failure.
    pub trim: OpRequests,
    /// Host flushes that completed without failure.
    pub flush: OpRequests,
}

/// Latency of the requests that completed without failure, by kind.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyByOp {
    /// Latency of reads.
    pub read: LatencyUs,
    /// Latency of writes.
    pub write: LatencyUs,
    /// Latency of TRIMs.
    pub trim: LatencyUs,
    /// Latency of host flushes.
    pub flush: LatencyUs,
    /// Latency of reads and writes together.
    pub all: LatencyUs,
}

/// Requests with one queue, or one placement, that completed without failure.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TagSummary {
    /// Requests that completed without failure, by kind.
    pub host: HostRequests,
    /// Latency of the requests that completed without failure.
    pub latency_us: LatencyByOp,
}

/// Requests that completed without failure, by queue and by placement.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TagsSummary {
    /// By the number of the queue.
    pub queues: BTreeMap<u16, TagSummary>,
    /// By the number of the placement.
    pub placements: BTreeMap<u16, TagSummary>,
}

/// Number, bytes and latencies of requests from their latencies by operation.
fn requests(host: [&Latency; 4]) -> (HostRequests, LatencyByOp) {
    let mut all = host[Op::Read as usize].clone();
    all.merge(host[Op::Write as usize]);
    let [read, write, trim, flush] = host.map(|of| OpRequests { count: of.count, bytes: of.bytes });
    let requests = HostRequests { read, write, trim, flush };
    let [read, write, trim, flush] = host.map(Latency::summary);
    (requests, LatencyByOp { read, write, trim, flush, all: all.summary() })
}

/// `by_tag` of the summary.
fn by_tag(tags: &ByTag) -> TagsSummary {
    let none = Latency::new();
    let of_all = |by: &BTreeMap<u16, ByOp>| {
        let of = |(&number, ByOp(host)): (&u16, &ByOp)| {
            let (host, latency_us) = requests(host.each_ref().map(|op| op.as_deref().unwrap_or(&none)));
            (number, TagSummary { host, latency_us })
        };
        by.iter().map(of).collect()
    };
    TagsSummary { queues: of_all(&tags.queues), placements: of_all(&tags.placements) }
}

/// Requests that waited at a client, because it had as many outstanding requests as it may have.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WaitingSummary {
    /// Requests that were submitted after they were due.
    #[schemars(extend("unit" = "requests"))]
    pub requests: u64,
    /// Mean time from due to submission, over all requests that the client submitted.
    #[schemars(extend("unit" = "us"))]
    pub mean_us: f64,
    /// Longest time from due to submission.
    #[schemars(extend("unit" = "us"))]
    pub max_us: f64,
}

/// Requests of one client that completed without failure.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ClientSummary {
    /// Requests that completed without failure, by kind.
    pub host: HostRequests,
    /// Latency of the requests that completed without failure.
    pub latency_us: LatencyByOp,
    /// Reads and writes completed without failure, per second of simulated time.
    #[schemars(extend("unit" = "requests/s"))]
    pub iops: f64,
    /// Data of the reads and writes completed without failure, per second of simulated time.
    #[schemars(extend("unit" = "MB/s"))]
    pub mb_per_s: f64,
    /// Requests that waited at the client; null for a client without a limit `outstanding`.
    pub waiting: Option<WaitingSummary>,
}

impl ClientSummary {
    fn of(client: &ClientSpec, host: [&Latency; 4], waits: Option<&Waits>, seconds: f64) -> Self {
        let moved = [host[Op::Read as usize], host[Op::Write as usize]];
        let per_s = |sum: u64| ratio(sum as f64, seconds);
        let (requests, latency_us) = requests(host);
        let us = |ns: f64| number(ns * 1e-3);
        Self {
            host: requests,
            latency_us,
            iops: number(per_s(moved.iter().map(|of| of.count).sum())),
            mb_per_s: number(per_s(moved.iter().map(|of| of.bytes).sum()) * 1e-6),
            waiting: waits.filter(|_| client.outstanding.is_some()).map(|waits| WaitingSummary {
                requests: waits.waited,
                mean_us: us(ratio(waits.sum_ns as f64, waits.submitted as f64)),
                max_us: us(waits.max_ns.ns() as f64),
            }),
        }
    }
}

/// `clients` of the summary: the requests with the queue of each client.
fn clients(
    clients: &[ClientSpec],
    stats: &Stats<'_>,
    waits: &[Waits],
    seconds: f64,
) -> Option<BTreeMap<String, ClientSummary>> {
    let none = Latency::new();
    let of = |(number, client): (usize, &ClientSpec)| {
        let host = match stats.by_tag {
            Some(tags) => {
                let by_op = tags.queues.get(&(number as u16)).map(|ByOp(by_op)| by_op.each_ref());
                by_op.map_or([&none; 4], |by_op| by_op.map(|of| of.as_deref().unwrap_or(&none)))
            }
            // All requests so far have queue 0.
            None if number == 0 => stats.host.each_ref(),
            None => [&none; 4],
        };
        (client.name.clone(), ClientSummary::of(client, host, waits.get(number), seconds))
    };
    (!clients.is_empty()).then(|| clients.iter().enumerate().map(of).collect())
}

/// Requests that failed, by reason.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FailedRequests {
    /// Requests that needed a unit that no read level decodes, or that was lost earlier.
    #[schemars(extend("unit" = "requests"))]
    pub uncorrectable: u64,
    /// Requests with a unit that got no room because of wear: no superblock could be emptied with a gain.
    #[schemars(extend("unit" = "requests"))]
    pub worn_out: u64,
    /// Requests that were outstanding when power failed.
    #[schemars(extend("unit" = "requests"))]
    pub power_lost: u64,
}

/// Flash operations of one kind, by cause in the order of [`Cause::ALL`].
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
            let schema = json!({ "description": cause.doc(), "type": "integer", "words": cause.words() });
            (cause.name().to_owned(), schema)
        };
        json_schema!({
            "description": "Flash operations of one kind, by cause.",
            "type": "object",
            "properties": Cause::ALL.into_iter().map(property).collect::<Map<_, _>>(),
            "required": Cause::ALL.map(Cause::name),
        })
    }
}

/// Flash operations by kind and cause.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FlashOperations {
    /// Pages read, including those sensed for copybacks; neither retries nor the reads of recoveries are counted.
    #[schemars(extend("unit" = "pages"))]
    pub read: ByCause,
    /// Pages programmed, including padding and the pages programmed by copybacks.
    #[schemars(extend("unit" = "pages"))]
    pub program: ByCause,
    /// Blocks erased; each block of a superblock counts.
    #[schemars(extend("unit" = "blocks"))]
    pub erase: ByCause,
    /// Pages moved by copyback.
    #[schemars(extend("unit" = "pages"))]
    pub copyback: ByCause,
}

/// Space that one mechanism needs in every lane.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NeedSummary {
    /// Open superblocks that the mechanism's streams may hold, per lane, while the host has no free superblock left.
    #[schemars(extend("unit" = "blocks"))]
    pub open: u64,
    /// Free superblocks that host writes leave to the mechanism, per lane.
    #[schemars(extend("unit" = "blocks"))]
    pub free: u64,
    /// Largest number of valid units that the mechanism adds to those of the host, per lane.
    #[schemars(extend("unit" = "pages"))]
    pub valid_pages: u64,
}

/// Space that each mechanism needs in every lane.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NeedsByMechanism {
    /// Space for garbage collection.
    pub gc: NeedSummary,
    /// Space for static wear levelling.
    pub wear: NeedSummary,
    /// Space for translation pages of the demand map.
    pub mapping: NeedSummary,
    /// Space for copybacks.
    pub copyback: NeedSummary,
    /// Space for combination pages of partial refresh.
    pub combination: NeedSummary,
    /// Space for the SLC cache.
    pub slc: NeedSummary,
    /// Space for the emergency flush.
    pub flush: NeedSummary,
}

/// Space that the mechanisms need in every lane.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SpaceNeeds {
    /// Superblocks that internal streams may have open, per lane.
    #[schemars(extend("unit" = "blocks"))]
    pub open_blocks: u64,
    /// Free superblocks that host writes may not take, per lane.
    #[schemars(extend("unit" = "blocks"))]
    pub free_blocks: u64,
    /// Garbage that GC always needs in order to gain free units, in superblocks, per lane.
    #[schemars(extend("unit" = "blocks"))]
    pub gain_blocks: u64,
    /// Space that each mechanism needs in every lane.
    pub by: NeedsByMechanism,
}

/// Space that the mechanisms need in every lane, and the over-provisioning that remains.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SpaceSummary {
    /// Space that the mechanisms need in every lane.
    pub needs: SpaceNeeds,
    /// Effective over-provisioning: units neither valid nor reserved as `open_blocks` or `free_blocks`, over the
    /// maximum number of valid units; with bad blocks the mean of all lanes.
    #[schemars(extend("unit" = "share"))]
    pub spare_share: f64,
    /// WAF of uniform random writes with FIFO victims at over-provisioning `spare_share`, with bad blocks the mean of
    /// all lanes; null where it is unbounded.
    pub waf_uniform_fifo: Option<f64>,
    /// The lowest `drive.op` at which `waf_uniform_fifo` is at most 5; null if there is none.
    #[schemars(extend("unit" = "share"))]
    pub op_for_waf_5: Option<f64>,
}

/// P/E cycles of the superblocks at the end, retired superblocks and the cycles before the run included.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EraseSummary {
    /// Mean P/E cycles of all superblocks.
    #[schemars(extend("unit" = "P/E cycles"))]
    pub mean: f64,
    /// P/E cycles of the most worn superblock.
    #[schemars(extend("unit" = "P/E cycles"))]
    pub max: u32,
    /// P/E cycles of the least worn superblock.
    #[schemars(extend("unit" = "P/E cycles"))]
    pub min: u32,
}

/// Blocks that are bad from the factory (`drive.bad_blocks`), and what they leave.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BadBlocksSummary {
    /// Blocks of the flash that are bad.
    #[schemars(extend("unit" = "blocks"))]
    pub flash_blocks: u64,
    /// Good blocks of the flash that no superblock uses, because another plane of their lane has fewer; 0 with
    /// `ftl.superblock = "plane"`.
    #[schemars(extend("unit" = "blocks"))]
    pub unused: u64,
    /// Superblocks that the drive has; with `ftl.superblock = "plane"` its good blocks.
    #[schemars(extend("unit" = "blocks"))]
    pub blocks: u32,
}

/// Victims of garbage collection.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GcSummary {
    /// Superblocks that GC has chosen as victims.
    #[schemars(extend("unit" = "blocks"))]
    pub victims: u64,
    /// Mean share of a victim's units that were valid when the victim was chosen.
    #[schemars(extend("unit" = "share"))]
    pub victim_valid_mean: f64,
    /// Mean time for a victim, by part.
    pub victim_ms: VictimMs,
}

/// Counters of host units and of GC.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CounterSummary {
    /// Counters of host units.
    #[serde(flatten)]
    pub host: Counters,
    /// Counters of GC.
    #[serde(flatten)]
    pub gc: GcStats,
}

/// Use of the link between host and drive.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LinkSummary {
    /// Share of the time in which data crossed the link to the drive.
    #[schemars(extend("unit" = "share"))]
    pub to_drive: f64,
    /// Share of the time in which data crossed the link to the host.
    #[schemars(extend("unit" = "share"))]
    pub to_host: f64,
}

/// Use of the controller's processors.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ControllerSummary {
    /// Share of the time for which the processors worked on commands.
    #[schemars(extend("unit" = "share"))]
    pub busy: f64,
}

/// Result of the preconditioning by the SNIA performance test specification.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PreconditionSummary {
    /// Write amplification in each round of random overwrites.
    pub waf_by_round: Vec<f64>,
    /// Whether write amplification was steady over the last five rounds; null if there was no round.
    pub steady: Option<bool>,
}

/// The checks of a run with `--verify`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VerifiedSummary {
    /// Unit reads compared with the reference model.
    #[schemars(extend("unit" = "pages"))]
    pub page_reads_checked: u64,
}

/// The warm-up (`workload.warm_up`), which the results leave out.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WarmUpSummary {
    /// Requests of the warm-up, including failed ones.
    #[schemars(extend("unit" = "requests"))]
    pub requests: u64,
    /// Simulated time from the start until the last request of the warm-up had completed.
    #[schemars(extend("unit" = "s"))]
    pub duration_s: f64,
}

/// `summary.json`.
///
/// `requests` counts all requests that have ended, including failed ones. `host`, `latency_us`, `iops` and `mb_per_s`
/// count only requests that completed without failure. After a warm-up all results begin with its end, except
/// `requests_wrapped`, `records_skipped`, `precondition` and `verified`, which cover the whole run, and the state at
/// the end.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Summary {
    /// Version of nandlab.
    pub nandlab: &'static str,
    /// Hash of the resolved spec.
    pub spec_hash: String,
    /// Whether the workload was played to its end.
    pub complete: bool,
    /// Requests that have ended, including failed ones.
    #[schemars(extend("unit" = "requests"))]
    pub requests: u64,
    /// Requests that were outstanding at the end.
    #[schemars(extend("unit" = "requests"))]
    pub requests_unfinished: u32,
    /// Requests that failed, by reason.
    pub requests_failed: FailedRequests,
    /// Requests whose address exceeded the logical capacity and was taken modulo it.
    #[schemars(extend("unit" = "requests"))]
    pub requests_wrapped: u64,
    /// Records of the trace that were skipped: damaged ones (`workload.lenient`), and those that state no request. A
    /// note gives their reasons and share.
    #[schemars(extend("unit" = "records"))]
    pub records_skipped: u64,
    /// Simulated time of the run after its warm-up, outages included.
    #[schemars(extend("unit" = "s"))]
    pub duration_s: f64,
    /// Requests that completed without failure, by kind.
    pub host: HostRequests,
    /// Latency of the requests that completed without failure.
    pub latency_us: LatencyByOp,
    /// Reads and writes completed without failure, per second of simulated time.
    #[schemars(extend("unit" = "requests/s"))]
    pub iops: f64,
    /// Data of the reads and writes completed without failure, per second of simulated time.
    #[schemars(extend("unit" = "MB/s"))]
    pub mb_per_s: f64,
    /// Write amplification: bytes programmed per byte of completed host writes; null if no host write completed.
    pub waf: Option<f64>,
    /// Write amplification in units: units of the pages programmed, padding included, per unit of completed host
    /// writes, a partly written unit counted as one; null if no host write completed.
    pub waf_pages: Option<f64>,
    /// Flash operations by kind and cause.
    pub flash: FlashOperations,
    /// Read levels and tries of all page reads.
    pub ecc: EccSummary,
    /// The mapping cache and the demand map; null if the whole map is in RAM.
    pub map: Option<MapSummary>,
    /// The write cache.
    pub cache: CacheSummary,
    /// The capacitor at the end; null without a capacitor.
    pub capacitor: Option<CapacitorSummary>,
    /// Power losses; null if power never failed.
    pub power: Option<PowerSummary>,
    /// Copybacks; null if `migration.policy` makes no copybacks.
    pub migration: Option<MigrationSummary>,
    /// Refresh of ageing data; null without a refresh policy.
    pub refresh: Option<RefreshSummary>,
    /// Read reclaim; null without it.
    pub reclaim: Option<crate::drive::stats::ReclaimStats>,
    /// The SLC cache; null without one.
    pub slc: Option<SlcSummary>,
    /// Space that the mechanisms need in every lane, and the over-provisioning that remains.
    pub space: SpaceSummary,
    /// P/E cycles of the superblocks at the end.
    pub erases: EraseSummary,
    /// Victims of garbage collection.
    pub gc: GcSummary,
    /// Counters of host units and of GC.
    pub counters: CounterSummary,
    /// Logical units that are mapped to flash at the end.
    #[schemars(extend("unit" = "pages"))]
    pub mapped_pages: u32,
    /// Superblocks that are worn out at the end and no longer used.
    #[schemars(extend("unit" = "blocks"))]
    pub blocks_retired: usize,
    /// Energy of all flash operations and transfers, without the reads of recoveries, and of the idle power over the
    /// whole simulated time.
    #[schemars(extend("unit" = "j"))]
    pub energy_j: f64,
    /// Die utilisation: share of the time in which a die executed an operation, mean of all dies.
    #[schemars(extend("unit" = "share"))]
    pub die_busy_share: f64,
    /// Channel utilisation: share of the time of command cycles and transfers, mean of all channels. A
    /// transfer occupies its channel until the off-chip path has carried the data as well.
    #[schemars(extend("unit" = "share"))]
    pub channel_busy_share: f64,
    /// Result of the SNIA steady-state test; null if no host write completed.
    pub steady_state: Option<SteadySummary>,
    /// Findings that a reader of the numbers has to know, the most important first.
    pub notes: Vec<Note>,
    /// Blocks that are bad from the factory; absent without `drive.bad_blocks`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bad_blocks: Option<BadBlocksSummary>,
    /// Padding of programs of several units; absent if a program writes one unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub units: Option<crate::drive::stats::UnitsStats>,
    /// The write buffer; absent without `ftl.buffer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<BufferStats>,
    /// Suspensions of programs and erases for host reads; absent without `timing.suspend`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspensions: Option<SuspendStats>,
    /// Use of the link between host and drive; absent without a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkSummary>,
    /// Use of the controller's processors; absent if the firmware takes no time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerSummary>,
    /// Result of the preconditioning by the SNIA performance test specification; absent with other preconditioning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precondition: Option<PreconditionSummary>,
    /// The checks of a run with `--verify`; absent in other runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<VerifiedSummary>,
    /// The warm-up, which the results leave out; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUpSummary>,
    /// Policies from outside, which fill slots in place of the policies that the spec names; absent without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policies: Option<Vec<OutsidePolicy>>,
    /// What was written and erased by placement handle; absent without placement handles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementSummary>,
    /// The requests by queue and by placement; absent while all requests have queue 0 and placement 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_tag: Option<TagsSummary>,
    /// The requests of each client (`workload.clients`), by the client's name; absent without clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<BTreeMap<String, ClientSummary>>,
}

/// A policy from outside.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OutsidePolicy {
    /// The spec key of the slot that the policy fills, such as `gc.victim`.
    pub slot: &'static str,
    /// The name of the policy.
    pub name: String,
}

/// Energy so far, in joules: that of the counted operations and transfers, and idle power over the whole time.
pub(crate) fn energy_j<P: Probe>(drive: &Drive<P>) -> f64 {
    let (stats, energy) = (drive.stats(), &drive.spec().energy);
    let [reads, programs, erases, copybacks] =
        [FlashOp::Read, FlashOp::Program, FlashOp::Erase, FlashOp::Copyback]
            .map(|kind| stats.flash_total(kind) as f64);
    let page_bytes = f64::from(drive.geometry().page_bytes());
    // Every try of a read senses the page and transfers it.
    let reads = reads + stats.ecc.retries as f64;
    (reads + copybacks) * energy.read_j
        + (programs + copybacks) * energy.program_j
        + erases * energy.erase_j
        + (reads + programs) * page_bytes * energy.transfer_j_per_byte
        + drive.measured().seconds() * energy.idle_w
}

/// Sums the operations of `kinds` by cause; `flash` has the counts by kind and cause.
fn by_cause(flash: &[[u64; Cause::ALL.len()]; 4], kinds: &[FlashOp]) -> ByCause {
    let count = |cause: Cause| kinds.iter().map(|&kind| flash[kind as usize][cause as usize]).sum::<u64>();
    ByCause(Cause::ALL.map(count))
}

/// `space` of the summary.
fn space<P: Probe>(drive: &Drive<P>) -> SpaceSummary {
    let (spec, needs, bad) = (drive.spec(), &drive.ftl().needs, &drive.geometry().bad);
    let need = |Need { open, free, valid_units, .. }| NeedSummary { open, free, valid_pages: valid_units };
    let names = ["gc", "wear", "mapping", "copyback", "combination", "slc", "flush"];
    let [gc, wear, mapping, copyback, combination, slc, flush] = names.map(|name| need(needs.of(name)));
    let blocks = spec.drive.blocks_per_plane.into();
    SpaceSummary {
        needs: SpaceNeeds {
            open_blocks: needs.open(),
            free_blocks: needs.free(),
            gain_blocks: GAIN_SUPERBLOCKS,
            by: NeedsByMechanism { gc, wear, mapping, copyback, combination, slc, flush },
        },
        spare_share: number(needs.spare_share_mean(blocks, bad)),
        waf_uniform_fifo: needs.waf_uniform_fifo(blocks, bad).map(number),
        // `WAF_REMEDY` is 5.
        op_for_waf_5: op_for_waf(spec, WAF_REMEDY).map(number),
    }
}

/// `capacitor` of the summary.
fn capacitor<P: Probe>(drive: &Drive<P>) -> Option<CapacitorSummary> {
    let [cache_units, budget_units, _] = drive.dirty_units();
    let detections = drive.stats().power.detections;
    let summary =
        drive.capacitor()?.summary(drive.capability_units(), [cache_units, budget_units], detections);
    Some(summary)
}

/// `ecc` of the summary.
fn ecc<P: Probe>(drive: &Drive<P>) -> EccSummary {
    let stats = drive.stats();
    if drive.ecc().has_levels() {
        return stats.ecc.summary(drive.ecc().levels());
    }
    let cost = drive.array().shapes().first().read(0, 1, false);
    let host = stats.flash[FlashOp::Read as usize][Cause::Host as usize];
    let all = stats.flash_total(FlashOp::Read);
    let ecc = stats.ecc.without_levels(all, host, cost.transfer_ns + cost.decode_ns);
    ecc.summary(drive.ecc().levels())
}

/// `refresh` of the summary.
fn refresh<P: Probe>(drive: &Drive<P>) -> Option<RefreshSummary> {
    (drive.spec().refresh.policy != RefreshPolicySpec::None).then(|| {
        drive.stats().refresh.summary(
            drive.refresh_load(),
            drive.overdue_superblocks(),
            drive.error_cache(),
            drive.partial_refresh(),
        )
    })
}

fn outside_policies<P: Probe>(drive: &Drive<P>) -> Option<Vec<OutsidePolicy>> {
    let names = drive.policies().names();
    let policies: Vec<OutsidePolicy> =
        names.map(|(slot, name)| OutsidePolicy { slot, name: name.to_owned() }).collect();
    (!policies.is_empty()).then_some(policies)
}

impl Summary {
    /// The summary of a drive after [`Drive::finish_stats`].
    pub fn of<P: Probe>(drive: &Drive<P>, run: &RunFacts) -> Self {
        let stats = drive.stats();
        let seconds = drive.measured().seconds();
        let of = |op: Op| &stats.host[op as usize];
        let moved_count = of(Op::Read).count + of(Op::Write).count;
        let moved = of(Op::Read).bytes + of(Op::Write).bytes;
        let (host, latency_us) = requests(Op::ALL.map(of));
        let [uncorrectable, worn_out, power_lost] =
            FailReason::ALL.map(|reason| stats.failed[reason as usize]);
        let superblocks = drive.array().good_superblocks();
        let worn = |f: fn(u32, u32) -> u32| superblocks.clone().map(|s| s.pe_cycles).reduce(f).unwrap_or(0);
        let good = f64::from(drive.geometry().good_superblocks());
        let mean = ratio(superblocks.clone().map(|s| f64::from(s.pe_cycles)).sum(), good);
        let most = drive.spec().migration.policy.copybacks_max();
        let geometry = drive.geometry();
        let steady_state = drive.steady_state();
        let share = |busy: Span, of: u32| number(ratio(busy.seconds(), seconds * f64::from(of)));
        let units_of_victims = stats.gc.victims as f64 * f64::from(drive.array().shapes().first().units);
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
            iops: number(ratio(moved_count as f64, seconds)),
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
            cache: stats.cache.summary(drive.spec().cache.size_bytes, drive.cache_units()),
            capacitor: capacitor(drive),
            power: PowerLoss::summary_of_all(stats.power.losses, stats.power.down_ns),
            migration: (most > 0)
                .then(|| stats.migration.summary(most, geometry.superblocks, geometry.units)),
            refresh: refresh(drive),
            bad_blocks: (drive.spec().drive.bad_blocks > 0.0).then(|| BadBlocksSummary {
                flash_blocks: geometry.bad.blocks,
                unused: geometry.bad.unused,
                blocks: geometry.good_superblocks(),
            }),
            units: (drive.array().shapes().first().units_per_program > 1).then(|| stats.units.clone()),
            buffer: (drive.spec().ftl.buffer_bytes > 0).then(|| stats.buffer.clone()),
            reclaim: drive.spec().reclaim.is_on().then(|| stats.reclaim.clone()),
            slc: drive
                .spec()
                .has_slc_mode()
                .then(|| stats.slc.summary(drive.array(), drive.ftl(), drive.spec().drive.endurance)),
            space: space(drive),
            erases: EraseSummary { mean: number(mean), max: worn(u32::max), min: worn(u32::min) },
            gc: GcSummary {
                victims: stats.gc.victims,
                victim_valid_mean: number(ratio(stats.gc.victim_valid_pages as f64, units_of_victims)),
                victim_ms: stats.victims.means(),
            },
            counters: CounterSummary { host: stats.counters.clone(), gc: stats.gc.clone() },
            mapped_pages: drive.ftl().host_units_mapped(),
            blocks_retired: superblocks.clone().filter(|s| s.state == SuperblockState::Retired).count(),
            energy_j: number(energy_j(drive)),
            die_busy_share: share(drive.die_busy_ns(), geometry.dies),
            channel_busy_share: share(drive.channel_busy_ns(), geometry.channels),
            notes: notes(drive, run, steady_state.as_ref()),
            steady_state,
            suspensions: (drive.spec().timing.suspend != SuspendSpec::default())
                .then(|| stats.suspensions.clone()),
            link: drive.link_used().map(|link| {
                let busy_share = |direction: LinkDirection| number(ratio(direction.busy.seconds(), seconds));
                LinkSummary { to_drive: busy_share(link.to_drive), to_host: busy_share(link.to_host) }
            }),
            controller: drive.controller_busy_ns().zip(drive.spec().host.controller).map(|(busy, spec)| {
                let processors = f64::from(spec.commands_at_once);
                ControllerSummary { busy: number(ratio(busy.seconds(), seconds * processors)) }
            }),
            precondition: None,
            verified: None,
            policies: outside_policies(drive),
            warm_up: drive.warmed_up().map(|(requests, duration)| WarmUpSummary {
                requests,
                duration_s: number(duration.seconds()),
            }),
            placement: PlacementSummary::of(drive),
            by_tag: stats.by_tag.map(by_tag),
            clients: drive
                .spec()
                .workload
                .as_ref()
                .and_then(|workload| clients(workload.clients(), &stats, &run.waits, seconds)),
        }
    }
}

/// `summary.json` of a drive after [`Drive::finish_stats`].
pub fn summary<P: Probe>(drive: &Drive<P>, run: &RunFacts) -> Value {
    serde_json::to_value(Summary::of(drive, run)).expect("a summary is serializable")
}
