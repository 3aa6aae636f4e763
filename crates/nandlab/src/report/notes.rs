//! `notes` of the summary: warnings about numbers that mislead, and about settings of the spec that had no effect.
//!
//! A note on a mechanism is a function in `notes.rs` of its room; notes on the host's requests, on space and on the run
//! as a whole are here.

use super::RunFacts;
use crate::base::note::Note;
use crate::base::policy::PolicySlot;
use crate::base::words::{count, duration, number, part, several, size};
use crate::drive::notes::{
    background, capacitor, demand_map, migration, power_loss, read_levels, reclaim, refresh, slc, write_cache,
};
use crate::drive::spec::op_for_waf;
use crate::drive::spec::{
    DirtyBudget, Eviction, MapSpec, RberSpec, RefreshPolicySpec, Source, Spec, StartLevel,
};
use crate::drive::stats::{PlacementStats, SuspendStats};
use crate::drive::{Drive, FailReason};
use crate::ftl::WearLevelling;
use crate::host::{Op, SteadySummary, Verdict};
use crate::probe::Probe;
use crate::sched::{Cause, FlashOp, PlaneReads, SuspendSpec};

/// Share of unmapped reads among all reads for the host above which `unmapped-reads` is noted.
const UNMAPPED_SHARE: f64 = 0.03;
/// Mean number of outstanding requests above which `backlog` is noted. A common host has fewer outstanding requests:
/// its queues have 128 or 256 places.
const BACKLOG_REQUESTS: f64 = 300.0;
/// Write amplification of uniform random writes above which `op-tight` is noted.
const WAF_HIGH: f64 = 10.0;
/// Write amplification of uniform random writes at the `drive.op` that a remedy proposes.
pub(crate) const WAF_REMEDY: f64 = 5.0;

/// The notes on a drive after [`Drive::finish_stats`], by falling severity. `steady` is `steady_state` of the summary.
pub(crate) fn notes<P: Probe>(drive: &Drive<P>, run: &RunFacts, steady: Option<&SteadySummary>) -> Vec<Note> {
    let (spec, stats, now) = (drive.spec(), drive.stats(), drive.now());
    // What has an effect in the warm-up has one on the results.
    let all = drive.all_counted();
    let power = &stats.power;
    let failed = |reason: FailReason| stats.failed[reason as usize];
    let has_written = stats.host[Op::Write as usize].count > 0;
    let charge = drive.capacitor();
    let [cache_units, budget_units, _] = drive.dirty_units();
    let units = [cache_units, budget_units];
    let is_measured = cache_units > 0 && spec.cache.dirty_budget == DirtyBudget::Measured;
    let overdue = drive.overdue_superblocks();

    // Notes of equal severity stay in this order: the sort below is stable.
    let mut found = run.notes.clone();
    let mut add = |note: Option<Note>| found.extend(note);
    let has_buffer = spec.ftl.buffer_bytes > 0 && drive.cache_units()[0] == 0;
    add(power_loss::lost_writes(power.losses, charge.map(|capacitor| capacitor.is_worn_out), has_buffer));
    if run.complete {
        add(power_loss::never_cut(drive.all_losses(), &spec.power, drive.requests_ended(), now));
    }
    add(power_loss::not_cut_in_recovery(drive.all_losses(), &spec.power));
    if let Some(charge) = &charge {
        add(capacitor::worn_out(charge));
        if has_buffer {
            add(capacitor::small_for_buffer(charge, drive.capability_units(), units));
        } else if is_measured {
            add(capacitor::no_budget(charge, drive.capability_units(), units));
        }
    }
    let has_lost_power = !power.losses.is_empty();
    let uncorrectable = failed(FailReason::Uncorrectable);
    add(read_levels::uncorrectable(&stats.ecc, &spec.ecc, uncorrectable, has_lost_power));
    add(worn_out(failed(FailReason::WornOut), spec));
    add(power_loss::outstanding(failed(FailReason::PowerLost)));
    add(wrapped(run, drive.geometry().logical_bytes()));
    add(unmapped(drive));
    add(large_op(spec.drive.op));
    if has_written {
        add(little_spare(drive));
    }
    let victim = drive.policy_name(PolicySlot::Victim);
    add(background::forced_victims(victim, stats.gc.victims_forced, stats.gc.victims));
    add(refresh::too_slow(&stats.refresh, drive.refresh_load(), overdue));
    add(backlog(drive));
    if is_measured {
        add(capacitor::never_measured(drive.all_detections(), units, now));
    }
    if drive.ecc().has_levels() {
        let has_errors = spec.reliability.rber != RberSpec::None;
        add(read_levels::first_level(&all.ecc, &read_level_keys(spec), has_errors));
        // Of a linked unit and of a read-retry table that wraps around the number of tries does not tell the start.
        // A policy from outside may choose level 1.
        if !drive.ecc().wraps_around()
            && !drive.ecc().starts_from_outside()
            && spec.refresh.policy.partial().is_none()
        {
            add(read_levels::always_from_first(&all.ecc, drive.ecc().levels(), start_name(&spec.ecc.start)));
        }
    }
    add(read_levels::no_decoder_wait(&all.ecc, spec.ecc.decoders));
    if let Some(map) = drive.demand_map() {
        let (capacity, logical_units) = (map.cache.capacity(), drive.geometry().logical_units);
        add(demand_map::whole_map(capacity, logical_units));
        add(demand_map::no_eviction(all.map.evictions, [map.cache.len(), capacity, logical_units]));
        if let MapSpec::Demand { eviction: Eviction::ReadLevel { fixed }, .. } = spec.ftl.map
            && all.map.evictions > 0
            && drive.policies().name(PolicySlot::MapEviction).is_none()
        {
            add(demand_map::all_fixed(fixed, capacity));
        }
    }
    if has_written && all.gc.victims == 0 {
        let has_copied = all.migration.copybacks() > 0 || all.slc.blocks > 0;
        let copies_back = spec.migration.policy.copybacks_max() > 0 && !has_copied;
        add(no_gc(drive, steady, copies_back, run.complete));
    }
    add(background::same_as_greedy(victim, all.gc.victims, drive.ftl().picks.are_as_greedy));
    let levels_wear = spec.ftl.wear_levelling == WearLevelling::Static;
    let by_gap = levels_wear && drive.policies().name(PolicySlot::Wear).is_none();
    if by_gap && !drive.has_operations_for(Cause::Wear) {
        add(background::no_wear_levelling(spec.ftl.wear_gap));
    }
    add(no_suspension(spec.timing.suspend, &all.suspensions));
    if spec.timing.multi_plane && !drive.has_used_several_planes() {
        let geometry = drive.geometry();
        add(no_multi_plane(geometry.planes_per_lane, geometry.planes_per_die()));
    }
    // With multi-plane operations it also makes a difference that reads are not joined.
    let reads_apart = spec.timing.plane_reads != PlaneReads::Together && !spec.timing.multi_plane;
    if reads_apart && !drive.have_planes_read_independently() {
        add(no_independent_reads());
    }
    let most = spec.migration.policy.copybacks_max();
    let policy = drive.policy_name(PolicySlot::Migration);
    add(migration::no_copybacks(&all.migration, policy, most, all.gc.victims + all.slc.blocks));
    if spec.refresh.policy != RefreshPolicySpec::None {
        let lived_s = now.seconds() * spec.reliability.clock_scale;
        add(refresh::nothing_due(&all.refresh, &spec.refresh, overdue, lived_s));
    }
    if let Some(partial) = spec.refresh.policy.partial() {
        add(refresh::nothing_partial(&all.refresh, partial));
    }
    if spec.refresh.policy.in_place().is_some() {
        add(refresh::nothing_in_place(&all.refresh));
    }
    if let Some(ec_cache) = spec.refresh.policy.ec_cache() {
        add(refresh::no_lower_level(&all.refresh, ec_cache.hot_reads));
    }
    add(reclaim::nothing_reclaimed(&all.reclaim, &spec.reclaim));
    add(drive.stats().placement.as_ref().and_then(one_placement));
    add(slc::nothing_cached(&all.slc, &spec.slc));
    add(slc::nothing_folded(&all.slc, &spec.slc));
    add(slc::nothing_filled(&spec.slc, drive.slc_filled()));
    if has_written {
        let measured = drive.all_detections().iter().map(|found| found.budget).reduce(f64::min);
        let sync = drive.policy_name(PolicySlot::Sync);
        add(write_cache::budget_never_bound(&all.cache, (&spec.cache, sync), units, measured));
        add(write_cache::never_synced(&all.cache, (&spec.cache, sync), units, measured));
    }
    add(write_cache::never_hit(&all.cache));
    if has_buffer && all.counters.host_pages_written == 0 {
        add(nothing_to_buffer());
    }
    if stats.gc.victims > 0 {
        add(too_short(steady, run.complete));
    }
    found.sort_by_key(|note: &Note| note.severity);
    found
}

// -------------------------------------------------------------------------------------------------------------
// requests

/// Notes that `requests` requests have failed because a lane is worn out.
fn worn_out(requests: u64, spec: &Spec) -> Option<Note> {
    if requests == 0 {
        return None;
    }
    Note::error(
        "worn-out",
        format!(
            "{} failed: the drive has worn out. A block retires at drive.endurance = {} P/E cycles, and a plane had no \
             block left that GC could have erased to gain space. See blocks_retired in the summary, and avail_spare and \
             percent_used in the SMART log. Remedy: a higher drive.endurance or drive.op, or fewer writes.",
            several(requests, "request"),
            count(spec.drive.endurance.into())
        ),
    )
}

/// Requests end beyond the logical capacity, and were wrapped (`workload.beyond = "wrap"`).
fn wrapped(run: &RunFacts, logical_bytes: u64) -> Option<Note> {
    if run.wrapped == 0 {
        return None;
    }
    Note::warning(
        "wrapped",
        format!(
            "{} of {} ({}) end beyond the logical capacity of {} and were wrapped: their addresses were taken modulo the \
             capacity, so data that the workload keeps apart shares addresses. Remedy: a drive that has all addresses of \
             the workload; drive.capacity sets its size, and `nandlab spec fit` proposes one.",
            count(run.wrapped),
            several(run.fetched, "request"),
            part(run.wrapped as f64, run.fetched as f64),
            size(logical_bytes)
        ),
    )
}

fn unmapped<P: Probe>(drive: &Drive<P>) -> Option<Note> {
    let stats = drive.stats();
    let counters = &stats.counters;
    let host = stats.flash[FlashOp::Read as usize][Cause::Host as usize];
    // The flash reads with the cause `host` include those of read-modify-writes (`merge_reads`), which serve host
    // writes.
    let reads =
        (host + counters.unmapped_reads + counters.buffered_reads).saturating_sub(counters.merge_reads);
    let unmapped = counters.unmapped_reads as f64;
    if reads == 0 || unmapped <= UNMAPPED_SHARE * reads as f64 {
        return None;
    }
    let remedy = if drive.spec().map_reads {
        ""
    } else {
        " Remedy: precondition.map_reads = true maps the pages that the workload reads before the workload begins."
    };
    Note::warning(
        "unmapped-reads",
        format!(
            "{} of the page reads were of unmapped pages: the drive answers them in 0 µs without reading flash, which \
             lowers the read latency.{remedy}",
            part(unmapped, reads as f64)
        ),
    )
}

fn backlog<P: Probe>(drive: &Drive<P>) -> Option<Note> {
    let workload = drive.spec().workload.as_ref().filter(|workload| !workload.is_closed())?;
    let stats = drive.stats();
    let [read, write] = [Op::Read, Op::Write].map(|op| &stats.host[op as usize]);
    // Little's law: mean number of outstanding requests = sum of latencies / length of the run.
    let seconds = (read.sum_ns + write.sum_ns) as f64 * 1e-9;
    let outstanding = seconds / drive.measured().seconds();
    if outstanding.is_nan() || outstanding <= BACKLOG_REQUESTS {
        return None;
    }
    let requests = count(outstanding.round() as u64);
    let latency = duration(seconds / (read.count + write.count) as f64);
    let text = if workload.clients().is_empty() {
        format!(
            "The drive did not keep up with the arrivals: {requests} requests were outstanding on average, with a mean latency of \
             {latency}. A host limits its queue, so these latencies would not occur in practice. Remedy: stretch the arrivals with \
             workload.time_scale, set workload.arrival = {{ queue_depth = 32 }}, or take a faster drive."
        )
    } else {
        format!(
            "The drive did not keep up with the arrivals of the clients: {requests} requests were due and not completed on \
             average, with a mean latency of {latency}, which grows with the length of the run. Remedy: give the clients \
             (workload.clients) a lower iops or arrival = {{ queue_depth = 32 }}, or take a faster drive."
        )
    };
    Note::warning("backlog", text)
}

// -------------------------------------------------------------------------------------------------------------
// space, keys

fn little_spare<P: Probe>(drive: &Drive<P>) -> Option<Note> {
    let (spec, needs, bad) = (drive.spec(), &drive.ftl().needs, &drive.geometry().bad);
    let blocks = spec.drive.blocks_per_plane.into();
    let spare = needs.spare_share_mean(blocks, bad);
    let waf = needs.waf_uniform_fifo(blocks, bad);
    if waf.is_some_and(|waf| waf <= WAF_HIGH) {
        return None;
    }
    let amplified = waf.map_or("without bound".to_owned(), |waf| format!("{} times", number(waf)));
    let remedy = op_for_waf(spec, WAF_REMEDY).map_or(".".to_owned(), |op| {
        format!(". Remedy: drive.op = {op}, for an amplification of {WAF_REMEDY}.")
    });
    Note::warning(
        "op-tight",
        format!(
            "drive.op = {} leaves an effective over-provisioning of {}, because {}each plane keeps {} blocks open or free \
             for GC and other mechanisms. Uniform random writes would be amplified {amplified}{remedy}",
            spec.drive.op,
            part(spare.max(0.0), 1.0),
            if spec.drive.bad_blocks > 0.0 { "blocks are bad (drive.bad_blocks) and " } else { "" },
            count(needs.open() + needs.free())
        ),
    )
}

/// The name of a start policy (`ecc.start`).
fn start_name(start: &StartLevel) -> &'static str {
    match start {
        StartLevel::First => "first",
        StartLevel::Ideal => "ideal",
        StartLevel::LastLevel => "last-level",
        StartLevel::SuperblockLevel => "block-level",
        StartLevel::LastGood => "last-good",
        StartLevel::DriveLevel => "drive-level",
        StartLevel::Table(_) => "table",
        StartLevel::Outside => "a policy from outside",
    }
}

/// The keys of the spec that have no effect while every read decodes at read level 1.
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

// -------------------------------------------------------------------------------------------------------------
// length of the run

/// The remedy of `no-gc`: a change after which the workload needs GC.
fn no_gc_remedy<P: Probe>(drive: &Drive<P>, steady: Option<&SteadySummary>, is_complete: bool) -> String {
    if steady.is_none_or(|steady| steady.verdict != Verdict::TooShort) {
        return format!(
            "data that stays valid beside the data that the workload overwrites (precondition.used, precondition.valid), \
             or a workload that addresses more of the drive; {} became wholly invalid, which needs an erase but no GC",
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
        steady.map_or((None, None), |steady| (steady.requests_needed, steady.repeat_needed))
    {
        let by = match is_complete {
            true => format!(", for example with workload.repeat = {},", count(repeat)),
            false => " (the run was stopped before its end),".to_owned(),
        };
        text +=
            &format!("; or about {} requests{by} which write the spare space five times", count(requests));
    }
    text
}

fn no_gc<P: Probe>(
    drive: &Drive<P>,
    steady: Option<&SteadySummary>,
    copies_back: bool,
    is_complete: bool,
) -> Option<Note> {
    let geometry = drive.geometry();
    let written = drive.stats().host[Op::Write as usize].bytes;
    let spare = u64::from(geometry.good_units()) * u64::from(geometry.unit_bytes) - geometry.logical_bytes();
    background::no_gc(
        copies_back,
        drive.stats().slc.blocks > 0,
        written,
        spare,
        &no_gc_remedy(drive, steady, is_complete),
    )
}

/// Notes that all writes had the same placement, although the drive has several.
fn one_placement(stats: &PlacementStats) -> Option<Note> {
    let written = stats.by_place.iter().filter(|place| place.host_units > 0).count();
    let text = "All data was written with one placement identifier, so placement.handles and placement.groups kept none \
                apart. Remedy: the placement of a client (workload.clients), a column of the trace, or placement.ranges.";
    if stats.by_place.len() == 1 || written != 1 {
        return None;
    }
    Note::info("one-placement", text.to_owned())
}

/// Notes that `timing.suspend` has suspended no program, or no erase, although it sets the times of these suspensions.
fn no_suspension(suspend: SuspendSpec, stats: &SuspendStats) -> Option<Note> {
    let kinds = [
        ("program", suspend.program.is_some(), stats.programs),
        ("erase", suspend.erase.is_some(), stats.erases),
    ];
    let never: Vec<&str> =
        kinds.iter().filter(|(_, is_set, count)| *is_set && *count == 0).map(|(kind, ..)| *kind).collect();
    let (what, key) = match never[..] {
        [] => return None,
        [_, _] => ("operation", "timing.suspend".to_owned()),
        [kind, ..] => (kind, format!("timing.suspend.{kind}")),
    };
    Note::info(
        "no-suspension",
        format!(
            "No {what} was suspended, so {key} had no effect: no host read came to a die that could suspend its {}. A \
             load that mixes reads and writes has such reads; a long min_progress leaves no time for a suspension.",
            never.join(" or ")
        ),
    )
}

/// `timing.multi_plane` is on, and no two operations on planes of a die were executed as one.
fn no_multi_plane(planes_per_lane: u32, planes_per_die: u32) -> Option<Note> {
    // With superblocks of several planes an erase or a one-shot program is on all of these planes by itself.
    if planes_per_lane > 1 {
        return None;
    }
    Note::info(
        "no-multi-plane",
        if planes_per_die == 1 {
            "timing.multi_plane had no effect: a die has one plane (drive.planes_per_die = 1).".to_owned()
        } else {
            "No operation was on several planes of a die, so timing.multi_plane had no effect: no two operations of the \
             same kind and page number waited for two planes of a die at a time. Raise the load \
             (workload.arrival), or set ftl.allocation so that consecutive pages go to the planes of a die, or \
             ftl.superblock = \"die\"."
                .to_owned()
        },
    )
}

/// Planes read independently (`timing.plane_reads`), and no plane read while another one of its die did.
fn no_independent_reads() -> Option<Note> {
    Note::info(
        "no-independent-reads",
        "No two planes of a die read at the same time, so timing.plane_reads and timing.read_hold had no effect. Raise \
         the load (workload.arrival), or the share of reads."
            .to_owned(),
    )
}

/// The drive has a write buffer (`ftl.buffer`), and the host has written nothing.
fn nothing_to_buffer() -> Option<Note> {
    Note::info(
        "nothing-buffered",
        "The host wrote nothing, so ftl.buffer had no effect. A lower workload.synthetic.read_fraction adds writes."
            .to_owned(),
    )
}

/// Notes that the run is too short for a verdict. Only for a run with GC: without GC the note `no-gc` is more
/// important.
fn too_short(steady: Option<&SteadySummary>, is_complete: bool) -> Option<Note> {
    let steady = steady.filter(|steady| steady.verdict == Verdict::TooShort)?;
    let (requests, repeat) = (steady.requests_needed?, steady.repeat_needed?);
    let remedy = match is_complete {
        true => format!(", for example with workload.repeat = {}", count(repeat)),
        false => "; the run was stopped before its end".to_owned(),
    };
    Note::info(
        "too-short",
        format!(
            "The run is too short to say whether the drive is in a steady state: it has {} of the five rounds that the \
             test needs. About {} requests would do{remedy}.",
            steady.rounds,
            count(requests)
        ),
    )
}

/// Over-provisioning is a share: a value of one or more may be meant as per cent.
fn large_op(op: f64) -> Option<Note> {
    (op >= 1.0).then_some(())?;
    Note::info(
        "op-large",
        format!(
            "drive.op = {op} makes the spare space {op} times as large as the logical capacity. If {op} per cent are meant: \
             drive.op = {}.",
            op / 100.0
        ),
    )
}
