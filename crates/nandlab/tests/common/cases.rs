//! Small random drives under random load. The oracle checks every read, and the drive is audited. Every request must be
//! completed; a request may fail only because no read level decodes a page. The write amplification has an upper bound.
//!
//! A case is derived from its seed. Half of the cases have the least op that the spec check accepts, a quarter twice
//! that op.

#![allow(dead_code, unreachable_pub)]

use crate::common::schemes::{
    Acts, DriveFacts, OFF_CHIP, Schemes, bad_blocks, buffer, divided, division, first_accepted, link, placed,
    placement, plane_reads, suspend, unit,
};
use crate::common::{ask_for_everything, confirm, ns, settle, with_oracle};
use nandlab::base::geometry::Geometry;
use nandlab::base::rng::Stream;
use nandlab::drive::spec::Spec;
use nandlab::drive::{Drive, FailReason, Failure};
use nandlab::host::{Op, Oracle, Request};
use nandlab::sched::{Cause, FlashOp};

/// Limit of the simulated time of a case, in seconds.
const SECONDS_MAX: f64 = 3600.0;

/// Limit of the events from the completion of a request to the next completion, some twenty times as many as in the
/// slowest of 2000 cases. There is no limit of all events of a case: where more data comes due for refresh than the drive
/// can refresh, the alarms of the overdue superblocks alone are ten thousand events a request.
const EVENTS_MAX_BETWEEN_COMPLETIONS: u64 = 2_000_000;

const ORDERS: [&str; 6] = ["CWDP", "PDWC", "WCPD", "DPCW", "dynamic", "PCWD"];
const VICTIMS: [&str; 6] = [
    "'greedy'",
    "'cost-benefit'",
    "'fifo'",
    "'partial-aware'",
    "{ random = { k = 1 } }",
    "{ random = { k = 5 } }",
];

/// A case; see [`Case::draw`].
#[derive(Clone, Debug)]
pub struct Case {
    pub seed: u64,
    pub geometry: [u32; 6],
    /// How much the op exceeds the op that the spec check proposes, as a share of that op; see [`first_accepted`].
    pub slack: f64,
    /// Bytes of the mapping unit: 4096, which is the page, or less, if the settings of the schemes allow it.
    pub unit: u32,
    pub order: usize,
    pub victim: usize,
    pub levelling: usize,
    pub scheduler: usize,
    pub multi_plane: bool,
    pub command: bool,
    pub decode: bool,
    pub off_chip: usize,
    pub precondition: usize,
    pub depth: u32,
    pub weights: [u64; 4],
    pub span: f64,
    /// The schemes that are on, and the seed of their settings.
    pub schemes: ([bool; 4], u64),
    pub fua: bool,
    /// Whether some requests begin or end inside a sector.
    pub odd: bool,
    /// Whether all requests are writes of whole pages, uniform over the drive.
    pub is_uniform: bool,
    /// The text of the section `[host]`.
    pub link: String,
    /// Whether placement handles are drawn ([`placement`]).
    pub places: bool,
}

impl Case {
    /// The case of a seed, of which two fifths have placement handles, reclaim groups or reclaim units.
    pub fn placed(seed: u64) -> Self {
        Self { places: true, ..Self::draw(seed) }
    }

    /// Derives the case of a seed.
    pub fn draw(seed: u64) -> Self {
        let mut stream = Stream::new(seed, "random case");
        let mut pick = |low: u64, end: u64| low + stream.below(end - low);
        let geometry =
            [(1, 4), (1, 3), (1, 3), (1, 5), (24, 35), (4, 21)].map(|(low, end)| pick(low, end) as u32);
        let is_uniform = pick(0, 4) == 0;
        Self {
            seed,
            geometry,
            slack: match pick(0, 4) {
                0 | 1 => 0.0,
                2 => 1.0,
                _ => pick(0, 1001) as f64 / 1000.0,
            },
            unit: unit(seed),
            order: pick(0, ORDERS.len() as u64) as usize,
            victim: pick(0, VICTIMS.len() as u64) as usize,
            levelling: pick(0, 3) as usize,
            scheduler: pick(0, 2) as usize,
            multi_plane: pick(0, 2) == 0,
            command: pick(0, 2) == 0,
            decode: pick(0, 2) == 0,
            off_chip: pick(0, OFF_CHIP.len() as u64) as usize,
            precondition: pick(0, 3) as usize,
            depth: pick(1, 40) as u32,
            weights: if is_uniform { [0, 1, 0, 0] } else { [pick(0, 4), pick(0, 6), pick(0, 2), pick(0, 2)] },
            span: if is_uniform { 1.0 } else { pick(20, 1000) as f64 / 1000.0 },
            schemes: ([0, 1, 2, 3].map(|_| pick(0, 2) == 0), pick(0, u64::MAX)),
            fua: pick(0, 2) == 0,
            odd: pick(0, 2) == 0,
            is_uniform,
            link: link(seed),
            places: false,
        }
    }
}

/// A quarter of the cases runs without pacing.
const PACINGS: [&str; 2] = ["proportional", "none"];

/// An eighth of the cases (half of those without pacing) runs with blocking GC.
const FOREGROUNDS: [&str; 2] = ["interleaved", "blocking"];

const SLOWEST_US: u64 = 1100;

impl Case {
    /// Bytes of the write buffer, which needs programs of several units.
    fn buffer(&self, schemes: &Schemes) -> u64 {
        let (superblock, one_shot) = self.division(schemes);
        let program = 4096 * self.pages_per_program(superblock, one_shot);
        let gathers = one_shot || self.unit < 4096 && schemes.allows_units();
        if gathers { buffer(self.seed, program, schemes.has_cache) } else { 0 }
    }

    /// Pages that a program writes.
    fn pages_per_program(&self, superblock: &str, one_shot: bool) -> u64 {
        let planes = if superblock == "plane" { 1 } else { u64::from(self.geometry[3]) };
        if one_shot { 2 * planes } else { 1 }
    }

    /// The superblocks, and whether a program writes a wordline.
    fn division(&self, schemes: &Schemes) -> (&'static str, bool) {
        if !schemes.allows_units() {
            return ("plane", false);
        }
        let [of_die, one_shot, of_drive] = division(self.seed);
        // A split copyback of several planes needs two registers in each. Superblocks of the drive have no partial
        // refresh with a capacitor.
        let may_span_planes = self.multi_plane && schemes.split != 1 || self.geometry[3] == 1;
        let may_span_dies = !(schemes.on[1] && schemes.has_capacitor);
        let superblock = match (of_drive && may_span_dies, of_die) {
            _ if !may_span_planes => "plane",
            (true, _) => "drive",
            (false, true) => "die",
            (false, false) => "plane",
        };
        (superblock, one_shot)
    }

    /// Whether the case has a mapping unit below the page, superblocks of several blocks, or one-shot programs.
    pub fn has_units(&self) -> bool {
        let schemes = schemes(self);
        schemes.allows_units() && (self.unit < 4096 || self.division(&schemes) != ("plane", false))
    }
}

fn schemes(case: &Case) -> Schemes {
    let dies = case.geometry[..3].iter().map(|&count| u64::from(count)).product();
    let facts = DriveFacts { cell: "mlc", dies, slowest_us: SLOWEST_US, detect_ms: 1000.0 };
    Schemes::draw(case.schemes.1, case.schemes.0, &facts)
}

/// Returns the text of the spec, with `attempt / 2` blocks per plane more than the case.
fn text(case: &Case, schemes: &Schemes, attempt: u64, op: f64) -> String {
    let [channels, chips, dies, planes, blocks, pages] = case.geometry;
    let (superblock, one_shot) = case.division(schemes);
    let pages = if one_shot { pages.next_multiple_of(2) } else { pages };
    let blocks = blocks + attempt as u32 / 2;
    let valid = (1.7 / (1.0 + op)).min(0.45);
    let precondition = [
        String::new(),
        format!("[precondition]\nused = 0.5\nvalid = {valid}\n"),
        "[precondition]\nmethod = 'pts'\nrounds_max = 5\n".to_owned(),
    ][case.precondition]
        .clone();
    let scheduler = ["fcfs", "read-first"][case.scheduler];
    let unit = if schemes.allows_units() { case.unit } else { 4096 };
    let vsm_pages =
        if one_shot || unit < 4096 { 2 * case.pages_per_program(superblock, one_shot) } else { 1 };
    let text = format!(
        "seed = {}\n[drive]\nchannels = {channels}\nchips_per_channel = {chips}\ndies_per_chip = {dies}\n\
         planes_per_die = {planes}\nblocks_per_plane = {blocks}\npages_per_block = {pages}\npage_size = '4KiB'\n\
         cell = 'mlc'\nop = {op}\nendurance = 1000000\nprogram_order = '{}'\n{}{}[timing]\ncommand = '{}'\n{}\
         program = {}\noff_chip_mb_per_s = {}\nscheduler = '{scheduler}'\nmulti_plane = {}\n{}\
         [ftl]\nmap = {}\nmapping_unit = '{}B'\nsuperblock = '{}'\nbuffer = '{}B'\nallocation = '{}'\nwear_levelling = '{}'\nwear_gap = 2\n[gc]\nvictim = {}\nidle_after = '1ms'\n\
         pacing = '{}'\nforeground = '{}'\n{precondition}{}{}",
        case.seed >> 1,
        if one_shot { "one-shot" } else { "page" },
        schemes.registers(scheduler),
        bad_blocks(case.seed),
        if case.command { "300ns" } else { "0us" },
        // The read levels have times of their own.
        match (schemes.has_levels, case.decode) {
            (true, _) => "",
            (false, true) => "decode = '15us'\n",
            (false, false) => "decode = '0us'\n",
        },
        if one_shot {
            format!("'{SLOWEST_US}us'")
        } else {
            format!("{{ lsb = '300us', msb = '{SLOWEST_US}us' }}")
        },
        OFF_CHIP[case.off_chip],
        case.multi_plane,
        suspend(case.seed, scheduler) + &plane_reads(case.seed, planes),
        schemes.map,
        unit,
        superblock,
        case.buffer(schemes),
        ORDERS[case.order],
        ["none", "dynamic", "static"][case.levelling],
        VICTIMS[case.victim],
        PACINGS[(case.seed % 4 / 3) as usize],
        FOREGROUNDS[(case.seed % 8 / 7) as usize],
        case.link,
        schemes.text(
            u64::from(blocks * pages * planes),
            vsm_pages,
            scheduler,
            [PACINGS[(case.seed % 4 / 3) as usize], FOREGROUNDS[(case.seed % 8 / 7) as usize]],
        ),
    );
    if !case.places {
        return text;
    }
    let placement = placement(case.seed, &text, u64::from(channels * chips * dies));
    divided(case.seed, &text) + &placement
}

impl Case {
    /// Returns the spec of the case, as text and loaded.
    pub fn spec(&self) -> (String, Spec) {
        let mut schemes = schemes(self);
        if self.buffer(&schemes) > 0 && !schemes.has_cache {
            schemes.add_buffer(self.seed);
        }
        first_accepted(self.slack, |attempt, op| text(self, &schemes, attempt, op))
    }

    /// Draws a request to a drive of `capacity` bytes.
    pub fn request(&self, stream: &mut Stream, capacity: u64) -> Request {
        let sectors = ((capacity as f64 * self.span) as u64 / 512).max(16);
        let total: u64 = self.weights.iter().sum();
        let mut draw = stream.below(total.max(1));
        let weighted = Op::ALL.into_iter().find(|&op| {
            let weight = self.weights[op as usize];
            let hit = draw < weight;
            draw = draw.wrapping_sub(weight);
            hit
        });
        let op = weighted.unwrap_or(Op::Write);
        let first = stream.below(sectors);
        let len = if self.is_uniform { 8 } else { (stream.below(64) + 1).min(sectors - first) };
        // Half of the requests (all of them, if the load is uniform) are aligned to whole pages.
        let is_whole = self.is_uniform || stream.below(2) == 0;
        let (first, len) = if is_whole { (first / 8 * 8, len.div_ceil(8) * 8) } else { (first, len) };
        let len = len.min(capacity / 512 - first);
        let (offset, len) = if op == Op::Flush { (0, 0) } else { (first * 512, len * 512) };
        let is_odd = self.odd && !self.is_uniform && len > 0 && stream.below(4) == 0;
        let odd = if is_odd { stream.below(len) } else { 0 };
        let fua = self.fua && op == Op::Write && stream.below(8) == 0;
        Request::new(op, offset + odd / 2, len - odd).with_fua(fua)
    }

    /// Returns whether the case has uniform writes and twice the least op. For such a case the closed form bounds the
    /// amplification closely; see [`Case::check_amplification`].
    fn is_ample(&self) -> bool {
        self.is_uniform && self.slack == 1.0
    }

    /// Plays at least `requests` requests, and returns the activity of the schemes.
    pub fn play(&self, requests: u32) -> Acts {
        let (_, spec) = self.spec();
        let mut drive = with_oracle(&spec);
        // The closed form holds in the steady state. Under FIFO the amplification oscillates after the fill; with fewer
        // spare superblocks the oscillation takes more rounds over the superblocks. So where the closed form is the
        // bound, only the second half of the writes is measured.
        let (closed_form, _, _) = self.closed_form(&drive, 0);
        let drive_writes = if closed_form > drive.array().shapes().first().pages().into() {
            5
        } else if self.is_ample() {
            2
        } else {
            0
        };
        let pages = u64::from(drive_writes * drive.geometry().pages());
        let (mut before, mut most_valid) = (amplification(&drive), 0);
        let mut is_warm = pages == 0;
        let mut stream = Stream::new(self.seed, "case");
        let capacity = drive.geometry().logical_bytes();
        let (mut submitted, mut completed, mut events_since) = (0, 0, 0u64);
        while submitted < requests || u64::from(submitted) < pages && amplification(&drive)[0] < pages {
            // With a fast age clock the run may reach the last simulated time.
            if matches!(drive.failure(), Some(Failure::TimeIsOver { .. })) || is_late(&drive) {
                drive.audit().unwrap_or_else(|e| panic!("audit at the end of time: {e}"));
                drive.probe().verdict().unwrap_or_else(|e| panic!("oracle: {e}"));
                return Acts::of(self.schemes.0, &drive);
            }
            if !is_warm && (u64::from(submitted) >= pages / 2 || amplification(&drive)[0] >= pages / 2) {
                (before, is_warm) = (amplification(&drive), true);
            }
            if submitted % 64 == 0 {
                most_valid =
                    most_valid.max(drive.ftl().lanes.iter().map(|lane| lane.valid).max().unwrap_or(0));
            }
            if drive.outstanding() < self.depth {
                let request = self.request(&mut stream, capacity).at(drive.now());
                let request = placed(&drive, request, &mut stream);
                drive.submit(&request).unwrap();
                submitted += 1;
                if !self.is_uniform && stream.below(4) == 0 {
                    drive.advance(drive.now() + ns(stream.below(400_000)));
                }
                if !self.is_uniform && stream.below(200) == 0 {
                    drive.advance(drive.now() + ns(20_000_000));
                }
                if stream.below(800) == 0 {
                    drive.detect_budget();
                }
            } else {
                if !drive.advance_unless_at_rest() {
                    let failure = drive.failure();
                    assert!(
                        matches!(failure, Some(Failure::TimeIsOver { .. })),
                        "no event is pending: {failure:?}"
                    );
                    continue;
                }
                events_since += 1;
                assert!(
                    events_since < EVENTS_MAX_BETWEEN_COMPLETIONS,
                    "{events_since} events since the last of {completed} requests was completed"
                );
                let rounds = submitted.div_ceil(requests);
                let seconds = drive.now().seconds();
                let seconds_max = SECONDS_MAX * f64::from(rounds);
                assert!(seconds < seconds_max, "{completed} requests in {seconds} simulated seconds");
            }
            let done = take_completions(&mut drive);
            if done > 0 {
                (completed, events_since) = (completed + done, 0);
            }
            if submitted % 500 == 0 && drive.outstanding() < self.depth {
                drive.audit().unwrap_or_else(|e| panic!("audit during the run: {e}"));
            }
        }
        settle(&mut drive);
        completed += take_completions(&mut drive);
        assert_eq!(completed, submitted, "every request is completed once");
        // A request fails only when no read level decodes a page.
        let counters = &drive.stats().counters;
        assert_eq!(drive.stats().failed.iter().sum::<u64>() > 0, counters.media_errors > 0);
        let has_levels = drive.ecc().has_levels();
        assert!(!has_levels || drive.stats().ecc.reads() == drive.stats().flash_total(FlashOp::Read));
        // The bounds do not consider one-shot programs, nor that the translation page of each unit of a page takes a
        // page, nor that units without valid data go along with copybacks and take pages again.
        let geometry = drive.geometry();
        let of_pages = drive.array().shapes().first().units_per_program == geometry.units_per_page;
        let has_dead_units = drive.stats().migration.dead_units > 0;
        // GC also empties full superblocks of a reclaim unit, which gains nothing.
        let gains = drive.ftl().placements.reclaim_unit == 1;
        if of_pages
            && gains
            && !has_dead_units
            && (geometry.units_per_page == 1 || drive.demand_map().is_none())
        {
            self.check_amplification(&drive, before, most_valid);
        }
        read_all(&mut drive);
        Acts::of(self.schemes.0, &drive)
    }

    /// Returns an upper bound of the write amplification in the steady state, and the usable and the valid units of a
    /// lane from which the bound is computed. `most_valid` is the highest number of valid units seen in a lane.
    fn closed_form(&self, drive: &Drive<Oracle>, most_valid: u32) -> (f64, f64, f64) {
        let needs = &drive.ftl().needs;
        let usable = needs.usable_units(drive.geometry().fewest_superblocks().into()) as f64;
        // The closed forms do not consider superblocks. On average half of the units of the host's open superblock are
        // free, and at the least op these are half of the spare units. (Example: FIFO, uniform writes, 220 usable units
        // in superblocks of 10 units, 210 valid. The closed form gives 11.2 with all spare units and 21.7 without the
        // free half superblock; 12.8 is measured.)
        let open = f64::from(drive.geometry().units_per_superblock) / 2.0;
        let usable = if self.is_ample() { usable } else { usable - open };
        // Combination pages of partial refresh are valid units as well, so the highest number seen counts.
        let valid = needs.valid_units().max(most_valid.into()) as f64;
        // A random victim has the mean share of garbage. Under FIFO a unit of garbage waits for at most one round over
        // the superblocks. These two bounds hold for any workload (Little's law). Under uniform writes garbage waits
        // for half a round.
        let is_any_workload = match VICTIMS[self.victim] {
            "'fifo'" => !self.is_uniform,
            name => name.contains("k = 1"),
        };
        // There is no bound if combination pages have taken all spare units for a time.
        let closed_form = match usable / valid {
            ratio if ratio <= 1.0 => f64::INFINITY,
            ratio if is_any_workload => ratio / (ratio - 1.0),
            ratio => fifo(ratio),
        };
        (closed_form, usable, valid)
    }

    /// The closed form with the padding of GC: a victim with a share 1 / `closed_form` of garbage gains less than that
    /// by the padding of its job's last page. Uniform writes of whole pages have no padding.
    fn with_padding(&self, closed_form: f64, geometry: &Geometry) -> f64 {
        let padding = f64::from(geometry.units_per_page - 1) / f64::from(geometry.units_per_superblock);
        let gain = 1.0 / closed_form - if self.is_uniform { 0.0 } else { padding };
        if gain > 0.0 { 1.0 / gain } else { f64::INFINITY }
    }

    /// Checks the write amplification, in pages programmed. In an ample case ([`Case::is_ample`]) without a budget
    /// detection and without padding of write-backs the bound is 1.2 times the closed form. In all other cases it is
    /// the number of pages of a superblock (GC gains at least one page of each victim), or the closed form if that is
    /// higher. With a demand map each page moved may need the write of a translation page, so a bound of b becomes
    /// 2 b - 1.
    fn check_amplification(&self, drive: &Drive<Oracle>, before: [u64; 2], most_valid: u32) {
        let [host, all] = amplification(drive);
        let (host, all) = (host - before[0], all - before[1]);
        if host < 500 {
            return;
        }
        let (closed_form, usable, valid) = self.closed_form(drive, most_valid);
        // A detection writes clean units, and while the capacitor recharges the host's stream uses only LSB pages.
        let is_measured = !drive.stats().power.detections.is_empty();
        // Write-backs of single units leave padding in pages. In case 4201351 (FIFO, units of 512 B) a third of the
        // programmed units is padding, and the write amplification is 2.34 instead of the 1.75 of the closed form.
        let pads = drive.geometry().units_per_page > 1 && schemes(self).has_cache;
        // The closed form is that of writes which share all superblocks.
        let shares = drive.ftl().placements.is_single();
        let bound = if self.is_ample() && !is_measured && !pads && shares {
            1.2 * closed_form
        } else {
            let of_superblock = drive.array().shapes().first().pages().into();
            self.with_padding(closed_form, drive.geometry()).max(of_superblock)
        };
        let bound = if drive.demand_map().is_some() { 2.0 * bound - 1.0 } else { bound };
        let amplification = all as f64 / host as f64;
        assert!(
            amplification <= bound,
            "{all} programs for {host} pages of host and refresh: {amplification:.2}, but the bound is {bound:.2} \
             (closed form {closed_form:.2}, {usable} usable units, {valid} valid)"
        );
    }
}

/// Reads every logical unit, whose data the oracle checks, as far as the simulated time suffices. With a fast age clock
/// and a small mapping cache it may not suffice for all units.
fn read_all(drive: &mut Drive<Oracle>) {
    ask_for_everything(drive);
    while drive.outstanding() > 0 && drive.advance_unless_at_rest() {}
    if matches!(drive.failure(), Some(Failure::TimeIsOver { .. })) {
        drive.audit().unwrap_or_else(|e| panic!("audit at the end of time: {e}"));
        drive.probe().verdict().unwrap_or_else(|e| panic!("oracle: {e}"));
    } else {
        settle(drive);
    }
}

/// Returns two sums: pages programmed for the host and by refresh (without pages reprogrammed in place, which take no
/// free page); and the same plus the programs of GC and of translation pages.
fn amplification(drive: &Drive<Oracle>) -> [u64; 2] {
    let stats = drive.stats();
    let count = |cause: Cause| {
        let of = |kind: FlashOp| stats.flash[kind as usize][cause as usize];
        of(FlashOp::Program) + of(FlashOp::Copyback)
    };
    let refreshed = count(Cause::Refresh).saturating_sub(stats.refresh.pages_in_place);
    let written = count(Cause::Host) + count(Cause::Sync) + refreshed;
    [written, written + count(Cause::Gc) + count(Cause::Mapping)]
}

/// Write amplification A of FIFO cleaning under uniform random writes: a / (a + W(-a e^-a)) of Xiang and Kurkoski 2012,
/// solved as the fixed point of A = 1 / (1 - e^(-a / A)), where a is physical pages / logical pages and e^(-a / A) the
/// valid share of a victim.
fn fifo(a: f64) -> f64 {
    let (mut low, mut high) = (1.0, 1e9);
    for _ in 0..200 {
        let middle: f64 = f64::sqrt(low * high);
        if 1.0 / (1.0 - (-a / middle).exp()) > middle { low = middle } else { high = middle }
    }
    low
}

fn take_completions(drive: &mut Drive<Oracle>) -> u32 {
    let completions: Vec<_> = drive.completions().collect();
    for done in &completions {
        assert!(matches!(done.failed, None | Some(FailReason::Uncorrectable)), "{done:?}");
        confirm(drive, done);
    }
    completions.len() as u32
}

/// Returns whether nine tenths of the simulated time of the drive are over: the last tenth is needed to come to rest
/// and to read all units. With several units in a page there are more units to read: half of the time.
fn is_late(drive: &Drive<Oracle>) -> bool {
    let tenths = if drive.geometry().units_per_page == 1 { 9 } else { 5 };
    drive.now().ns() > drive.end().ns() / 10 * tenths
}
