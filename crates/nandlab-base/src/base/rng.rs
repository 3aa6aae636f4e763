//! Seeded random streams, one per policy or generator.
//!
//! Every user of randomness owns a stream, which follows from the run's seed and the user's name, such as its spec
//! key. So replacing one policy does not change the draws of another.

use super::state::{State, StateError, StateReader, StateWriter, Value};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A portable, seeded random stream (ChaCha8).
#[derive(Clone, Debug)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// The stream of the user `name` in a run with `seed`.
    pub fn new(seed: u64, name: &str) -> Self {
        // FNV-1a, so that the stream depends on the whole name.
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3));
        Self(ChaCha8Rng::seed_from_u64(seed ^ hash))
    }

    /// Draws 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Draws a uniform number in `0..n` (Lemire's method, without the rejection step: the bias is below n / 2^64).
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Draws a uniform number in `[0, 1)`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// The state is the key, the number of the stream, and the number of words that have been drawn.
impl State for Stream {
    fn save_state(&self, out: &mut StateWriter<'_>) {
        let Self(random) = self;
        (random.get_seed(), random.get_stream(), random.get_word_pos()).save(out);
    }

    fn load_state(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
        let (seed, stream, drawn) = Value::load(from)?;
        let mut random = ChaCha8Rng::from_seed(seed);
        random.set_stream(stream);
        random.set_word_pos(drawn);
        self.0 = random;
        Ok(())
    }
}

/// The finaliser of SplitMix64 (G. L. Steele, D. Lea and C. H. Flood, OOPSLA 2014): mixes the bits of a number.
#[inline]
pub fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
