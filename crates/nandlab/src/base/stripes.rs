//! The order of the pages of a block over the rows and dies of a superblock, and the division that finds it.

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
        // ceil(2^64 / by). For by = 1 the sum wraps to 0, so `divide` handles 1 separately.
        Self { magic: (u64::MAX / u64::from(by)).wrapping_add(1), by }
    }

    /// `n / by`.
    #[inline(always)]
    pub fn divide(self, n: u32) -> u32 {
        if self.by == 1 { n } else { ((u128::from(self.magic) * u128::from(n)) >> 64) as u32 }
    }

    /// `(n / by, n % by)`.
    #[inline(always)]
    pub fn split(self, n: u32) -> (u32, u32) {
        let q = self.divide(n);
        (q, n - q * self.by)
    }
}

/// The order of the pages of a block. They fill the block stripe by stripe. A stripe has a chunk of pages on every die
/// of the block, in the order of the dies. A chunk is one row or, with one-shot programs, one programming unit. A block
/// on one die is filled row by row.
#[derive(Clone, Copy, Debug)]
pub struct Stripes {
    /// Dies of a block.
    pub dies: u32,
    /// Whether each page is a row.
    is_plain: bool,
    rows_per_chunk: u32,
    pages_per_chunk: u32,
    pub(super) by_row: Divisor,
    by_chunk: Divisor,
    by_die: Divisor,
}

impl Stripes {
    pub(super) fn new(dies: u32, pages_per_row: u32, rows_per_chunk: u32) -> Self {
        let pages_per_chunk = pages_per_row * rows_per_chunk;
        let [by_row, by_chunk, by_die] = [pages_per_row, pages_per_chunk, dies].map(Divisor::new);
        let is_plain = dies == 1 && pages_per_row == 1;
        Self { dies, is_plain, rows_per_chunk, pages_per_chunk, by_row, by_chunk, by_die }
    }

    /// The number, among the dies of the block, of the die of page `page`, and the number of the page among the pages
    /// of the block on this die.
    #[inline]
    pub fn split(&self, page: u32) -> (u32, u32) {
        let (chunk, within) = self.by_chunk.split(page);
        let (stripe, die) = self.by_die.split(chunk);
        (die, stripe * self.pages_per_chunk + within)
    }

    /// The row of page `page`: the number of its flash page in its flash block.
    #[inline(always)]
    pub fn row(&self, page: u32) -> u32 {
        if self.is_plain { page } else { self.row_in_stripe(page) }
    }

    #[inline(never)]
    fn row_in_stripe(&self, page: u32) -> u32 {
        let (chunk, within) = self.by_chunk.split(page);
        self.by_die.divide(chunk) * self.rows_per_chunk + self.by_row.divide(within)
    }

    /// The first page of the block on each of its dies, in the order of the dies.
    pub fn firsts(&self) -> impl Iterator<Item = u32> + use<> {
        let chunk = self.pages_per_chunk;
        (0..self.dies).map(move |die| die * chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisor_is_exact() {
        let mut stream = crate::base::rng::Stream::new(1, "divisor");
        for _ in 0..200_000 {
            let by = (stream.bits() as u32 >> (stream.bits() % 32)).max(1);
            let n = stream.bits() as u32;
            for n in [n, 0, u32::MAX, by, by - 1, n / by * by] {
                assert_eq!(Divisor::new(by).split(n), (n / by, n % by), "{n} / {by}");
            }
        }
    }
}
