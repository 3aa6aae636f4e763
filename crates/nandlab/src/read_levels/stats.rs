//! What is counted of read levels.

use crate::base::units::Span;
use crate::flash::LEVELS_MAX;
use crate::sched::{Cause, Transaction};
use serde_json::{Map, Value, json};

/// Page reads by level: index 1 is level 1.
pub type ByLevel = [u64; LEVELS_MAX + 2];

/// Read levels and tries of a drive with a level table.
#[derive(Clone, Debug, Default)]
pub struct EccStats {
    /// All page reads that were decoded, by the level that did it.
    pub levels: ByLevel,
    /// Of these the host's.
    pub host_levels: ByLevel,
    /// Host page reads by the least level that decodes them, whatever level did it; behind the last: none does.
    pub host_needed: ByLevel,
    /// Tries beyond the first, of all page reads.
    pub retries: u64,
    /// Of these the host's.
    pub host_retries: u64,
    /// Page reads that no level decoded.
    pub uncorrectable: u64,
    /// Of these the host's.
    pub host_uncorrectable: u64,
    /// Host page reads whose first try was above level 1.
    pub host_soft_starts: u64,
    /// Sensing, transfer and decoding of the host's page reads, all tries, in nanoseconds; waiting not counted.
    pub host_flash_ns: Span,
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
    pub(crate) fn json(&self, levels: u8, number: impl Fn(f64) -> Value) -> Value {
        let by_level = |counts: &ByLevel| {
            let level = |level: u8| (level.to_string(), json!(counts[usize::from(level)]));
            Value::Object((1..=levels).map(level).collect::<Map<_, _>>())
        };
        let per_read =
            crate::base::numbers::ratio(self.host_flash_ns.ns() as f64 * 1e-3, self.host_reads() as f64);
        json!({
            "levels": by_level(&self.levels),
            "retries": self.retries,
            "uncorrectable": self.uncorrectable,
            "host": {
                "levels": by_level(&self.host_levels),
                "needed": by_level(&self.host_needed),
                "retries": self.host_retries,
                "uncorrectable": self.host_uncorrectable,
                "soft_starts": self.host_soft_starts,
                "flash_read_us": number(per_read),
            },
        })
    }
}
