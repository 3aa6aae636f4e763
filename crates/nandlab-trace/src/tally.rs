//! Counts of the records of a trace: those read, and those left out with the reason.

use crate::error::{ErrorKind, TraceError};
use nandlab_base::base::words::{count, part};

/// Why a record was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A field is missing or has an impossible value (`workload.lenient`).
    Malformed,
    /// The time is earlier than that of the record before (`workload.lenient`).
    Early,
    /// The time is far later than those of the records around it (`workload.lenient`).
    Late,
    /// The record does not say whether it is a read or a write (Systor).
    NoType,
    /// The event of a read, a write or a TRIM has no data (blkparse).
    NoData,
}

impl Reason {
    /// Every reason, in the order of [`Tally::skipped_by`].
    pub const ALL: [Self; 5] = [Self::Malformed, Self::Early, Self::Late, Self::NoType, Self::NoData];

    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Early => "early",
            Self::Late => "late",
            Self::NoType => "no_type",
            Self::NoData => "no_data",
        }
    }

    /// What the records are, after their number.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Early => "earlier than the record before",
            Self::Late => "far later than the records around them",
            Self::NoType => "without a type (read or write)",
            Self::NoData => "without data",
        }
    }

    /// Whether such a record is damaged. The other records are as the format allows.
    pub(crate) fn is_damage(self) -> bool {
        matches!(self, Self::Malformed | Self::Early | Self::Late)
    }
}

/// Counts of the records of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Records that state a request, those of devices that are not played and those that were left out included.
    pub records: u64,
    /// Records that were left out, by reason, in the order of [`Reason::ALL`].
    pub skipped_by: [u64; 5],
    /// Logs in the file after the first one (fio).
    pub further_logs: u64,
    /// Records that were slightly out of order, and were sorted (blkparse).
    pub sorted: u64,
    /// Whether the times of the records are used, and all of them are equal.
    pub has_one_time: bool,
}

impl std::ops::Add for Tally {
    type Output = Self;

    /// The counts of two readings of a trace.
    fn add(self, other: Self) -> Self {
        Self {
            records: self.records + other.records,
            skipped_by: std::array::from_fn(|i| self.skipped_by[i] + other.skipped_by[i]),
            sorted: self.sorted + other.sorted,
            further_logs: self.further_logs.max(other.further_logs),
            has_one_time: self.has_one_time || other.has_one_time,
        }
    }
}

/// Numbers of a tally in the file of a kept trace.
pub(crate) const NUMBERS: usize = 9;

impl Tally {
    /// Records that were left out.
    pub fn skipped(&self) -> u64 {
        self.skipped_by.iter().sum()
    }

    /// Share of the records that were left out.
    pub(crate) fn skipped_share(&self) -> f64 {
        self.skipped() as f64 / self.records.max(1) as f64
    }

    /// Damaged records.
    fn damaged(&self) -> u64 {
        Reason::ALL.iter().zip(self.skipped_by).filter(|(reason, _)| reason.is_damage()).map(|(_, n)| n).sum()
    }

    /// Share of the damaged records.
    fn damaged_share(&self) -> f64 {
        self.damaged() as f64 / self.records.max(1) as f64
    }

    /// Refuses more than the share `at_most` of damaged records.
    pub(crate) fn check(&self, at_most: f64) -> Result<(), TraceError> {
        let share = self.damaged_share();
        if share <= at_most {
            return Ok(());
        }
        let message = format!(
            "{} of {} records are damaged ({}), more than the {} that workload.lenient allows: {}",
            count(self.damaged()),
            count(self.records),
            part(share, 1.0),
            part(at_most, 1.0),
            self.reasons()
        );
        let allowed = (share * 100.0).ceil().min(100.0) / 100.0;
        let remedy = format!(
            "check workload.format and the file, or allow the loss with workload.lenient = {{ at_most = {allowed:?} }}"
        );
        Err(TraceError::new(ErrorKind::Malformed, message, remedy))
    }

    /// The numbers of left out records with their reasons: `2 malformed, 1 without data`.
    pub(crate) fn reasons(&self) -> String {
        let found = Reason::ALL.iter().zip(self.skipped_by).filter(|(_, n)| *n > 0);
        let texts: Vec<_> = found.map(|(reason, n)| format!("{} {}", count(n), reason.text())).collect();
        texts.join(", ")
    }

    pub(crate) fn skip(&mut self, reason: Reason) {
        self.skipped_by[reason as usize] += 1;
    }

    pub(crate) fn numbers(&self) -> [u64; NUMBERS] {
        let [a, b, c, d, e] = self.skipped_by;
        [self.records, a, b, c, d, e, self.further_logs, self.sorted, self.has_one_time.into()]
    }

    pub(crate) fn from_numbers(numbers: [u64; NUMBERS]) -> Self {
        let [records, a, b, c, d, e, further_logs, sorted, has_one_time] = numbers;
        Self { records, skipped_by: [a, b, c, d, e], further_logs, sorted, has_one_time: has_one_time > 0 }
    }
}
