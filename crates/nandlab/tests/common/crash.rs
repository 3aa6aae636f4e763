//! Small random drives whose power is cut at chosen events, and the checks after recovery.
//!
//! A run is derived from its seed: the drive, the requests, and the events at which power fails. So the seed reproduces
//! a failure. There are two kinds of runs. A *replay* simulates one sequence of events again and again from the start,
//! with one cut each time: after f, f + n, f + 2n, ... events. A *continued run* goes on after each cut, so that power
//! also fails on drives that have recovered before.

#![allow(dead_code, unreachable_pub)]

use crate::common::schemes::{
    Acts, DriveFacts, OFF_CHIP, Schemes, bad_blocks, buffer, combination, divided, division, first_accepted,
    link, placed, placement, plane_reads, slack, suspend, unit,
};
use crate::common::{EVENTS_MAX, confirm, ns, oracle_and, request, rest, seen};
use nandlab::base::geometry::{DieId, Lpn, RequestId, SuperblockId, UnitId};
use nandlab::base::lost::Promise;
use nandlab::base::rng::Stream;
use nandlab::base::units::{Span, Time};
use nandlab::drive::spec::{Cell, DirtyBudget, DriveSpec, FlushTo, ProgramOrder, Spec};
use nandlab::drive::{Drive, FailReason, Failure};
use nandlab::flash::{ShapeId, SuperblockState};
use nandlab::host::{Op, Request};
use nandlab::power_loss::RecoveryCut;
use nandlab::probe::Probe;
use nandlab::report::{RunFacts, Taps, smart, summary};
use nandlab::sched::{Cause, FlashOp, Phase, Transaction, Watcher};
use std::collections::{BTreeMap, BTreeSet};

/// Pages of a wordline that are programmed one after another.
fn planar_bits(drive: &DriveSpec) -> u32 {
    match drive.cell {
        _ if drive.program_order == ProgramOrder::OneShot => 1,
        Cell::Mlc => 2,
        Cell::Tlc => 3,
        _ => 1,
    }
}

/// Limit of the simulated time of a run, in seconds.
const SECONDS_MAX: f64 = 3600.0;

/// A drive with the two observers of these runs: the oracle and a witness.
pub type Watched = Drive<Taps>;

fn witness(drive: &mut Watched) -> &mut Witness {
    drive.probe_mut().observer_mut().expect("the set has a witness")
}

/// An observer that records programs independently of the drive's own records.
#[derive(Debug, Default)]
pub struct Witness {
    /// By die, a unit of the program whose array phase began last; `None` if the last array phase was no program.
    begun: BTreeMap<u32, Option<UnitId>>,
    /// Units whose last program was a copy by GC.
    pub copies: BTreeSet<u32>,
    /// Logical units whose read failed.
    failed: Vec<Lpn>,
    /// Units acknowledged since the last power loss that are not known to be in flash: by LPN, the newest sequence
    /// number, and whether a flush or a FUA write from the cache covers it.
    in_ram: BTreeMap<u32, (u64, bool)>,
    /// By LPN, the newest sequence number that is known to be in flash.
    in_flash: BTreeMap<u32, u64>,
    flushes_from_cache: u64,
    fua_writes_from_cache: u64,
}

impl Watcher for Witness {
    fn on_phase(&mut self, _: Time, _: Time, die: DieId, _: u32, phase: Phase, transaction: &Transaction) {
        if phase == Phase::Array {
            let is_program = transaction.kind == FlashOp::Program;
            self.begun.insert(die.0, is_program.then_some(transaction.unit));
            if is_program && transaction.cause == Cause::Gc {
                self.copies.insert(transaction.unit.0);
            } else if is_program {
                self.copies.remove(&transaction.unit.0);
            }
        }
    }
}

impl Probe for Witness {
    fn on_write_acknowledged(&mut self, lpn: Lpn, sequence: u64) {
        if self.in_flash.get(&lpn.0).is_none_or(|&newest| newest < sequence) {
            self.in_ram.insert(lpn.0, (sequence, false));
        }
    }

    fn on_fua_cached(&mut self, lpn: Lpn, sequence: u64) {
        self.in_ram.insert(lpn.0, (sequence, true));
        self.fua_writes_from_cache += 1;
    }

    fn on_write_durable(&mut self, lpn: Lpn, sequence: u64) {
        self.in_flash.insert(lpn.0, sequence);
        if self.in_ram.get(&lpn.0).is_some_and(|&(newest, _)| newest <= sequence) {
            self.in_ram.remove(&lpn.0);
        }
    }

    fn on_trimmed(&mut self, _: RequestId, lpn: Lpn, _: u64) {
        self.in_ram.remove(&lpn.0);
    }

    fn on_flushed(&mut self, _: u64, from_cache: bool) {
        if from_cache {
            self.flushes_from_cache += 1;
            self.in_ram.values_mut().for_each(|(_, is_covered)| *is_covered = true);
        }
    }

    fn on_read_failed(&mut self, _: RequestId, lpn: Lpn) {
        self.failed.push(lpn);
    }
}

/// The stages of the capacitor in which power can fail, as they are named in the printed counts.
pub const STAGES: [&str; 6] =
    ["without a capacitor", "charged", "syncing", "draining", "settling", "recharging"];

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Sums over all runs.
        #[derive(Clone, Debug, Default)]
        pub struct Counts {
            /// Cuts by stage, in the order of [`STAGES`].
            pub stages: [u64; 6],
            /// Activity of the schemes.
            pub acts: Acts,
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counts {
            pub fn add(&mut self, other: &Self) {
                for (sum, more) in self.stages.iter_mut().zip(other.stages) {
                    *sum += more;
                }
                self.acts.add(&other.acts);
                $(self.$name += other.$name;)*
            }
        }

        impl std::fmt::Display for Counts {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                for (stage, count) in STAGES.iter().zip(self.stages) {
                    writeln!(f, "{count:>12} cuts {stage}")?;
                }
                $(writeln!(f, "{:>12} {}", self.$name, stringify!($name).replace('_', " "))?;)*
                Ok(())
            }
        }
    };
}

counts! {
    runs,
    cuts,
    cuts_of_replays,
    requests_aborted,
    /// Aborted requests that were on the link, by direction.
    aborted_on_link_to_drive,
    aborted_on_link_to_host,
    dirty_units,
    unflushed_units,
    flushed_units,
    units_lost_for_lack_of_energy,
    units_lost_without_a_capacitor,
    /// Cuts, and units, with data in RAM that a flush or a FUA write acknowledged from the cache covers.
    cuts_with_flushed_data_in_ram,
    flushed_units_in_ram,
    flushed_units_in_ram_that_were_lost,
    flushes_from_cache,
    fua_writes_from_cache,
    /// Units of TRIM records in RAM at power loss, backed up by the capacitor.
    trim_units,
    trim_units_saved,
    trims_lost_for_lack_of_energy,
    /// Units on the drive's lists of lost writes, which the oracle compares with its own, by the promise that is
    /// broken.
    lost_covered,
    lost_acknowledged,
    lost_in_flight,
    units_lost_with_their_wordline,
    /// Cuts of drives whose programs write several units, of drives with a write buffer, and of drives with bad blocks.
    cuts_with_programs_of_units,
    /// Cuts of drives with superblocks of several blocks in page order, and the programs torn and the units lost with
    /// their wordline there.
    cuts_with_superblocks,
    torn_in_superblocks,
    lost_in_superblocks,
    /// Cuts of drives with superblocks on several dies, torn programs, torn erases and units flushed there, and open
    /// superblocks in which a die had a program behind a unit that another die had still erased.
    cuts_with_superblocks_of_the_drive,
    torn_in_superblocks_of_the_drive,
    torn_erases_of_superblocks_of_the_drive,
    flushed_in_superblocks_of_the_drive,
    superblocks_with_gaps,
    cuts_with_a_write_buffer,
    /// Cuts while the last copies of a victim gathered in a programming unit that GC goes on filling, and those while
    /// copies of the next victim had joined them.
    cuts_between_victims,
    cuts_with_copies_of_two_victims,
    cuts_with_bad_blocks,
    torn_programs,
    torn_erases,
    /// Power losses during recovery, and what they have torn.
    cuts_in_recovery,
    programs_torn_in_recovery,
    erases_torn_in_recovery,
    partial_units_merged,
    units_reprogrammed_in_place,
    units_refreshed_partially,
    /// Lines in the VSM at power loss.
    vsm_lines,
    vsm_lines_saved,
    links_at_a_cut,
    stale_translation_pages,
    /// Units that the emergency flush has written on drives whose programs write several units, and units of the write
    /// buffer among them.
    flushed_on_drives_with_units,
    buffered_units_flushed,
    detections,
    reads_checked,
    reads_failed_as_expected,
    events,
}

/// The plan of a run, derived from its seed.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub text: String,
    pub spec: Spec,
    weights: [u64; 4],
    depth: u32,
    is_full: bool,
    /// Number of events between power losses; in a replay, between the power losses of two repetitions.
    every: u64,
    is_replay: bool,
    /// Whether the capacitor, if there is one, covers the dirty budget: no acknowledged write may then be lost.
    pub covers: bool,
    on: [bool; 4],
    /// The steps of recovery, from 1, at which power fails again, one after another; `None`: they are drawn.
    recovery_steps: Option<Vec<u64>>,
}

impl Plan {
    pub fn new(seed: u64) -> Self {
        Self::draw(seed, combination(seed), false)
    }

    /// The plan of a seed, of which two fifths have placement handles, reclaim groups or reclaim units.
    pub fn placed(seed: u64) -> Self {
        Self::draw(seed, combination(seed), true)
    }

    /// The plan of a seed without partial refresh and rcopyback.
    pub fn of_two_schemes(seed: u64) -> Self {
        let [laldpc, .., capacitor_aware] = combination(seed);
        Self::draw(seed, [laldpc, false, false, capacitor_aware], false)
    }

    fn draw(seed: u64, on: [bool; 4], places: bool) -> Self {
        let mut stream = Stream::new(seed, "crash spec");
        let mut pick = |n: u64| stream.below(n);
        let mut one_of = |choices: &[&'static str]| choices[pick(choices.len() as u64) as usize];
        let two_bits = ["mlc", "mlc", "mlc", "mlc", "3d-mlc"];
        let cell = if on[0] { one_of(&two_bits) } else { one_of(&["slc", "mlc", "mlc", "3d-mlc", "3d-tlc"]) };
        // Derived from the seed, so that the draws of the other settings do not change.
        let is_planar = Stream::new(seed, "planar tlc").below(3) == 0;
        let cell = if is_planar && !on[0] && cell.ends_with("lc") && cell != "slc" { "tlc" } else { cell };
        let order = one_of(&["CWDP", "dynamic", "PDWC", "dynamic"]);
        let wear = one_of(&["none", "none", "dynamic", "static"]);
        let scheduler = one_of(&["fcfs", "read-first"]);
        let victim = one_of(&["greedy", "greedy", "fifo", "partial-aware"]);
        let mut pick = |n: u64| stream.below(n);
        let (channels, chips, dies, planes) = (1 + pick(2), 1 + pick(2), 1 + pick(2), 1 + pick(2));
        let pages: u64 = [4, 6, 7, 8, 12, 16][pick(6) as usize];
        let layers = if cell.starts_with("3d") { "layers = 3\n" } else { "" };
        let slowest_us = 600;
        // A quarter of the drives runs without pacing. Bits 0 to 3 of the seed choose the schemes, so this choice uses
        // higher bits.
        let pacing = if seed / 16 % 4 == 3 { "none" } else { "proportional" };
        let foreground = if seed / 16 % 8 == 7 { "blocking" } else { "interleaved" };
        let facts = DriveFacts { cell, dies: channels * chips * dies, slowest_us, detect_ms: 50.0 };
        let mut schemes = Schemes::draw(seed, on, &facts);
        let may_divide = schemes.allows_units();
        let [of_die, one_shot, of_drive] = division(seed).map(|is_drawn| is_drawn && may_divide);
        // A split copyback of several planes needs two registers. Superblocks of the drive have no partial refresh with
        // power loss.
        let superblock = match (of_drive && !schemes.on[1], of_die) {
            _ if schemes.split == 1 => "plane",
            (true, _) => "drive",
            (false, true) => "die",
            (false, false) => "plane",
        };
        let is_super = superblock != "plane";
        let bits = if cell == "slc" { 1 } else { 2 + u64::from(cell.ends_with("tlc")) };
        // In SLC mode a superblock of all dies that is programmed in one shot has whole programs.
        let pages = if one_shot { pages.next_multiple_of(bits).max(bits * bits) } else { pages };
        let program = match cell {
            _ if one_shot => format!("'{slowest_us}us'"),
            "mlc" => format!("{{ lsb = '300us', msb = '{slowest_us}us' }}"),
            "tlc" => format!("{{ lsb = '200us', msb = '{slowest_us}us' }}"),
            "slc" => "'300us'".into(),
            _ => format!("{{ fastest = '300us', slowest = '{slowest_us}us' }}"),
        };
        let unit = if schemes.allows_units() { unit(seed) } else { 4096 };
        let program_bytes = if one_shot { bits * if is_super { planes } else { 1 } * 4096 } else { 4096 };
        let gathers = unit < 4096 || program_bytes > 4096;
        let vsm_pages = if gathers { 2 * program_bytes / 4096 } else { 1 };
        let buffer = if gathers { buffer(seed, program_bytes, schemes.has_cache) } else { 0 };
        if buffer > 0 && !schemes.has_cache {
            schemes.add_buffer(seed);
        }
        let tail = format!(
            "[timing]\nprogram = {program}\nerase = '1ms'\n{}command = '{}ns'\n\
             off_chip_mb_per_s = {}\nmulti_plane = {}\nscheduler = '{scheduler}'\n{}[ftl]\nmap = {}\n\
             mapping_unit = '{unit}B'\nsuperblock = '{}'\nbuffer = '{buffer}B'\nallocation = '{order}'\nwear_levelling = '{wear}'\nwear_gap = 2\n[gc]\nidle_after = '1ms'\nvictim = '{victim}'\n\
             pacing = '{pacing}'\nforeground = '{foreground}'\n{}",
            // The read levels have times of their own.
            Some(5 * pick(2))
                .filter(|_| !schemes.has_levels)
                .map_or(String::new(), |us| format!("decode = '{us}us'\n")),
            300 * pick(2),
            OFF_CHIP[pick(OFF_CHIP.len() as u64) as usize],
            pick(2) == 0 || is_super,
            suspend(seed, scheduler) + &plane_reads(seed, planes as u32),
            schemes.map,
            superblock,
            link(seed),
        );
        // The least number of blocks that the spec check accepts: with so few blocks GC begins soon.
        let slack = slack(&mut Stream::new(seed, "crash slack"));
        let (text, spec) = first_accepted(slack, |attempt, op| {
            let blocks = 10 + 2 * attempt;
            // No more valid units than a drive with much over-provisioning has logical units.
            let valid = (3.2 / (1.0 + op)).min(0.8);
            let precondition = if schemes.has_levels {
                format!("[precondition]\nused = 0.3\nvalid = {valid}\n")
            } else {
                String::new()
            };
            let text = format!(
                "seed = {seed}\n[drive]\nchannels = {channels}\nchips_per_channel = {chips}\ndies_per_chip = {dies}\n\
                 planes_per_die = {planes}\nblocks_per_plane = {blocks}\npages_per_block = {pages}\n\
                 page_size = '4KiB'\ncell = '{cell}'\n{layers}op = {op}\nendurance = 1000000\nprogram_order = '{}'\n{}{}{tail}{precondition}{}",
                if one_shot { "one-shot" } else { "page" },
                schemes.registers(scheduler),
                bad_blocks(seed),
                schemes.text(blocks * pages * planes, vsm_pages, scheduler, [pacing, foreground])
            );
            match places {
                true => divided(seed, &text) + &placement(seed, &text, channels * chips * dies),
                false => text,
            }
        });
        let weights = [[1, 6, 0, 0], [2, 8, 1, 1], [1, 4, 0, 2], [1, 3, 2, 1]][pick(4) as usize];
        // A quarter of the runs has many TRIMs. The choice has a random stream of its own.
        let weights = if Stream::new(seed, "crash trims").below(4) == 0 { [1, 4, 4, 2] } else { weights };
        let is_replay = pick(2) == 0;
        Self {
            seed,
            text,
            spec,
            weights,
            depth: 1 + pick(24) as u32,
            is_full: pick(2) == 0,
            every: if is_replay { 1 + pick(60) } else { 1 + pick(600) },
            is_replay,
            // The budget of a write buffer is never above what the capacitor can save.
            covers: schemes.covers || buffer > 0 && !schemes.has_cache,
            on: schemes.on,
            recovery_steps: None,
        }
    }

    /// Returns the same plan, in which power fails again at these steps of each recovery, one after another.
    pub fn failing_in_recovery(self, steps: &[u64]) -> Self {
        Self { recovery_steps: Some(steps.to_vec()), ..self }
    }

    /// Returns the same plan with another claim about whether the capacitor covers the dirty budget.
    pub fn claiming(self, covers: bool) -> Self {
        Self { covers, ..self }
    }

    /// Whether a page has several units, a program writes several pages, or a superblock has several blocks.
    pub fn has_units(&self) -> bool {
        let geometry = self.spec.geometry();
        let shapes = self.spec.shapes(&geometry);
        shapes.first().units_per_program > 1 || geometry.blocks_per_superblock() > 1
    }

    pub fn has_capacitor(&self) -> bool {
        self.spec.capacitor.capacitance_f > 0.0
    }
}

/// Damages a drive around recovery. Tests use such damage to show that the checks detect it.
pub trait Sabotage {
    /// Called after power loss, before recovery.
    fn before_recovery(&mut self, _drive: &mut Watched) {}
    /// Called after recovery.
    fn after_recovery(&mut self, _drive: &mut Watched) {}
}

/// No sabotage.
pub struct Honest;

impl Sabotage for Honest {}

/// Most recoveries have few steps and take a few milliseconds.
fn draw_recovery_cut(stream: &mut Stream) -> RecoveryCut {
    match stream.below(5) {
        0 => RecoveryCut::Step(1 + stream.below(4)),
        1 => RecoveryCut::Step(2 + stream.below(12)),
        2 => RecoveryCut::Step(2 + stream.below(60)),
        3 => RecoveryCut::After(Span::from_ns(stream.below(3_000_000))),
        _ => RecoveryCut::After(Span::from_ns(stream.below(30_000_000))),
    }
}

/// A drive and its host during a run.
struct Run<'a> {
    plan: &'a Plan,
    drive: Watched,
    host: Stream,
    /// Draws the power losses during recovery.
    recovery_cuts: Stream,
    /// The host submits no request before this time.
    quiet_until: Time,
    counts: Counts,
}

impl<'a> Run<'a> {
    fn new(plan: &'a Plan) -> Self {
        let mut drive = Drive::with_probe(&plan.spec, oracle_and(Witness::default()));
        drive.precondition(&mut |_| true);
        drive.expect_preconditioned(|taps| taps.oracle_mut().unwrap());
        let mut host = Stream::new(plan.seed, "crash run");
        let units = u64::from(drive.geometry().logical_units);
        if plan.is_full {
            for _ in 0..2 * units {
                drive.write_now(Lpn(host.below(units) as u32));
            }
            if drive.array().shapes().first().units_per_program > 1 {
                drive.settle();
            }
        }
        let recovery_cuts = Stream::new(plan.seed, "crash recovery cuts");
        Self { plan, drive, host, recovery_cuts, quiet_until: Time::START, counts: Counts::default() }
    }

    fn submit(&mut self) {
        let (drive, stream, weights) = (&mut self.drive, &mut self.host, &self.plan.weights);
        let sectors = drive.geometry().logical_bytes() / 512;
        let mut draw = stream.below(weights.iter().sum());
        let op = Op::ALL.into_iter().find(|&op| {
            let hit = draw < weights[op as usize];
            draw = draw.wrapping_sub(weights[op as usize]);
            hit
        });
        let op = op.unwrap_or(Op::Write);
        // A third of the requests goes to the first sixth of the drive.
        let span = if stream.below(3) == 0 { (sectors / 6).max(8).min(sectors) } else { sectors };
        let first = stream.below(span);
        let len = (stream.below(40) + 1).min(sectors - first);
        let (first, len) =
            if stream.below(2) == 0 { (first / 8 * 8, len.div_ceil(8) * 8) } else { (first, len) };
        let len = len.min(sectors - first);
        let (offset, len) = if op == Op::Flush { (0, 0) } else { (first * 512, len * 512) };
        let fua = op == Op::Write && stream.below(8) == 0;
        let request = Request::new(op, offset, len).at(drive.now()).with_fua(fua);
        let request = placed(drive, request, stream);
        // The host lets a handle go on in a new reclaim unit now and then.
        if !drive.ftl().placements.is_single() && stream.below(50) == 0 {
            drive.update_handle(request.tag.placement);
        }
        drive.submit(&request).unwrap();
    }

    /// Takes the completed requests, and checks that a request failed only because no read level decodes a page.
    fn take_completions(&mut self) {
        let completions: Vec<_> = self.drive.completions().collect();
        for done in &completions {
            assert!(matches!(done.failed, None | Some(FailReason::Uncorrectable)), "{done:?}");
            confirm(&self.drive, done);
        }
    }

    /// Lets the host submit requests until one event has been simulated.
    fn event(&mut self) {
        self.counts.events += 1;
        loop {
            self.take_completions();
            assert!(
                self.drive.failure().is_none(),
                "{}",
                self.drive.failure().expect("the drive has failed")
            );
            assert!(self.counts.events < EVENTS_MAX, "{} events", self.counts.events);
            let seconds = self.drive.now().seconds();
            assert!(seconds < SECONDS_MAX, "{} events in {seconds} simulated seconds", self.counts.events);
            if self.drive.now() < self.quiet_until {
                if self.drive.advance_by_event(self.quiet_until) {
                    return;
                }
                self.drive.advance(self.quiet_until);
            } else if self.drive.outstanding() < self.plan.depth {
                self.submit();
                let now = self.drive.now();
                match self.host.below(60) {
                    0 => self.drive.detect_budget(),
                    1..=4 => self.quiet_until = now + ns(self.host.below(3_000_000)),
                    5 => self.quiet_until = now + ns(self.host.below(60_000_000)),
                    _ => {}
                }
            } else {
                let has_event = self.drive.advance_unless_at_rest();
                assert!(has_event, "requests are outstanding without an event: {:?}", self.drive.failure());
                return;
            }
        }
    }

    /// Returns the units of the programs that a power loss would tear now, according to the witness; on planar cells
    /// also those of the pages that it would destroy with them. And the number of these programs.
    fn torn_now(&self) -> (Vec<UnitId>, u32) {
        if self.plan.has_capacitor() && !self.drive.is_recharging() {
            return (Vec::new(), 0);
        }
        let geometry = self.drive.geometry();
        // The pages before it of a wordline in page order are a row apart.
        let row = geometry.units_per_page * geometry.planes_per_lane * geometry.dies_per_lane;
        let (mut torn, mut programs) = (Vec::new(), 0);
        for die in (0..geometry.dies).map(DieId) {
            let begun = seen::<Witness>(&self.drive).begun.get(&die.0).copied().flatten();
            let Some(unit) = begun.filter(|_| self.drive.device().phase(die) == Phase::Array) else {
                continue;
            };
            let array = self.drive.array();
            let superblock = geometry.superblock_of(unit);
            let units = array.shape(superblock).units_per_program;
            let is_slc = array.shape_id(superblock) == ShapeId::SLC;
            let bits = if is_slc { 1 } else { planar_bits(&self.plan.spec.drive) };
            programs += 1;
            let first = unit.0 / units * units;
            for before in 0..=geometry.split(unit).1 / row % bits {
                let from = first - before * row;
                torn.extend((from..from + units).map(UnitId));
            }
        }
        (torn, programs)
    }

    /// The number of open superblocks with an erased unit before a programmed one.
    fn open_with_gaps(&self) -> u64 {
        let (geometry, array) = (self.drive.geometry(), self.drive.array());
        let has_gap = |&superblock: &SuperblockId| {
            let mut units =
                (0..geometry.units_per_superblock).map(|unit| array.is_programmed(superblock, unit));
            array.superblock(superblock).state == SuperblockState::Open
                && units.any(|is_programmed| !is_programmed)
                && units.any(|is_programmed| is_programmed)
        };
        (0..geometry.superblocks).map(SuperblockId).filter(has_gap).count() as u64
    }

    /// Cuts power, restores it, and checks the recovered drive.
    fn cut(&mut self, sabotage: &mut dyn Sabotage) {
        let plan = self.plan;
        self.take_completions();
        let stage = if plan.has_capacitor() { self.drive.power_stage() } else { STAGES[0] };
        let (outstanding, link) = (self.drive.outstanding(), self.drive.link());
        let (torn, torn_programs) = self.torn_now();
        let [open, shared] = self.drive.open_programs_of_gc();
        self.drive.lose_power();
        let gaps = self.open_with_gaps();
        sabotage.before_recovery(&mut self.drive);
        if !self.cut_recovery() {
            self.drive.restore_power();
        }
        sabotage.after_recovery(&mut self.drive);
        let aborted =
            self.drive.completions().filter(|done| done.failed == Some(FailReason::PowerLost)).count();
        assert_eq!(aborted, outstanding as usize, "every outstanding request fails at power loss");
        let loss = self.drive.stats().power.losses.last().expect("power has failed").clone();
        let geometry = self.drive.geometry();
        assert!(
            loss.spent_j <= loss.energy_j * (1.0 + 1e-9),
            "the flush spent more energy than the capacitor had: {loss:?}"
        );
        let units_per_program = self.drive.array().shapes().first().units_per_program;
        assert!(loss.torn_programs >= torn_programs);
        let is_in_place = plan.spec.refresh.policy.in_place().is_some();
        if planar_bits(&plan.spec.drive) == 1 && !is_in_place || plan.has_capacitor() {
            assert!(loss.lost_from_flash().is_empty(), "older data was lost with its wordline: {loss:?}");
        }
        if plan.has_capacitor() && stage != "recharging" {
            assert_eq!(
                (loss.torn_programs, loss.torn_erases),
                (0, 0),
                "operations were torn, although the capacitor had energy to end them"
            );
        }
        let is_worn_out = plan.spec.cache.dirty_budget != DirtyBudget::Measured && loss.capacitor_loss > 0.3;
        if plan.has_capacitor() && plan.covers && !is_worn_out {
            assert!(!loss.has_lost(), "lost within the budget: {loss:?}");
        }
        let flushes_to_cache = plan.has_capacitor() && plan.spec.cache.flush_to == FlushTo::Cache;
        assert!(flushes_to_cache || loss.trim_pages == 0, "the capacitor backs up no TRIM: {loss:?}");
        assert!(loss.lost_trims().is_empty() || loss.trim_pages_saved < loss.trim_pages, "{loss:?}");
        for &unit in &torn {
            let (lpn, map) = (self.drive.array().lpn(unit), &self.drive.ftl().map);
            let is_mapped = lpn.0 < map.len() && map.get(lpn) == Some(unit);
            assert!(!is_mapped, "LPN {} maps to {}, which was torn", lpn.0, geometry.show(unit));
        }
        let counts = &mut self.counts;
        counts.cuts += 1;
        counts.stages[STAGES.iter().position(|&s| s == stage).expect("the stage is in STAGES")] += 1;
        counts.requests_aborted += u64::from(loss.aborted_requests);
        if let Some(link) = link {
            counts.aborted_on_link_to_drive += u64::from(link.to_drive.requests);
            counts.aborted_on_link_to_host += u64::from(link.to_host.requests);
        }
        counts.dirty_units += u64::from(loss.dirty_pages);
        counts.unflushed_units += u64::from(loss.unflushed_pages);
        counts.flushed_units += u64::from(loss.flushed_pages);
        let lost = if plan.has_capacitor() {
            &mut counts.units_lost_for_lack_of_energy
        } else {
            &mut counts.units_lost_without_a_capacitor
        };
        *lost += loss.lost_from_ram().len() as u64;
        if units_per_program > 1 {
            counts.flushed_on_drives_with_units += u64::from(loss.flushed_pages);
            let has_buffer = plan.spec.ftl.buffer_bytes > 0;
            counts.buffered_units_flushed += if has_buffer { loss.flushed_pages.into() } else { 0 };
        }
        counts.cuts_with_programs_of_units += u64::from(units_per_program > 1);
        if geometry.dies_per_lane > 1 {
            counts.cuts_with_superblocks_of_the_drive += 1;
            counts.torn_in_superblocks_of_the_drive += u64::from(loss.torn_programs);
            counts.torn_erases_of_superblocks_of_the_drive += u64::from(loss.torn_erases);
            counts.flushed_in_superblocks_of_the_drive += u64::from(loss.flushed_pages);
            counts.superblocks_with_gaps += gaps;
        }
        if geometry.blocks_per_superblock() > 1 && plan.spec.drive.program_order == ProgramOrder::Page {
            counts.cuts_with_superblocks += 1;
            counts.torn_in_superblocks += u64::from(loss.torn_programs);
            counts.lost_in_superblocks += loss.lost_from_flash().len() as u64;
        }
        counts.cuts_with_a_write_buffer += u64::from(plan.spec.ftl.buffer_bytes > 0);
        counts.cuts_between_victims += u64::from(open > 0);
        counts.cuts_with_copies_of_two_victims += u64::from(shared > 0);
        counts.cuts_with_bad_blocks += u64::from(geometry.bad.missing > 0);
        counts.units_lost_with_their_wordline += loss.lost_from_flash().len() as u64;
        let lost_by = |promise| loss.lost_by(promise).len() as u64;
        counts.lost_covered += lost_by(Promise::Covered);
        counts.lost_acknowledged += lost_by(Promise::Acknowledged);
        counts.lost_in_flight += lost_by(Promise::InFlight);
        counts.torn_programs += u64::from(loss.torn_programs);
        counts.torn_erases += u64::from(loss.torn_erases);
        let witness = witness(&mut self.drive);
        let in_ram = std::mem::take(&mut witness.in_ram);
        let flushed: BTreeSet<u32> =
            in_ram.into_iter().filter(|&(_, (_, is_covered))| is_covered).map(|(lpn, _)| lpn).collect();
        counts.cuts_with_flushed_data_in_ram += u64::from(!flushed.is_empty());
        counts.flushed_units_in_ram += flushed.len() as u64;
        counts.flushed_units_in_ram_that_were_lost +=
            loss.lost_from_ram().iter().filter(|(lpn, _)| flushed.contains(&lpn.0)).count() as u64;
        counts.flushes_from_cache += std::mem::take(&mut witness.flushes_from_cache);
        counts.fua_writes_from_cache += std::mem::take(&mut witness.fua_writes_from_cache);
        assert!(flushes_to_cache || flushed.is_empty(), "a flush was acknowledged from the cache");
        counts.trim_units += u64::from(loss.trim_pages);
        counts.trim_units_saved += u64::from(loss.trim_pages_saved);
        counts.trims_lost_for_lack_of_energy += loss.lost_trims().len() as u64;
        let recovery = loss.recovery.expect("power is back");
        counts.cuts_in_recovery += u64::from(recovery.cuts);
        counts.programs_torn_in_recovery += u64::from(recovery.torn_programs);
        counts.erases_torn_in_recovery += u64::from(recovery.torn_erases);
        counts.partial_units_merged += u64::from(recovery.merged_pages);
        counts.vsm_lines += u64::from(loss.vsm_lines);
        counts.vsm_lines_saved += u64::from(loss.vsm_lines_saved);
        counts.links_at_a_cut += self.drive.links().map_or(0, |links| links.count());
        counts.stale_translation_pages += u64::from(recovery.stale_translation_pages);
        self.check();
        self.quiet_until = self.drive.now();
    }

    /// Power fails again in recovery: at the steps of the plan, or in half of the power losses up to three times. Returns
    /// whether a recovery has ended before its cut, so that the drive is ready.
    fn cut_recovery(&mut self) -> bool {
        let stream = &mut self.recovery_cuts;
        let cuts: Vec<RecoveryCut> = match &self.plan.recovery_steps {
            Some(steps) => steps.iter().map(|&step| RecoveryCut::Step(step)).collect(),
            None if stream.below(2) == 0 => Vec::new(),
            None => (0..1 + stream.below(3)).map(|_| draw_recovery_cut(stream)).collect(),
        };
        !cuts.into_iter().all(|cut| {
            let has_failed = self.drive.cut_recovery(cut);
            // The results can be read while power is off.
            summary(&self.drive, &RunFacts::default());
            smart(&self.drive);
            has_failed
        })
    }

    fn check(&self) {
        self.drive.audit().unwrap_or_else(|e| panic!("audit: {e}"));
        self.drive.probe().oracle().unwrap().verdict().unwrap_or_else(|e| panic!("oracle: {e}"));
        let stats = self.drive.stats();
        let copied = stats.migration.by_count.iter().sum::<u64>();
        assert_eq!(copied, stats.flash_total(FlashOp::Copyback), "every page copied back is counted once");
    }

    /// Reads every logical unit. With `settles` the drive then comes to rest, so that the capacitor is charged. Ends when
    /// the drive can simulate no longer; the run is late then.
    fn read_everything(&mut self, settles: bool, just_recovered: bool) {
        witness(&mut self.drive).failed.clear();
        let uncorrectable = self.drive.stats().ecc.uncorrectable;
        let unit = u64::from(self.drive.geometry().unit_bytes);
        for lpn in 0..u64::from(self.drive.geometry().logical_units) {
            let read = request(&self.drive, Op::Read, lpn * unit, unit);
            self.drive.submit(&read).unwrap();
        }
        let (mut events, mut ended, mut outstanding) = (0, 0, self.drive.outstanding());
        while self.drive.outstanding() > 0 {
            if !self.drive.advance_unless_at_rest() {
                // Where more data comes due for refresh than the drive can refresh, and a second is months of ageing,
                // reading everything may take longer than the drive can simulate. Reads have to end all the same.
                let is_slow = matches!(self.drive.failure(), Some(Failure::TimeIsOver { .. }))
                    && events < ended + EVENTS_MAX_BETWEEN_READS;
                assert!(
                    is_slow,
                    "no event is pending: {:?}, event {events}, the last read ended at {ended}",
                    self.drive.failure()
                );
                return;
            }
            events += 1;
            if self.drive.outstanding() < outstanding {
                (ended, outstanding) = (events, self.drive.outstanding());
            }
            assert!(
                events < EVENTS_MAX,
                "{} requests are outstanding after {events} events",
                self.drive.outstanding()
            );
        }
        if settles {
            rest(&mut self.drive);
        }
        self.drive.completions();
        self.check();
        let (array, map) = (self.drive.array(), &self.drive.ftl().map);
        let failed = &seen::<Witness>(&self.drive).failed;
        self.counts.reads_failed_as_expected += failed.len() as u64;
        let is_lost = |lpn: Lpn| map.get(lpn).is_some_and(|unit| array.is_lost(unit));
        // Without dirty units in the write cache each unit whose read failed is marked as lost, or no read level
        // decodes it. (When no read level decodes a translation page, the reads of all its LPNs fail.)
        let unexplained = failed.iter().filter(|&&lpn| !is_lost(lpn)).count() as u64;
        if just_recovered || !self.drive.ecc().has_levels() {
            let seen = self.drive.stats().ecc.uncorrectable - uncorrectable;
            let is_explained = unexplained <= seen || self.drive.demand_map().is_some() && seen > 0;
            assert!(
                is_explained,
                "{unexplained} units cannot be read, but only {seen} reads were uncorrectable"
            );
        }
    }

    /// Simulates `events` more events, lets the drive come to rest, and reads every logical unit. Does nothing when the
    /// run is late.
    fn live_on(&mut self, events: u64) {
        if self.is_late() {
            return;
        }
        for _ in 0..events {
            self.event();
        }
        rest(&mut self.drive);
        assert_eq!(self.drive.outstanding(), 0, "a request is still outstanding at rest");
        self.take_completions();
        self.check();
        self.read_everything(true, false);
    }

    /// Whether half of the time has passed that the drive can simulate. Where a second is decades of ageing and each read
    /// takes milliseconds, twelve cuts may take longer than this time.
    fn is_late(&self) -> bool {
        self.drive.now().ns() > self.drive.end().ns() / 2
    }

    fn end(mut self) -> Counts {
        self.counts.acts = Acts::of(self.plan.on, &self.drive);
        self.counts.detections += self.drive.stats().power.detections.len() as u64;
        self.counts.units_reprogrammed_in_place += self.drive.stats().refresh.pages_in_place;
        self.counts.units_refreshed_partially += self.drive.stats().refresh.partial_pages;
        self.counts.reads_checked += self.drive.probe().oracle().unwrap().checked;
        self.counts
    }
}

/// The most events from the end of a read to the end of the next one, while every unit is read: some fifty times as many
/// as in the slowest run that was seen.
const EVENTS_MAX_BETWEEN_READS: u64 = 500_000;

/// Runs a plan with `cuts` power losses.
pub fn crash(plan: &Plan, cuts: u64, sabotage: &mut dyn Sabotage) -> Counts {
    let mut counts = Counts { runs: 1, ..Counts::default() };
    let mut stream = Stream::new(plan.seed, "crash cuts");
    if plan.is_replay {
        // The first cut comes after up to 1500 events, so that operations of every kind may be under way.
        let from = stream.below(1500);
        for cut in 0..cuts {
            let mut run = Run::new(plan);
            for _ in 0..from + cut * plan.every {
                run.event();
            }
            run.cut(sabotage);
            run.read_everything(false, true);
            run.live_on(150);
            let done = run.end();
            counts.cuts_of_replays += done.cuts;
            counts.add(&done);
        }
    } else {
        let mut run = Run::new(plan);
        for _ in 0..cuts {
            if run.is_late() {
                break;
            }
            for _ in 0..plan.every {
                run.event();
            }
            run.cut(sabotage);
            match stream.below(6) {
                // The next cut may come before any unit is read, or while the capacitor recharges.
                0 => {}
                1..=3 => run.read_everything(false, true),
                _ => {
                    run.read_everything(false, true);
                    run.live_on(60);
                }
            }
        }
        run.live_on(200);
        counts.add(&run.end());
    }
    counts
}
