//! A stretch of a drive's life: what has happened since a moment.

use crate::base::counters::CounterSet;
use crate::base::geometry::DieId;
use crate::base::numbers::{per, ratio};
use crate::base::units::{Span, Time};
use crate::drive::stats::{CacheStats, Counters, EccStats, MapStats, MigrationStats, RefreshStats};
use crate::drive::{Drive, Lived};
use crate::host::{Latency, Op};
use crate::probe::Probe;
use crate::sched::{Cause, FlashOp};

const YEAR_S: f64 = 365.0 * 86_400.0;

/// The moment at which a stretch began.
#[derive(Debug)]
pub struct Stretch {
    at: Time,
    lived: Lived,
    die_busy_ns: Span,
    energy_j: f64,
    counters: Counters,
    ecc: EccStats,
    map: MapStats,
    cache: CacheStats,
    refresh: RefreshStats,
    migration: MigrationStats,
    flash: [[u64; Cause::ALL.len()]; 4],
    host: [Latency; 4],
}

fn die_busy_ns<P: Probe>(drive: &Drive<P>) -> Span {
    (0..drive.geometry().dies).map(|die| drive.device().die_busy_ns(DieId(die), drive.now())).sum()
}

/// A row of `life.parquet` that is being made.
struct Row {
    columns: Vec<(String, f64)>,
    /// Columns that counters declare, until they have their place.
    declared: Vec<(&'static str, f64)>,
}

impl Row {
    fn put(&mut self, name: impl Into<String>, value: f64) {
        self.columns.push((name.into(), value));
    }

    /// Here is the place of columns that counters declare.
    fn place<const N: usize>(&mut self, names: [&str; N]) {
        for name in names {
            let at = self.declared.iter().position(|column| column.0 == name);
            let (name, value) = self.declared.remove(at.expect("a counter declares it"));
            self.put(name, value);
        }
    }

    /// All columns; those that counters declare and that have no other place come last.
    fn finish(mut self) -> Vec<(String, f64)> {
        for (name, value) in std::mem::take(&mut self.declared) {
            self.put(name, value);
        }
        self.columns
    }
}

impl Stretch {
    /// A stretch that begins now.
    pub fn begin<P: Probe>(drive: &Drive<P>) -> Self {
        let stats = drive.stats();
        Self {
            at: drive.now(),
            lived: drive.lived(),
            die_busy_ns: die_busy_ns(drive),
            energy_j: super::summary::energy_j(drive),
            counters: stats.counters.clone(),
            ecc: stats.ecc.clone(),
            map: stats.map.clone(),
            cache: stats.cache.clone(),
            refresh: stats.refresh.clone(),
            migration: stats.migration.clone(),
            flash: stats.flash.to_owned(),
            host: stats.host.clone(),
        }
    }

    /// What the drive had lived through then.
    pub fn lived(&self) -> &Lived {
        &self.lived
    }

    /// The stretch until now, as names with units and numbers: a row of `life.parquet`. A NaN stands for no value.
    pub fn row<P: Probe>(&self, drive: &Drive<P>) -> Vec<(String, f64)> {
        let stats = drive.stats();
        let counters = stats.counters.since(&self.counters);
        let ecc = stats.ecc.since(&self.ecc);
        let declared = [
            counters.life(),
            ecc.life(),
            stats.map.since(&self.map).life(),
            stats.cache.since(&self.cache).life(),
            stats.refresh.since(&self.refresh).life(),
            stats.migration.since(&self.migration).life(),
        ]
        .concat();
        let mut row = Row { columns: Vec::new(), declared };

        let seconds = (drive.now() - self.at).seconds();
        let blocks = &drive.array().blocks;
        let cycles = || blocks.iter().map(|block| block.pe_cycles);
        row.put("years", drive.lived_s() / YEAR_S);
        row.put("pe_mean", ratio(cycles().map(f64::from).sum(), blocks.len() as f64));
        row.put("pe_min", f64::from(cycles().min().unwrap_or(0)));
        row.put("pe_max", f64::from(cycles().max().unwrap_or(0)));
        row.put("simulated_s", seconds);
        row.put("lived_s", drive.lived_s() - self.lived.seconds());
        for op in [Op::Read, Op::Write] {
            for (name, value) in stats.host[op as usize].life_since(&self.host[op as usize], op.name()) {
                row.put(name, value);
            }
        }
        let since = |kind: FlashOp, cause: Cause| {
            (stats.flash[kind as usize][cause as usize] - self.flash[kind as usize][cause as usize]) as f64
        };
        let all = |kind: FlashOp| Cause::ALL.into_iter().map(|cause| since(kind, cause)).sum::<f64>();
        row.place(["host_pages"]);
        let programmed = (all(FlashOp::Program) + all(FlashOp::Copyback)) as u64;
        let bytes = stats.host[Op::Write as usize].bytes - self.host[Op::Write as usize].bytes;
        let waf = per(programmed * u64::from(drive.geometry().page_bytes), bytes);
        row.put("waf", waf.unwrap_or(f64::NAN));
        row.put("waf_pages", per(programmed, counters.host_pages_written).unwrap_or(f64::NAN));
        for cause in Cause::ALL {
            row.put(
                format!("program_{}", cause.name()),
                since(FlashOp::Program, cause) + since(FlashOp::Copyback, cause),
            );
        }
        row.put("copybacks", all(FlashOp::Copyback));
        row.place(["refused_copybacks"]);
        row.put("erases", all(FlashOp::Erase));
        row.put("outstanding", f64::from(drive.outstanding()));
        for (name, value) in ecc.life_means() {
            row.put(name, value);
        }
        row.place(["uncorrectable", "media_errors", "failed_pages"]);
        row.place(["refreshed_blocks", "refreshed_pages", "partial_pages", "late_blocks"]);
        row.put("energy_j", super::summary::energy_j(drive) - self.energy_j);
        let busy = (die_busy_ns(drive) - self.die_busy_ns).seconds();
        row.put("die_busy_share", ratio(busy, seconds * f64::from(drive.geometry().dies)));
        if let Some(capacitor) = drive.capacitor() {
            row.put("capacitor_loss_share", capacitor.loss_share);
            row.put("capability_pages", drive.capability_pages());
        }
        let [cache_pages, budget_pages, dirty_pages] = drive.cache_pages();
        if cache_pages > 0 {
            row.put("cache_pages", f64::from(cache_pages));
            row.put("budget_pages", f64::from(budget_pages));
            row.put("dirty_pages", f64::from(dirty_pages));
        }
        row.finish()
    }
}
