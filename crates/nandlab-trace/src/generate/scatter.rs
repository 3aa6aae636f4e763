//! A random permutation of `0..n`, which spreads neighbouring ranks over the address space.
//!
//! A four-round Feistel network permutes the numbers of b bits; b is the smallest even number of bits that can hold
//! every number below `n`. The network is applied again until the result is below `n` (cycle walking). On average there
//! are fewer than four applications.

use nandlab_base::base::rng::Stream;

/// A keyed permutation of `0..n` in constant memory.
#[derive(Clone, Copy, Debug)]
pub struct Scatter {
    n: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Scatter {
    /// A permutation of `0..n` with keys from `random`.
    pub fn new(n: u64, random: &mut Stream) -> Self {
        let bits = 64 - n.max(2).saturating_sub(1).leading_zeros();
        Self { n, half_bits: bits.div_ceil(2), keys: std::array::from_fn(|_| random.bits()) }
    }

    /// The image of `x`, which is below `n`.
    pub fn at(&self, mut x: u64) -> u64 {
        debug_assert!(x < self.n.max(1));
        if self.n < 2 {
            return 0;
        }
        let mask = (1u64 << self.half_bits) - 1;
        loop {
            let (mut left, mut right) = (x >> self.half_bits, x & mask);
            for key in self.keys {
                let mixed = (right ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                (left, right) = (right, left ^ ((mixed ^ (mixed >> 29)) >> 7 & mask));
            }
            x = left << self.half_bits | right;
            if x < self.n {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_one_preimage() {
        for n in [1, 2, 3, 5, 64, 1000, 4097, 100_000] {
            let scatter = Scatter::new(n, &mut Stream::new(n, "scatter test"));
            let mut seen = vec![false; n as usize];
            for x in 0..n {
                let at = scatter.at(x) as usize;
                assert!(!std::mem::replace(&mut seen[at], true), "n = {n}");
            }
        }
    }

    #[test]
    fn large_spaces_stay_in_range() {
        let n = u64::MAX - 5;
        let scatter = Scatter::new(n, &mut Stream::new(1, "scatter test"));
        assert!((0..1000).all(|x| scatter.at(x) < n));
    }

    #[test]
    fn low_ranks_are_spread() {
        let n = 1 << 20;
        let scatter = Scatter::new(n, &mut Stream::new(1, "scatter spread"));
        let below = (0..10_000).filter(|&x| scatter.at(x) < n / 2).count();
        assert!((4_700..5_300).contains(&below), "{below}");
    }
}
