//! A hash table whose keys are numbers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A hash table by number. It has no secret, so a run is the same everywhere.
pub type NumberMap<T> = HashMap<u32, T, BuildHasherDefault<Spread>>;

/// Spreads numbers over a hash table.
#[derive(Default)]
pub struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("the keys are numbers of 32 bits")
    }

    #[inline(always)]
    fn write_u32(&mut self, number: u32) {
        // The table takes its index from the low bits, which a product leaves as they are.
        let product = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}
