//! `notes` of the summary: what makes its numbers other than they look, and what never happened though the spec asks for it.
//!
//! A note on a mechanism is a function in `notes.rs` of its room; those on the host's requests, on space and on the run as a
//! whole are here.

use super::RunFacts;
use crate::base::note::Note;
use crate::base::words::{count, duration, number, part, several};
use crate::drive::notes::{
    background, capacitor, copyback, demand_map, power_loss, read_levels, refresh, write_cache,
};
use crate::drive::spec::op_for_waf;
use crate::drive::spec::{
    Arrival, DirtyBudget, Eviction, MapSpec, RberSpec, RefreshPolicySpec, Source, Spec, StartLevel,
};
use crate::drive::{Drive, FailReason};
use crate::ftl::needs::{BlockNeeds, waf_uniform_fifo};
use crate::host::Op;
use crate::probe::Probe;
use crate::sched::{Cause, FlashOp};
use serde_json::Value;

/// Below this share of unmapped page reads there is nothing to say.
const UNMAPPED: f64 = 0.03;
/// More requests than a host has under way: its queues hold 128 or 256.
const WAITING: f64 = 300.0;
/// A drive that amplifies uniform random writes more than that has little spare space.
const WAF_HIGH: f64 = 10.0;
/// Write amplification that a remedy keeps to.
pub(crate) const WAF_REMEDY: f64 = 5.0;

/// The notes on a drive whose statistics are finished, those that matter most first. `steady` is the summary's
/// `steady_state`.
pub(crate) fn notes<P: Probe>(drive: &Drive<P>, run: &RunFacts, steady: &Value) -> Vec<Note> {
    let (spec, stats, now) = (drive.spec(), drive.stats(), drive.now());
    let power = &stats.power;
    let failed = |reason: FailReason| stats.failed[reason as usize];
    let has_written = stats.host[Op::Write as usize].count > 0;
    let charge = drive.capacitor();
    let [cache_pages, budget_pages, _] = drive.cache_pages();
    let pages = [cache_pages, budget_pages];
    let is_measured = cache_pages > 0 && spec.cache.dirty_budget == DirtyBudget::Measured;
    let overdue = drive.overdue_blocks();

    // Those that matter as much stay in this order.
    let mut found = Vec::new();
    let mut add = |note: Option<Note>| found.extend(note);
    add(power_loss::lost_writes(power.losses, charge.map(|capacitor| capacitor.is_worn_out)));
    if run.complete {
        add(power_loss::never_cut(power.losses, &spec.power, stats.requests(), now));
    }
    if let Some(charge) = &charge {
        add(capacitor::worn_out(charge));
        if is_measured {
            add(capacitor::no_budget(charge, drive.capability_pages(), pages));
        }
    }
    let has_lost_power = !power.losses.is_empty();
    add(read_levels::uncorrectable(stats.ecc, failed(FailReason::Uncorrectable), has_lost_power));
    add(worn_out(failed(FailReason::WornOut), spec));
    add(power_loss::outstanding(failed(FailReason::PowerLost)));
    add(unmapped(drive));
    if has_written {
        add(little_spare(spec, &drive.ftl().needs));
    }
    add(background::forced_victims(&spec.gc, stats.gc.victims_forced, stats.gc.victims));
    add(refresh::too_slow(&stats.refresh, drive.refresh_load(), overdue));
    add(backlog(drive));
    if is_measured {
        add(capacitor::never_measured(power.detections, pages, now));
    }
    if drive.ecc().has_levels() {
        let has_errors = spec.reliability.rber != RberSpec::None;
        add(read_levels::first_level(stats.ecc, &read_level_keys(spec), has_errors));
    }
    if let Some(map) = drive.demand_map() {
        add(demand_map::whole_map(map.cache.capacity(), drive.geometry().logical_pages));
    }
    if has_written && stats.gc.victims == 0 {
        add(no_gc(drive, steady));
    }
    let most = spec.migration.copybacks_max();
    add(copyback::no_copybacks(stats.migration, spec.migration.policy, most, stats.gc.victims));
    if spec.refresh.policy != RefreshPolicySpec::None {
        let lived_s = now.seconds() * spec.reliability.clock_scale;
        add(refresh::nothing_due(&stats.refresh, &spec.refresh, overdue, lived_s));
    }
    if let Some(partial) = spec.refresh.policy.partial() {
        add(refresh::nothing_partial(&stats.refresh, partial));
    }
    if has_written {
        let measured = power.detections.iter().map(|found| found.budget).reduce(f64::min);
        add(write_cache::budget_never_bound(&stats.cache, &spec.cache, pages, measured));
    }
    if stats.gc.victims > 0 {
        add(too_short(steady));
    }
    found.sort_by_key(|note: &Note| note.severity);
    found
}

// ------------------------------------------------------------------------------------------------------------- requests

/// So many requests have failed because the drive has worn out.
fn worn_out(requests: u64, spec: &Spec) -> Option<Note> {
    if requests == 0 {
        return None;
    }
    Note::error(
        "worn-out",
        format!(
            "{} failed: the drive has worn out. A block retires at drive.endurance = {} P/E cycles, and a plane had no \
             block left that an erase would have made free again. blocks_retired and the counters of the summary, and \
             avail_spare and percent_used of SMART say how far the drive got. A higher drive.endurance or drive.op, or \
             fewer writes, would let it last.",
            several(requests, "request"),
            count(spec.drive.endurance.into())
        ),
    )
}

fn unmapped<P: Probe>(drive: &Drive<P>) -> Option<Note> {
    let stats = drive.stats();
    let counters = &stats.counters;
    let host = stats.flash[FlashOp::Read as usize][Cause::Host as usize];
    // The host's flash reads include those that complete a partly written page.
    let pages =
        (host + counters.unmapped_reads + counters.buffered_reads).saturating_sub(counters.merge_reads);
    let unmapped = counters.unmapped_reads as f64;
    if pages == 0 || unmapped <= UNMAPPED * pages as f64 {
        return None;
    }
    let remedy = if drive.spec().map_reads {
        ""
    } else {
        " With precondition.map_reads = true what the workload reads is there before it starts."
    };
    Note::warning(
        "unmapped-reads",
        format!(
            "{} of the page reads met pages that hold no data: they are answered without flash, in 0 us, and pull the \
             read latency down.{remedy}",
            part(unmapped, pages as f64)
        ),
    )
}

fn backlog<P: Probe>(drive: &Drive<P>) -> Option<Note> {
    let is_closed = |arrival: &Arrival| matches!(arrival, Arrival::QueueDepth(_));
    if drive.spec().workload.as_ref().is_none_or(|workload| is_closed(&workload.arrival)) {
        return None;
    }
    let stats = drive.stats();
    let [read, write] = [Op::Read, Op::Write].map(|op| &stats.host[op as usize]);
    // Little's law.
    let seconds = (read.sum_ns + write.sum_ns) as f64 * 1e-9;
    let waiting = seconds / drive.now().seconds();
    if waiting.is_nan() || waiting <= WAITING {
        return None;
    }
    Note::warning(
        "backlog",
        format!(
            "The drive did not keep up: {} requests were waiting on average, for {}, so the latencies are those of a \
             queue that no host would let grow. Stretch the arrivals with workload.time_scale, give workload.arrival = \
             {{ queue_depth = 32 }}, or take a faster drive.",
            count(waiting.round() as u64),
            duration(seconds / (read.count + write.count) as f64)
        ),
    )
}

// ----------------------------------------------------------------------------------------------------------- space, keys

fn little_spare(spec: &Spec, needs: &BlockNeeds) -> Option<Note> {
    let spare = needs.spare_share(spec.drive.blocks_per_plane.into());
    let waf = waf_uniform_fifo(spare);
    if waf.is_some_and(|waf| waf <= WAF_HIGH) {
        return None;
    }
    let amplified = waf.map_or("without bound".to_owned(), |waf| format!("{} times", number(waf)));
    let remedy = op_for_waf(spec, WAF_REMEDY)
        .map_or(".".to_owned(), |op| format!("; drive.op = {op} would make that {WAF_REMEDY}."));
    Note::warning(
        "op-tight",
        format!(
            "drive.op = {} leaves an effective over-provisioning of {}, because each plane keeps {} blocks open or free \
             for GC and other mechanisms: uniform random writes would be amplified {amplified}{remedy}",
            spec.drive.op,
            part(spare.max(0.0), 1.0),
            count(needs.open() + needs.free())
        ),
    )
}

/// The keys of a spec that matter only above read level 1.
fn read_level_keys(spec: &Spec) -> Vec<&'static str> {
    let mut keys = vec!["ecc.retry"];
    if spec.ecc.start != StartLevel::First {
        keys.push("ecc.start");
    }
    if let MapSpec::Demand { eviction: Eviction::ReadLevel { .. }, .. } = spec.ftl.map {
        keys.push("the eviction by read level");
    }
    keys
}

// -------------------------------------------------------------------------------------------------- the run and its length

/// How the drive is made to wear in the run.
fn remedy<P: Probe>(drive: &Drive<P>, steady: &Value) -> String {
    if steady["verdict"] != "too short" {
        return format!(
            "data that stays beside what is overwritten (precondition.used, precondition.valid), or a workload that \
             addresses more of the drive; {} became wholly invalid, and needed no GC",
            several(drive.stats().gc.dead_blocks, "block")
        );
    }
    let mut text = match drive.spec().workload.as_ref().map(|workload| &workload.source) {
        Some(Source::Trace(_) | Source::Profile(_)) => {
            "`nandlab spec fit` scales the drive to the workload".to_owned()
        }
        _ => "a smaller drive.blocks_per_plane (`nandlab spec fit` proposes one)".to_owned(),
    };
    if let (Some(requests), Some(repeat)) =
        (steady["requests_needed"].as_u64(), steady["repeat_needed"].as_u64())
    {
        text += &format!(
            "; or about {} requests, for example with workload.repeat = {}, would write the spare space five times",
            count(requests),
            count(repeat)
        );
    }
    text
}

fn no_gc<P: Probe>(drive: &Drive<P>, steady: &Value) -> Option<Note> {
    let geometry = drive.geometry();
    let copies_back = drive.spec().migration.copybacks_max() > 0;
    let written = drive.stats().host[Op::Write as usize].bytes;
    let spare = geometry.raw_bytes() - geometry.logical_bytes();
    background::no_gc(copies_back, written, spare, &remedy(drive, steady))
}

/// For a run in which GC was at work: where it was not that is the greater thing to say.
fn too_short(steady: &Value) -> Option<Note> {
    if steady["verdict"] != "too short" {
        return None;
    }
    let (requests, repeat) = (steady["requests_needed"].as_u64()?, steady["repeat_needed"].as_u64()?);
    Note::info(
        "too-short",
        format!(
            "The run is too short to say whether the drive is in a steady state: {} of the five rounds that it takes. \
             About {} requests would do, for example with workload.repeat = {}.",
            steady["rounds"],
            count(requests),
            count(repeat)
        ),
    )
}
