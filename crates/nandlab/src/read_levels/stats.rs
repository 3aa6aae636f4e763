//! Counters of read levels.

use crate::base::counters::{Adds, Count, counters};
use crate::base::numbers::{number, ratio};
use crate::base::section::{Before, Beside, ByNumber, Section};
use crate::base::state::value;
use crate::base::units::Span;
use crate::flash::LEVELS_MAX;
use crate::sched::{Cause, Transaction};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::ops::{Deref, DerefMut};

/// Number of page reads by read level; the index is the level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ByLevel([u64; LEVELS_MAX + 2]);

impl Default for ByLevel {
    fn default() -> Self {
        Self([0; LEVELS_MAX + 2])
    }
}

impl Deref for ByLevel {
    type Target = [u64; LEVELS_MAX + 2];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for ByLevel {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Count for ByLevel {
    fn since(&self, then: &Self, adds: Adds) -> Self {
        Self(self.0.since(&then.0, adds))
    }

    fn add(&mut self, later: &Self, adds: Adds) {
        self.0.add(&later.0, adds);
    }

    fn json(&self) -> Value {
        self.0.json()
    }

    fn number(&self) -> f64 {
        self.0.number()
    }

    fn schema_type(&self) -> &'static str {
        self.0.schema_type()
    }
}

counters! {
    /// Counters of read levels and tries; drives without `ecc.levels` count every read at level 1.
    pub struct EccStats {
        /// Page reads that were decoded, by the read level that decoded them.
        pub levels: ByLevel, sum of pages, reshaped "levels";
        /// Tries of page reads beyond the first try.
        pub retries: u64, sum of tries;
        /// Page reads that no read level decoded.
        pub uncorrectable: u64, sum of pages, life "uncorrectable", smart "Uncorrectable read error count";
        /// Host page reads that were decoded, by the read level that decoded them.
        pub host_levels: ByLevel, sum of pages, reshaped "host.levels";
        /// Host page reads by needed level, the lowest read level that decodes the page; the count after the last level
        /// is that of pages that no level decodes.
        pub host_needed: ByLevel, sum of pages, reshaped "host.needed";
        /// Tries of host page reads beyond the first try.
        pub host_retries: u64, sum of tries, summary "host.retries";
        /// Host page reads that no read level decoded.
        pub host_uncorrectable: u64, sum of pages, summary "host.uncorrectable";
        /// Host page reads whose first try was above read level 1.
        pub host_soft_starts: u64, sum of pages, summary "host.soft_starts";
        /// Time of sensing, transfer and decoding of host page reads, for all tries; waiting is not counted. Without
        /// `ecc.levels` only the time of sensing is counted read by read.
        pub host_flash_ns: Span, sum of us, reshaped "host.flash_read_us";
        /// Time of decoding page reads, for all causes and tries; of several decoders the sum.
        pub decoder_busy_ns: Span, sum of s, summary "decoder_busy_s";
        /// Time that page reads waited for a decoder.
        pub decoder_wait_ns: Span, sum of s, summary "decoder_wait_s";
    }
}

impl EccStats {
    /// These counters, of a drive without read levels, where no read is counted one by one: `reads` page reads,
    /// `host_reads` of them for the host, which took `rest_ns` each after sensing.
    pub(crate) fn without_levels(&self, reads: u64, host_reads: u64, rest_ns: Span) -> Self {
        let mut stats = Self { host_flash_ns: self.host_flash_ns + host_reads * rest_ns, ..self.clone() };
        stats.levels[1] = reads;
        (stats.host_levels[1], stats.host_needed[1]) = (host_reads, host_reads);
        stats
    }

    /// A host read has been queued.
    #[inline]
    pub(crate) fn on_host_start(&mut self, start: u8, needed: u8) {
        self.host_soft_starts += u64::from(start > 1);
        self.host_needed[usize::from(needed)] += 1;
    }

    /// The page of a read has left its die for the last time.
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

    /// Number of host page reads that have ended.
    pub fn host_reads(&self) -> u64 {
        self.host_levels.iter().sum::<u64>() + self.host_uncorrectable
    }

    /// Number of page reads that have ended, for all causes.
    pub fn reads(&self) -> u64 {
        self.levels.iter().sum::<u64>() + self.uncorrectable
    }

    /// Number of page reads that were decoded above level 1.
    pub fn soft_reads(&self) -> u64 {
        self.levels[2..].iter().sum()
    }

    /// The value of `ecc` in the summary, for a drive with `levels` read levels.
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

    /// Columns of `life.parquet` for host reads, calculated from several counters: the mean level, the mean needed
    /// level, and tries per read.
    pub(crate) fn life_means(&self) -> [(&'static str, f64); 3] {
        let reads = self.host_reads() as f64;
        [
            ("read_level_mean", mean_level(&self.host_levels)),
            ("read_level_needed_mean", mean_level(&self.host_needed)),
            ("tries_per_read", ratio(reads + self.host_retries as f64, reads)),
        ]
    }
}

/// Read levels and tries of page reads for all causes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "EccSummary")]
pub struct EccValues {
    /// Number of page reads by the read level that decoded them.
    #[schemars(extend("unit" = "pages"))]
    pub levels: ByNumber,
    /// Read levels and tries of host page reads.
    pub host: HostEccValues,
}

/// Read levels and tries of host page reads.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "HostEccSummary")]
pub struct HostEccValues {
    /// Number of host page reads by the read level that decoded them.
    #[schemars(extend("unit" = "pages"))]
    pub levels: ByNumber,
    /// Number of host page reads by needed level, the lowest read level that decodes the page.
    #[schemars(extend("unit" = "pages"))]
    pub needed: ByNumber,
    /// Mean time of sensing, transfer and decoding of a host page read, for all its tries; waiting is not counted.
    #[schemars(extend("unit" = "us"))]
    pub flash_read_us: f64,
}

impl Beside for EccValues {
    const BEFORE: Before = &[("retries", &["levels"]), ("host.retries", &["levels", "needed"])];
}

/// The value of `ecc` in the summary.
pub type EccSummary = Section<EccStats, EccValues>;

/// The mean level, each level weighted by its count.
fn mean_level(counts: &ByLevel) -> f64 {
    let (sum, weighted) = counts.iter().enumerate().fold((0.0, 0.0), |(sum, weighted), (level, &count)| {
        (sum + count as f64, weighted + level as f64 * count as f64)
    });
    ratio(weighted, sum)
}

value! { ByLevel { ..tuple counts } }
