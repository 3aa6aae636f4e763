//! The encoder: parity bits from data bits, for any parity-check matrix.

use crate::bits::Bits;
use crate::code::Code;
use crate::error::LdpcError;
use std::fmt;
use std::ops::Range;

/// The systematic encoder of a code.
///
/// The rows of the parity-check matrix H may be linearly dependent. Construction finds by Gaussian elimination a matrix
/// T of invertible row operations, such that T H has the identity matrix in the columns of the parity bits and
/// otherwise only rows of zeros. The parity bits of data d, with 0 in their own places, are then the rows of T H d. H d
/// is cheap, because H is sparse, and T is a dense matrix of checks * checks bits only.
///
/// The columns of the parity bits are searched from the last one on, so the data bits come first in the codeword, in
/// their order, as far as the rank of the last columns allows.
#[derive(Clone)]
pub struct Encoder {
    code: Code,
    /// The row of T for each parity bit, `words_per_row` machine words each.
    rows: Vec<u64>,
    words_per_row: usize,
    /// The place of the parity bit of each of the rows.
    parity: Vec<u32>,
    /// The places of the data bits, in ascending order.
    data: Vec<u32>,
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder")
            .field("bits", &self.code.bits())
            .field("data_bits", &self.data_bits())
            .finish_non_exhaustive()
    }
}

impl Encoder {
    /// The encoder of `code`. Elimination takes about checks^3 / 128 operations on machine words, half a second for the
    /// 4,096 checks of [`Description::KIB_4`](crate::Description::KIB_4), and checks^2 / 8 bytes.
    ///
    /// # Errors
    ///
    /// If the code has no data bits: as many independent checks as bits.
    pub fn new(code: &Code) -> Result<Self, LdpcError> {
        let (checks, bits) = (code.checks(), code.bits());
        let width = checks.div_ceil(64);
        let mut t = vec![0u64; checks * width];
        for row in 0..checks {
            t[row * width + row / 64] = 1 << (row % 64);
        }
        // Rows below `rank` have their parity bit; a column of T H is the sum of the columns of T at the checks of the
        // bit.
        let mut parity: Vec<u32> = Vec::new();
        let mut column = vec![false; checks];
        let mut pivot_row = vec![0u64; width];
        let sum_up = |column: &mut [bool], rows: Range<usize>, t: &[u64], bit: usize| {
            for check in code.checks_of(bit) {
                let (word, place) = (check / 64, check % 64);
                for row in rows.clone() {
                    column[row] ^= t[row * width + word] >> place & 1 == 1;
                }
            }
        };
        for bit in (0..bits).rev() {
            let rank = parity.len();
            if rank == checks {
                break;
            }
            column.fill(false);
            sum_up(&mut column, rank..checks, &t, bit);
            let Some(pivot) = (rank..checks).find(|&row| column[row]) else { continue };
            // The rows above matter only if there is a pivot.
            sum_up(&mut column, 0..rank, &t, bit);
            if pivot != rank {
                let (above, below) = t.split_at_mut(pivot * width);
                above[rank * width..][..width].swap_with_slice(&mut below[..width]);
                column.swap(rank, pivot);
            }
            pivot_row.copy_from_slice(&t[rank * width..][..width]);
            for (row, words) in t.chunks_exact_mut(width).enumerate() {
                if column[row] && row != rank {
                    words.iter_mut().zip(&pivot_row).for_each(|(word, pivot)| *word ^= pivot);
                }
            }
            parity.push(bit as u32);
        }
        t.truncate(parity.len() * width);
        let mut is_parity = Bits::zeros(bits);
        parity.iter().for_each(|&bit| is_parity.flip(bit as usize));
        let data: Vec<u32> = (0..bits).filter(|&bit| !is_parity.get(bit)).map(|bit| bit as u32).collect();
        if data.is_empty() {
            return Err(LdpcError::new(
                format!("the {checks} checks leave no data bits: {} of them are independent", parity.len()),
                "use a code with more bits than independent checks",
            ));
        }
        Ok(Self { code: code.clone(), rows: t, words_per_row: width, parity, data })
    }

    /// The code.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// Bits of data that a codeword carries: the bits of a codeword less the rank of the parity-check matrix.
    pub fn data_bits(&self) -> usize {
        self.data.len()
    }

    /// Independent rows of the parity-check matrix: the number of parity bits.
    pub fn rank(&self) -> usize {
        self.parity.len()
    }

    /// The places of the data bits in a codeword, in ascending order.
    pub fn data_places(&self) -> &[u32] {
        &self.data
    }

    /// The codeword of `data`.
    ///
    /// # Panics
    ///
    /// If `data` has not [`Encoder::data_bits`] bits.
    pub fn encode(&self, data: &Bits) -> Bits {
        assert_eq!(data.len(), self.data_bits(), "a codeword carries {} data bits", self.data_bits());
        let mut word = Bits::zeros(self.code.bits());
        for bit in data.ones() {
            word.flip(self.data[bit] as usize);
        }
        let syndrome = self.code.syndrome(&word);
        for (row, &bit) in self.rows.chunks_exact(self.words_per_row).zip(&self.parity) {
            let sum = row.iter().zip(syndrome.words()).fold(0, |sum, (row, word)| sum ^ (row & word));
            if sum.count_ones() % 2 == 1 {
                word.flip(bit as usize);
            }
        }
        word
    }

    /// The data bits of `word`.
    ///
    /// # Panics
    ///
    /// If `word` has not the bits of a codeword.
    pub fn data(&self, word: &Bits) -> Bits {
        assert_eq!(word.len(), self.code.bits(), "a word of the code has {} bits", self.code.bits());
        self.data.iter().map(|&bit| word.get(bit as usize)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::construct::Description;
    use nandlab_base::base::rng::Stream;
    use proptest::prelude::*;

    /// The rank of the rows, by elimination on lists of truth values.
    fn rank(code: &Code) -> usize {
        let mut rows: Vec<Vec<bool>> = (0..code.checks())
            .map(|check| {
                let mut row = vec![false; code.bits()];
                code.bits_of(check).for_each(|bit| row[bit] = true);
                row
            })
            .collect();
        let mut rank = 0;
        for bit in 0..code.bits() {
            let Some(pivot) = (rank..rows.len()).find(|&row| rows[row][bit]) else { continue };
            rows.swap(rank, pivot);
            let pivot = rows[rank].clone();
            for row in rows.iter_mut().skip(rank + 1).filter(|row| row[bit]) {
                row.iter_mut().zip(&pivot).for_each(|(a, &b)| *a ^= b);
            }
            rank += 1;
        }
        rank
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn every_codeword_satisfies_every_check_and_carries_its_data(
            bits in 2u32..80,
            rows in prop::collection::vec(prop::collection::btree_set(0u32..80, 0..12), 1..40),
            copies in 0usize..4,
            seed: u64,
        ) {
            // Random rows, some of them repeated, and one row with all bits.
            let mut rows: Vec<Vec<u32>> =
                rows.into_iter().map(|row| row.into_iter().filter(|&bit| bit < bits).collect()).collect();
            rows.extend_from_within(..copies.min(rows.len()));
            rows.push((0..bits).collect());
            let code = Code::from_rows(bits, rows).unwrap();
            match Encoder::new(&code) {
                Ok(encoder) => {
                    prop_assert_eq!(encoder.rank(), rank(&code));
                    prop_assert_eq!(encoder.data_bits() + encoder.rank(), code.bits());
                    let mut stream = Stream::new(seed, "data");
                    for _ in 0..5 {
                        let data = Bits::random(encoder.data_bits(), &mut stream);
                        let word = encoder.encode(&data);
                        prop_assert!(code.has(&word));
                        prop_assert_eq!(encoder.data(&word), data);
                    }
                }
                Err(error) => {
                    prop_assert!(error.message().contains("leave no data bits"));
                    prop_assert_eq!(rank(&code), code.bits());
                }
            }
        }
    }

    #[test]
    fn the_hamming_code_has_its_sixteen_codewords() {
        // R. W. Hamming, "Error detecting and error correcting codes", Bell Syst. Tech. J. 29(2), 1950: check i
        // involves the positions, counted from 1, whose number has bit i.
        let rows = (0..3).map(|bit| (0..7).filter(|place| (place + 1) >> bit & 1 == 1).collect()).collect();
        let code = Code::from_rows(7, rows).unwrap();
        let encoder = Encoder::new(&code).unwrap();
        assert_eq!((encoder.data_bits(), encoder.rank()), (4, 3));
        let mut weights = [0; 8];
        for data in 0..16u32 {
            let word = encoder.encode(&(0..4).map(|bit| data >> bit & 1 == 1).collect());
            assert!(code.has(&word));
            weights[word.count_ones()] += 1;
        }
        // The weights of the Hamming code: 1 + 7 x^3 + 7 x^4 + x^7.
        assert_eq!(weights, [1, 0, 0, 7, 7, 0, 0, 1]);
    }

    #[test]
    fn the_dependent_rows_of_the_4_kib_code_add_data_bits() {
        // Every column has an even weight, so the sum of all rows is 0.
        let code = Description::KIB_4.build().unwrap();
        let encoder = Encoder::new(&code).unwrap();
        assert!(encoder.rank() < code.checks(), "rank {}", encoder.rank());
        assert!(encoder.data_bits() > 32_768);
        let data = Bits::random(encoder.data_bits(), &mut Stream::new(1, "data"));
        let word = encoder.encode(&data);
        assert!(code.has(&word));
        assert_eq!(encoder.data(&word), data);
    }
}
