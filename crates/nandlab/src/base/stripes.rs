//! The order of the units of a superblock over its rows and dies, and the division that finds it.

use std::cmp::Ordering;

/// Divides by a fixed 32-bit number with a multiplication. Exact for every 32-bit dividend.
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    magic: u64,
    by: u32,
}

impl Divisor {
    /// Prepares the division by `by`, which must not be 0.
    pub fn new(by: u32) -> Self {
        assert!(by > 0, "division by zero");
        Self { magic: u64::MAX / u64::from(by), by }
    }

    /// `n / by`.
    #[inline(always)]
    pub fn divide(self, n: u32) -> u32 {
        // magic = (2^64 - 1 - r) / by with r < by, so the product is (n + 1) / by - (n + 1) * (1 + r) / (by * 2^64). The
        // last term is above 0 and, since neither n + 1 nor 1 + r is above 2^32, at most 1 / by.
        ((u128::from(self.magic) * (u128::from(n) + 1)) >> 64) as u32
    }

    /// `(n / by, n % by)`.
    #[inline(always)]
    pub fn split(self, n: u32) -> (u32, u32) {
        let q = self.divide(n);
        (q, n - q * self.by)
    }
}

/// The order of the units of a superblock. They fill the superblock stripe by stripe. A stripe has a chunk of units on
/// every die of the superblock, in the order of the dies. A chunk is one row or, with one-shot programs, one
/// programming unit. A superblock on one die is filled row by row.
#[derive(Clone, Copy, Debug)]
pub struct Stripes {
    /// Dies of a superblock.
    pub dies: u32,
    /// Whether each unit is a row.
    is_plain: bool,
    rows_per_chunk: u32,
    units_per_chunk: u32,
    pub(super) by_row: Divisor,
    by_chunk: Divisor,
    by_die: Divisor,
}

impl Stripes {
    pub(super) fn new(dies: u32, units_per_row: u32, rows_per_chunk: u32) -> Self {
        let units_per_chunk = units_per_row * rows_per_chunk;
        let [by_row, by_chunk, by_die] = [units_per_row, units_per_chunk, dies].map(Divisor::new);
        let is_plain = dies == 1 && units_per_row == 1;
        Self { dies, is_plain, rows_per_chunk, units_per_chunk, by_row, by_chunk, by_die }
    }

    /// The number, among the dies of the superblock, of the die of unit `unit`, and the number of the unit among the
    /// units of the superblock on this die.
    #[inline]
    pub fn split(&self, unit: u32) -> (u32, u32) {
        let (chunk, within) = self.by_chunk.split(unit);
        let (stripe, die) = self.by_die.split(chunk);
        (die, stripe * self.units_per_chunk + within)
    }

    /// The unit of the superblock that is number `place` among its units on die number `die` of its dies: the inverse
    /// of [`Stripes::split`].
    pub fn unit(&self, die: u32, place: u32) -> u32 {
        let (stripe, within) = self.by_chunk.split(place);
        (stripe * self.dies + die) * self.units_per_chunk + within
    }

    /// The number of units before unit `end` of the superblock on die number `die` of its dies.
    pub fn before(&self, end: u32, die: u32) -> u32 {
        let (chunk, within) = self.by_chunk.split(end);
        let (stripe, last) = self.by_die.split(chunk);
        stripe * self.units_per_chunk
            + match die.cmp(&last) {
                Ordering::Less => self.units_per_chunk,
                Ordering::Equal => within,
                Ordering::Greater => 0,
            }
    }

    /// The row of unit `unit`: the number of its page in its block.
    #[inline(always)]
    pub fn row(&self, unit: u32) -> u32 {
        if self.is_plain { unit } else { self.row_in_stripe(unit) }
    }

    #[inline(never)]
    fn row_in_stripe(&self, unit: u32) -> u32 {
        let (chunk, within) = self.by_chunk.split(unit);
        self.by_die.divide(chunk) * self.rows_per_chunk + self.by_row.divide(within)
    }

    /// Whether a superblock of `units` units in programming units of `units_per_program` units can have this order. On
    /// several dies it has whole stripes then, and a programming unit is in one chunk.
    pub fn fit(&self, units: u32, units_per_program: u32) -> bool {
        self.dies == 1
            || units.is_multiple_of(self.units_per_chunk * self.dies)
                && self.units_per_chunk.is_multiple_of(units_per_program)
    }

    /// The first unit of the superblock on each of its dies, in the order of the dies.
    pub fn firsts(&self) -> impl Iterator<Item = u32> + use<> {
        let chunk = self.units_per_chunk;
        (0..self.dies).map(move |die| die * chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::geometry::{
        Cell, DieId, DriveSpec, Geometry, Layout, ProgramOrder, Superblock, SuperblockId,
    };

    #[test]
    fn divisor_is_exact() {
        let mut stream = crate::base::rng::Stream::new(1, "divisor");
        for _ in 0..200_000 {
            let by = (stream.bits() as u32 >> (stream.bits() % 32)).max(1);
            let n = stream.bits() as u32;
            for n in [n, 0, u32::MAX, by, by - 1, n / by * by, (n / by * by).saturating_sub(1)] {
                assert_eq!(Divisor::new(by).split(n), (n / by, n % by), "{n} / {by}");
            }
        }
    }

    /// Counts through the units of a superblock by nested loops: stripe, die, row of the chunk, plane, unit.
    #[test]
    fn the_units_of_a_superblock_of_the_drive_go_chunk_by_chunk_over_the_dies() {
        for (program_order, rows_per_chunk) in [(ProgramOrder::Page, 1), (ProgramOrder::OneShot, 3)] {
            let drive = DriveSpec {
                channels: 3,
                chips_per_channel: 1,
                dies_per_chip: 2,
                planes_per_die: 2,
                blocks_per_plane: 5,
                pages_per_block: 12,
                page_size_bytes: 16_384,
                cell: Cell::Tlc3d,
                layers: 4,
                op: 0.5,
                bad_blocks: 0.0,
                endurance: 1,
                registers: 1,
                program_order,
            };
            let layout = Layout { units_per_page: 4, superblock: Superblock::Drive };
            let geometry = Geometry::with(&drive, layout);
            assert_eq!(
                (geometry.lanes, geometry.superblocks, geometry.units_per_superblock),
                (1, 5, 12 * 4 * 12)
            );
            assert_eq!(geometry.blocks(), 60);
            let (superblock, mut unit) = (SuperblockId(3), 0);
            let mut on_die = [0; 6];
            for stripe in 0..12 / rows_per_chunk {
                for die in 0..6 {
                    for row in stripe * rows_per_chunk..(stripe + 1) * rows_per_chunk {
                        for plane in 0..2 {
                            for _ in 0..4 {
                                assert_eq!(geometry.die_of_unit(superblock, unit), DieId(die));
                                assert_eq!(geometry.row(unit), row);
                                assert_eq!(geometry.plane_in_die(superblock, unit), plane);
                                assert_eq!(geometry.member(unit), die * 2 + plane);
                                assert_eq!(geometry.stripes.split(unit), (die, on_die[die as usize]));
                                assert_eq!(geometry.stripes.unit(die, on_die[die as usize]), unit);
                                let before = [0, 1, 2, 3, 4, 5].map(|die| geometry.stripes.before(unit, die));
                                assert_eq!(before, on_die);
                                on_die[die as usize] += 1;
                                unit += 1;
                            }
                        }
                    }
                }
            }
            assert_eq!(unit, geometry.units_per_superblock);
            let firsts: Vec<u32> = geometry.stripes.firsts().collect();
            assert_eq!(firsts, [0, 1, 2, 3, 4, 5].map(|die| die * 8 * rows_per_chunk));
        }
    }
}
