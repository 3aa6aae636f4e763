//! Random settings of the four schemes, in all combinations of on and off. For a scheme that is off, other settings of
//! its sections are drawn, among them the baseline of its paper.

#![allow(dead_code, unreachable_pub)]

use nandlab::base::rng::Stream;
use nandlab::drive::Drive;
use nandlab::drive::spec::{self, Spec};
use nandlab::ftl::placement::Place;
use nandlab::host::{Op, Request, Tag};
use nandlab::probe::Probe;
use nandlab::sched::{Cause, FlashOp};
use std::collections::BTreeMap;
use std::path::Path;

/// The schemes that are on in combination `number`, 0 to 15: bit n is scheme n.
pub fn combination(number: u64) -> [bool; 4] {
    [0, 1, 2, 3].map(|scheme| number >> scheme & 1 == 1)
}

/// Values of `timing.off_chip_mb_per_s`.
pub const OFF_CHIP: [&str; 3] = ["'unlimited'", "200", "{ read = 300, write = 200 }"];

/// Properties of the drive on which the settings depend.
#[derive(Clone, Copy, Debug)]
pub struct DriveFacts {
    /// The cell type. LaLDPC needs a cell of two or three bits, since the models of voltages cover no other cells.
    pub cell: &'static str,
    pub dies: u64,
    pub slowest_us: u64,
    /// Interval of the budget detections in milliseconds.
    pub detect_ms: f64,
}

/// The settings of a drive with some schemes.
#[derive(Clone, Debug)]
pub struct Schemes {
    /// Whether LaLDPC, partial refresh, rcopyback and the capacitor-aware cache are on.
    pub on: [bool; 4],
    /// The value of `ftl.map`.
    pub map: String,
    /// The text of whole sections.
    pub ecc: String,
    pub migration: String,
    /// Whether GC shares the open block of the host, unless the drive has a capacitor, blocking GC or refresh without
    /// erases.
    shares: bool,
    /// The number of registers with which copybacks are split, unless the scheduler is `fcfs`; 0: they are not split.
    pub split: u64,
    pub cache: String,
    /// The value of `cache.sync` if the sync policy is `smart`.
    smart: String,
    /// The value of `cache.read_room`.
    read_room: &'static str,
    refresh: &'static str,
    /// The value of `refresh.priority`, unless the scheduler is `fcfs`.
    priority: &'static str,
    pub has_levels: bool,
    pub has_cache: bool,
    pub has_capacitor: bool,
    /// False if there is a capacitor that may be too small for all dirty units that the budget allows.
    pub covers: bool,
    /// The bytes of dirty data for which the capacitor, if there is one, is made.
    pub dirty_bytes: u64,
    /// A factor for the energy of the capacitor of drives without a write cache, whose write buffer gets less than it
    /// could take.
    buffer_energy: f64,
    /// Factor of the energy of a capacitor that is too small: 1, or so low that the energy suffices for few pages or
    /// none.
    least_energy: f64,
    /// Value of `capacitor.esr` in milliohms.
    esr_mohm: u64,
    scale: f64,
    /// Refresh interval in milliseconds per page of a die.
    refresh_ms_per_page: f64,
}

const PARTIAL: [&str; 7] = [
    "{ partial = { min_free_blocks = 0.02 } }",
    "{ partial = { min_free_blocks = 0.02, encoding = 'enumerative', vsm_pages = 1, hot_reads = 3 } }",
    "{ partial = { min_free_blocks = 0.0, encoding = 'entries', susceptible_ratio = 0.03 } }",
    "{ partial = { min_free_blocks = 0.0, susceptible_ratio = 0.3 } }",
    "{ partial = { min_free_blocks = 0.1, hot_reads = 1 } }",
    "{ partial = { min_free_blocks = 0.02, susceptible_ratio = 'vth' } }",
    "{ partial = { min_free_blocks = 0.02, susceptible_ratio = 'vth', full_strength = 'partial' } }",
];
const WHOLE: [&str; 8] = [
    "",
    "",
    "'fcr'",
    "{ fcr = { full_strength = true } }",
    "{ fcr = { in_place = true } }",
    // The last three settings need read levels.
    "{ ec-cache = { size = '16KiB', hot_reads = 2 } }",
    "{ fcr = { in_place = true, reprogram_error = 1e-6 } }",
    "{ fcr = { in_place = true, reprogram_error = 1e-5, remap_above = 2e-4 } }",
];

/// The kinds of errors that a copyback takes over.
const COPYBACK_ERRORS: [&str; 3] =
    ["copyback_error = 3e-4", "copyback = 'propagate'", "copyback.propagate.references = 'optimal'"];

impl Schemes {
    /// Draws settings with which the schemes in `on` are on; everything else is derived from the seed.
    pub fn draw(seed: u64, on: [bool; 4], facts: &DriveFacts) -> Self {
        // Derived from the seed, so that the draws of the other settings do not change.
        const PAGE_VARIATIONS: [f64; 3] = [0.0, 0.3, 0.7];
        const UNWORN_LOSSES: [&str; 2] =
            ["rber = 'vth'\npe_cycles = 12000", "rber.vth = { unworn_loss = 20 }\npe_cycles = 12000"];
        let [laldpc, partial, rcopyback, capacitor_aware] = on;
        let mut stream = Stream::new(seed, "schemes");
        let mut pick = |n: u64| stream.below(n);
        let is_tlc = facts.cell.ends_with("tlc");
        let has_levels = laldpc
            || facts.cell.ends_with("mlc") && pick(2) == 0
            || is_tlc && Stream::new(seed, "levels of tlc").below(2) == 0;
        // Every fourth seed has the newest settings instead of the first ones; the draws of all others do not change.
        let newer =
            |drawn: u64, newest: u64| if seed % 4 == 3 && drawn < 2 { newest } else { drawn } as usize;
        let refresh = match (partial, has_levels) {
            (true, true) => PARTIAL[newer(pick(6), 6)],
            (true, false) => PARTIAL[pick(5) as usize],
            (false, true) => WHOLE[newer(pick(7), 7)],
            (false, false) => WHOLE[pick(5) as usize],
        };
        // The age clock advances up to 400 days per second of simulated time.
        let is_fast = has_levels || !refresh.is_empty() || pick(3) == 0;
        let scale = if is_fast { 86_400.0 * (1 + pick(400)) as f64 } else { 1.0 };
        let start =
            if laldpc { ["last-level", "last-level", "block-level"] } else { ["first", "first", "ideal"] };
        let levels = format!(
            "levels = 'laldpc'\nstart = {}\nretry = '{}'\n",
            start_level(seed, laldpc, start[pick(3) as usize]),
            ["full", "full", "incremental"][pick(3) as usize]
        );
        let levels = match code(seed) {
            // These starts may overshoot among shifted references.
            Some(code)
                if code.contains("shifts")
                    && ["block-level", "drive-level", "table"].iter().any(|start| levels.contains(start)) =>
            {
                levels
            }
            Some(code) => levels.replacen("levels = 'laldpc'\n", &code, 1),
            None => levels,
        };
        let needs_levels = ["full_strength", "ec-cache", "partial"].iter().any(|word| refresh.contains(word));
        let levels = if is_tlc && !needs_levels { retry_table(seed).unwrap_or(levels) } else { levels };
        // Ages reach 3000 days. At this age the last read level does not decode some pages.
        let ages = format!(
            "{}\nread_disturb = 1e-6\n{}\npage_variation = {}\n\
             retention = [{{ age = '7d', share = 0.5 }}, {{ age = '{}d', share = 0.5 }}]\n",
            if is_tlc {
                "rber = 'vth-tlc'\npe_cycles = 4000"
            } else {
                UNWORN_LOSSES[(seed / 7 % 2) as usize]
            },
            COPYBACK_ERRORS[(seed / 11 % 3) as usize],
            PAGE_VARIATIONS[(seed % 3) as usize],
            pick(3000)
        );
        let (levels, ages) = if has_levels { (levels, ages) } else { Default::default() };
        let ecc = format!("[ecc]\n{levels}[reliability]\n{ages}clock_scale = {scale}\n");
        // With refresh the cache has 15 entries more: with few entries the refresh of translation pages leaves little
        // time for requests.
        let entries =
            [1 + pick(6), 8 + pick(200)][pick(2) as usize] + if refresh.is_empty() { 0 } else { 15 };
        let eviction = match laldpc && pick(2) == 0 {
            true => format!("{{ read-level = {{ fixed = {} }} }}", 1 + pick(40)),
            false => "'lru'".to_owned(),
        };
        let map = match pick(5) {
            0..=2 => "'page'".to_owned(),
            _ => format!(
                "{{ demand = {{ cache = '{}B', eviction = {eviction}, {} }} }}",
                8 * entries,
                translation_pages(seed)
            ),
        };
        let measured = if has_levels { "{ measured = { within = '30d', level = 6 } }" } else { "8" };
        let limit = ["1", "2", "3", "'table'", measured][pick(5) as usize];
        let migration = match (rcopyback, pick(4)) {
            (true, 0..=1) => {
                let occupancy = ["writing", "occupied"][Stream::new(seed, "occupancy").below(2) as usize];
                format!("{{ rcopyback = {{ limit = {limit}, occupancy = '{occupancy}' }} }}")
            }
            (true, _) => format!("{{ rcopyback-greedy = {{ limit = {limit} }} }}"),
            (false, 0) => "{ rcopyback-greedy = { limit = 0 } }".to_owned(),
            (false, _) => "'off-chip'".to_owned(),
        };
        let mut schemes = Self {
            on,
            map,
            ecc,
            shares: (seed / 13).is_multiple_of(3),
            split: if migration == "'off-chip'" { 0 } else { seed / 5 % 3 },
            migration: format!(
                "[migration]\npolicy = {migration}\nin_flight = {}\nvalid_min = {}\n",
                [4, 1, 2, 16][(seed / 7 % 4) as usize],
                [0.75, 0.0, 1.0][(seed / 11 % 3) as usize]
            ),
            cache: String::new(),
            smart: smart(seed),
            read_room: ["skip", "wait"][Stream::new(seed, "read room").below(2) as usize],
            refresh,
            priority: ["background", "before-writes", "first"][(seed / 3 % 3) as usize],
            has_levels,
            has_cache: capacitor_aware || pick(3) > 0,
            has_capacitor: pick(if capacitor_aware { 5 } else { 3 }) > 0,
            covers: true,
            dirty_bytes: 0,
            buffer_energy: [1.0, 0.2, 0.05][Stream::new(seed, "buffer energy").below(3) as usize],
            least_energy: [1.0, 1.0, 0.03][Stream::new(seed, "least energy").below(3) as usize],
            esr_mohm: 0,
            scale,
            // The shortest interval drawn is one that the drive can keep up with. Partial refresh needs longer
            // intervals, because refreshed units are also moved later.
            refresh_ms_per_page: facts.slowest_us as f64 / 600.0
                * (if partial { 2.4 } else { 1.0 } + pick(7) as f64 / 3.0),
        };
        // Derived from the seed, so that the draws of the other settings do not change.
        let gc_in_flush = [None, Some(1.0), None, Some(8.0)][(seed / 17 % 4) as usize];
        schemes.esr_mohm = [0, 500][(seed / 19 % 2) as usize];
        schemes.draw_cache(&mut stream, capacitor_aware, facts, gc_in_flush);
        let drawn = format!("[cache]\n{}{}", flush_to(seed), cache_eviction(seed));
        schemes.cache = schemes.cache.replacen("[cache]\n", &drawn, 1);
        let reclaim = ["'none'", "{ reads = { limit = 50 } }", "{ rber = { limit = 0.5, every = 4 } }"];
        let policy = reclaim[stream.below(if has_levels { 3 } else { 2 }) as usize];
        schemes.cache += &format!("[reclaim]\npolicy = {policy}\n");
        schemes.cache += &slc(seed, facts);
        schemes
    }

    /// `gc_in_flush`: if GC goes on in plain flushes, a factor for the energy of the capacitor.
    fn draw_cache(
        &mut self,
        stream: &mut Stream,
        capacitor_aware: bool,
        facts: &DriveFacts,
        gc_in_flush: Option<f64>,
    ) {
        let mut pick = |n: u64| stream.below(n);
        let (has_cache, has_capacitor, esr_mohm) = (self.has_cache, self.has_capacitor, self.esr_mohm);
        let pages = 4 + pick(44);
        self.dirty_bytes = pages * 4096;
        let policy = match capacitor_aware {
            true => ["'punctual'", "'greedy'", self.smart.as_str()][pick(3) as usize],
            false => ["'none'", "'eager'"][pick(2) as usize],
        };
        let budget = match pick(5) {
            _ if !capacitor_aware => "1.0",
            0 => "0.8",
            1 => ["0.0", "0.3"][pick(2) as usize],
            _ if has_capacitor => "'measured'",
            _ => "0.5",
        };
        let is_measured = budget == "'measured'";
        // A measured budget is never higher than the capacitor covers.
        self.covers = !has_cache || !has_capacitor || is_measured || pick(4) > 0;
        if has_cache {
            self.cache = format!(
                "[cache]\nsize = '{}B'\naccess = '{}us'\nsync = {policy}\ndirty_budget = {budget}\n\
                 read_room = '{}'\n",
                pages * 4096,
                2 * pick(2),
                self.read_room,
            );
        }
        if has_capacitor {
            let page_j = (0.08 * facts.slowest_us as f64 + 0.02 * (facts.slowest_us + 100) as f64) * 1e-6;
            let share = match (is_measured, self.covers) {
                (true, _) => 0.5 + pick(150) as f64 / 100.0,
                (false, true) => 3.0 * if has_cache { 1.0 } else { self.buffer_energy },
                (false, false) => pick(80) as f64 / 100.0 * self.least_energy,
            };
            let flush = ["plain", "csw"][pick(2) as usize];
            let gc_in_flush = gc_in_flush.filter(|_| flush == "plain" && share > 0.0);
            let share = share * gc_in_flush.unwrap_or(1.0);
            // A fixed budget does not allow for GC. An energy that does would take long to drain in a detection.
            self.covers &= gc_in_flush.is_none() || is_measured;
            let capacitance = share * pages as f64 * page_j / (0.5 * 24.0 * 0.9);
            if gc_in_flush.is_some() {
                self.cache += "[power]\ngc_in_flush = true\n";
            }
            let concurrency = if flush == "plain" { pick(facts.dies + 1) } else { 0 };
            // A random stream of its own, so that the other draws do not change.
            let drawn = Stream::new(pages ^ facts.slowest_us, "flush mode").below(3);
            let may_be_slc = facts.cell != "slc" && gc_in_flush.is_none();
            let mode = if may_be_slc && drawn == 0 { "slc" } else { "native" };
            let recharge_ms = [1.0, 10.0, 40.0][pick(3) as usize];
            let ns = |ms: f64| (ms * 1e6 * self.scale) as u64;
            self.cache += &format!(
                "[capacitor]\ncapacitance = '{:.9}uF'\ncontroller_power = '20mW'\nprogram_power = '80mW'\n\
                 flush = '{flush}'\nflush_mode = '{mode}'\nflush_concurrency = {concurrency}\nflush_order = '{}'\nmetadata = '64KiB'\n\
                 recharge = '{}ns'\ndetect_every = '{}ns'\ndetect_grace = '{}ns'\nsteps = '{}'\nmargin = {}\n\
                 temperature = {}\nesr = '{}mohm'\n",
                capacitance * 1e6,
                ["oldest", "newest", "metadata"][pick(3) as usize],
                ns(recharge_ms),
                ns(facts.detect_ms),
                ns(facts.detect_ms / 2.5),
                ["five", "continuous"][pick(2) as usize],
                [0.1, 0.2][pick(2) as usize],
                [25, 60][pick(2) as usize],
                esr_mohm,
            );
        }
    }

    /// The drive has a write buffer: draws what acknowledges flushes, and the budget.
    pub fn add_buffer(&mut self, seed: u64) {
        let budgets = ["1.0", "0.5", if self.has_capacitor { "'measured'" } else { "1.0" }];
        let budget = budgets[Stream::new(seed, "buffer budget").below(3) as usize];
        self.cache = format!("[cache]\n{}dirty_budget = {budget}\n{}", flush_to(seed), self.cache);
    }

    /// Whether the settings allow a mapping unit below the page.
    pub fn allows_units(&self) -> bool {
        let refresh = self.refresh;
        !self.shares && !self.cache.contains("gc_in_flush") && !refresh.contains("in_place")
    }

    /// The line with the page registers of a plane in the section `[drive]`, for dies that are served by `scheduler`.
    pub fn registers(&self, scheduler: &str) -> &'static str {
        if self.split == 2 && scheduler != "fcfs" { "registers = 2\n" } else { "" }
    }

    /// The text of all sections except `[drive]`, for dies of `pages_per_die` pages that are served by `scheduler`,
    /// with `gc.pacing` = `pacing` and `gc.foreground` = `foreground`. `vsm_pages`: the least VSM, 1 if a program
    /// writes one unit.
    pub fn text(
        &self,
        pages_per_die: u64,
        vsm_pages: u64,
        scheduler: &str,
        [pacing, foreground]: [&str; 2],
    ) -> String {
        let priority = if scheduler == "fcfs" { "background" } else { self.priority };
        // Refresh that precedes the host must leave time for the host; refresh in the background need not.
        let leaves = if priority == "background" { 1.0 } else { 4.0 };
        let every_ns = pages_per_die as f64 * self.refresh_ms_per_page * 1e6 * self.scale * leaves;
        let policy = match vsm_pages {
            1 => self.refresh.to_owned(),
            _ => self
                .refresh
                .replace("vsm_pages = 1, ", "")
                .replace("partial = {", &format!("partial = {{ vsm_pages = {vsm_pages},")),
        };
        let refresh = match policy.as_str() {
            "" => String::new(),
            policy => format!(
                "[refresh]\npolicy = {policy}\npriority = '{priority}'\n\
                 interval = [{{ pe = 1000000, every = '{}ns' }}]\n",
                (every_ns as u64).max(1_000_000_000)
            ),
        };
        let split = if self.split > 0 && scheduler != "fcfs" { "copyback = 'split'\n" } else { "" };
        let stays = self.refresh.contains("partial") || self.refresh.contains("in_place");
        let has_own_turns = pacing != "none" || foreground == "blocking";
        let shares = self.shares && !self.cache.contains("[capacitor]") && !has_own_turns && !stays;
        let shared = if shares { "first_block = 'shared'\n" } else { "" };
        [&self.ecc, &self.migration, shared, split, &self.cache, &refresh].concat()
    }
}

/// Returns the op that the spec check proposes for `drive.op = 0`; `None` if the check also requires more blocks.
fn proposed_op(text: &str) -> Option<f64> {
    let errors = spec::load(text, "random.toml", Path::new("."), &["drive.op=0.0".to_owned()]).err()?;
    let text = errors.to_string();
    let (_, from) = text.split_once("drive.op = ")?;
    from.split_whitespace().next()?.parse().ok()
}

/// Returns the first spec that the check accepts, as text and loaded. `text(attempt, op)` gives the text of attempts 0,
/// 1, 2, ..., with a number of blocks that rises with the attempts; `op` is 1 + `slack` times the op that the check
/// proposes. Where the check refuses all of them because the drive is too full at the start, the last one is filled as
/// far as the error proposes.
pub fn first_accepted(slack: f64, text: impl Fn(u64, f64) -> String) -> (String, Spec) {
    let load = |text: &str| spec::load(text, "random.toml", Path::new("."), &[]);
    let (mut errors, mut last) = (String::new(), String::new());
    for attempt in 0..80 {
        let Some(op) = proposed_op(&text(attempt, 0.0)) else { continue };
        last = text(attempt, op * (1.0 + slack));
        match load(&last) {
            Ok(loaded) => return (last, loaded.spec),
            Err(found) => errors = found.to_string(),
        }
    }
    if let Some((_, used)) = errors.split_once("remedy: set used to at most ") {
        let used = used.split_whitespace().next().expect("the remedy has a value");
        let text = last.replace("\nused = 0.5\n", &format!("\nused = {used}\n"));
        let spec = load(&text).unwrap_or_else(|found| panic!("the remedy is refused: {found}\n{text}")).spec;
        return (text, spec);
    }
    panic!("no number of blocks is accepted: {errors}\n{last}")
}

/// Draws a slack for [`first_accepted`]: 0 in half of the cases, otherwise up to 1.
pub fn slack(stream: &mut Stream) -> f64 {
    if stream.below(2) == 0 { 0.0 } else { stream.below(1001) as f64 / 1000.0 }
}

/// Returns an SLC cache, for every third of the seeds; none for cells of one bit. The choice has a random stream of its
/// own.
fn slc(seed: u64, facts: &DriveFacts) -> String {
    let mut stream = Stream::new(seed, "slc");
    let mut pick = |choices: &[&'static str]| choices[stream.below(choices.len() as u64) as usize];
    let (is_on, dynamic, fixed) = (
        pick(&["yes", "no", "no"]),
        pick(&["1.0", "0.5", "0.9", "0.0"]),
        pick(&["1B", "0B", "0B", "200KiB"]),
    );
    let dynamic = if fixed == "0B" && dynamic == "0.0" { "1.0" } else { dynamic };
    let rest =
        [pick(&["direct", "fold"]), pick(&["1ms", "40ms"]), pick(&["1.0", "0.5", "0.0"]), pick(&["7", "30"])];
    let [when_full, idle_after, watermark, endurance] = rest;
    if is_on == "no" || facts.cell == "slc" {
        return String::new();
    }
    format!(
        "[slc]\nstatic = '{fixed}'\ndynamic = {dynamic}\nwhen_full = '{when_full}'\nidle_after = '{idle_after}'\n\
         watermark = {watermark}\nendurance = {endurance}000\n"
    )
}

/// Returns the value of `ecc.start`: with LaLDPC on, in a third of the seeds the level of the drive or a table of two
/// rows in place of the policy `drawn`. The choice has a random stream of its own.
fn start_level(seed: u64, laldpc: bool, drawn: &str) -> String {
    let mut stream = Stream::new(seed, "start level");
    let (choice, days, level) = (stream.below(6), stream.below(3000), 1 + stream.below(7));
    match choice {
        0 if laldpc => "'drive-level'".to_owned(),
        1 if laldpc => format!(
            "{{ table = {{ rows = [{{ pe = 0, age = '1d', level = 2 }}, \
             {{ pe = 12000, age = '{days}d', level = {level} }}] }} }}"
        ),
        _ => format!("'{drawn}'"),
    }
}

/// Returns the read levels of a code, and a number of decoders; `None` for three quarters of the seeds. The choice has a
/// random stream of its own.
fn code(seed: u64) -> Option<String> {
    let mut stream = Stream::new(seed, "code");
    let mut pick = |choices: &[&'static str]| choices[stream.below(choices.len() as u64) as usize];
    let is_drawn = pick(&["yes", "no", "no", "no"]) == "yes";
    let placement = pick(&[
        "'equidistant'",
        "'equidistant', centre = 'default'",
        "'mmi'",
        "{ mmi-at = { pe = 3000, age = '90d' } }, centre = 'default'",
        "'equidistant', shifts = [{ age = '30d' }, { age = '300d' }], levels = 5",
    ]);
    let (rate, fer) = (pick(&["8/9", "16/17"]), pick(&["'drawn'", "0.01"]));
    let (transfer, iteration) = (pick(&["raw", "regions"]), pick(&["0us", "600ns", "5us"]));
    let decoders = pick(&["'unlimited'", "1", "2"]);
    is_drawn.then(|| {
        format!(
            "levels = {{ codec = {{ rate = '{rate}', size = '2KiB', references = {placement}, fer = {fer}, transfer = \
             '{transfer}', iteration = '{iteration}' }} }}\ndecoders = {decoders}\n"
        )
    })
}

/// Returns a read-retry table with its start policy; `None` for two thirds of the seeds. The choice has a random stream
/// of its own.
fn retry_table(seed: u64) -> Option<String> {
    let mut stream = Stream::new(seed, "read-retry table");
    let start =
        ["first", "ideal", "last-level", "last-good", "last-good", "last-good"][stream.below(6) as usize];
    let (is_drawn, first, step) = (stream.below(3) == 0, 1 + stream.below(30), 1 + stream.below(400));
    is_drawn.then(|| {
        format!(
            "levels = {{ retry = {{ rber_max = 0.0088, sense = {{ lsb = '46us', csb = '57us', msb = '46us' }}, \
             transfer = '10us', decode = '5us', entries = [{{ age = '{first}d' }}, {{ age = '{}d' }}, \
             {{ age = '{}d' }}] }} }}\nstart = '{start}'\n",
            first + step,
            first + 3 * step
        )
    })
}

/// Returns the line with `cache.flush_to`: a third of the seeds has `flash`. The choice has a random stream of its own.
fn flush_to(seed: u64) -> &'static str {
    ["flush_to = 'cache'\n", "flush_to = 'cache'\n", "flush_to = 'flash'\n"]
        [Stream::new(seed, "flush to").below(3) as usize]
}

/// Returns the line with `cache.eviction`: half of the seeds have `cflru`. The choice has a random stream of its own.
fn cache_eviction(seed: u64) -> &'static str {
    ["eviction = 'lru'\n", "eviction = { cflru = { window = 0.5 } }\n"]
        [Stream::new(seed, "cache eviction").below(2) as usize]
}

/// Returns the parameters of the demand map that concern translation pages. They have a random stream of their own.
fn translation_pages(seed: u64) -> String {
    let mut stream = Stream::new(seed, "translation pages");
    let level = ["remembered", "cached-only"][stream.below(2) as usize];
    let miss = ["shared", "each"][stream.below(2) as usize];
    let write_back = ["async", "before-insert"][stream.below(2) as usize];
    format!("translation_level = '{level}', miss = '{miss}', write_back = '{write_back}'")
}

/// Returns the sync policy `smart` with the share of the budget from which on dirty units are evicted first. The share
/// has a random stream of its own.
fn smart(seed: u64) -> String {
    let shares = ["1.0", "0.95", "0.5", "0.0"];
    let busy_from = shares[Stream::new(seed, "busy from").below(4) as usize];
    format!("{{ smart = {{ busy_from = {busy_from} }} }}")
}

/// Returns the line with `timing.suspend`: half of the seeds suspend programs, and half erases, unless the scheduler is
/// `fcfs`. The choices have a random stream of their own.
pub fn suspend(seed: u64, scheduler: &str) -> String {
    let mut stream = Stream::new(seed, "suspend");
    let mut half = |name: &str| {
        let mut one_of = |choices: [&'static str; 4]| choices[stream.below(4) as usize];
        let (enter, resume) =
            (one_of(["0us", "5us", "20us", "100us"]), one_of(["0us", "5us", "20us", "100us"]));
        let (min_progress, max) = (one_of(["0us", "0us", "50us", "400us"]), one_of(["1", "2", "3", "10"]));
        let times =
            format!("enter = '{enter}', resume = '{resume}', min_progress = '{min_progress}', max = {max}");
        if stream.below(2) == 0 { format!("{name} = {{ {times} }}") } else { format!("{name} = 'none'") }
    };
    let [program, erase] = ["program", "erase"].map(&mut half);
    if scheduler == "fcfs" { String::new() } else { format!("suspend = {{ {program}, {erase} }}\n") }
}

/// Draws the bytes of the mapping unit for pages of 4 KiB: the page in a quarter of the seeds. The choice has a random
/// stream of its own.
pub fn unit(seed: u64) -> u32 {
    [4096, 512, 1024, 2048][Stream::new(seed, "mapping unit").below(4) as usize]
}

/// Draws whether superblocks span the planes of a die, whether a program writes a wordline, and whether superblocks
/// span the dies.
pub fn division(seed: u64) -> [bool; 3] {
    let mut stream = Stream::new(seed, "superblocks and program order");
    [0, 1, 2].map(|_| stream.below(3) == 0)
}

/// Draws the bytes of the write buffer, which needs programs of several units. Half of the write caches have none. A
/// program writes `program` bytes.
pub fn buffer(seed: u64, program: u64, has_cache: bool) -> u64 {
    let largest = if has_cache { 0 } else { 1 << 20 };
    [0, program, 3 * program, largest][Stream::new(seed, "write buffer").below(4) as usize]
}

/// Returns the line with `drive.bad_blocks`: a quarter of the seeds has bad blocks. The choice has a random stream of
/// its own.
pub fn bad_blocks(seed: u64) -> &'static str {
    ["", "", "", "", "", "", "bad_blocks = 0.02\n", "bad_blocks = 0.1\n"]
        [Stream::new(seed, "bad blocks").below(8) as usize]
}

/// Returns the lines of `timing.plane_reads`: the planes of half of the dies that have several read independently. The
/// choice has a random stream of its own.
pub fn plane_reads(seed: u64, planes: u32) -> String {
    let mut stream = Stream::new(seed, "plane reads");
    if planes == 1 || stream.below(2) == 0 {
        return String::new();
    }
    let hold = ["0us", "100us", "3ms"][stream.below(3) as usize];
    format!("plane_reads = 'independent'\nread_hold = '{hold}'\n")
}

/// Returns the section `[placement]` for a drive with the spec `text` and `dies` dies: two fifths of the seeds have placement
/// handles, reclaim groups or reclaim units of several blocks, unless blocks in SLC mode mix the data of handles. The
/// choice has a random stream of its own.
pub fn placement(seed: u64, text: &str, dies: u64) -> String {
    // Blocks in SLC mode have the data of all handles.
    if has_slc_mode(text) {
        return String::new();
    }
    let mut stream = Stream::new(seed, "placement handles");
    if stream.below(5) >= 2 || text.contains("first_block = 'shared'") {
        return String::new();
    }
    let handles = [1, 2, 2, 3, 4][stream.below(5) as usize];
    let isolations: Vec<&str> =
        (0..handles).map(|_| ["'initial'", "'persistent'"][stream.below(2) as usize]).collect();
    let isolation = match stream.below(3) {
        _ if handles == 1 => String::new(),
        0 => format!("isolation = {}\n", isolations[0]),
        _ => format!("isolation = [{}]\n", isolations.join(", ")),
    };
    let groups = [1, 2, 2, 4][stream.below(4) as usize];
    let may_group = text.contains("allocation = 'dynamic'")
        && !text.contains("superblock = 'drive'")
        && dies.is_multiple_of(groups);
    let groups = if may_group { groups } else { 1 };
    let unit = [1, 1, 2, 3][stream.below(4) as usize];
    format!("[placement]\nhandles = {handles}\ngroups = {groups}\nreclaim_unit = {unit}\n{isolation}")
}

/// Whether a drive with the spec `text` has blocks in SLC mode.
fn has_slc_mode(text: &str) -> bool {
    text.contains("[slc]") || text.contains("flush_mode = 'slc'")
}

/// The spec `text` with a policy of `ftl.streams` for a third of the seeds, unless GC shares the host's open block or
/// blocks in SLC mode mix the streams. The choice has a random stream of its own.
pub fn divided(seed: u64, text: &str) -> String {
    let mut stream = Stream::new(seed, "streams");
    if stream.below(3) > 0 || text.contains("'shared'") || has_slc_mode(text) || !text.contains("[ftl]\n") {
        return text.to_owned();
    }
    let policy = match stream.below(3) {
        0 => "'sepbit'".to_owned(),
        1 => "{ multi-hash = { threshold = 1 } }".to_owned(),
        _ => {
            format!("{{ multi-hash = {{ counters = 64, threshold = 2, decay = {} }} }}", 1 + stream.below(64))
        }
    };
    text.replacen("[ftl]\n", &format!("[ftl]\nstreams = {policy}\n"), 1)
}

/// On a drive with placement handles, gives a write a random handle, in one of sixteen cases an unknown one, which has
/// handle 0. Each reclaim group has its share of the LPNs, as after preconditioning; a request ends with the share.
pub fn placed<P: Probe>(drive: &Drive<P>, request: Request, stream: &mut Stream) -> Request {
    let (geometry, placements) = (drive.geometry(), drive.ftl().placements);
    if placements.is_single() || request.op == Op::Flush {
        return request;
    }
    let pages = geometry.logical_units.div_ceil(geometry.units_per_page);
    let page_bytes = u64::from(geometry.page_bytes());
    let group = placements.group_of_number((request.offset / page_bytes) as u32, pages);
    let end = u64::from(placements.first_of(group + 1, pages)) * page_bytes;
    let handle = stream.below(placements.handles.into()) as u16;
    let placement = match stream.below(16) {
        0 if group == 0 => placements.identifier(Place { group, handle }) + 100,
        _ => placements.identifier(Place { group, handle }),
    };
    let len = request.len.min(end - request.offset);
    Request { len, ..request }.with_tag(Tag { placement, ..request.tag })
}

/// Returns the text of the section `[host]`: a third of the seeds has a link, and a third a controller. Each has a random
/// stream of its own.
pub fn link(seed: u64) -> String {
    let mut stream = Stream::new(seed, "controller");
    let mut one_of = |choices: [&'static str; 3]| choices[stream.below(3) as usize];
    let (has_controller, read, write) =
        (one_of(["controller", "", ""]), one_of(["0us", "3us", "80us"]), one_of(["0us", "5us", "200us"]));
    let (at_once, arbitration) = (one_of(["1", "2", "9"]), one_of(["arrival", "arrival", "round-robin"]));
    let most = one_of(["", ", commands_max = 1", ", commands_max = 20"]);
    let controller = match has_controller {
        "" => String::new(),
        _ => format!(
            "controller = {{ read = '{read}', write = '{write}', commands_at_once = {at_once}, arbitration = \
             '{arbitration}'{most} }}\n"
        ),
    };

    let mut stream = Stream::new(seed, "link");
    let mut one_of = |choices: [&'static str; 3]| choices[stream.below(3) as usize];
    let (has_link, mb_per_s, latency) =
        (one_of(["link", "", ""]), one_of(["30", "300", "3000"]), one_of(["0us", "2us", "150us"]));
    let link = match has_link {
        "" => String::new(),
        _ => format!("link = {{ mb_per_s = {mb_per_s}, latency = '{latency}' }}\n"),
    };
    format!("[host]\n{link}{controller}")
}

/// Activity of the schemes over runs.
#[derive(Clone, Debug, Default)]
pub struct Acts {
    /// Runs of each combination.
    pub runs: [u64; 16],
    /// Counts by the name of the activity: reads, units, copybacks, write-backs, superblocks or detections.
    pub acts: BTreeMap<&'static str, u64>,
}

impl Acts {
    /// The activity of one drive.
    pub fn of<P: Probe>(on: [bool; 4], drive: &Drive<P>) -> Self {
        let stats = drive.stats();
        let mut acts = Self::default();
        acts.runs[on.iter().rev().fold(0, |number, &on| 2 * number + usize::from(on))] = 1;
        let [laldpc, .., capacitor_aware] = on;
        let above = stats.ecc.levels.iter().skip(2).sum();
        let synced = stats.flash[FlashOp::Program as usize][Cause::Sync as usize];
        let waiting_reads = stats.cache.waiting_reads;
        acts.acts = BTreeMap::from([
            ("reads above level 1 with LaLDPC", if laldpc { above } else { 0 }),
            ("partial refresh", stats.refresh.partial_pages),
            ("copybacks", stats.flash_total(FlashOp::Copyback)),
            ("write-backs of the capacitor-aware cache", if capacitor_aware { synced } else { 0 }),
            ("read reclaim", stats.reclaim.blocks),
            ("folds in idle time", stats.slc.folded_idle),
            ("folds of a full cache", stats.slc.folded_full),
            ("folds for space", stats.slc.folded_space),
            ("reads that waited for a slot of the write cache", waiting_reads),
            ("suspensions of programs", stats.suspensions.programs),
            ("suspensions of erases", stats.suspensions.erases),
            ("budget detections", stats.power.detections.len() as u64),
            ("units replaced in the write buffer", stats.buffer.replaced),
        ]);
        acts
    }

    pub fn add(&mut self, other: &Self) {
        self.runs.iter_mut().zip(other.runs).for_each(|(sum, more)| *sum += more);
        other.acts.iter().for_each(|(&act, more)| *self.acts.entry(act).or_default() += more);
    }

    /// Checks that the runs have tested something: every combination has a run, and every scheme has been active.
    pub fn check(&self) {
        assert!(self.runs.iter().all(|&runs| runs > 0), "a combination has no run: {self:?}");
        assert!(self.acts.values().all(|&count| count > 0), "an activity is missing: {self:?}");
    }
}
