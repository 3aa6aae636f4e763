//! A stretch of a drive's life: what has happened since a moment.

use crate::base::geometry::DieId;
use crate::base::numbers::{per, ratio};
use crate::base::units::{Span, Time};
use crate::drive::{Drive, Lived};
use crate::host::Op;
use crate::probe::Probe;
use crate::sched::{Cause, Kind};
use crate::stats::{Counters, EccStats, Latency, MigrationStats, RefreshStats};

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
    refresh: RefreshStats,
    migration: MigrationStats,
    flash: [[u64; Cause::ALL.len()]; 4],
    host: [Latency; 4],
}

fn die_busy_ns<P: Probe>(drive: &Drive<P>) -> Span {
    (0..drive.geometry().dies).map(|die| drive.device().die_busy_ns(DieId(die), drive.now())).sum()
}

/// A number of read levels, weighted by how often each was.
fn mean_level(now: &[u64], then: &[u64]) -> f64 {
    let counts = now.iter().zip(then).map(|(now, then)| (now - then) as f64);
    let (sum, weighted) = counts
        .enumerate()
        .fold((0.0, 0.0), |(sum, weighted), (level, count)| (sum + count, weighted + level as f64 * count));
    ratio(weighted, sum)
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
            refresh: stats.refresh.clone(),
            migration: stats.migration.clone(),
            flash: stats.flash,
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
        let seconds = (drive.now() - self.at).seconds();
        let blocks = &drive.array().blocks;
        let cycles = || blocks.iter().map(|block| block.pe_cycles);
        let mut row: Vec<(String, f64)> = Vec::new();
        let mut put = |name: &str, value: f64| row.push((name.to_owned(), value));
        put("years", drive.lived_s() / YEAR_S);
        put("pe_mean", ratio(cycles().map(f64::from).sum(), blocks.len() as f64));
        put("pe_min", f64::from(cycles().min().unwrap_or(0)));
        put("pe_max", f64::from(cycles().max().unwrap_or(0)));
        put("simulated_s", seconds);
        put("lived_s", drive.lived_s() - self.lived.seconds());
        for op in [Op::Read, Op::Write] {
            let (name, now, then) = (op.name(), &stats.host[op as usize], &self.host[op as usize]);
            let mut histogram = now.histogram.clone();
            histogram.subtract(&then.histogram).expect("what was counted stays counted");
            let count = (now.count - then.count) as f64;
            put(&format!("{name}s"), count);
            put(&format!("{name}_bytes"), (now.bytes - then.bytes) as f64);
            put(&format!("{name}_us_mean"), ratio((now.sum_ns - then.sum_ns) as f64 * 1e-3, count));
            let p99 = if count > 0.0 { histogram.value_at_quantile(0.99) as f64 * 1e-3 } else { 0.0 };
            put(&format!("{name}_us_p99"), p99);
        }
        let since = |kind: Kind, cause: Cause| {
            (stats.flash[kind as usize][cause as usize] - self.flash[kind as usize][cause as usize]) as f64
        };
        let all = |kind: Kind| Cause::ALL.into_iter().map(|cause| since(kind, cause)).sum::<f64>();
        let pages = stats.counters.host_pages_written - self.counters.host_pages_written;
        put("host_pages", pages as f64);
        let programmed = (all(Kind::Program) + all(Kind::Copyback)) as u64;
        let bytes = stats.host[Op::Write as usize].bytes - self.host[Op::Write as usize].bytes;
        let waf = per(programmed * u64::from(drive.geometry().page_bytes), bytes);
        put("waf", waf.unwrap_or(f64::NAN));
        put("waf_pages", per(programmed, pages).unwrap_or(f64::NAN));
        for cause in Cause::ALL {
            put(
                &format!("program_{}", cause.name()),
                since(Kind::Program, cause) + since(Kind::Copyback, cause),
            );
        }
        put("copybacks", all(Kind::Copyback));
        put("refused_copybacks", (stats.migration.refused - self.migration.refused) as f64);
        put("erases", all(Kind::Erase));
        put("outstanding", f64::from(drive.outstanding()));
        put("read_level_mean", mean_level(&stats.ecc.host_levels, &self.ecc.host_levels));
        put("read_level_needed_mean", mean_level(&stats.ecc.host_needed, &self.ecc.host_needed));
        let reads = (stats.ecc.host_reads() - self.ecc.host_reads()) as f64;
        let tries = reads + (stats.ecc.host_retries - self.ecc.host_retries) as f64;
        put("tries_per_read", ratio(tries, reads));
        put("uncorrectable", (stats.ecc.uncorrectable - self.ecc.uncorrectable) as f64);
        put("media_errors", (stats.counters.media_errors - self.counters.media_errors) as f64);
        put("failed_pages", (stats.counters.failed_pages - self.counters.failed_pages) as f64);
        put("refreshed_blocks", (stats.refresh.blocks - self.refresh.blocks) as f64);
        put("refreshed_pages", (stats.refresh.pages - self.refresh.pages) as f64);
        put("partial_pages", (stats.refresh.partial_pages - self.refresh.partial_pages) as f64);
        put("late_blocks", (stats.refresh.late_blocks - self.refresh.late_blocks) as f64);
        put("energy_j", super::summary::energy_j(drive) - self.energy_j);
        let busy = (die_busy_ns(drive) - self.die_busy_ns).seconds();
        put("die_busy_share", ratio(busy, seconds * f64::from(drive.geometry().dies)));
        if let Some(capacitor) = drive.capacitor() {
            put("capacitor_loss_share", capacitor.loss_share);
            put("capability_pages", drive.capability_pages());
        }
        let [cache_pages, budget_pages, dirty_pages] = drive.cache_pages();
        if cache_pages > 0 {
            put("cache_pages", f64::from(cache_pages));
            put("budget_pages", f64::from(budget_pages));
            put("dirty_pages", f64::from(dirty_pages));
        }
        row
    }
}
