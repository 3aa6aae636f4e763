//! A code as its parity-check matrix: circulants of one size, or, with the size 1, any matrix.

use crate::bits::Bits;
use crate::error::LdpcError;

/// A cyclically shifted identity matrix in a block row of the parity-check matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Circulant {
    /// The block column, from 0.
    pub column: u32,
    /// The shift, in `0..lifting`: check i of the block row involves bit (i + shift) mod lifting of the block column.
    pub shift: u32,
}

/// The most bits of a codeword.
pub const BITS_MAX: usize = 1 << 24;

/// The lifting size up to which sizes are tried for a matrix without given circulants.
const LIFTING_MAX: usize = 1 << 16;

/// A binary linear code, given by its parity-check matrix.
///
/// The matrix consists of square blocks of `lifting` rows and columns. Each block is 0 or one circulant, a cyclically
/// shifted identity matrix (M. P. C. Fossorier, "Quasi-cyclic low-density parity-check codes from circulant permutation
/// matrices", IEEE Trans. Inf. Theory 50(8), 2004). With `lifting` 1 every block is a single bit, so any matrix is a
/// code. Its rows may be linearly dependent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    lifting: u32,
    /// The circulants of each block row, in ascending order of columns.
    rows: Vec<Vec<Circulant>>,
    /// The block rows and shifts of each block column, in ascending order of rows.
    columns: Vec<Vec<(u32, u32)>>,
}

/// Four bits of a parity-check matrix that are 1 in two rows and two columns: the shortest cycle of the Tanner graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FourCycle {
    /// The two block rows.
    pub rows: [u32; 2],
    /// The two block columns.
    pub columns: [u32; 2],
}

impl Code {
    /// The code of `columns` block columns with the circulants of each block row, in any order.
    ///
    /// # Errors
    ///
    /// If there is no row or column, if a column or shift is out of range, if a block has two circulants, if a block
    /// column has none (nothing would protect its bits), or if a codeword would have more than [`BITS_MAX`] bits.
    pub fn new(lifting: u32, columns: u32, mut rows: Vec<Vec<Circulant>>) -> Result<Self, LdpcError> {
        let error = |message: String, remedy: &str| Err(LdpcError::new(message, remedy));
        if lifting == 0 || columns == 0 || rows.is_empty() {
            let size =
                format!("{} block rows and {columns} block columns of lifting size {lifting}", rows.len());
            return error(format!("a code of {size} has no bits or no checks"), "give sizes of at least 1");
        }
        let (blocks, size) = (columns as usize, lifting as usize);
        if blocks.saturating_mul(size) > BITS_MAX || rows.len().saturating_mul(size) > BITS_MAX {
            let size =
                format!("{} block rows and {columns} block columns of lifting size {lifting}", rows.len());
            let limit = format!("are more than {BITS_MAX} bits or checks");
            return error(format!("{size} {limit}"), "choose a shorter code");
        }
        let mut by_column = vec![Vec::new(); blocks];
        for (row, circulants) in rows.iter_mut().enumerate() {
            circulants.sort_unstable();
            for (at, &Circulant { column, shift }) in circulants.iter().enumerate() {
                if column >= columns || shift >= lifting {
                    return error(
                        format!(
                            "block row {row}: column {column} and shift {shift} are not below {columns} and {lifting}"
                        ),
                        "number columns from 0, and take shifts modulo the lifting size",
                    );
                }
                if at > 0 && circulants[at - 1].column == column {
                    return error(
                        format!("block row {row} has two circulants in column {column}"),
                        "give one circulant for each block, or expand the matrix (lifting size 1)",
                    );
                }
                by_column[column as usize].push((row as u32, shift));
            }
        }
        if let Some(column) = by_column.iter().position(Vec::is_empty) {
            return error(
                format!("no check involves column {column}, so nothing protects its bits"),
                "remove the column, or give it a check",
            );
        }
        Ok(Self { lifting, rows, columns: by_column })
    }

    /// The code of any matrix, from the columns of the bits that are 1 in each row.
    ///
    /// If the matrix consists of circulants, the code has the largest lifting size that fits; otherwise the lifting
    /// size is 1.
    ///
    /// # Errors
    ///
    /// As for [`Code::new`], with rows and columns of bits.
    pub fn from_rows(bits: u32, rows: Vec<Vec<u32>>) -> Result<Self, LdpcError> {
        let ones = rows.iter().map(|row| row.iter().map(|&column| Circulant { column, shift: 0 }).collect());
        let plain = Self::new(1, bits, ones.collect())?;
        let (bits, checks) = (plain.bits(), plain.checks());
        let sizes = (2..=bits.min(checks).min(LIFTING_MAX)).rev();
        let fitting = sizes.filter(|&size| bits.is_multiple_of(size) && checks.is_multiple_of(size));
        Ok(fitting.into_iter().find_map(|size| plain.grouped(size)).unwrap_or(plain))
    }

    /// The same matrix with blocks of `size`, if each block is 0 or one circulant. `self` has the lifting size 1.
    fn grouped(&self, size: usize) -> Option<Self> {
        let mut rows = Vec::with_capacity(self.checks() / size);
        let mut expected = Vec::new();
        for block in self.rows.chunks(size) {
            let split = |one: &Circulant| Circulant {
                column: one.column / size as u32,
                shift: one.column % size as u32,
            };
            let circulants: Vec<Circulant> = block[0].iter().map(split).collect();
            if circulants.windows(2).any(|pair| pair[0].column == pair[1].column) {
                return None;
            }
            for (i, row) in block.iter().enumerate() {
                expected.clear();
                expected.extend(circulants.iter().map(|circulant| {
                    circulant.column * size as u32 + (circulant.shift + i as u32) % size as u32
                }));
                if !row.iter().map(|one| one.column).eq(expected.iter().copied()) {
                    return None;
                }
            }
            rows.push(circulants);
        }
        Self::new(size as u32, (self.bits() / size) as u32, rows).ok()
    }

    /// Rows and columns of a block.
    pub fn lifting(&self) -> usize {
        self.lifting as usize
    }

    /// Number of block rows.
    pub fn block_rows(&self) -> usize {
        self.rows.len()
    }

    /// Number of block columns.
    pub fn block_columns(&self) -> usize {
        self.columns.len()
    }

    /// The circulants of block row `row`, in ascending order of columns.
    ///
    /// # Panics
    ///
    /// If `row` is not below [`Code::block_rows`].
    pub fn circulants(&self, row: usize) -> &[Circulant] {
        &self.rows[row]
    }

    /// Bits of a codeword.
    pub fn bits(&self) -> usize {
        self.columns.len() * self.lifting()
    }

    /// Rows of the parity-check matrix.
    pub fn checks(&self) -> usize {
        self.rows.len() * self.lifting()
    }

    /// Bits of the parity-check matrix that are 1: the edges of the Tanner graph.
    pub fn edges(&self) -> usize {
        self.rows.iter().map(Vec::len).sum::<usize>() * self.lifting()
    }

    /// The largest number of checks of a bit.
    pub fn column_weight_max(&self) -> usize {
        self.columns.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The largest number of bits of a check.
    pub fn row_weight_max(&self) -> usize {
        self.rows.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The bits that check `check` involves, in ascending order of block columns.
    ///
    /// # Panics
    ///
    /// If `check` is not below [`Code::checks`].
    pub fn bits_of(&self, check: usize) -> impl Iterator<Item = usize> + '_ {
        let (lifting, row, i) = (self.lifting(), check / self.lifting(), check % self.lifting());
        self.rows[row].iter().map(move |circulant| {
            let sum = i + circulant.shift as usize;
            circulant.column as usize * lifting + if sum < lifting { sum } else { sum - lifting }
        })
    }

    /// The checks that involve bit `bit`, in ascending order.
    ///
    /// # Panics
    ///
    /// If `bit` is not below [`Code::bits`].
    pub fn checks_of(&self, bit: usize) -> impl Iterator<Item = usize> + '_ {
        let (lifting, column, i) = (self.lifting(), bit / self.lifting(), bit % self.lifting());
        self.columns[column].iter().map(move |&(row, shift)| {
            let shift = shift as usize;
            row as usize * lifting + if i >= shift { i - shift } else { i + lifting - shift }
        })
    }

    /// The syndrome H c of a word: bit i is 1 if check i is not satisfied.
    ///
    /// # Panics
    ///
    /// If `word` has not [`Code::bits`] bits.
    pub fn syndrome(&self, word: &Bits) -> Bits {
        assert_eq!(word.len(), self.bits(), "a word of the code has {} bits", self.bits());
        let mut syndrome = Bits::zeros(self.checks());
        for bit in word.ones() {
            for check in self.checks_of(bit) {
                syndrome.flip(check);
            }
        }
        syndrome
    }

    /// Whether `word` is a codeword: it satisfies all checks.
    ///
    /// # Panics
    ///
    /// If `word` has not [`Code::bits`] bits.
    pub fn has(&self, word: &Bits) -> bool {
        self.syndrome(word).count_ones() == 0
    }

    /// A cycle of length 4 in the Tanner graph, if there is one.
    ///
    /// Two circulants each in two block rows close such a cycle if the differences of their shifts agree (Fossorier
    /// 2004, with the cycle length 4).
    pub fn four_cycle(&self) -> Option<FourCycle> {
        let mut pairs = Vec::new();
        for (column, circulants) in self.columns.iter().enumerate() {
            for (at, &(row, shift)) in circulants.iter().enumerate() {
                for &(below, other) in &circulants[at + 1..] {
                    pairs.push((row, below, (shift + self.lifting - other) % self.lifting, column as u32));
                }
            }
        }
        pairs.sort_unstable();
        let close = |pair: &&[(u32, u32, u32, u32)]| {
            let [(row, below, difference, _), other] = pair else { unreachable!("windows of two") };
            (*row, *below, *difference) == (other.0, other.1, other.2)
        };
        pairs
            .windows(2)
            .find(close)
            .map(|pair| FourCycle { rows: [pair[0].0, pair[0].1], columns: [pair[0].3, pair[1].3] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circulants(row: &[(u32, u32)]) -> Vec<Circulant> {
        row.iter().map(|&(column, shift)| Circulant { column, shift }).collect()
    }

    /// Two block rows and three block columns of lifting size 3: [I1 0 I0; I2 I0 0].
    fn small() -> Code {
        Code::new(3, 3, vec![circulants(&[(2, 0), (0, 1)]), circulants(&[(0, 2), (1, 0)])]).unwrap()
    }

    #[test]
    fn check_i_of_a_circulant_involves_bit_i_plus_shift() {
        let code = small();
        let bits: Vec<Vec<usize>> = (0..6).map(|check| code.bits_of(check).collect()).collect();
        assert_eq!(bits, [[1, 6], [2, 7], [0, 8], [2, 3], [0, 4], [1, 5]]);
        for bit in 0..9 {
            let checks: Vec<usize> = (0..6).filter(|&check| code.bits_of(check).any(|b| b == bit)).collect();
            assert_eq!(code.checks_of(bit).collect::<Vec<_>>(), checks, "bit {bit}");
        }
        assert_eq!((code.bits(), code.checks(), code.edges()), (9, 6, 12));
        assert_eq!((code.column_weight_max(), code.row_weight_max()), (2, 2));
    }

    #[test]
    fn a_syndrome_has_the_checks_of_the_wrong_bits() {
        let code = small();
        let mut word = Bits::zeros(9);
        assert!(code.has(&word));
        word.flip(0);
        assert_eq!(code.syndrome(&word).ones().collect::<Vec<_>>(), [2, 4]);
        word.flip(4);
        word.flip(8);
        assert!(code.has(&word));
    }

    #[test]
    fn a_matrix_of_circulants_is_found_with_its_largest_size() {
        let code = small();
        let rows = |code: &Code| {
            (0..code.checks()).map(|check| code.bits_of(check).map(|bit| bit as u32).collect()).collect()
        };
        assert_eq!(Code::from_rows(9, rows(&code)).unwrap(), code);
        let mut other: Vec<Vec<u32>> = rows(&code);
        other[4].push(5);
        assert_eq!(Code::from_rows(9, other).unwrap().lifting(), 1);
    }

    #[test]
    fn four_cycles_are_found() {
        assert_eq!(small().four_cycle(), None);
        let rows = vec![circulants(&[(0, 1), (1, 4)]), circulants(&[(0, 2), (1, 0)])];
        let code = Code::new(5, 2, rows).unwrap();
        assert_eq!(code.four_cycle(), Some(FourCycle { rows: [0, 1], columns: [0, 1] }));
    }

    #[test]
    fn impossible_matrices_are_refused() {
        let refused = |lifting, columns, rows: Vec<Vec<Circulant>>| {
            Code::new(lifting, columns, rows).unwrap_err().message().to_owned()
        };
        assert!(refused(0, 1, vec![vec![]]).contains("no bits or no checks"));
        assert!(refused(2, 1, vec![circulants(&[(0, 2)])]).contains("not below 1 and 2"));
        assert!(refused(2, 1, vec![circulants(&[(0, 0), (0, 1)])]).contains("two circulants in column 0"));
        assert!(refused(2, 2, vec![circulants(&[(0, 0)])]).contains("no check involves column 1"));
        assert!(refused(1 << 20, 17, vec![vec![]]).contains("more than 16777216 bits"));
    }
}
