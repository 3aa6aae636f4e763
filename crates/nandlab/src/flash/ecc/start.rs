//! `ecc.start`: the level at which a read starts (LaLDPC, Section III-B).

use super::StartLevel;
use crate::base::geometry::{Lpn, PageKind, SuperblockId};
use crate::base::policy::PolicyError;
use crate::base::units::Time;

/// A read whose start level a policy from outside chooses.
#[derive(Clone, Copy, Debug)]
pub struct ReadView {
    /// The simulated time at which the read is queued.
    pub now: Time,
    /// The LPN of the unit; those from the logical units on are of translation pages and combination pages.
    pub lpn: Lpn,
    /// The superblock of the unit.
    pub superblock: SuperblockId,
    /// The number of the unit in its superblock.
    pub index: u32,
    /// The kind of the unit's page.
    pub kind: PageKind,
    /// Page reads of the superblock since its last erase.
    pub reads: u32,
    /// The number of read levels.
    pub levels: u8,
    /// The levels that are remembered, the needed level, P/E cycles and age.
    pub hints: Hints,
}

/// Chooses the level at which a read starts (`Policies::with_read_start`).
pub trait StartPolicy: std::fmt::Debug + Send + Sync {
    /// The level at which the read starts, from 1 to [`ReadView::levels`].
    ///
    /// # Errors
    /// When the policy has failed. This ends the run, and so does a level that does not exist.
    fn level(&mut self, read: &ReadView) -> Result<u8, PolicyError>;

    /// Whether an entry that the mapping cache loads begins with the level of its superblock, and not with level 1.
    fn loads_superblock_level(&self) -> bool {
        false
    }

    /// `level` has decoded a unit of a superblock. Reads at full strength, which take the last level, do not count.
    fn on_decoded(&mut self, _superblock: SuperblockId, _level: u8) {}

    /// A superblock has been erased or refreshed in place, so its level is forgotten.
    fn on_erased(&mut self, _superblock: SuperblockId) {}
}

/// The values from which a policy may choose the start level of a read. Level 0 means unknown.
#[derive(Clone, Copy, Debug)]
pub struct Hints {
    /// The level in the unit's map entry; 0 if the entry is not cached.
    pub unit: u8,
    /// The level that last decoded a unit of the same superblock.
    pub superblock: u8,
    /// The level that last decoded a unit of the drive.
    pub drive: u8,
    /// The needed level of the unit, which a real controller cannot know.
    pub needed: u8,
    /// The P/E cycles of the unit's superblock; 0 unless the policy is a table or from outside.
    pub pe_cycles: u32,
    /// The age of the unit's data in seconds, the age of the reliability model; 0 unless the policy is a table or from
    /// outside.
    pub age_s: u32,
}

/// The level at which the policy starts the read; 0 if the policy has no hint. `None`: a policy from outside chooses it.
#[inline]
pub(super) fn level(policy: &StartLevel, hints: &Hints) -> Option<u8> {
    Some(match policy {
        StartLevel::First => 1,
        StartLevel::Ideal => hints.needed,
        StartLevel::LastLevel => hints.unit,
        StartLevel::SuperblockLevel if hints.unit == 0 => hints.superblock,
        StartLevel::SuperblockLevel => hints.unit,
        StartLevel::LastGood => hints.superblock,
        StartLevel::DriveLevel => hints.drive,
        StartLevel::Table(table) => table.level(hints.pe_cycles, hints.age_s),
        StartLevel::Outside => return None,
    })
}

/// The largest number of rows of a [`RetryTable`].
pub const RETRY_ROWS_MAX: usize = 16;

/// A row of a [`RetryTable`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryRow {
    /// The row applies to superblocks with at least this many P/E cycles.
    pub pe_cycles: u32,
    /// The row applies to data that is at least this many seconds old.
    pub age_s: u32,
    /// The level at which reads start.
    pub level: u8,
}

/// A read-retry table: the start level by wear and age. Its rows are in an array, so that a start policy can be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryTable {
    rows: [RetryRow; RETRY_ROWS_MAX],
    len: u8,
}

impl RetryTable {
    /// A table of `rows`; `None` for more than [`RETRY_ROWS_MAX`] rows.
    pub fn new(rows: &[RetryRow]) -> Option<Self> {
        let mut table = Self { rows: Default::default(), len: rows.len() as u8 };
        table.rows.get_mut(..rows.len())?.copy_from_slice(rows);
        Some(table)
    }

    /// The rows, in order.
    pub fn rows(&self) -> &[RetryRow] {
        &self.rows[..usize::from(self.len)]
    }

    /// The level of the last row that applies; 1 if no row does.
    pub fn level(&self, pe_cycles: u32, age_s: u32) -> u8 {
        let applies = |row: &&RetryRow| row.pe_cycles <= pe_cycles && row.age_s <= age_s;
        self.rows().iter().rev().find(applies).map_or(1, |row| row.level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HINTS: Hints = Hints { unit: 0, superblock: 4, drive: 5, needed: 3, pe_cycles: 100, age_s: 60 };

    #[test]
    fn each_policy_uses_its_own_hint() {
        let levels = |hints: &Hints| {
            use StartLevel::{DriveLevel, First, Ideal, LastGood, LastLevel, SuperblockLevel};
            [First, Ideal, LastLevel, SuperblockLevel, LastGood, DriveLevel]
                .map(|policy| level(&policy, hints).expect("the policy is built in"))
        };
        assert_eq!(levels(&HINTS), [1, 3, 0, 4, 4, 5]);
        assert_eq!(levels(&Hints { unit: 2, ..HINTS }), [1, 3, 2, 2, 4, 5]);
    }

    #[test]
    fn the_last_row_of_a_table_that_applies_gives_the_level() {
        let row = |pe_cycles, age_s, level| RetryRow { pe_cycles, age_s, level };
        let table =
            RetryTable::new(&[row(10, 0, 2), row(10, 60, 4), row(100, 0, 3), row(101, 61, 7)]).unwrap();
        for (pe_cycles, age_s, expected) in [
            // No row applies.
            (9, 1000, 1),
            (10, 59, 2),
            (10, 60, 4),
            (99, 1000, 4),
            // The third row stands after the second one, so its level counts although it is lower.
            (100, 1000, 3),
            (101, 60, 3),
            (101, 61, 7),
        ] {
            assert_eq!(table.level(pe_cycles, age_s), expected, "{pe_cycles} {age_s}");
        }
        assert_eq!(level(&StartLevel::Table(table), &HINTS), Some(3));
        assert_eq!(level(&StartLevel::Outside, &HINTS), None);
        assert!(RetryTable::new(&[row(0, 0, 1); RETRY_ROWS_MAX]).is_some());
        assert!(RetryTable::new(&[row(0, 0, 1); RETRY_ROWS_MAX + 1]).is_none());
    }
}
