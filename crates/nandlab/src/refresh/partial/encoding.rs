//! The size in bytes of the encoded susceptible bits of a unit. Section and figure numbers refer to the partial refresh
//! paper.

use super::Encoding;
use crate::base::huge::Huge;

/// Computes the encoded size from the number of susceptible bits.
#[derive(Debug)]
pub struct EncodedSize {
    encoding: Encoding,
    unit_bits: u32,
    codeword_bits: u32,
    /// By number of susceptible bits, the size plus 1 once it has been computed, and 0 before. Units of a drive have
    /// similar numbers, and the computation takes three gamma functions. Empty where the computation is short.
    known: Huge<u32>,
}

impl EncodedSize {
    /// Sets up the computation for units of `unit_bytes` bytes, divided into codewords of `codeword_bits`.
    pub fn new(encoding: Encoding, unit_bytes: u32, codeword_bits: u32) -> Self {
        let unit_bits = unit_bytes * 8;
        let known = Huge::zeroed(if encoding == Encoding::Enumerative { unit_bits as usize + 1 } else { 0 });
        Self { encoding, unit_bits, codeword_bits, known }
    }

    /// [`EncodedSize::bytes`], which is computed once for each number.
    pub fn bytes_once(&mut self, susceptible: u32) -> u32 {
        let known = self.known.get(susceptible as usize).copied().unwrap_or(0);
        if known > 0 {
            return known - 1;
        }
        let bytes = self.bytes(susceptible);
        if let Some(known) = self.known.get_mut(susceptible as usize) {
            *known = bytes + 1;
        }
        bytes
    }

    /// Encoded size of `susceptible` susceptible bits, in bytes; may exceed a unit.
    pub fn bytes(&self, susceptible: u32) -> u32 {
        let bits = match self.encoding {
            // Section 4.1: one bit per susceptible bit.
            Encoding::Paper => f64::from(susceptible),
            // Section 3.3: an entry (offset in the codeword, and value) for each susceptible bit, and one more entry
            // per codeword.
            Encoding::Entries => {
                let codewords = self.unit_bits.div_ceil(self.codeword_bits);
                let offset_bits = u32::BITS - (self.codeword_bits - 1).leading_zeros();
                f64::from(susceptible + codewords) * f64::from(offset_bits + 1)
            }
            // log2 of the number of ways to choose the positions, and a value for each susceptible bit.
            Encoding::Enumerative => {
                log2_choose(self.unit_bits, susceptible.min(self.unit_bits)) + f64::from(susceptible)
            }
        };
        libm::ceil(bits / 8.0) as u32
    }
}

/// log2 of the number of ways to choose k of n positions.
fn log2_choose(n: u32, k: u32) -> f64 {
    let log_factorial = |n: u32| libm::lgamma(f64::from(n) + 1.0);
    // 1e-6 absorbs rounding errors: the position of one of 128 bits takes 7 bits, which come out as 7.00000000000002.
    // With the bit for the value, these are 8 bits, which must not be rounded up to two bytes.
    let log2 = (log_factorial(n) - log_factorial(k) - log_factorial(n - k)) / std::f64::consts::LN_2;
    (log2 - 1e-6).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: u32 = 16 * 1024;

    /// Encoded size in units if `ratio` of the bits of a unit are susceptible.
    fn units(encoding: Encoding, codeword_bits: u32, ratio: f64) -> f64 {
        let susceptible = (ratio * f64::from(8 * UNIT)).round() as u32;
        f64::from(EncodedSize::new(encoding, UNIT, codeword_bits).bytes(susceptible)) / f64::from(UNIT)
    }

    #[test]
    fn the_size_is_the_number_of_entries_times_the_bits_of_an_entry() {
        // For codewords of 2048 bits an entry has 11 + 1 bits: 0.0788 x 12 + 12 / 2048 = 0.95 units.
        for (codeword_bits, expected) in [(2048, 0.95), (4096, 1.03), (8192, 1.10), (32768, 1.26)] {
            let units = units(Encoding::Entries, codeword_bits, 0.0788);
            assert!((units - expected).abs() < 0.006, "{codeword_bits}: {units}");
        }
        assert!((units(Encoding::Entries, 8192, 0.0263) - 0.37).abs() < 0.005);
        assert!((units(Encoding::Paper, 8192, 0.0788) - 0.0788).abs() < 1e-4);
    }

    #[test]
    fn the_size_agrees_with_the_example_of_the_paper_of_two_codewords_of_four_bits() {
        // Fig. 5: each entry has an offset of two bits and a value of one bit. There are four entries: for two
        // susceptible bits, and for the first bit of each of the two codewords.
        let size = EncodedSize::new(Encoding::Entries, 1, 4);
        assert_eq!(size.bytes(2), (4u32 * 3).div_ceil(8));
    }

    #[test]
    fn the_enumerative_size_is_the_entropy() {
        // The 28 ways to choose 2 of 8 positions take 4.81 bits and the two values 2 bits: rounded up, one byte.
        assert_eq!(EncodedSize::new(Encoding::Enumerative, 1, 8).bytes(2), 1);
        assert_eq!(EncodedSize::new(Encoding::Enumerative, 1, 8).bytes(0), 0);
        for encoding in [Encoding::Paper, Encoding::Entries, Encoding::Enumerative] {
            let mut size = EncodedSize::new(encoding, 2, 8);
            for susceptible in (0..20).chain(0..20) {
                assert_eq!(size.bytes_once(susceptible), size.bytes(susceptible));
            }
        }
        let entropy = |p: f64| -p * p.log2() - (1.0 - p) * (1.0 - p).log2();
        for ratio in [0.01, 0.0788, 0.3] {
            let units = units(Encoding::Enumerative, 8192, ratio);
            assert!((units - entropy(ratio) - ratio).abs() < 1e-3, "{ratio}: {units}");
        }
    }
}
