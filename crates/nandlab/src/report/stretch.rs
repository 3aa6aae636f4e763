//! A stretch of a drive's life: the change of all statistics since a point in time.

use crate::base::numbers::{per, ratio};
use crate::base::units::{Span, Time};
use crate::drive::stats::RoomCounters;
use crate::drive::{Drive, Lived};
use crate::host::{Latency, Op};
use crate::probe::Probe;
use crate::sched::{Cause, FlashOp};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, json};
use std::borrow::Cow;

const YEAR_S: f64 = 365.0 * 86_400.0;

/// The statistics of a drive at the beginning of a stretch.
#[derive(Debug)]
pub struct Stretch {
    at: Time,
    lived: Lived,
    die_busy_ns: Span,
    channel_busy_ns: Span,
    energy_j: f64,
    counted: RoomCounters,
    flash: [[u64; Cause::ALL.len()]; 4],
    host: [Latency; 4],
}

/// A column of `life.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Column {
    name: &'static str,
    unit: &'static str,
    doc: &'static str,
    /// Whether every drive has the column.
    is_always_there: bool,
}

const fn always(name: &'static str, unit: &'static str, doc: &'static str) -> Column {
    Column { name, unit, doc, is_always_there: true }
}

const fn sometimes(name: &'static str, unit: &'static str, doc: &'static str) -> Column {
    Column { name, unit, doc, is_always_there: false }
}

/// The place of a column that a counter declares; [`columns`] fills in the unit and the doc.
const fn counted(name: &'static str) -> Column {
    always(name, "", "")
}

/// The columns in their order. Columns that a counter declares and that are not listed here come last.
const COLUMNS: &[Column] = &[
    always("years", "years", "Age of the drive at the end of the stretch, on the scaled clock."),
    always("pe_mean", "P/E cycles", "Mean P/E cycles of all superblocks at the end of the stretch."),
    always("pe_min", "P/E cycles", "P/E cycles of the least worn superblock at the end of the stretch."),
    always("pe_max", "P/E cycles", "P/E cycles of the most worn superblock at the end of the stretch."),
    always("simulated_s", "s", "Simulated time of the stretch."),
    always("lived_s", "s", "Duration of the stretch on the scaled clock."),
    always("reads", "requests", "Reads completed without failure."),
    always("read_bytes", "bytes", "Bytes of the reads completed without failure."),
    always("read_us_mean", "us", "Mean latency of reads."),
    always("read_us_p99", "us", "99th percentile of the latency of reads."),
    always("writes", "requests", "Writes completed without failure."),
    always("write_bytes", "bytes", "Bytes of the writes completed without failure."),
    always("write_us_mean", "us", "Mean latency of writes."),
    always("write_us_p99", "us", "99th percentile of the latency of writes."),
    counted("host_pages"),
    always(
        "waf",
        "",
        "Write amplification: bytes programmed per byte of completed host writes; NaN if no host write completed.",
    ),
    always(
        "waf_pages",
        "",
        "Write amplification in units: units of the pages programmed per unit of completed host writes; NaN if no host \
         write completed.",
    ),
    always("copybacks", "pages", "Pages moved by copyback."),
    counted("refused_copybacks"),
    always("erases", "blocks", "Blocks erased."),
    always("outstanding", "requests", "Requests outstanding at the end of the stretch."),
    always("read_level_mean", "level", "Mean read level that decoded a page read of the host."),
    always("read_level_needed_mean", "level", "Mean needed level of a page read of the host."),
    always("tries_per_read", "tries", "Mean number of tries of a page read of the host."),
    counted("uncorrectable"),
    counted("media_errors"),
    counted("failed_pages"),
    counted("refreshed_blocks"),
    counted("refreshed_pages"),
    counted("partial_pages"),
    counted("late_blocks"),
    always("energy_j", "j", "Energy of all flash operations and transfers, and of the idle power."),
    always(
        "die_busy_share",
        "share",
        "Die utilisation: share of the time in which a die executed an operation, mean of all dies.",
    ),
    always(
        "channel_busy_share",
        "share",
        "Channel utilisation: share of the time of command cycles and transfers, mean of all channels.",
    ),
    sometimes(
        "capacitor_loss_share",
        "share",
        "Share of the rated capacitance lost by the end of the stretch; absent without a capacitor.",
    ),
    sometimes(
        "capability_pages",
        "pages",
        "Units that the full capacitor could save at the end of the stretch; absent without a capacitor.",
    ),
    sometimes("cache_pages", "pages", "Size of the write cache in units; absent without a write cache."),
    sometimes(
        "budget_pages",
        "pages",
        "Units that may be dirty in the write cache at the end of the stretch; absent without a write cache.",
    ),
    sometimes(
        "dirty_pages",
        "pages",
        "Dirty units in the write cache at the end of the stretch; absent without a write cache.",
    ),
];

/// All columns of `life.parquet`.
fn columns() -> Vec<Column> {
    let mut columns = COLUMNS.to_vec();
    let at = columns.iter().position(|column| column.name == "copybacks").expect("the column is declared");
    let of_causes = Cause::ALL.map(Cause::programs).map(|[name, doc]| always(name, "pages", doc));
    columns.splice(at..at, of_causes);
    for declared in super::counters().flat_map(|(_, declared)| declared) {
        let Some(name) = declared.life else { continue };
        let column = always(name, declared.unit, declared.doc);
        match columns.iter_mut().find(|column| column.name == name) {
            Some(place) => *place = column,
            None => columns.push(column),
        }
    }
    columns
}

/// The type of a row of `life.parquet` in the JSON Schema.
#[derive(Debug)]
pub struct LifeRow;

impl JsonSchema for LifeRow {
    fn schema_name() -> Cow<'static, str> {
        "LifeRow".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for column in columns() {
            let mut schema = json!({ "description": column.doc, "type": "number" });
            if !column.unit.is_empty() {
                schema["unit"] = column.unit.into();
            }
            properties.insert(column.name.to_owned(), schema);
            if column.is_always_there {
                required.push(column.name);
            }
        }
        json_schema!({
            "description": "A stretch of a drive's life: a row of `life.parquet`.",
            "type": "object",
            "properties": properties,
            "required": required,
        })
    }
}

impl Stretch {
    /// A stretch that begins now.
    pub fn begin<P: Probe>(drive: &Drive<P>) -> Self {
        let stats = drive.stats();
        Self {
            at: drive.now(),
            lived: drive.lived(),
            die_busy_ns: drive.die_busy_ns(),
            channel_busy_ns: drive.channel_busy_ns(),
            energy_j: super::summary::energy_j(drive),
            counted: stats.counted.clone(),
            flash: stats.flash.to_owned(),
            host: stats.host.clone(),
        }
    }

    /// The age and the wear of the drive at the beginning of the stretch.
    pub fn lived(&self) -> &Lived {
        &self.lived
    }

    /// The row of `life.parquet` for the stretch from its beginning until now, columns in order. NaN stands for a
    /// missing value.
    pub fn row<P: Probe>(&self, drive: &Drive<P>) -> Vec<(&'static str, f64)> {
        let (stats, columns) = (drive.stats(), columns());
        let counted = stats.counted.since(&self.counted);
        let mut row = counted.life();
        let mut put = |name: &'static str, value: f64| row.push((name, value));

        let seconds = (drive.now() - self.at).seconds();
        let good = f64::from(drive.geometry().good_superblocks());
        let cycles = || drive.array().good_superblocks().map(|superblock| superblock.pe_cycles);
        put("years", drive.lived_s() / YEAR_S);
        put("pe_mean", ratio(cycles().map(f64::from).sum(), good));
        put("pe_min", f64::from(cycles().min().unwrap_or(0)));
        put("pe_max", f64::from(cycles().max().unwrap_or(0)));
        put("simulated_s", seconds);
        put("lived_s", drive.lived_s() - self.lived.seconds());
        for (op, names) in [
            (Op::Read, ["reads", "read_bytes", "read_us_mean", "read_us_p99"]),
            (Op::Write, ["writes", "write_bytes", "write_us_mean", "write_us_p99"]),
        ] {
            let values = stats.host[op as usize].life_since(&self.host[op as usize]);
            names.into_iter().zip(values).for_each(|(name, value)| put(name, value));
        }
        let since = |kind: FlashOp, cause: Cause| {
            (stats.flash[kind as usize][cause as usize] - self.flash[kind as usize][cause as usize]) as f64
        };
        let all = |kind: FlashOp| Cause::ALL.into_iter().map(|cause| since(kind, cause)).sum::<f64>();
        let programmed = (all(FlashOp::Program) + all(FlashOp::Copyback)) as u64;
        let bytes = stats.host[Op::Write as usize].bytes - self.host[Op::Write as usize].bytes;
        let geometry = drive.geometry();
        let waf = per(programmed * u64::from(geometry.page_bytes()), bytes);
        put("waf", waf.unwrap_or(f64::NAN));
        put(
            "waf_pages",
            per(programmed * u64::from(geometry.units_per_page), counted.counters.host_pages_written)
                .unwrap_or(f64::NAN),
        );
        for cause in Cause::ALL {
            put(cause.programs()[0], since(FlashOp::Program, cause) + since(FlashOp::Copyback, cause));
        }
        put("copybacks", all(FlashOp::Copyback));
        put("erases", all(FlashOp::Erase));
        put("outstanding", f64::from(drive.outstanding()));
        for (name, value) in counted.ecc.life_means() {
            put(name, value);
        }
        put("energy_j", super::summary::energy_j(drive) - self.energy_j);
        let busy = (drive.die_busy_ns() - self.die_busy_ns).seconds();
        put("die_busy_share", ratio(busy, seconds * f64::from(drive.geometry().dies)));
        let busy = (drive.channel_busy_ns() - self.channel_busy_ns).seconds();
        put("channel_busy_share", ratio(busy, seconds * f64::from(drive.geometry().channels)));
        if let Some(capacitor) = drive.capacitor() {
            put("capacitor_loss_share", capacitor.loss_share);
            put("capability_pages", drive.capability_units());
        }
        let [cache_units, budget_units, dirty_units] = drive.dirty_units();
        if cache_units > 0 {
            put("cache_pages", f64::from(cache_units));
            put("budget_pages", f64::from(budget_units));
            put("dirty_pages", f64::from(dirty_units));
        }
        let place =
            |name: &str| columns.iter().position(|column| column.name == name).expect("it is declared");
        row.sort_by_key(|(name, _)| place(name));
        row
    }
}
