//! Quasi-cyclic codes from a short description.

use crate::code::{Circulant, Code};
use crate::error::LdpcError;
use nandlab_base::base::rng::Stream;
use std::collections::HashSet;

/// Draws of the shifts of one block column before the construction gives up.
const DRAWS_MAX: usize = 100;

/// The description of a quasi-cyclic code without cycles of length 4; the same description gives the same code.
///
/// Every block column has `column_weight` circulants. The block rows that they are in are random, but the weights of
/// two block rows differ by at most 1. The shifts are random under the condition that no cycle of length 4 closes (M.
/// P. C. Fossorier, "Quasi-cyclic low-density parity-check codes from circulant permutation matrices", IEEE Trans. Inf.
/// Theory 50(8), 2004).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// Rows of the base matrix: block rows. The code has at least (`columns` - `rows`) * `lifting` data bits.
    pub rows: u32,
    /// Columns of the base matrix: block columns.
    pub columns: u32,
    /// Rows and columns of a block.
    pub lifting: u32,
    /// Circulants of a block column: the number of checks of every bit, at least 2 and at most `rows`.
    pub column_weight: u32,
    /// The seed of block rows and shifts.
    pub seed: u64,
}

impl Description {
    /// A code of 36,864 bits for 4 KiB of data (32,768 bits) at a rate of 8/9, with column weight 4.
    ///
    /// Its rows are linearly dependent, as those of every code in which all columns have an even weight: it has 32,769
    /// data bits.
    ///
    /// Of hard decisions with the LLRs 16 and -16, the default decoder fails 10 % at a raw bit error rate of 0.00863,
    /// 1 % at 0.00807 and 0.1 % at 0.00768 (1,500 words at every eighth number of errors,
    /// [`Mixture`](crate::Mixture)).
    pub const KIB_4: Self = Self { rows: 8, columns: 72, lifting: 512, column_weight: 4, seed: 1 };

    /// Makes the code.
    ///
    /// # Errors
    ///
    /// If the sizes are impossible, or if no shifts without cycles of length 4 were found.
    pub fn build(&self) -> Result<Code, LdpcError> {
        let Self { rows, columns, lifting, column_weight, seed } = *self;
        if rows >= columns {
            return Err(LdpcError::new(
                format!("a base matrix of {rows} rows and {columns} columns leaves no data bits"),
                "choose more columns than rows",
            ));
        }
        if column_weight < 2 || column_weight > rows {
            return Err(LdpcError::new(
                format!("the column weight {column_weight} is not in 2..={rows}"),
                "choose at least 2 and at most the number of rows; 3 and 4 are usual",
            ));
        }
        if lifting == 0 {
            return Err(LdpcError::new("the lifting size is 0", "choose a lifting size of at least 1"));
        }
        let mut stream = Stream::new(seed, "ldpc.construct");
        let mut circulants = vec![Vec::new(); rows as usize];
        // Two block rows and the difference of their shifts in a common block column.
        let mut taken = HashSet::new();
        for (column, block_rows) in (0..columns).zip(self.block_rows(&mut stream)) {
            let draws = (0..DRAWS_MAX).find_map(|_| self.shifts(&block_rows, &taken, &mut stream));
            let Some(shifts) = draws else {
                return Err(LdpcError::new(
                    format!(
                        "block column {column} of {columns} has no shifts that close no cycle of length 4"
                    ),
                    format!("choose a lifting size above {lifting}, a lower column weight or fewer columns"),
                ));
            };
            taken.extend(differences(&block_rows, &shifts, lifting));
            for (&row, &shift) in block_rows.iter().zip(&shifts) {
                circulants[row as usize].push(Circulant { column, shift });
            }
        }
        Code::new(lifting, columns, circulants)
    }

    /// The block rows of each block column, in ascending order.
    fn block_rows(&self, stream: &mut Stream) -> Vec<Vec<u32>> {
        let rows = self.rows as usize;
        let mut weights = vec![0u32; rows];
        let mut columns: Vec<Vec<u32>> = (0..self.columns)
            .map(|_| {
                let mut order: Vec<u32> = (0..self.rows).collect();
                for at in 0..self.column_weight as usize {
                    order.swap(at, at + stream.below((rows - at) as u64) as usize);
                }
                order.truncate(self.column_weight as usize);
                order.iter().for_each(|&row| weights[row as usize] += 1);
                order
            })
            .collect();
        // Circulants move from the heaviest to the lightest block row, each in a random column that has only the
        // former.
        loop {
            let heaviest = (0..rows).max_by_key(|&row| weights[row]).expect("a base matrix has rows");
            let lightest = (0..rows).min_by_key(|&row| weights[row]).expect("a base matrix has rows");
            if weights[heaviest] <= weights[lightest] + 1 {
                break;
            }
            let has = |column: &[u32], row: usize| column.contains(&(row as u32));
            let movable: Vec<usize> = (0..columns.len())
                .filter(|&at| has(&columns[at], heaviest) && !has(&columns[at], lightest))
                .collect();
            let column = &mut columns[movable[stream.below(movable.len() as u64) as usize]];
            let cell =
                column.iter_mut().find(|row| **row == heaviest as u32).expect("the column has the row");
            *cell = lightest as u32;
            weights[heaviest] -= 1;
            weights[lightest] += 1;
        }
        columns.iter_mut().for_each(|column| column.sort_unstable());
        columns
    }

    /// Draws shifts for the circulants in `block_rows` of a new block column. Each shift is the first one from a random
    /// start that closes no cycle of length 4. `None` if a circulant has no such shift.
    fn shifts(
        &self,
        block_rows: &[u32],
        taken: &HashSet<(u32, u32, u32)>,
        stream: &mut Stream,
    ) -> Option<Vec<u32>> {
        let lifting = u64::from(self.lifting);
        let mut shifts: Vec<u32> = Vec::with_capacity(block_rows.len());
        for _ in block_rows {
            let start = stream.below(lifting);
            shifts.push(0);
            let last = shifts.len() - 1;
            let shift = (0..lifting).map(|step| ((start + step) % lifting) as u32).find(|&shift| {
                shifts[last] = shift;
                let mut new = differences(block_rows, &shifts, self.lifting)
                    .filter(|&(_, below, _)| below == block_rows[last]);
                new.all(|difference| !taken.contains(&difference))
            });
            shift?;
        }
        Some(shifts)
    }
}

/// The pairs of block rows of a block column with the differences of their shifts; `shifts` may be shorter.
fn differences(block_rows: &[u32], shifts: &[u32], lifting: u32) -> impl Iterator<Item = (u32, u32, u32)> {
    let cells: Vec<(u32, u32)> = block_rows.iter().copied().zip(shifts.iter().copied()).collect();
    let count = cells.len();
    let pairs = (0..count).flat_map(move |at| (at + 1..count).map(move |below| (at, below)));
    pairs.map(move |(at, below)| {
        let ((row, shift), (below, other)) = (cells[at], cells[below]);
        (row, below, (shift + lifting - other) % lifting)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_4_kib_code_has_its_size_and_weights() {
        let code = Description::KIB_4.build().unwrap();
        assert_eq!((code.bits(), code.checks(), code.edges()), (36_864, 4_096, 147_456));
        assert!((0..8).all(|row| code.circulants(row).len() == 36));
        assert_eq!((code.column_weight_max(), code.four_cycle()), (4, None));
        assert_eq!(Description::KIB_4.build().unwrap(), code);
        assert_ne!(Description { seed: 2, ..Description::KIB_4 }.build().unwrap(), code);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_code_has_its_weights_and_no_four_cycles(
            rows in 2u32..9, more in 1u32..20, lifting in 1u32..200, weight in 2u32..6, seed: u64,
        ) {
            let description =
                Description { rows, columns: rows + more, lifting, column_weight: weight.min(rows), seed };
            match description.build() {
                Ok(code) => {
                    prop_assert_eq!(code.four_cycle(), None);
                    let weights: Vec<usize> =
                        (0..rows as usize).map(|row| code.circulants(row).len()).collect();
                    prop_assert!(weights.iter().max().unwrap() - weights.iter().min().unwrap() <= 1);
                    let weight = description.column_weight as usize;
                    let regular = (0..code.bits()).all(|bit| code.checks_of(bit).count() == weight);
                    prop_assert!(regular);
                }
                Err(error) => {
                    prop_assert!(error.message().contains("no cycle of length 4"), "{}", error);
                    // Two block rows have `lifting` differences; with ample room shifts are found.
                    prop_assert!(lifting < 8 * (rows + more), "{}", error);
                }
            }
        }
    }

    #[test]
    fn impossible_descriptions_are_refused_with_a_remedy() {
        let refused = |description: Description| description.build().unwrap_err().to_string();
        let base = Description { rows: 3, columns: 8, lifting: 16, column_weight: 3, seed: 1 };
        assert!(refused(Description { rows: 8, ..base }).contains("leaves no data bits"));
        assert!(refused(Description { column_weight: 4, ..base }).contains("not in 2..=3"));
        assert!(refused(Description { column_weight: 1, ..base }).contains("not in 2..=3"));
        assert!(refused(Description { lifting: 0, ..base }).contains("lifting size is 0"));
        // Eight columns need eight differences of each pair of rows.
        let text = refused(Description { lifting: 7, ..base });
        assert!(text.contains("close no cycle of length 4"), "{text}");
        assert!(text.contains("choose a lifting size above 7"), "{text}");
    }
}
