//! The table of keys. Parsing, defaults, ranges, `show`, the JSON Schema and "did you mean" all come from it.
//!
//! To add a key: its line here, its field in `model.rs`, and where `build.rs` fills that field.

use super::kind::{Kind, Range};
use super::quantity::Dimension;
use super::slots as slot;

/// One key of the file.
#[derive(Debug)]
pub(super) struct Key {
    /// `section.name`, or a bare name above all sections.
    pub(super) path: &'static str,
    pub(super) kind: Kind,
    /// As TOML; empty: not set, or it follows from other keys.
    pub(super) default: &'static str,
    pub(super) when: When,
    pub(super) doc: &'static str,
    /// Where the default comes from, or what to know about it; may be empty.
    pub(super) note: &'static str,
}

/// When a key has a meaning.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    Always,
    /// One of these keys is set.
    Set(&'static [&'static str]),
    /// This key has one of these values.
    Is(&'static str, &'static [&'static str]),
}

impl Key {
    /// The part before the point.
    pub(super) fn section(&self) -> &'static str {
        self.path.split_once('.').map_or("", |(section, _)| section)
    }

    /// The part after the point.
    pub(super) fn name(&self) -> &'static str {
        self.path.split_once('.').map_or(self.path, |(_, name)| name)
    }

    const fn when(mut self, when: When) -> Key {
        self.when = when;
        self
    }

    const fn note(mut self, note: &'static str) -> Key {
        self.note = note;
        self
    }
}

const fn key(path: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Key {
    Key { path, kind, default, when: When::Always, doc, note: "" }
}

const fn int(min: u64, max: u64) -> Kind {
    Kind::Int { min, max }
}

/// Where requests come from: exactly one of these.
pub(super) const SOURCES: &[&str] = &["workload.trace", "workload.profile", "workload.synthetic"];

/// Keys of which a higher layer's replaces a lower layer's, and of which one layer may set only one.
pub(super) const EXCLUSIVE: &[&[&str]] =
    &[SOURCES, &["precondition.method", "precondition.load"], &["power.cut_after_requests", "power.cut_at"]];

const TRACE: When = When::Set(&["workload.trace"]);
const PROFILE: When = When::Set(&["workload.profile"]);
const ANY_SOURCE: When = When::Set(SOURCES);
const FILL: When = When::Is("precondition.method", &["fill"]);
const PTS: When = When::Is("precondition.method", &["pts"]);
const STACKED: When = When::Is("drive.cell", &["3d-mlc", "3d-tlc"]);

/// Names a preset; resolved before all other keys.
pub(super) const PRESET: &str = "drive.preset";

const JOULES: Kind = Kind::Si(Dimension::Energy);
const WATTS: Kind = Kind::Si(Dimension::Power);
const VOLTS: Kind = Kind::Si(Dimension::Voltage);
const ENERGY_NOTE: &str =
    "assumption: 3.3 V x 25 mA (typical array current in ONFI MLC datasheets) x the default time";

/// All keys, in the order `show` prints them.
pub(super) static KEYS: &[Key] = &[
    key("seed", int(0, i64::MAX as u64), "1", "seed of every random stream"),
    key("drive.preset", Kind::Text, "", "start from a published drive; keys beside it override it"),
    key("drive.channels", int(1, 64), "4", "channels"),
    key("drive.chips_per_channel", int(1, 64), "4", "chips on a channel"),
    key("drive.dies_per_chip", int(1, 32), "1", "dies in a chip"),
    key("drive.planes_per_die", int(1, 32), "2", "planes in a die"),
    key("drive.blocks_per_plane", int(1, 1 << 20), "256", "blocks in a plane"),
    key("drive.pages_per_block", int(1, 1 << 15), "64", "pages in a block"),
    key(
        "drive.page_size",
        Kind::Size { min: 512, max: 1 << 20, step: 512 },
        "\"4KiB\"",
        "bytes in a page; a power of two",
    ),
    key("drive.cell", slot::CELL, "\"mlc\"", "cell technology"),
    key("drive.layers", int(1, 1024), "32", "layers of a 3D block; pages are spread evenly over them")
        .when(STACKED),
    key(
        "drive.op",
        Kind::Num(Range { min: 0.0, max: 100.0, above: false, below: false }),
        "0.07",
        "over-provisioning: (raw - logical) / logical",
    ),
    key("drive.endurance", int(1, 10_000_000), "3000", "P/E cycles after which a block is retired"),
    key("host.link", slot::LINK, "\"none\"", "the link between host and drive, shared in each direction"),
    key("timing.read", slot::OPERATION, "\"50us\"", "tR: sensing a page at the first level"),
    key("timing.program", slot::PROGRAM, "\"900us\"", "tPROG: for every page, by page kind, or by layer"),
    key("timing.erase", slot::OPERATION, "\"3.5ms\"", "tBERS: erasing a block"),
    key(
        "timing.channel_ns_per_byte",
        Kind::Num(Range { min: 0.0, max: 1e6, above: false, below: false }),
        "2.5",
        "channel time to transfer a byte, in ns",
    ),
    key(
        "timing.command",
        slot::COMMAND,
        "\"0us\"",
        "channel time of a command, of every operation or of each",
    ),
    key("timing.decode", slot::OVERHEAD, "\"15us\"", "controller time to decode a page"),
    key(
        "timing.off_chip_mb_per_s",
        slot::OFF_CHIP,
        "\"unlimited\"",
        "bandwidth of the off-chip path in MB/s",
    ),
    key("timing.scheduler", slot::SCHEDULER, "\"read-first\"", "order between a die's queues"),
    key("timing.multi_plane", Kind::Bool, "false", "the planes of a die work together"),
    key("ftl.map", slot::MAP, "\"page\"", "where the mapping is kept"),
    key("ftl.allocation", slot::ALLOCATION, "\"CWDP\"", "where the next page goes"),
    key("ftl.wear_levelling", slot::WEAR_LEVELLING, "\"dynamic\"", "how wear is spread"),
    key(
        "ftl.wear_gap",
        int(1, 1_000_000),
        "100",
        "static: a block is moved once it lags the plane's mean P/E by this much",
    )
    .note("assumption"),
    key("gc.victim", slot::VICTIM, "\"greedy\"", "which block is collected next"),
    key("gc.pacing", slot::PACING, "\"proportional\"", "how foreground GC shares its die with host writes"),
    key(
        "gc.foreground",
        slot::FOREGROUND,
        "\"interleaved\"",
        "whether the host waits for the whole cleaning of a victim",
    ),
    key(
        "gc.background_free",
        slot::SHARE_BELOW_1,
        "0.10",
        "share of the pages that can be free at which idle-time GC starts",
    ),
    key(
        "gc.foreground_free",
        slot::SHARE_BELOW_1,
        "0.05",
        "share of the pages that can be free at which foreground GC starts",
    ),
    key(
        "gc.idle_valid_max",
        slot::SHARE,
        "0.75",
        "idle-time GC stops when its best victim is more than this valid",
    )
    .note("assumption: three pages moved to gain one"),
    key("gc.idle_after", slot::ANY_TIME, "\"10ms\"", "without host requests for this long the drive is idle")
        .note("assumption"),
    key(
        "ecc.levels",
        slot::ECC_LEVELS,
        "\"none\"",
        "read levels: their RBER limits, and latencies in place of those of [timing]",
    ),
    key("ecc.start", slot::ECC_START, "\"first\"", "the level a read starts at"),
    key("ecc.retry", slot::ECC_RETRY, "\"full\"", "what a further try costs"),
    key("reliability.rber", slot::RBER, "\"none\"", "raw bit error rate"),
    key(
        "reliability.read_disturb",
        Kind::Num(Range { min: 0.0, max: 1e-3, above: false, below: false }),
        "0.0",
        "RBER that every read of a block adds to its pages",
    ),
    key(
        "reliability.copyback_error",
        Kind::Num(Range { min: 0.0, max: 1e-2, above: false, below: false }),
        "0.0",
        "RBER that every copyback in a row without correction adds",
    ),
    key("reliability.pe_cycles", slot::CYCLES, "0", "P/E cycles of every block at the start"),
    key(
        "reliability.retention",
        slot::RETENTION,
        "\"0d\"",
        "age of the data that is there at the start, or ages and their shares of it",
    ),
    key("reliability.clock_scale", slot::FACTOR, "1.0", "ages run this much faster than the workload"),
    key("refresh.policy", slot::REFRESH, "\"none\"", "how ageing data is refreshed"),
    key(
        "refresh.interval",
        slot::REFRESH_INTERVAL,
        "[{ pe = 1000, every = \"365d\" }, { pe = 2000, every = \"30d\" }, { pe = 4000, every = \"7d\" }]",
        "when a block is due, by its P/E cycles",
    )
    .note("Table 1 of the partial refresh paper"),
    key("refresh.grace", slot::SHARE, "0.01", "share of its interval that a block may be overdue"),
    key("migration.policy", slot::MIGRATION, "\"off-chip\"", "how pages are copied inside the drive"),
    key(
        "cache.size",
        Kind::Size { min: 0, max: 1 << 40, step: 512 },
        "\"0MiB\"",
        "write cache; below a page: none",
    ),
    key("cache.access", slot::OVERHEAD, "\"1us\"", "DRAM time of a page of a hit")
        .note("assumption: 4 KiB at some GB/s"),
    key("cache.sync", slot::SYNC, "\"none\"", "when dirty pages are written ahead of eviction"),
    key(
        "cache.dirty_budget",
        slot::DIRTY_BUDGET,
        "1.0",
        "share of the cache that may be dirty; sync = \"none\" keeps none",
    ),
    key(
        "capacitor.capacitance",
        Kind::Si(Dimension::Capacitance),
        "\"0F\"",
        "what keeps the drive alive when power fails, when new; 0F: no capacitor",
    ),
    key("capacitor.voltage", VOLTS, "\"5.5V\"", "voltage it is charged to")
        .note("assumption: rating of the coin supercapacitors in drives of that time"),
    key("capacitor.voltage_min", VOLTS, "\"2.5V\"", "least voltage the circuits work at").note("assumption"),
    key(
        "capacitor.efficiency",
        slot::SHARE_ABOVE_0,
        "0.9",
        "share of the energy that reaches the circuits: m of Eq. 1",
    )
    .note("W. Choi et al., as the capacitor paper cites it"),
    key(
        "capacitor.temperature",
        slot::TEMPERATURE,
        "25",
        "degrees Celsius, or a profile of them over the scaled clock, the first from 0",
    )
    .note("assumption"),
    key("capacitor.age", slot::AGE, "\"0d\"", "age at the start, spent at the first temperature"),
    key("capacitor.controller_power", WATTS, "\"1W\"", "power of the controller: U_nor x I_nor of Eq. 4")
        .note("assumption"),
    key("capacitor.program_power", WATTS, "\"82.5mW\"", "power of a program operation: U_r x I_r of Eq. 5")
        .note("assumption: 3.3 V x 25 mA, as energy.program"),
    key(
        "capacitor.detect_every",
        slot::SOME_TIME,
        "\"20d\"",
        "time between budget detections, on the scaled clock",
    )
    .note("capacitor paper, Section IV-A"),
    key(
        "capacitor.detect_grace",
        slot::ANY_TIME,
        "\"1d\"",
        "how long a due detection waits for an idle time, on the scaled clock",
    )
    .note("capacitor paper, Section IV-A"),
    key("capacitor.recharge", slot::ANY_TIME, "\"10s\"", "time to charge it again, on the scaled clock")
        .note("capacitor paper, Section IV-A"),
    key(
        "capacitor.margin",
        slot::SHARE,
        "0.10",
        "share of the cache that the budget stays below what was measured",
    )
    .note("capacitor paper, Section IV-A"),
    key("capacitor.steps", slot::STEPS, "\"five\"", "what the measured budget can be")
        .note("capacitor paper, Section IV-A"),
    key("capacitor.flush", slot::FLUSH, "\"plain\"", "how dirty pages are written at power loss"),
    key(
        "capacitor.flush_concurrency",
        int(0, 1 << 17),
        "0",
        "programs under way at a time with flush = \"plain\"; 0: as many as dies",
    ),
    key(
        "capacitor.flush_order",
        slot::FLUSH_ORDER,
        "\"oldest\"",
        "which dirty pages are written first at power loss",
    ),
    key(
        "capacitor.metadata",
        Kind::Size { min: 0, max: 1 << 52, step: 512 },
        "\"0B\"",
        "so many bytes from address 0 hold metadata, for flush_order = \"metadata\"",
    ),
    key(
        "power.cut_after_requests",
        slot::COUNT,
        "0",
        "power fails after this many completed requests; 0: never",
    ),
    key("power.cut_at", slot::ANY_TIME, "", "power fails at this simulated time"),
    key("energy.read", JOULES, "\"4.1uJ\"", "energy to sense a page").note(ENERGY_NOTE),
    key("energy.program", JOULES, "\"74uJ\"", "energy to program a page").note(ENERGY_NOTE),
    key("energy.erase", JOULES, "\"289uJ\"", "energy to erase a block").note(ENERGY_NOTE),
    key("energy.transfer_per_byte", JOULES, "\"80pJ\"", "energy to move a byte over the channel")
        .note("assumption: 3.3 V x 10 mA x 2.5 ns"),
    key("energy.idle", WATTS, "\"50mW\"", "power drawn all the time")
        .note("assumption: idle figure of consumer SATA datasheets"),
    key(
        "precondition.method",
        slot::METHOD,
        "",
        "how the drive is aged before the workload; fill when used or valid is given, else none",
    ),
    key("precondition.used", slot::SHARE, "0.95", "filled share of the physical pages").when(FILL),
    key("precondition.valid", slot::SHARE, "0.80", "share of the filled pages that is still valid")
        .when(FILL),
    key("precondition.order", slot::FILL_ORDER, "\"random\"", "order of the LPNs in the filled pages")
        .when(FILL),
    key("precondition.rounds_max", int(0, 1000), "10", "overwrites of the logical capacity at most; 0: none")
        .when(PTS)
        .note("assumption"),
    key("precondition.load", Kind::Path, "", "a drive saved earlier"),
    key(
        "precondition.map_reads",
        Kind::Bool,
        "false",
        "pages that the workload reads before it writes them hold data at the start",
    ),
    key("workload.trace", Kind::Path, "", "a trace file; .zst, .gz and .xz are read as they are"),
    key(
        "workload.profile",
        Kind::Text,
        "",
        "a look-alike of a published or recorded trace, such as \"msr/hm_0\"",
    ),
    key("workload.synthetic", slot::SYNTHETIC, "", "a synthetic workload"),
    key("workload.format", slot::FORMAT, "", "the trace's format; by content when not given").when(TRACE),
    key("workload.device", Kind::Text, "", "which device of the trace, or \"concatenate\"").when(TRACE),
    key("workload.lenient", Kind::Bool, "false", "skip malformed lines and count them").when(TRACE),
    key(
        "workload.time_unit",
        slot::TIME_UNIT,
        "",
        "unit of time of a format that does not fix it (MQSim's Time_Unit)",
    )
    .when(TRACE),
    key(
        "workload.requests",
        int(1, 1_000_000_000_000),
        "",
        "number of requests; as many as published when not given",
    )
    .when(PROFILE),
    key(
        "workload.arrival",
        slot::ARRIVAL,
        "",
        "how requests arrive; \"trace\", for a synthetic workload { queue_depth = 32 }",
    )
    .when(ANY_SOURCE),
    key("workload.time_scale", slot::FACTOR, "1.0", "arrival times are multiplied by this")
        .when(When::Is("workload.arrival", &["trace"])),
    key(
        "workload.max_gap",
        slot::ANY_TIME,
        "\"1d\"",
        "the longest time from one record of the trace to the next that is not questioned",
    )
    .when(TRACE),
    key("workload.beyond", slot::BEYOND, "\"refuse\"", "a request beyond the drive").when(ANY_SOURCE),
    key("workload.requests_max", slot::COUNT, "0", "stop after this many requests; 0: never")
        .when(ANY_SOURCE),
    key("workload.repeat", int(1, 1_000_000), "1", "how many times the workload is played").when(ANY_SOURCE),
    key("output.timeline_operations", slot::COUNT, "0", "flash operations in timeline.json; 0: none"),
    key("output.requests", Kind::Bool, "false", "write requests.parquet, one row a request"),
    key("output.series_rows", int(1, 1_000_000), "1000", "rows of series.parquet at most"),
];

/// The key of this path.
pub(super) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// The sections, in the order of the table.
pub(super) fn sections() -> Vec<&'static str> {
    let mut sections: Vec<&'static str> = Vec::new();
    for key in KEYS {
        if !sections.contains(&key.section()) {
            sections.push(key.section());
        }
    }
    sections
}

/// The keys of one section.
pub(super) fn of_section(section: &str) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| key.section() == section)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::node::parse_value;
    use crate::spec::read::Reader;

    #[test]
    fn every_key_is_documented_and_its_default_is_one_of_its_values() {
        for key in KEYS {
            assert!(key.doc.len() > 5, "{}", key.path);
            if key.default.is_empty() {
                continue;
            }
            let node = parse_value(key.default).unwrap_or_else(|| panic!("{}: {}", key.path, key.default));
            let mut reader = Reader::default();
            assert!(reader.read(&key.kind, &node, key.path).is_some(), "{}: {:?}", key.path, reader.issues);
        }
    }

    #[test]
    fn no_key_is_there_twice_and_conditions_name_keys() {
        for (i, key) in KEYS.iter().enumerate() {
            assert!(!KEYS[..i].iter().any(|other| other.path == key.path), "{}", key.path);
            match key.when {
                When::Always => {}
                When::Set(paths) => assert!(paths.iter().all(|path| find(path).is_some())),
                When::Is(path, values) => {
                    let policies = find(path).and_then(|key| key.kind.policies()).expect(path);
                    assert!(values.iter().all(|value| policies.iter().any(|p| p.name == *value)));
                }
            }
        }
    }

    #[test]
    fn every_key_that_has_a_choice_reaches_the_spec() {
        let build = include_str!("build.rs");
        let one_choice = |key: &Key| key.kind.policies().is_some_and(|all| all.len() == 1);
        for key in KEYS.iter().filter(|key| key.path != PRESET && !one_choice(key)) {
            assert!(build.contains(&format!("\"{}\"", key.path)), "{} is not read", key.path);
        }
    }
}
