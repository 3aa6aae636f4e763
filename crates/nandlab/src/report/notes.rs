//! `notes` of the summary: what makes its numbers other than they look, and what never happened though the spec asks for it.

use super::RunFacts;
use crate::base::note::{Note, Severity};
use crate::base::words::{count, duration, joules, number, part, several, size};
use crate::drive::{Drive, FailReason};
use crate::ftl::needs::{op_for_waf, waf_uniform_fifo};
use crate::host::Op;
use crate::probe::Probe;
use crate::sched::{Cause, Kind};
use crate::spec::{
    Arrival, DirtyBudget, Eviction, MapSpec, RberSpec, RefreshPolicySpec, Source, Spec, StartLevel,
};
use crate::stats::Stats;
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
    let notes = Notes { drive, spec: drive.spec(), stats: drive.stats(), run, steady };
    let found = [
        notes.lost_writes(),
        notes.never_cut(),
        notes.capacitor_worn_out(),
        notes.no_budget(),
        notes.uncorrectable(),
        notes.worn_out(),
        notes.outstanding(),
        notes.unmapped(),
        notes.little_spare(),
        notes.forced_victims(),
        notes.late_refresh(),
        notes.backlog(),
        notes.never_measured(),
        notes.first_level(),
        notes.whole_map(),
        notes.no_gc(),
        notes.no_copybacks(),
        notes.nothing_due(),
        notes.nothing_partial(),
        notes.budget_never_bound(),
        notes.too_short(),
    ];
    let mut found: Vec<Note> = found.into_iter().flatten().collect();
    found.sort_by_key(|note| note.severity);
    found
}

/// What the notes are made of.
struct Notes<'a, P: Probe> {
    drive: &'a Drive<P>,
    spec: &'a Spec,
    stats: Stats<'a>,
    run: &'a RunFacts,
    steady: &'a Value,
}

fn error(code: &'static str, text: String) -> Option<Note> {
    Some(Note { severity: Severity::Error, code, text })
}

fn warning(code: &'static str, text: String) -> Option<Note> {
    Some(Note { severity: Severity::Warning, code, text })
}

fn info(code: &'static str, text: String) -> Option<Note> {
    Some(Note { severity: Severity::Info, code, text })
}

/// `a`, `a and b`, `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

impl<P: Probe> Notes<'_, P> {
    fn failed(&self, reason: FailReason) -> u64 {
        self.stats.failed[reason as usize]
    }

    fn writes(&self) -> u64 {
        self.stats.host[Op::Write as usize].count
    }

    // ---------------------------------------------------------------------------------------------------- data, requests

    fn lost_writes(&self) -> Option<Note> {
        let losses = &self.stats.power.losses;
        let cached: u64 = losses.iter().map(|loss| loss.lost.len() as u64).sum();
        let with_wordline: u64 = losses.iter().map(|loss| loss.lost_with_wordline.len() as u64).sum();
        if cached + with_wordline == 0 {
            return None;
        }
        let mut places = Vec::new();
        if cached > 0 {
            places.push(format!("{} in the write cache alone", count(cached)));
        }
        if with_wordline > 0 {
            places.push(format!("{} in flash, on the wordline of a torn program", count(with_wordline)));
        }
        let [energy_j, spent_j] = [
            losses.iter().map(|loss| loss.energy_j).sum::<f64>(),
            losses.iter().map(|loss| loss.spent_j).sum::<f64>(),
        ];
        let flushed = losses.iter().map(|loss| u64::from(loss.flushed_pages)).sum();
        let reason = match self.drive.capacitor() {
            None => "The drive has no capacitor: set capacitor.capacitance.".to_owned(),
            Some(capacitor) if capacitor.is_worn_out => {
                "The capacitor has lost more than 30 %: set cache.dirty_budget = \"measured\", or renew it."
                    .to_owned()
            }
            Some(_) if spent_j < 0.5 * energy_j => "There was energy left.".to_owned(),
            Some(_) => format!(
                "The capacitor held {}, and {} went into {} pages: raise capacitor.capacitance or capacitor.margin, or \
                 lower cache.dirty_budget.",
                joules(energy_j),
                joules(spent_j),
                count(flushed)
            ),
        };
        error(
            "data-lost",
            format!(
                "Power loss took {} ({}); power.json names them. {reason}",
                several(cached + with_wordline, "acknowledged write"),
                places.join(", ")
            ),
        )
    }

    fn uncorrectable(&self) -> Option<Note> {
        let (lost, requests) = (self.stats.ecc.uncorrectable, self.failed(FailReason::Uncorrectable));
        if lost == 0 && requests == 0 {
            return None;
        }
        let mut text = String::new();
        if requests > 0 {
            let power = if self.stats.power.losses.is_empty() { "" } else { ", or power loss took it" };
            text =
                format!("{} failed: no read level decodes their data{power}. ", several(requests, "request"));
        }
        if lost > 0 {
            text += &format!(
                "{} of the page reads ({}) were decoded by no read level: the data is too old for the drive's wear. Lower \
                 reliability.pe_cycles, reliability.retention or reliability.clock_scale, or set ecc.levels with a higher \
                 last rber_max; `nandlab reliability` shows which level decodes what.",
                part(lost as f64, self.stats.ecc.reads() as f64),
                count(lost)
            );
        }
        error("uncorrectable", text.trim_end().to_owned())
    }

    fn worn_out(&self) -> Option<Note> {
        let requests = self.failed(FailReason::WornOut);
        if requests == 0 {
            return None;
        }
        error(
            "worn-out",
            format!(
                "{} failed: the drive has worn out. A block retires at drive.endurance = {} P/E cycles, and a plane had no \
                 block left that an erase would have made free again. blocks_retired and the counters of the summary, and \
                 avail_spare and percent_used of SMART say how far the drive got. A higher drive.endurance or drive.op, or \
                 fewer writes, would let it last.",
                several(requests, "request"),
                count(self.spec.drive.endurance.into())
            ),
        )
    }

    fn outstanding(&self) -> Option<Note> {
        let requests = self.failed(FailReason::PowerLost);
        if requests == 0 {
            return None;
        }
        let were = if requests == 1 { "was" } else { "were" };
        info(
            "outstanding-at-power-loss",
            format!("{} {were} outstanding when power failed.", several(requests, "request")),
        )
    }

    // ------------------------------------------------------------------------------------------------ numbers that mislead

    fn unmapped(&self) -> Option<Note> {
        let counters = &self.stats.counters;
        let host = self.stats.flash[Kind::Read as usize][Cause::Host as usize];
        // The host's flash reads include those that complete a partly written page.
        let pages =
            (host + counters.unmapped_reads + counters.buffered_reads).saturating_sub(counters.merge_reads);
        let unmapped = counters.unmapped_reads as f64;
        if pages == 0 || unmapped <= UNMAPPED * pages as f64 {
            return None;
        }
        let remedy = if self.spec.map_reads {
            ""
        } else {
            " With precondition.map_reads = true what the workload reads is there before it starts."
        };
        warning(
            "unmapped-reads",
            format!(
                "{} of the page reads met pages that hold no data: they are answered without flash, in 0 us, and pull the \
                 read latency down.{remedy}",
                part(unmapped, pages as f64)
            ),
        )
    }

    fn backlog(&self) -> Option<Note> {
        let is_closed = |arrival: &Arrival| matches!(arrival, Arrival::QueueDepth(_));
        if self.spec.workload.as_ref().is_none_or(|workload| is_closed(&workload.arrival)) {
            return None;
        }
        let [read, write] = [Op::Read, Op::Write].map(|op| &self.stats.host[op as usize]);
        // Little's law.
        let seconds = (read.sum_ns + write.sum_ns) as f64 * 1e-9;
        let waiting = seconds / self.drive.now().seconds();
        if waiting.is_nan() || waiting <= WAITING {
            return None;
        }
        warning(
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

    fn little_spare(&self) -> Option<Note> {
        let needs = &self.drive.ftl().needs;
        let spare = needs.spare_share(self.spec.drive.blocks_per_plane.into());
        let waf = waf_uniform_fifo(spare);
        if self.writes() == 0 || waf.is_some_and(|waf| waf <= WAF_HIGH) {
            return None;
        }
        let amplified = waf.map_or("without bound".to_owned(), |waf| format!("{} times", number(waf)));
        let remedy = op_for_waf(self.spec, WAF_REMEDY)
            .map_or(".".to_owned(), |op| format!("; drive.op = {op} would make that {WAF_REMEDY}."));
        warning(
            "op-tight",
            format!(
                "drive.op = {} leaves an effective over-provisioning of {}, because each plane keeps {} blocks open or free \
                 for GC and other mechanisms: uniform random writes would be amplified {amplified}{remedy}",
                self.spec.drive.op,
                part(spare.max(0.0), 1.0),
                count(needs.open() + needs.free())
            ),
        )
    }

    fn forced_victims(&self) -> Option<Note> {
        let counters = &self.stats.counters;
        // To greedy they are the victims that it would have named.
        if counters.gc_victims_forced == 0 || self.spec.gc.victim.name == "greedy" {
            return None;
        }
        warning(
            "forced-victims",
            format!(
                "GC took the block with the fewest valid pages in {} of {} victims, whatever gc.victim says, because a plane \
                 was down to the blocks it must keep: the policy's own victims gained too little. A higher drive.op or \
                 gc.foreground_free leaves the choice to the policy.",
                count(counters.gc_victims_forced),
                count(counters.gc_victims)
            ),
        )
    }

    fn late_refresh(&self) -> Option<Note> {
        let load = self.drive.refresh_load().filter(|&load| load > 1.0)?;
        let (late, overdue) = (self.stats.refresh.late_blocks, u64::from(self.drive.overdue_blocks()));
        if late + overdue == 0 {
            return None;
        }
        let times = if load < 100.0 { format!("{load:.1}") } else { count(load as u64) };
        warning(
            "refresh-too-slow",
            format!(
                "Refresh cannot keep up: {times} x. Blocks come due that many times faster than the drive refreshes them; {} \
                 were refreshed after their grace, and {} are overdue at the end. Lower reliability.clock_scale, or lengthen \
                 refresh.interval.",
                count(late),
                count(overdue)
            ),
        )
    }

    // --------------------------------------------------------------------------------------------------------- capacitor

    fn never_cut(&self) -> Option<Note> {
        let power = &self.spec.power;
        if !self.stats.power.losses.is_empty() || !self.run.complete {
            return None;
        }
        let when = match (power.cut_after_requests, power.cut_at_ns) {
            (0, None) => return None,
            (0, Some(at)) => format!("power.cut_at = {}", duration(at.seconds())),
            (requests, _) => format!("power.cut_after_requests = {}", count(requests)),
        };
        warning(
            "never-cut",
            format!(
                "Power never failed: the run was over before {when}, after {} and {}.",
                several(self.stats.requests(), "request"),
                duration(self.drive.now().seconds())
            ),
        )
    }

    fn capacitor_worn_out(&self) -> Option<Note> {
        let capacitor = self.drive.capacitor().filter(|capacitor| capacitor.is_worn_out)?;
        warning(
            "capacitor-worn-out",
            format!(
                "The capacitor has lost {} of its rated capacitance and is worn out (the limit is 30 %): a measured budget \
                 is 0.",
                part(capacitor.loss_share, 1.0)
            ),
        )
    }

    fn is_measured(&self) -> bool {
        self.drive.cache_pages()[0] > 0 && self.spec.cache.dirty_budget == DirtyBudget::Measured
    }

    fn no_budget(&self) -> Option<Note> {
        let capacitor = self.drive.capacitor()?;
        let [pages, budget, _] = self.drive.cache_pages();
        if !self.is_measured() || capacitor.is_worn_out || capacitor.stage != "charged" || budget > 0 {
            return None;
        }
        warning(
            "no-budget",
            format!(
                "No page may be dirty, so every write waits for flash: the capacitor can save {} of the {} pages of the write \
                 cache, and with capacitor.steps and capacitor.margin that is too few for a budget. Raise \
                 capacitor.capacitance, lower cache.size, or set capacitor.steps = \"continuous\".",
                count(self.drive.capability_pages() as u64),
                count(pages.into())
            ),
        )
    }

    fn never_measured(&self) -> Option<Note> {
        if !self.is_measured() || !self.stats.power.detections.is_empty() {
            return None;
        }
        let [pages, budget, _] = self.drive.cache_pages();
        info(
            "never-measured",
            format!(
                "The capacitor was never measured in {} of simulated time, so that capacitor.detect_every and \
                 capacitor.detect_grace had no effect: the dirty budget was that of the start, {} of {} pages. Play longer, \
                 or raise reliability.clock_scale.",
                duration(self.drive.now().seconds()),
                count(budget.into()),
                count(pages.into())
            ),
        )
    }

    // ------------------------------------------------------------------------------------------------ what never happened

    fn first_level(&self) -> Option<Note> {
        let ecc = &self.stats.ecc;
        if !self.drive.ecc().has_levels() || ecc.levels[1] == 0 || ecc.soft_reads() + ecc.uncorrectable > 0 {
            return None;
        }
        let mut keys = vec!["ecc.retry"];
        if self.spec.ecc.start != StartLevel::First {
            keys.push("ecc.start");
        }
        if let MapSpec::Demand { eviction: Eviction::ReadLevel { .. }, .. } = self.spec.ftl.map {
            keys.push("the eviction by read level");
        }
        let keys = listed(&keys);
        info(
            "first-level-only",
            if self.spec.reliability.rber == RberSpec::None {
                format!(
                    "Every page was decoded at read level 1, since the spec has no bit errors: {keys} had no effect. Set \
                     reliability.rber."
                )
            } else {
                format!(
                    "Every page was decoded at read level 1, so {keys} had no effect. reliability.pe_cycles and \
                     reliability.retention age the drive; `nandlab reliability` shows what asks for which level."
                )
            },
        )
    }

    fn whole_map(&self) -> Option<Note> {
        let entries = self.drive.demand_map()?.cache.capacity();
        if self.drive.geometry().logical_pages > entries {
            return None;
        }
        info(
            "whole-map-cached",
            format!(
                "The mapping cache has room for the whole map ({} entries): no entry ever leaves it, whatever the eviction \
                 policy. A smaller ftl.map.demand.cache would show the policy.",
                count(entries.into())
            ),
        )
    }

    /// How the drive is made to wear in the run.
    fn remedy(&self) -> String {
        if self.steady["verdict"] != "too short" {
            return format!(
                "data that stays beside what is overwritten (precondition.used, precondition.valid), or a workload that \
                 addresses more of the drive; {} became wholly invalid, and needed no GC",
                several(self.stats.counters.dead_blocks, "block")
            );
        }
        let mut text = match self.spec.workload.as_ref().map(|workload| &workload.source) {
            Some(Source::Trace(_) | Source::Profile(_)) => {
                "`nandlab spec fit` scales the drive to the workload".to_owned()
            }
            _ => "a smaller drive.blocks_per_plane (`nandlab spec fit` proposes one)".to_owned(),
        };
        if let (Some(requests), Some(repeat)) =
            (self.steady["requests_needed"].as_u64(), self.steady["repeat_needed"].as_u64())
        {
            text += &format!(
                "; or about {} requests, for example with workload.repeat = {}, would write the spare space five times",
                count(requests),
                count(repeat)
            );
        }
        text
    }

    fn no_gc(&self) -> Option<Note> {
        if self.writes() == 0 || self.stats.counters.gc_victims > 0 {
            return None;
        }
        let mut keys =
            vec!["gc.victim", "gc.pacing", "gc.foreground", "gc.foreground_free", "gc.background_free"];
        if self.spec.migration.copybacks_max() > 0 {
            keys.push("migration.policy");
        }
        let geometry = self.drive.geometry();
        info(
            "no-gc",
            format!(
                "GC never ran, so {} had no effect: the host wrote {} to a drive with {} of spare space. Remedy: {}.",
                listed(&keys),
                size(self.stats.host[Op::Write as usize].bytes),
                size(geometry.raw_bytes() - geometry.logical_bytes()),
                self.remedy()
            ),
        )
    }

    fn no_copybacks(&self) -> Option<Note> {
        let (most, stats) = (self.spec.migration.copybacks_max(), &self.stats.migration);
        let moved = stats.victims_off_chip + stats.victims_copied_back;
        if self.spec.migration.policy == "off-chip"
            || self.stats.counters.gc_victims == 0
            || stats.by_count.iter().any(|&pages| pages > 0)
        {
            return None;
        }
        let reason = if most == 0 {
            "its limit allows none. Raise the limit.".to_owned()
        } else if stats.refused > 0 {
            let pages = if stats.refused == 1 { "page was" } else { "pages were" };
            format!(
                "{} {pages} refused by the limit, which falls with wear and age. Raise the limit, or lower \
                 reliability.pe_cycles.",
                count(stats.refused)
            )
        } else if stats.victims_without_room > 0 {
            format!(
                "{} found no block to open. Raise drive.op.",
                several(stats.victims_without_room, "victim")
            )
        } else {
            format!(
                "the mode selector moved all {} off-chip, since the write buffer was never loaded. More load, or \
                 migration.policy = rcopyback-greedy.",
                several(moved, "victim")
            )
        };
        info("no-copybacks", format!("Nothing was copied back, so migration.policy had no effect: {reason}"))
    }

    fn nothing_due(&self) -> Option<Note> {
        if self.spec.refresh.policy == RefreshPolicySpec::None
            || self.stats.refresh.blocks > 0
            || self.drive.overdue_blocks() > 0
        {
            return None;
        }
        let every = self.spec.refresh.interval.iter().map(|line| line.1).min()?;
        let lived = self.drive.now().seconds() * self.spec.reliability.clock_scale;
        info(
            "no-refresh",
            format!(
                "No block came due, so refresh.policy had no effect: the run was {} of the drive's life, and the shortest \
                 refresh.interval is {}. Raise reliability.clock_scale, give the data an age (reliability.retention), or \
                 shorten the interval.",
                duration(lived),
                duration(every.seconds())
            ),
        )
    }

    fn nothing_partial(&self) -> Option<Note> {
        let partial = self.spec.refresh.policy.partial()?;
        let stats = &self.stats.refresh;
        if stats.blocks == 0 || stats.partial_pages > 0 {
            return None;
        }
        let reason = if stats.blocks_while_off > 0 {
            format!(
                "free blocks were fewer than refresh.policy.partial.min_free_blocks = {}. Lower it, or raise drive.op.",
                part(partial.min_free_blocks, 1.0)
            )
        } else if stats.too_susceptible > 0 {
            "the susceptible bits of a page take more than refresh.policy.partial.max_share. Raise it, or set encoding = \
             \"enumerative\"."
                .to_owned()
        } else {
            "the pages were read often, or had no room in the VSM. Raise refresh.policy.partial.hot_reads or vsm_pages."
                .to_owned()
        };
        info("no-partial-refresh", format!("No page was refreshed partially: {reason}"))
    }

    fn budget_never_bound(&self) -> Option<Note> {
        let [pages, budget, _] = self.drive.cache_pages();
        let most = self.stats.cache.dirty_pages_max;
        let least = match self.spec.cache.dirty_budget {
            DirtyBudget::Share(_) => budget,
            // Each detection has set its own.
            DirtyBudget::Measured => {
                let budgets = self.stats.power.detections.iter().map(|found| found.budget);
                budgets.reduce(f64::min).map_or(budget, |least| (f64::from(pages) * least) as u32)
            }
        };
        // Without a budget of its own the cache's size bounds the dirty pages, which nobody has asked for.
        let is_asked = self.spec.cache.dirty_budget != DirtyBudget::Share(1.0)
            || self.spec.cache.sync.name == "punctual";
        if pages == 0 || !is_asked || self.writes() == 0 || most >= least {
            return None;
        }
        let keys = if self.spec.cache.sync.name == "punctual" {
            "cache.dirty_budget and cache.sync"
        } else {
            "cache.dirty_budget"
        };
        info(
            "budget-never-bound",
            format!(
                "The dirty budget never bound, so {keys} had no effect on writes: {} of the {} pages of the write cache were \
                 dirty at most, and {} may be. A smaller cache.size or cache.dirty_budget, or more writes at a time, would \
                 show it.",
                count(most.into()),
                count(pages.into()),
                count(least.into())
            ),
        )
    }

    fn too_short(&self) -> Option<Note> {
        // Where GC never ran that is the greater thing to say.
        if self.steady["verdict"] != "too short" || self.stats.counters.gc_victims == 0 {
            return None;
        }
        let (requests, repeat) =
            (self.steady["requests_needed"].as_u64()?, self.steady["repeat_needed"].as_u64()?);
        info(
            "too-short",
            format!(
                "The run is too short to say whether the drive is in a steady state: {} of the five rounds that it takes. \
                 About {} requests would do, for example with workload.repeat = {}.",
                self.steady["rounds"],
                count(requests),
                count(repeat)
            ),
        )
    }
}
