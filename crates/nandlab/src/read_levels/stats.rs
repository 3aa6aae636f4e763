//! What is counted of read levels.

use crate::base::counters::counters;
use crate::base::numbers::{number, ratio};
use crate::base::section::{Before, Beside, ByNumber, Section};
use crate::base::units::Span;
use crate::flash::LEVELS_MAX;
use crate::sched::{Cause, Transaction};
use schemars::JsonSchema;
use serde::Serialize;

/// Page reads by level: index 1 is level 1.
pub type ByLevel = [u64; LEVELS_MAX + 2];

counters! {
    /// Read levels and tries of a drive with a level table.
    pub struct EccStats {
        /// All page reads that were decoded, by the level that did it.
        pub levels: ByLevel, sum of pages, reshaped "levels";
        /// Tries beyond the first, of all page reads.
        pub retries: u64, sum of tries;
        /// Page reads that no level decoded.
        pub uncorrectable: u64, sum of pages, life "uncorrectable", smart "Uncorrectable read error count";
        /// Page reads of the host's that were decoded, by the level that did it.
        pub host_levels: ByLevel, sum of pages, reshaped "host.levels";
        /// Host page reads by the least level that decodes them, whatever level did it; behind the last: none does.
        pub host_needed: ByLevel, sum of pages, reshaped "host.needed";
        /// Tries beyond the first, of the host's page reads.
        pub host_retries: u64, sum of tries, summary "host.retries";
        /// Page reads of the host's that no level decoded.
        pub host_uncorrectable: u64, sum of pages, summary "host.uncorrectable";
        /// Host page reads whose first try was above level 1.
        pub host_soft_starts: u64, sum of pages, summary "host.soft_starts";
        /// Sensing, transfer and decoding of the host's page reads, all tries; waiting not counted.
        pub host_flash_ns: Span, sum of us, reshaped "host.flash_read_us";
    }
}

impl EccStats {
    /// Those of a drive without a level table, where nothing is counted: so many pages read, the host's of them, and what
    /// one of them costs.
    pub(crate) fn without_levels(reads: u64, host_reads: u64, read_ns: Span) -> Self {
        let mut stats = Self { host_flash_ns: host_reads * read_ns, ..Self::default() };
        stats.levels[1] = reads;
        (stats.host_levels[1], stats.host_needed[1]) = (host_reads, host_reads);
        stats
    }

    /// A read of the host's is queued.
    #[inline]
    pub(crate) fn on_host_start(&mut self, start: u8, needed: u8) {
        self.host_soft_starts += u64::from(start > 1);
        self.host_needed[usize::from(needed)] += 1;
    }

    /// A read has been transferred for the last time.
    #[inline]
    pub(crate) fn on_last_try(&mut self, read: &Transaction) {
        let (is_lost, level) = (read.is_uncorrectable(), usize::from(read.level));
        self.levels[level] += u64::from(!is_lost);
        self.uncorrectable += u64::from(is_lost);
        self.retries += u64::from(read.tries);
        if read.cause == Cause::Host {
            self.host_levels[level] += u64::from(!is_lost);
            self.host_uncorrectable += u64::from(is_lost);
            self.host_retries += u64::from(read.tries);
        }
    }

    /// Page reads of the host's that have ended.
    pub fn host_reads(&self) -> u64 {
        self.host_levels.iter().sum::<u64>() + self.host_uncorrectable
    }

    /// All page reads that have ended.
    pub fn reads(&self) -> u64 {
        self.levels.iter().sum::<u64>() + self.uncorrectable
    }

    /// Pages decoded above the first level.
    pub fn soft_reads(&self) -> u64 {
        self.levels[2..].iter().sum()
    }

    /// `ecc` of the summary, for a drive with so many levels.
    pub(crate) fn summary(&self, levels: u8) -> EccSummary {
        let by_level = |counts: &ByLevel| ByNumber::new(&counts[1..=usize::from(levels)]);
        let per_read = ratio(self.host_flash_ns.ns() as f64 * 1e-3, self.host_reads() as f64);
        let host = HostEccValues {
            levels: by_level(&self.host_levels),
            needed: by_level(&self.host_needed),
            flash_read_us: number(per_read),
        };
        Section { counters: self.clone(), values: EccValues { levels: by_level(&self.levels), host } }
    }

    /// What the columns of `life.parquet` tell of the host's reads beyond the counters: mean levels, tries for a read.
    pub(crate) fn life_means(&self) -> [(&'static str, f64); 3] {
        let reads = self.host_reads() as f64;
        [
            ("read_level_mean", mean_level(&self.host_levels)),
            ("read_level_needed_mean", mean_level(&self.host_needed)),
            ("tries_per_read", ratio(reads + self.host_retries as f64, reads)),
        ]
    }
}

/// Read levels and tries of all page reads.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "EccSummary")]
pub struct EccValues {
    /// Page reads by the level that decoded them.
    #[schemars(extend("unit" = "pages"))]
    pub levels: ByNumber,
    /// The host's page reads.
    pub host: HostEccValues,
}

/// Read levels and tries of the host's page reads.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "HostEccSummary")]
pub struct HostEccValues {
    /// Page reads of the host by the level that decoded them.
    #[schemars(extend("unit" = "pages"))]
    pub levels: ByNumber,
    /// Page reads of the host by the least level that decodes them.
    #[schemars(extend("unit" = "pages"))]
    pub needed: ByNumber,
    /// Mean of sensing, transfer and decoding of a page read, all tries; waiting is not counted.
    #[schemars(extend("unit" = "us"))]
    pub flash_read_us: f64,
}

impl Beside for EccValues {
    const BEFORE: Before = &[("retries", &["levels"]), ("host.retries", &["levels", "needed"])];
}

/// `ecc` of the summary.
pub type EccSummary = Section<EccStats, EccValues>;

/// The mean of levels, each weighted by how often it was.
fn mean_level(counts: &ByLevel) -> f64 {
    let (sum, weighted) = counts.iter().enumerate().fold((0.0, 0.0), |(sum, weighted), (level, &count)| {
        (sum + count as f64, weighted + level as f64 * count as f64)
    });
    ratio(weighted, sum)
}
