//! `summary.json`.

use super::notes::{WAF_REMEDY, notes};
use crate::base::counters::Section;
use crate::base::note::Note;
use crate::base::numbers::{number, ratio};
use crate::drive::spec::op_for_waf;
use crate::drive::spec::{RefreshPolicySpec, Spec};
use crate::drive::stats::{EccStats, PowerLoss};
use crate::drive::{Drive, FailReason, LinkDirection};
use crate::flash::BlockState;
use crate::ftl::needs::{BlockNeeds, GAIN_BLOCKS, waf_uniform_fifo};
use crate::host::Op;
use crate::probe::Probe;
use crate::sched::{Cause, FlashOp};
use serde_json::{Map, Value, json};

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

/// Operations of these kinds, by cause; `flash` has them by kind and cause.
fn by_cause(flash: &[[u64; Cause::ALL.len()]; 4], kinds: &[FlashOp]) -> Value {
    let count = |cause: Cause| kinds.iter().map(|&kind| flash[kind as usize][cause as usize]).sum::<u64>();
    Value::Object(Cause::ALL.into_iter().map(|c| (c.name().to_owned(), json!(count(c)))).collect())
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

/// `space` of the summary: what the mechanisms need of every plane, and what over-provisioning they leave.
fn space(spec: &Spec, needs: &BlockNeeds) -> Value {
    let by: Map<String, Value> = BlockNeeds::NAMES
        .into_iter()
        .zip(needs.all())
        .map(|(name, need)| {
            let need = json!({ "open": need.open, "free": need.free, "valid_pages": need.valid_pages });
            (name.to_owned(), need)
        })
        .collect();
    let spare_share = needs.spare_share(spec.drive.blocks_per_plane.into());
    json!({
        "needs": {
            "open_blocks": needs.open(),
            "free_blocks": needs.free(),
            "gain_blocks": GAIN_BLOCKS,
            "by": by,
        },
        "spare_share": number(spare_share),
        "waf_uniform_fifo": waf_uniform_fifo(spare_share).map(number),
        "op_for_waf_5": op_for_waf(spec, WAF_REMEDY).map(number),
    })
}

/// `capacitor` of the summary; null without one.
fn capacitor<P: Probe>(drive: &Drive<P>) -> Value {
    let Some(capacitor) = drive.capacitor() else { return Value::Null };
    let [cache_pages, budget_pages, _] = drive.cache_pages();
    let stats = drive.stats();
    capacitor.json(drive.capability_pages(), [cache_pages, budget_pages], stats.power.detections)
}

/// `summary.json` of a drive whose statistics are finished.
///
/// `requests` are all that have ended, whether done or failed. `host`, `latency_us`, `iops` and `mb_per_s` count those that
/// the drive has done. Down time is part of `duration_s`. `link`, the share of that time in which data has crossed in each
/// direction, is there with a link only.
pub fn summary<P: Probe>(drive: &Drive<P>, run: &RunFacts) -> Value {
    let stats = drive.stats();
    let seconds = drive.now().seconds();
    let mut all = stats.host[Op::Read as usize].clone();
    all.merge(&stats.host[Op::Write as usize]);
    let moved = stats.host[Op::Read as usize].bytes + stats.host[Op::Write as usize].bytes;
    let host: Map<String, Value> = Op::ALL
        .into_iter()
        .map(|op| {
            let h = &stats.host[op as usize];
            (op.name().to_owned(), json!({ "count": h.count, "bytes": h.bytes }))
        })
        .collect();
    let blocks = &drive.array().blocks;
    let worn = |f: fn(u32, u32) -> u32| blocks.iter().map(|b| b.pe_cycles).reduce(f).unwrap_or(0);
    let mean = ratio(blocks.iter().map(|b| f64::from(b.pe_cycles)).sum(), blocks.len() as f64);
    let mut counters = Section::of(&stats.counters);
    counters.put_all(stats.gc);
    let ecc = if drive.ecc().has_levels() {
        stats.ecc.json(drive.ecc().levels())
    } else {
        let cost = drive.device().timing().read(1, false);
        let host = stats.flash[FlashOp::Read as usize][Cause::Host as usize];
        let read_ns = cost.sense_ns + cost.transfer_ns + cost.decode_ns;
        EccStats::without_levels(stats.flash_total(FlashOp::Read), host, read_ns).json(drive.ecc().levels())
    };
    let most = drive.spec().migration.copybacks_max();
    let (blocks_in_all, pages) = (drive.geometry().blocks, drive.geometry().pages);
    let migration = if most == 0 { Value::Null } else { stats.migration.json(most, blocks_in_all, pages) };
    let steady = drive.steady_state();
    let notes = notes(drive, run, &steady).iter().map(Note::json).collect::<Value>();
    let victim_pages = stats.gc.victims as f64 * f64::from(drive.geometry().pages_per_block);
    let mut summary = json!({
        "nandlab": env!("CARGO_PKG_VERSION"),
        "spec_hash": run.spec_hash,
        "complete": run.complete,
        "requests": stats.requests(),
        "requests_unfinished": drive.outstanding(),
        "requests_failed": FailReason::ALL
            .into_iter()
            .map(|reason| (reason.name().to_owned(), json!(stats.failed[reason as usize])))
            .collect::<Map<_, _>>(),
        "requests_wrapped": run.wrapped,
        "records_skipped": run.skipped,
        "duration_s": number(seconds),
        "host": host,
        "latency_us": {
            "read": stats.host[Op::Read as usize].json(),
            "write": stats.host[Op::Write as usize].json(),
            "trim": stats.host[Op::Trim as usize].json(),
            "flush": stats.host[Op::Flush as usize].json(),
            "all": all.json(),
        },
        "iops": number(ratio(all.count as f64, seconds)),
        "mb_per_s": number(ratio(moved as f64 * 1e-6, seconds)),
        "waf": stats.waf().map(number),
        "waf_pages": stats.waf_pages().map(number),
        "flash": {
            "read": by_cause(&stats.flash, &[FlashOp::Read, FlashOp::Copyback]),
            "program": by_cause(&stats.flash, &[FlashOp::Program, FlashOp::Copyback]),
            "erase": by_cause(&stats.flash, &[FlashOp::Erase]),
            "copyback": by_cause(&stats.flash, &[FlashOp::Copyback]),
        },
        "ecc": ecc,
        "map": drive.demand_map().map(|map| stats.map.json(map.cache.capacity(), map.cache.len())),
        "cache": stats.cache.json(drive.spec().cache.size_bytes, drive.cache_pages()),
        "capacitor": capacitor(drive),
        "power": PowerLoss::json_of_all(stats.power.losses, stats.power.down_ns),
        "migration": migration,
        "refresh": match drive.spec().refresh.policy {
            RefreshPolicySpec::None => Value::Null,
            _ => stats.refresh.json(
                drive.refresh_load(),
                drive.overdue_blocks(),
                drive.error_cache(),
                drive.partial_refresh(),
            ),
        },
        "space": space(drive.spec(), &drive.ftl().needs),
        "erases": { "mean": number(mean), "max": worn(u32::max), "min": worn(u32::min) },
        "gc": {
            "victims": stats.gc.victims,
            "victim_valid_mean": number(ratio(stats.gc.victim_valid_pages as f64, victim_pages)),
        },
        "counters": Value::from(counters),
        "mapped_pages": drive.ftl().host_pages_mapped(),
        "blocks_retired": blocks.iter().filter(|b| b.state == BlockState::Retired).count(),
        "energy_j": number(energy_j(drive)),
        "steady_state": steady,
        "notes": notes,
    });
    if let Some(link) = drive.link() {
        let busy_share = |direction: LinkDirection| number(ratio(direction.busy.seconds(), seconds));
        summary["link"] =
            json!({ "to_drive": busy_share(link.to_drive), "to_host": busy_share(link.to_host) });
    }
    summary
}
