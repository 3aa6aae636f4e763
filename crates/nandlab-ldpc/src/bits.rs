//! Words of bits, packed 64 to a machine word.

use nandlab_base::base::rng::Stream;

/// A word of a fixed number of bits, such as a codeword, its data or a syndrome.
///
/// Bit i is bit i mod 64 of machine word i / 64. The bits of the last machine word beyond the length are always 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits {
    len: usize,
    words: Vec<u64>,
}

impl Bits {
    /// A word of `len` bits, all 0.
    pub fn zeros(len: usize) -> Self {
        Self { len, words: vec![0; len.div_ceil(64)] }
    }

    /// A word of `len` uniform random bits.
    pub fn random(len: usize, stream: &mut Stream) -> Self {
        let mut bits = Self { len, words: (0..len.div_ceil(64)).map(|_| stream.bits()).collect() };
        bits.clear_beyond();
        bits
    }

    /// Sets the bits beyond the length to 0.
    fn clear_beyond(&mut self) {
        if let (Some(last), used @ 1..) = (self.words.last_mut(), self.len % 64) {
            *last &= (1 << used) - 1;
        }
    }

    /// Number of bits.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the word has no bits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The machine words, bit 0 first.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Appends the `count` lowest bits of `bits`, bit 0 first. The bits above are 0, and `count` is at most 64.
    pub(crate) fn append(&mut self, bits: u64, count: usize) {
        let used = self.len % 64;
        match self.words.last_mut() {
            Some(last) if used > 0 => {
                *last |= bits << used;
                if used + count > 64 {
                    self.words.push(bits >> (64 - used));
                }
            }
            _ if count > 0 => self.words.push(bits),
            _ => {}
        }
        self.len += count;
    }

    /// The value of bit `at`.
    ///
    /// # Panics
    ///
    /// If `at` is not below the length.
    #[inline]
    pub fn get(&self, at: usize) -> bool {
        assert!(at < self.len, "bit {at} of a word of {} bits", self.len);
        self.words[at / 64] >> (at % 64) & 1 == 1
    }

    /// Sets bit `at` to `value`.
    ///
    /// # Panics
    ///
    /// If `at` is not below the length.
    #[inline]
    pub fn set(&mut self, at: usize, value: bool) {
        if self.get(at) != value {
            self.flip(at);
        }
    }

    /// Inverts bit `at`.
    ///
    /// # Panics
    ///
    /// If `at` is not below the length.
    #[inline]
    pub fn flip(&mut self, at: usize) {
        assert!(at < self.len, "bit {at} of a word of {} bits", self.len);
        self.words[at / 64] ^= 1 << (at % 64);
    }

    /// Adds `other` modulo 2, bit by bit.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    pub fn add(&mut self, other: &Bits) {
        assert_eq!(self.len, other.len, "words of different lengths are added");
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word ^= other;
        }
    }

    /// Number of bits that are 1.
    pub fn count_ones(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The positions of the bits that are 1, in ascending order.
    pub fn ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(at, &word)| {
            std::iter::successors((word != 0).then_some(word), |&left| {
                let left = left & (left - 1);
                (left != 0).then_some(left)
            })
            .map(move |left| 64 * at + left.trailing_zeros() as usize)
        })
    }
}

impl FromIterator<bool> for Bits {
    fn from_iter<I: IntoIterator<Item = bool>>(bits: I) -> Self {
        let mut word = Self::zeros(0);
        bits.into_iter().for_each(|bit| word.append(u64::from(bit), 1));
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_word_behaves_like_a_list_of_truth_values(
            bits in prop::collection::vec(any::<bool>(), 0..300),
            flips in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let mut list = bits.clone();
            let mut word: Bits = bits.iter().copied().collect();
            if !list.is_empty() {
                for flip in flips {
                    let at = flip.index(list.len());
                    list[at] = !list[at];
                    word.flip(at);
                }
            }
            prop_assert_eq!(word.len(), list.len());
            prop_assert!((0..list.len()).all(|at| word.get(at) == list[at]));
            let ones: Vec<usize> = (0..list.len()).filter(|&at| list[at]).collect();
            prop_assert_eq!(word.count_ones(), ones.len());
            prop_assert_eq!(word.ones().collect::<Vec<_>>(), ones);
            let mut appended = Bits::zeros(0);
            for part in bits.chunks(1 + bits.len() / 5) {
                for part in part.chunks(64) {
                    let packed = part.iter().rev().fold(0, |packed, &bit| packed << 1 | u64::from(bit));
                    appended.append(packed, part.len());
                }
            }
            prop_assert_eq!(appended, bits.iter().copied().collect());
            let mut sum = word.clone();
            sum.add(&word);
            prop_assert_eq!(sum, Bits::zeros(list.len()));
        }
    }

    #[test]
    fn bits_beyond_the_length_stay_0() {
        assert_eq!(Bits::random(70, &mut Stream::new(2, "bits")).words()[1] >> 6, 0);
    }
}
