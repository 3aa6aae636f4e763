//! A lane: its free superblocks, and the open superblock of each stream.

use super::FreeSuperblocks;
use super::streams::{STREAMS_MAX, StreamId};
use crate::base::geometry::UnitId;
use crate::base::state::{state, value};
use crate::flash::{Shape, ShapeId, Shapes};

/// The open superblock of a stream: the next PPN, and the PPN after the last unit of the superblock. The two are equal
/// if the stream has no open superblock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OpenSuperblock {
    pub(super) next: u32,
    pub(super) end: u32,
    /// Rows after each row that stay erased. Above 0 only LSB pages are used, because power loss during the program of
    /// another page would also destroy the pages of its wordline before it.
    pub(super) skips: u32,
    /// Whether all units are used again from the next row on all dies on: some dies have skipped rows, others not yet.
    pub(super) skips_end: bool,
    /// The shape of the superblock.
    pub(super) shape: ShapeId,
}

impl OpenSuperblock {
    /// Units of the superblock that are not allocated; 0 without an open superblock.
    #[inline(always)]
    pub(super) fn left(&self) -> u32 {
        self.end - self.next
    }

    /// Whether no unit is left to allocate.
    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.left() == 0
    }

    /// Allocates the next unit; a row has `row` units on each of `dies` dies.
    #[inline(always)]
    pub(super) fn take(&mut self, row: u32, dies: u32) -> AllocatedUnit {
        let unit = UnitId(self.next);
        self.next += 1;
        let skips = if self.skips > 0 && self.next.is_multiple_of(row) { self.skip(row, dies) } else { 0 };
        AllocatedUnit { unit, opened: false, skips: skips as u16 }
    }

    /// Skips rows after a row on a die. Returns the number of units that the die skips.
    fn skip(&mut self, row: u32, dies: u32) -> u32 {
        // The last wordline of a superblock may have fewer rows.
        let rows = self.skips.min(self.left() / (row * dies));
        if self.next.is_multiple_of(row * dies) {
            self.next += rows * row * dies;
            if std::mem::take(&mut self.skips_end) {
                self.skips = 0;
            }
        }
        rows * row
    }

    /// Uses only the first of 1 + `skips` rows from now on.
    pub(super) fn set_skips(&mut self, skips: u32, full_row: u32) {
        // A die that has skipped rows cannot program them.
        self.skips_end = skips == 0 && self.skips > 0 && !self.next.is_multiple_of(full_row);
        if !self.skips_end {
            self.skips = skips;
        }
    }

    /// Units of the superblock that can still be allocated; a row has `row` units on all dies.
    #[inline(always)]
    pub(super) fn room(&self, row: u32) -> u32 {
        if self.skips == 0 { self.left() } else { self.room_between_skips(row) }
    }

    #[cold]
    fn room_between_skips(&self, row: u32) -> u32 {
        let units = self.left();
        // The rest of the present row, and the first row of every further wordline.
        let (rows, rest) = (units / row, units % row);
        let rows = if rest == 0 { rows } else { rows.saturating_sub(self.skips) };
        rest + row * rows.div_ceil(1 + self.skips)
    }
}

/// A unit allocated to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocatedUnit {
    /// The unit.
    pub unit: UnitId,
    /// Whether a superblock was opened for the unit.
    pub opened: bool,
    /// Units after the allocated unit on its die that remain erased.
    pub skips: u16,
}

/// A lane.
#[derive(Clone, Debug)]
pub struct Lane {
    /// Erased superblocks.
    pub free: FreeSuperblocks,
    /// By stream.
    pub(super) open: [OpenSuperblock; STREAMS_MAX],
    /// Erased units that are not allocated to a program.
    pub(super) free_units: u32,
    /// Free superblocks that the lane's job may still take, and nobody else.
    pub promised_superblocks: u32,
    /// Units that the lane's job may still move to the open superblock of the host, which are kept from the host; 0
    /// unless GC shares this superblock.
    pub promised_units: u32,
    /// Valid units in all superblocks of the lane.
    pub valid: u32,
    /// Valid combination pages in all superblocks of the lane.
    pub(super) combinations: u32,
    /// Whether the lane was worn out at the last check: no superblock was being emptied or could be emptied with a
    /// gain, and some superblock was retired or would retire at its next erase.
    pub is_worn_out: bool,
    /// Superblocks that the lane has and that are not retired.
    pub usable_superblocks: u32,
    /// Erases since the wear leveller last checked the lane.
    pub erases_unchecked: u32,
    /// Free superblocks that only internal streams, the emergency flush and the host in SLC mode may take: those of the
    /// reserve of every lane, without the part of the reserve for SLC mode that is in SLC mode.
    pub reserve_superblocks: u32,
    /// Superblocks in SLC mode, those included that are open or being emptied.
    pub slc_superblocks: u32,
    /// Whether the host opens no further superblock in SLC mode, because none was left to it when it last wanted one.
    pub is_slc_closed: bool,
}

impl Lane {
    /// Makes the superblock of this shape whose first unit is `first`, which has been free, the open superblock with
    /// number `index`.
    pub(super) fn begin(&mut self, index: usize, first: UnitId, shape: ShapeId, shapes: &Shapes) {
        let open = &mut self.open[index];
        let units = shapes[shape].units;
        (open.next, open.end, open.shape) = (first.0, first.0 + units, shape);
        // While it was free, it counted as one of the first shape.
        self.free_units = self.free_units - shapes.first().units + units;
    }

    /// Allocates the next unit of the open superblock with number `index`, on `dies` dies with rows of `units_per_row`
    /// units.
    #[inline(always)]
    pub(super) fn take(&mut self, index: usize, units_per_row: u32, dies: u32) -> AllocatedUnit {
        let open = &mut self.open[index];
        let before = open.left();
        let unit = open.take(units_per_row, dies);
        self.free_units -= before - open.left();
        unit
    }

    /// The free units of the open superblocks and of the free ones, which have the shape `free`.
    pub(super) fn count_free_units(&self, free: &Shape) -> u32 {
        self.free.len() * free.units + self.open.iter().map(OpenSuperblock::left).sum::<u32>()
    }

    /// Whether, with `valid` valid units, at most half a superblock's worth of garbage is left for GC. The units of
    /// `taken_superblocks` superblocks are not counted, because GC cannot collect them. Garbage that is less than a
    /// page in each superblock is not counted either: GC gains nothing from it. The superblocks count with `shape`.
    pub(super) fn leaves_little_garbage(&self, shape: &Shape, taken_superblocks: u32, valid: u32) -> bool {
        let superblocks = self.usable_superblocks.saturating_sub(taken_superblocks);
        let thin = superblocks * (shape.units_per_page - 1);
        valid + thin + shape.units / 2 >= superblocks * shape.units
    }

    /// Whether a stream of the host can allocate a unit and leave the job the units promised to it. A free superblock
    /// beyond the reserve has room for all of these. `shares_first_superblock`: GC moves units to the open superblock
    /// of [`StreamId::HOST`]. Without a free superblock this superblock then takes copies only, because recovery can erase a
    /// superblock of copies to regain a free superblock.
    #[inline]
    pub(super) fn has_room(&self, stream: StreamId, shares_first_superblock: bool) -> bool {
        let open = self.open[stream.index()];
        let (is_shared, promised_units) = if stream == StreamId::HOST {
            (shares_first_superblock, self.promised_units)
        } else {
            (false, 0)
        };
        let is_for_copies = is_shared && self.free.is_empty();
        open.left() > promised_units && !is_for_copies
            || self.free.len() > self.promised_superblocks + self.reserve_superblocks
    }

    /// Erased superblocks that are not promised to a job.
    #[inline]
    pub fn free_superblocks(&self) -> u32 {
        self.free.len().saturating_sub(self.promised_superblocks)
    }

    /// For each stream 1 + the next PPN to allocate; 0 for a stream without an open superblock.
    pub fn open_superblocks(&self) -> [u64; STREAMS_MAX] {
        self.open.map(|open| if open.is_full() { 0 } else { u64::from(open.next) + 1 })
    }
}

value! { OpenSuperblock { next, end, skips, skips_end, shape } }
state! {
    Lane {
        free,
        open,
        free_units,
        promised_superblocks,
        promised_units,
        valid,
        combinations,
        is_worn_out,
        usable_superblocks,
        erases_unchecked,
        reserve_superblocks,
        slc_superblocks,
        is_slc_closed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A superblock of nine rows, of which the first of two or three is used, or all. The room is the number of units
    /// that can be taken, from every unit on.
    #[test]
    fn the_room_of_a_superblock_is_the_number_of_units_that_can_be_taken() {
        let of_row = |row: u32| [0, 1, 2].map(|skips| [1, 3].map(|dies| (row, dies, skips)));
        for (row, dies, skips) in [1, 4].into_iter().flat_map(of_row).flatten() {
            let (full, end) = (row * dies, 9 * row * dies);
            let is_used = |index: &u32| (index / full).is_multiple_of(1 + skips);
            for next in (0..=end).filter(|index| is_used(index) || *index == end) {
                let mut open = OpenSuperblock { next, end, skips, ..OpenSuperblock::default() };
                let room = open.room(full);
                let (mut taken, mut skipped) = (Vec::new(), 0);
                while open.next < open.end {
                    let allocated = open.take(row, dies);
                    skipped += u32::from(allocated.skips);
                    taken.push(allocated.unit.0);
                }
                assert_eq!(taken, (next..end).filter(is_used).collect::<Vec<_>>());
                assert_eq!(room as usize, taken.len(), "rows of {row} units from {next}, {skips} skipped");
                // From the beginning of a row on, the dies skip what is not taken.
                if next.is_multiple_of(full) {
                    assert_eq!(skipped, end - next - room);
                }
            }
        }
    }

    /// Two dies with rows of two units use every second row. The second die is in the first row when all units may be
    /// used again: it skips the second row, as the first die has.
    #[test]
    fn all_units_are_used_again_when_every_die_has_skipped_the_same_rows() {
        let mut open = OpenSuperblock { end: 32, skips: 1, ..OpenSuperblock::default() };
        let take = |open: &mut OpenSuperblock| {
            let allocated = open.take(2, 2);
            (allocated.unit.0, allocated.skips)
        };
        assert_eq!([(); 3].map(|()| take(&mut open)), [(0, 0), (1, 2), (2, 0)]);
        open.set_skips(0, 4);
        assert_eq!([(); 3].map(|()| take(&mut open)), [(3, 2), (8, 0), (9, 0)]);
        assert_eq!([(); 3].map(|()| take(&mut open)), [(10, 0), (11, 0), (12, 0)]);
    }
}
