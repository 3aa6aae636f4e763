//! What is counted of read levels.

use crate::base::counters::{Section, by_number, counters};
use crate::base::numbers::{number, ratio};
use crate::base::units::Span;
use crate::flash::LEVELS_MAX;
use crate::sched::{Cause, Transaction};
use serde_json::Value;

/// Page reads by level: index 1 is level 1.
pub type ByLevel = [u64; LEVELS_MAX + 2];

counters! {
    /// Read levels and tries of a drive with a level table.
    pub struct EccStats {
        /// All page reads that were decoded, by the level that did it.
        pub levels: ByLevel, sum of pages;
        /// Tries beyond the first, of all page reads.
        pub retries: u64, sum of tries;
        /// Page reads that no level decoded.
        pub uncorrectable: u64, sum of pages, life "uncorrectable", smart "Uncorrectable read error count";
        /// Page reads of the host's that were decoded, by the level that did it.
        pub host_levels: ByLevel, sum of pages, summary "host.levels";
        /// Host page reads by the least level that decodes them, whatever level did it; behind the last: none does.
        pub host_needed: ByLevel, sum of pages, summary "host.needed";
        /// Tries beyond the first, of the host's page reads.
        pub host_retries: u64, sum of tries, summary "host.retries";
        /// Page reads of the host's that no level decoded.
        pub host_uncorrectable: u64, sum of pages, summary "host.uncorrectable";
        /// Host page reads whose first try was above level 1.
        pub host_soft_starts: u64, sum of pages, summary "host.soft_starts";
        /// Sensing, transfer and decoding of the host's page reads, all tries; waiting not counted.
        pub host_flash_ns: Span, sum of us, mean "host.flash_read_us";
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
    pub(crate) fn json(&self, levels: u8) -> Value {
        let by_level = |counts: &ByLevel| by_number(&counts[1..=usize::from(levels)]);
        let per_read = ratio(self.host_flash_ns.ns() as f64 * 1e-3, self.host_reads() as f64);
        let mut section = Section::of(self);
        section.put("levels", by_level(&self.levels));
        section.put("host.levels", by_level(&self.host_levels));
        section.put("host.needed", by_level(&self.host_needed));
        section.put("host.flash_read_us", number(per_read));
        section.into()
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

/// The mean of levels, each weighted by how often it was.
fn mean_level(counts: &ByLevel) -> f64 {
    let (sum, weighted) = counts.iter().enumerate().fold((0.0, 0.0), |(sum, weighted), (level, &count)| {
        (sum + count as f64, weighted + level as f64 * count as f64)
    });
    ratio(weighted, sum)
}
